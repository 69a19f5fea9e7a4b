"""``ImageLoader``: batches of decoded images, read ahead by C++ threads."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from . import _native
from ._batches import Batch, EpochIterator, refuse_in_worker
from ._errors import bad_input
from ._loader_options import installed_arithmetic, native_options
from .sampling import Weighted, make_order
from .transforms import CenterCrop, Normalize, Resize, Transform, compile_recipe

if TYPE_CHECKING:
    from ._native import _FileIndex

Source = str | os.PathLike[str] | Sequence[tuple[str | os.PathLike[str], int]]
T = TypeVar("T")


class Column(Sequence[T], Generic[T]):
    """A read-only list that lives in C++; no Python object per sample."""

    def __init__(self, length: int, get: Callable[[int], T]) -> None:
        """``get(i)`` for i in [0, length)."""
        self._length = length
        self._get = get

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int | slice) -> Any:
        """One item, or a list of them."""
        if isinstance(index, slice):
            return [self._get(i) for i in range(*index.indices(self._length))]
        if not -self._length <= index < self._length:
            raise IndexError(f"sample {index} of {self._length}")
        return self._get(index % self._length)


class ImageLoader:
    """Batches of decoded images, read ahead by threads that this object owns.

    Use it in a ``with`` block, or let it go: the threads end within one image decode. Each ``for`` over it
    is one epoch, and the next one is the next epoch, unless ``set_epoch`` says otherwise. What a sample
    looks like depends on (seed, epoch, position) alone, never on ``threads``.

    Args:
        source: A class folder (torchvision's ImageFolder rules; hidden folders are passed over), or a list of
            (path, label).
        batch_size: Images in a batch of this rank; the last batch of an epoch may be smaller.
        transform: A list of ``stoker.RandomResizedCrop``, ``Resize``, ``CenterCrop``,
            ``RandomHorizontalFlip``, ``Normalize``. Without any, all images must have one size.
        size: Instead of ``transform``: shorter side to ``size``, then the middle. With it: what must come
            out.
        dtype: "uint8" gives N × H × W × 3; "float32" gives N × 3 × H × W in [0, 1], or normalised.
        shuffle: Another order each epoch.
        sampler: ``stoker.Weighted``, or a list of sample numbers.
        seed: Fixes order and augmentation.
        threads: Decode threads. "auto": the CPUs that this process may really use.
        cache: "off", or "auto", which in this version is the same: nothing is kept between epochs.
        fast: Decode a JPEG at 1/2, 1/4 or 1/8 of its size where the crop is at least that much larger than the
            result. Faster on large photographs, and not Pillow's pixels: about one step in 255 away from them.
        exif: "ignore" the orientation, as Pillow does, or "apply" it.
        on_error: A bad file raises ("error"), is left out and counted ("skip"), or another sample of the
            epoch stands in ("substitute").
        drop_last: Leave out an epoch's incomplete batch.
        rank: This process's number among ``world_size`` that share each epoch.
        world_size: How many there are; each gets the same number of batches.
        device: Where torch tensors go: None or "cpu", or "cuda" and the like. uint8 with Normalize is
            normalised there after the copy and comes as float32 N × 3 × H × W (channels last in memory).
        arithmetic: Whose resizing to match bit for bit: "auto" is the installed Pillow's, else "pillow12",
            "pillow13".

    Batches are torch tensors when torch is imported, else NumPy arrays; labels are int64. A batch is valid
    as long as it is held.

    Raises:
        BadInputError: an argument, the folder or a label does not fit; the message says which.
    """

    def __init__(
        self,
        source: Source,
        *,
        batch_size: int,
        transform: Sequence[Transform] | None = None,
        size: int | tuple[int, int] | None = None,
        dtype: Literal["uint8", "float32"] = "uint8",
        shuffle: bool = False,
        sampler: Weighted | Sequence[int] | None = None,
        seed: int = 0,
        threads: int | Literal["auto"] = "auto",
        cache: str | int = "auto",
        fast: bool = False,
        exif: Literal["ignore", "apply"] = "ignore",
        on_error: Literal["error", "skip", "substitute"] = "error",
        drop_last: bool = False,
        rank: int = 0,
        world_size: int = 1,
        device: Any = None,
        arithmetic: Literal["auto", "pillow12", "pillow13"] = "auto",
    ) -> None:
        refuse_in_worker()
        _check_choice("dtype", dtype, ("uint8", "float32"))
        _check_choice("exif", exif, ("ignore", "apply"))
        _check_choice("on_error", on_error, ("error", "skip", "substitute"))
        _check_choice("arithmetic", arithmetic, ("auto", "pillow12", "pillow13"))
        _check_not_yet(cache)
        self.fast = bool(fast)
        _check_count("batch_size", batch_size, 1)
        _check_count("seed", seed, 0)
        self.batch_size = batch_size
        self.dtype = dtype
        self.drop_last = drop_last
        self.rank = rank
        self.world_size = world_size
        self.seed = seed
        self.arithmetic = installed_arithmetic() if arithmetic == "auto" else arithmetic
        self._recipe = compile_recipe(_transforms(transform, size))
        self._finish = _device_step(device, dtype, self._recipe.normalize)
        self._index = _open(source)
        self._labels = self._index.labels()
        self._order, self._order_kind = make_order(sampler, shuffle, seed, self._labels)
        self._native = _native._Loader.create(
            self._index,
            native_options(
                self._recipe,
                dtype=dtype,
                exif=exif,
                on_error=on_error,
                arithmetic=self.arithmetic,
                fast=self.fast,
                threads=0 if threads == "auto" else _check_count("threads", threads, 1),
            ),
        )
        self._check_size(size)
        self._shard = (batch_size, rank, world_size, drop_last)
        self._batches = _native._shard_batches(len(self._order), 0, *self._shard)
        self._next = (0, 0)  # epoch and start of the next iteration
        self._now: tuple[int, int] | None = None  # of the one that goes on
        self._batches_done = 0
        self._iterations = 0
        self._closed = False
        _warn_of_notes(self._index, str(source) if isinstance(source, str | os.PathLike) else "the list")
        self._warn_of_single()

    # --- what is in it ---

    @property
    def classes(self) -> list[str]:
        """Class names by label; empty for a list without."""
        return self._index.classes

    @property
    def class_to_idx(self) -> dict[str, int]:
        """Labels by class name."""
        return {name: label for label, name in enumerate(self.classes)}

    @property
    def paths(self) -> Sequence[str]:
        """Files by sample number."""
        return Column(len(self._index), self._index.path)

    @property
    def labels(self) -> Sequence[int]:
        """Labels by sample number."""
        return self._labels

    def __len__(self) -> int:
        """Batches in a whole epoch of this rank."""
        return self._batches

    def __repr__(self) -> str:
        """Everything that decides what comes out, in a line."""
        height, width = self._native.size
        return (
            f"<stoker.ImageLoader: {len(self._index)} images, {len(self.classes)} classes, "
            f"{len(self)} batches of {self.batch_size}, {height}×{width} {self.dtype}, "
            f"order {self._order_kind}, seed {self.seed}, {self._native.stats()['threads']} threads, "
            f"arithmetic {self.arithmetic}{', fast' if self.fast else ''}>"
        )

    # --- iterating ---

    def __iter__(self) -> Iterator[Batch]:
        """Begins the next epoch, or the rest of one after ``load_state_dict``; leaves one that goes on."""
        refuse_in_worker()
        epoch, start = self._next
        self._native.start(self._order, epoch, start, *self._shard)
        self._now, self._next = (epoch, start), (epoch + 1, 0)
        self._batches_done = 0
        self._iterations += 1
        mine = self._iterations
        return EpochIterator(
            self._native, lambda: self._iterations == mine, self._on_batch, self._on_end, self._finish
        )

    def set_epoch(self, epoch: int) -> None:
        """The next iteration's epoch. Setting the one that ``load_state_dict`` stopped in keeps its place."""
        _check_count("epoch", epoch, 0)
        if self._now is not None or self._next[0] != epoch:
            self._next = (epoch, 0)
        self._now = None

    def close(self) -> None:
        """Ends the threads; returns within one image decode. Batches that are held stay valid."""
        self._closed = True
        self._native.stop()

    def __enter__(self) -> ImageLoader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # --- state ---

    def state_dict(self) -> dict[str, Any]:
        """Where the data stands, in plain values: batches handed out count, batches read ahead do not.

        ``samples`` counts over all ranks, so another ``batch_size``, ``world_size`` or ``threads`` can go
        on from it.
        """
        epoch, samples = self._next
        if self._now is not None:
            epoch, start = self._now
            samples = start
            if self._batches_done > 0:
                samples = _native._shard_drawn(len(self._order), start, *self._shard, self._batches_done)
        return {"format": 1, "epoch": epoch, "samples": samples, **self._identity()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The next iteration goes on where ``state`` was taken; in O(1).

        Raises:
            BadInputError: the state is of other data, another order, seed or arithmetic; every difference
                is named.
        """
        if state.get("format") != 1:
            raise bad_input(f"this loader state has format {state.get('format')!r}, not 1")
        mine = {"fast": False, **self._identity()}
        state = {"fast": False, **state}
        other = [
            f"{key} is {mine[key]!r}, was {state.get(key)!r}" for key in mine if state.get(key) != mine[key]
        ]
        if other:
            raise bad_input(
                "the state is of another loader: " + "; ".join(other),
                "make the loader with the same data and arguments, or start a new run",
            )
        self._next = (int(state["epoch"]), int(state["samples"]))
        self._now = None
        self._iterations += 1  # an iterator of before must not go on counting

    def stats(self) -> dict[str, Any]:
        """Counts and times since the start, summed over the threads (``wait_s``: the consumer's)."""
        notes = self._index.notes()
        return {
            **self._native.stats(),
            "cache": {"value": None, "why": "this version keeps nothing between epochs"},
            "hidden_skipped": notes["hidden"],
            "other_files": notes["other_files"],
        }

    # --- inside ---

    def _identity(self) -> dict[str, Any]:
        return {
            "seed": self.seed,
            "length": len(self._order),
            "order": self._order_kind,
            "arithmetic": self.arithmetic,
            **({"fast": True} if self.fast else {}),
        }

    def _on_batch(self, done: int) -> None:
        self._batches_done = done

    def _on_end(self) -> None:
        self._now = None

    def _check_size(self, size: int | tuple[int, int] | None) -> None:
        wanted = (size, size) if isinstance(size, int) else size
        if wanted is not None and tuple(wanted) != tuple(self._native.size):
            height, width = self._native.size
            raise bad_input(
                f"size={size!r}, but the transform gives {height}×{width}", "leave one of the two out"
            )

    def _warn_of_single(self) -> None:
        samples = -(-len(self._order) // self.world_size)
        if not self.drop_last and self.batch_size > 1 and samples % self.batch_size == 1:
            warnings.warn(
                "the last batch of each epoch has one image; BatchNorm cannot train on it "
                "(drop_last=True leaves it out)",
                stacklevel=3,
            )


def _transforms(
    transform: Sequence[Transform] | None, size: int | tuple[int, int] | None
) -> Sequence[Transform]:
    if transform is not None:
        if not isinstance(transform, Sequence):
            raise bad_input(f"transform is a {type(transform).__name__}, not a list of transforms")
        return transform
    if size is None:
        return []
    return [Resize(size if isinstance(size, int) else min(size)), CenterCrop(size)]


def _open(source: Source) -> _FileIndex:
    if isinstance(source, str | os.PathLike):
        return _native._FileIndex.open_folder(os.fsencode(source), False)
    samples: list[tuple[bytes, int]] = []
    if not isinstance(source, Sequence):
        raise bad_input(
            f"source is a {type(source).__name__}",
            "give the path of a class folder, or a list of (path, label)",
        )
    for number, item in enumerate(source):
        if not isinstance(item, tuple) or len(item) != 2 or not isinstance(item[1], int):
            raise bad_input(
                f"item {number} of the source is {item!r}, not (path, label)", "labels are ints from 0"
            )
        samples.append((os.fsencode(str(item[0])), item[1]))
    return _native._FileIndex.from_list(samples, [])


def _device_step(device: Any, dtype: str, normalize: Normalize | None) -> Callable[[Batch], Batch] | None:
    """What is left to do with a batch after it was made on the CPU."""
    if device is None:
        if dtype == "uint8" and normalize is not None:
            raise bad_input(
                'Normalize with dtype="uint8" runs on the device after the copy, and no device is given',
                'pass device="cuda" (or "cpu"), or dtype="float32"',
            )
        return None
    torch = sys.modules.get("torch")
    if torch is None:
        raise bad_input(f"device={device!r} needs torch", "import torch before making the loader")
    try:
        target = torch.empty(0, device=device).device
    except Exception as error:  # torch has several kinds for a device that is not there
        raise bad_input(f"device={device!r} cannot be used: {error}") from error
    on_device = normalize if dtype == "uint8" else None
    if target.type == "cpu" and on_device is None:
        return None
    shape = (1, 3, 1, 1)
    mean = torch.tensor(on_device.mean, device=target).view(shape) if on_device else None
    std = torch.tensor(on_device.std, device=target).view(shape) if on_device else None

    def finish(batch: Batch) -> Batch:
        images = batch[0].to(target, non_blocking=True)
        labels = batch[1].to(target, non_blocking=True)
        if mean is not None:
            images = images.permute(0, 3, 1, 2).float().mul_(1.0 / 255.0).sub_(mean).div_(std)
        return images, labels

    return finish


def _check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise bad_input(f"{name}={value!r} is not known", "use " + " or ".join(f'"{c}"' for c in choices))


def _check_count(name: str, value: object, least: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise bad_input(f"{name}={value!r} is not a whole number ≥ {least}")
    return value


def _check_not_yet(cache: str | int) -> None:
    if cache not in ("auto", "off"):
        raise bad_input(f"cache={cache!r} is not in this version", 'use cache="off"')


def _warn_of_notes(index: _FileIndex, what: str) -> None:
    hidden = index.notes()["hidden"]
    if hidden:
        names = ", ".join(hidden[:3]) + (", …" if len(hidden) > 3 else "")
        warnings.warn(
            f"{what}: {len(hidden)} hidden names passed over ({names}); they are no classes", stacklevel=3
        )
