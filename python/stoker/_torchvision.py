"""Reads a torch ``DataLoader`` over image files: what it loads, and what its transforms mean here.

Only what is known for certain is taken; anything else raises ``Unknown`` with the part that was not known.
torch and torchvision are never imported: whoever has such a loader has them in the process already.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .transforms import (
    CenterCrop,
    Interpolation,
    Normalize,
    RandomHorizontalFlip,
    RandomResizedCrop,
    Resize,
    Transform,
)

# What the C++ core decodes; other kinds that ImageFolder takes stay with Pillow.
_DECODED = (".jpg", ".jpeg", ".png", ".webp", ".bmp")


class Unknown(Exception):
    """A part of the loader that has no exact counterpart here."""


@dataclass(frozen=True)
class Pipeline:
    """What a chain of torchvision transforms amounts to."""

    transforms: tuple[Transform, ...]
    unit_scale: str  # "divide" as ToTensor, "multiply" as ToDtype
    mapping: tuple[str, ...] = field(compare=False)  # one line a transform, for people


@dataclass(frozen=True)
class Data:
    """The files behind a dataset, and which of them it shows in which order."""

    samples: Sequence[tuple[str, int]]
    classes: tuple[str, ...]
    indices: Sequence[int] | None  # of a Subset
    pipeline: Pipeline


def read_loader(loader: Any, *, most_files: int | None = None) -> Data:
    """The whole of ``loader``, or ``Unknown``. Where ``most_files`` is given, so many file names are checked."""
    _check_loader(loader)
    _check_sampler(loader)
    return read_dataset(loader.dataset, most_files=most_files)


def read_dataset(dataset: Any, *, most_files: int | None = None) -> Data:
    """An ``ImageFolder`` or ``DatasetFolder`` with the default image loader, or a ``Subset`` of one."""
    indices: Sequence[int] | None = None
    torch_data = sys.modules["torch.utils.data"]
    while type(dataset) is torch_data.Subset:
        inner = list(dataset.indices)
        indices = inner if indices is None else [inner[i] for i in indices]
        dataset = dataset.dataset
    folder = _module("torchvision.datasets.folder")
    if folder is None or type(dataset) not in (folder.ImageFolder, folder.DatasetFolder):
        raise Unknown(f"the dataset {_name(dataset)}")
    if dataset.loader is not folder.default_loader:
        raise Unknown(f"the dataset's own image loader {_name(dataset.loader)}")
    if sys.modules["torchvision"].get_image_backend() != "PIL":
        raise Unknown(f"torchvision's image backend {sys.modules['torchvision'].get_image_backend()!r}")
    if dataset.target_transform is not None:
        raise Unknown(f"the target_transform {_name(dataset.target_transform)}")
    _check_files(dataset, most_files)
    return Data(dataset.samples, tuple(dataset.classes), indices, read_transform(dataset.transform))


def read_transform(transform: Any) -> Pipeline:
    """A v1 or v2 ``Compose``, or a single transform."""
    reader = _Reader()
    compose = [m.Compose for m in reader.versions]
    for step in transform.transforms if type(transform) in compose else [transform]:
        reader.read(step)
    return reader.pipeline()


class _Reader:
    """Walks a chain of transforms: on Pillow pictures first, on float tensors after the conversion."""

    def __init__(self) -> None:
        self.versions = [
            m for m in map(_module, ("torchvision.transforms.transforms", "torchvision.transforms.v2")) if m
        ]
        self._transforms: list[Transform] = []
        self._mapping: list[str] = []
        self._stage = "picture"  # then "bytes" (ToImage), "floats", "normalised"
        self._unit_scale = ""

    def read(self, step: Any) -> None:
        for kind, take in (
            ("RandomResizedCrop", self._random_resized_crop),
            ("Resize", self._resize),
            ("CenterCrop", self._center_crop),
            ("RandomHorizontalFlip", self._flip),
            ("ToTensor", self._to_tensor),
            ("ToImage", self._to_image),
            ("ToDtype", self._to_dtype),
            ("Normalize", self._normalize),
        ):
            if any(type(step) is getattr(version, kind, None) for version in self.versions):
                take(step)
                return
        raise Unknown(f"the transform {_name(step)}")

    def pipeline(self) -> Pipeline:
        if self._stage not in ("floats", "normalised"):
            raise Unknown("a transform that does not end in float tensors (ToTensor, or ToImage and ToDtype)")
        return Pipeline(tuple(self._transforms), self._unit_scale, tuple(self._mapping))

    def _random_resized_crop(self, step: Any) -> None:
        self._needs_picture(step)
        scale, ratio = (
            (float(step.scale[0]), float(step.scale[1])),
            (float(step.ratio[0]), float(step.ratio[1])),
        )
        self._take(step, RandomResizedCrop(_size(step.size), scale, ratio, _interpolation(step)))

    def _resize(self, step: Any) -> None:
        self._needs_picture(step)
        if step.size is None or step.max_size is not None:
            raise Unknown(f"Resize with max_size={step.max_size}")
        size = _size(step.size)
        self._take(step, Resize(size, _interpolation(step)))

    def _center_crop(self, step: Any) -> None:
        self._needs_picture(step)
        self._take(step, CenterCrop(_size(step.size)))

    def _flip(self, step: Any) -> None:
        self._take(step, RandomHorizontalFlip(float(step.p)))  # the same on pictures and tensors

    def _to_tensor(self, step: Any) -> None:
        self._needs_picture(step)
        if sys.modules["torch"].get_default_dtype() != sys.modules["torch"].float32:
            raise Unknown(f"torch's default dtype {sys.modules['torch'].get_default_dtype()}")
        self._stage, self._unit_scale = "floats", "divide"
        self._mapping.append("ToTensor → float32, v / 255")

    def _to_image(self, step: Any) -> None:
        self._needs_picture(step)
        self._stage = "bytes"
        self._mapping.append("ToImage → (layout)")

    def _to_dtype(self, step: Any) -> None:
        if self._stage != "bytes" or step.dtype != sys.modules["torch"].float32 or not step.scale:
            raise Unknown(f"{step!r} at this place (known: ToDtype(torch.float32, scale=True) after ToImage)")
        self._stage, self._unit_scale = "floats", "multiply"
        self._mapping.append("ToDtype(float32, scale=True) → float32, v · float(1 / 255)")

    def _normalize(self, step: Any) -> None:
        if self._stage != "floats":
            raise Unknown("Normalize at this place")
        mean, std = [float(m) for m in step.mean], [float(s) for s in step.std]
        if len(mean) != 3 or len(std) != 3 or not all(s > 0 for s in std):
            raise Unknown(f"Normalize with mean={mean}, std={std}")
        self._stage = "normalised"
        self._take(step, Normalize(mean, std))

    def _needs_picture(self, step: Any) -> None:
        if self._stage != "picture":
            raise Unknown(
                f"{type(step).__name__} on tensors (its pixels differ from those on Pillow pictures)"
            )

    def _take(self, step: Any, transform: Transform) -> None:
        # Normalize is the core's last step; a flip after it gives the same values.
        at = len(self._transforms)
        if at > 0 and isinstance(self._transforms[-1], Normalize):
            at -= 1
        self._transforms.insert(at, transform)
        self._mapping.append(f"{type(step).__name__} → {transform!r}")


def _check_loader(loader: Any) -> None:
    torch_data = sys.modules.get("torch.utils.data")
    if torch_data is None or type(loader) is not torch_data.DataLoader:
        raise Unknown(f"the loader {_name(loader)} (known: torch.utils.data.DataLoader itself)")
    if type(loader.batch_sampler) is not torch_data.BatchSampler:
        raise Unknown(
            "batching off"
            if loader.batch_sampler is None
            else f"the batch sampler {_name(loader.batch_sampler)}"
        )
    if loader.collate_fn is not torch_data.default_collate:
        raise Unknown(f"the collate_fn {_name(loader.collate_fn)}")
    if loader.worker_init_fn is not None:
        raise Unknown(f"the worker_init_fn {_name(loader.worker_init_fn)} (there are no workers to run it)")


def _check_sampler(loader: Any) -> None:
    torch_data = sys.modules["torch.utils.data"]
    known = [
        torch_data.SequentialSampler,
        torch_data.RandomSampler,
        torch_data.WeightedRandomSampler,
        torch_data.SubsetRandomSampler,
        torch_data.distributed.DistributedSampler,
    ]
    if type(loader.batch_sampler.sampler) not in known:
        raise Unknown(f"the sampler {_name(loader.batch_sampler.sampler)}")


def _check_files(dataset: Any, most: int | None) -> None:
    classes = len(dataset.classes)
    stride = 1 if most is None else max(1, -(-len(dataset.samples) // most))
    for path, label in dataset.samples[::stride]:
        if not path.lower().endswith(_DECODED):
            raise Unknown(f"files like {os.path.basename(path)} (known: {', '.join(_DECODED)})")
        if not 0 <= label < classes:
            raise Unknown(f"label {label} of {path}, outside [0, {classes})")


def _size(size: Any) -> int | tuple[int, int]:
    if isinstance(size, int):
        return size
    sides = [int(side) for side in size]
    return sides[0] if len(sides) == 1 else (sides[0], sides[1])


def _interpolation(step: Any) -> Interpolation:
    value = getattr(step.interpolation, "value", step.interpolation)
    names: dict[Any, Interpolation] = {
        "nearest": "nearest",
        "bilinear": "bilinear",
        "bicubic": "bicubic",
        0: "nearest",
        2: "bilinear",
        3: "bicubic",
    }
    if value not in names:
        raise Unknown(f"{type(step).__name__} with interpolation {value!r}")
    return names[value]


def _module(name: str) -> Any:
    return sys.modules.get(name)


def _name(thing: Any) -> str:
    kind = thing if isinstance(thing, type) or hasattr(thing, "__qualname__") else type(thing)
    return f"{kind.__module__}.{kind.__qualname__}"
