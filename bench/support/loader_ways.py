"""The ways to load pictures that bench/loader.py compares. Each runs in a process of its own: ``loader_ways.py WAY``.

The process reads lines ``{"set": folder, "images": n}`` and answers each with one JSON line about an epoch of that many
images, drawn with replacement or by going round: CPU and wall seconds, images seen, peak memory of the process and its
children; with ``"look"``, about what the batches are like. What a way needs is imported when it is chosen, so no way
pays for another's.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
BATCH, SIDE = 64, 224

Batches = Iterator[tuple[Any, int]]  # images, how many
Epoch = Callable[[Path, int], Batches]


def pictures(folder: Path) -> list[tuple[str, int]]:
    classes = sorted(path.name for path in folder.iterdir() if path.is_dir())
    return [
        (str(path), classes.index(path.relative_to(folder).parts[0]))
        for path in sorted(folder.rglob("*"))
        if path.suffix.lower() in (".jpg", ".jpeg")
    ]


# --- torch ---


def v2_transform() -> Any:
    import torch
    from torchvision.transforms import v2

    floats = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]
    return v2.Compose([v2.RandomResizedCrop(SIDE), v2.RandomHorizontalFlip(), *floats])


def torch_way(workers: int, tensors: bool) -> Epoch:
    """``tensors``: decode_image gives uint8 tensors, and v2 works on them; else Pillow."""
    from torch.utils.data import DataLoader, Sampler
    from torchvision.datasets import ImageFolder
    from torchvision.io import ImageReadMode, decode_image

    class Draws(Sampler[int]):
        """As many as one wants now; the workers that persist go on with it."""

        def __init__(self, length: int) -> None:
            self.length, self.count = length, 0

        def __iter__(self) -> Iterator[int]:
            return (random.randrange(self.length) for _ in range(self.count))

    loaders: dict[Path, tuple[Any, Draws]] = {}

    def load(path: str) -> Any:
        return decode_image(path, ImageReadMode.RGB)

    def epoch(folder: Path, count: int) -> Batches:
        if folder not in loaders:
            dataset = ImageFolder(str(folder), v2_transform(), **({"loader": load} if tensors else {}))
            draws = Draws(len(dataset))
            # Workers that persist: their start is not charged to the epoch.
            loader = DataLoader(
                dataset, batch_size=BATCH, sampler=draws, num_workers=workers, persistent_workers=workers > 0
            )
            loaders[folder] = loader, draws
        loader, draws = loaders[folder]
        draws.count = count
        return ((images, len(labels)) for images, labels in loader)

    return epoch


def webdataset_way(workers: int) -> Epoch:
    import webdataset
    from torchvision.transforms import v2  # noqa: F401  (imported before the workers fork)

    def epoch(folder: Path, count: int) -> Batches:
        data = (
            webdataset.WebDataset(
                str(folder.with_suffix(".tar")), shardshuffle=False, empty_check=False, workersplitter=None
            )
            .repeat()
            .shuffle(500)
            .decode("pilrgb")
            .to_tuple("jpg", "cls")
            .map_tuple(v2_transform(), lambda label: label)
            .batched(BATCH)
        )
        loader = webdataset.WebLoader(data, batch_size=None, num_workers=workers)
        return ((images, len(images)) for images, _ in loader.with_epoch(-(-count // BATCH)))

    return epoch


# --- peers ---


def crop_box(width: int, height: int) -> tuple[int, int, int, int]:
    """torchvision's RandomResizedCrop, for peers that have none: left, top, width, height."""
    for _ in range(10):
        area = random.uniform(0.08, 1.0) * width * height
        ratio = 2.718281828 ** random.uniform(-0.28768207, 0.28768207)
        w, h = round((area * ratio) ** 0.5), round((area / ratio) ** 0.5)
        if 0 < w <= width and 0 < h <= height:
            return random.randint(0, width - w), random.randint(0, height - h), w, h
    return 0, 0, width, height


def spdl_way() -> Epoch:
    import spdl.io
    import torch
    from spdl.pipeline import PipelineBuilder

    mean = torch.tensor(MEAN).view(3, 1, 1) * 255
    inverse = 1 / (torch.tensor(STD).view(3, 1, 1) * 255)
    torch.set_num_threads(1)

    def load(path: str) -> Any:
        packets = spdl.io.demux_image(path)
        # One filter graph does crop, resize and flip, in the library's own threads-free C++.
        x, y, w, h = crop_box(packets.width, packets.height)
        flip = ",hflip" if random.random() < 0.5 else ""
        graph = f"crop={w}:{h}:{x}:{y},scale={SIDE}:{SIDE}:flags=bilinear,format=rgb24{flip}"
        frames = spdl.io.decode_packets(packets, filter_desc=graph)
        pixels = spdl.io.to_torch(spdl.io.convert_frames(frames))
        return pixels.permute(2, 0, 1).float().sub_(mean).mul_(inverse)

    files: dict[Path, list[str]] = {}

    def epoch(folder: Path, count: int) -> Batches:
        paths = files.setdefault(folder, [path for path, _ in pictures(folder)])
        pipeline = (
            PipelineBuilder()
            .add_source([random.choice(paths) for _ in range(count)])
            .pipe(load, concurrency=2)
            .aggregate(BATCH)
            .pipe(torch.stack)
            .add_sink(3)
            .build(num_threads=2, max_failures=0)
        )

        def batches() -> Batches:
            with pipeline.auto_stop():
                for images in pipeline:
                    yield images, len(images)

        return batches()

    return epoch


def dali_way() -> Epoch:
    import nvidia.dali.fn as fn
    import nvidia.dali.types as types
    import torch  # noqa: F401
    from nvidia.dali import pipeline_def

    @pipeline_def(batch_size=BATCH, num_threads=2, device_id=None, prefetch_queue_depth=2, seed=1)
    def graph(paths: list[str], labels: list[int]) -> Any:
        files, label = fn.readers.file(files=paths, labels=labels, random_shuffle=True)
        images = fn.decoders.image_random_crop(
            files, random_area=[0.08, 1.0], random_aspect_ratio=[0.75, 4 / 3], device="cpu"
        )
        images = fn.resize(images, size=[SIDE, SIDE], interp_type=types.INTERP_LINEAR, antialias=True)
        images = fn.crop_mirror_normalize(
            images,
            mirror=fn.random.coin_flip(),
            mean=[m * 255 for m in MEAN],
            std=[s * 255 for s in STD],
            output_layout="CHW",
        )
        return images, label

    pipelines: dict[Path, Any] = {}

    def epoch(folder: Path, count: int) -> Batches:
        if folder not in pipelines:
            samples = pictures(folder)
            pipeline = graph([path for path, _ in samples], [label for _, label in samples])
            pipeline.build()
            pipelines[folder] = pipeline
        for _ in range(count // BATCH):
            images, _ = pipelines[folder].run()
            array = images.as_tensor()
            yield array, array.shape()[0]

    return epoch


def turboloader_way(antialias: bool) -> Epoch:
    import turboloader

    loaders: dict[Path, Any] = {}
    number = [0]

    def once(folder: Path) -> Batches:
        if folder not in loaders:
            loaders[folder] = turboloader.DataLoader(
                str(folder.with_suffix(".tar")),
                batch_size=BATCH,
                num_workers=2,
                shuffle=True,
                image_size=SIDE,
                transform=turboloader.ImageNetNormalize(),
                output_format="pytorch",
                train_aug=True,
                antialias=antialias,
                drop_last=True,
            )
        number[0] += 1
        loaders[folder].set_epoch(number[0])
        for batch in loaders[folder]:
            images = batch[0] if isinstance(batch, tuple) else batch
            yield images, len(images)

    def epoch(folder: Path, count: int) -> Batches:
        seen = 0
        while seen < count:
            for images, n in once(folder):
                yield images, n
                seen += n
                if seen >= count:
                    return

    return epoch


def ffcv_way() -> Epoch:
    import ffcv  # noqa: F401

    raise RuntimeError("ffcv imports, but this bench does not write its format yet")


# --- ours ---


def stoker_way(dtype: str, **options: Any) -> Epoch:
    import torch  # noqa: F401

    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
    import stoker

    loaders: dict[tuple[Path, int], Any] = {}

    def epoch(folder: Path, count: int) -> Batches:
        if (folder, count) not in loaders:
            transform: list[Any] = [stoker.RandomResizedCrop(SIDE), stoker.RandomHorizontalFlip()]
            if dtype == "float32":
                transform.append(stoker.Normalize(MEAN, STD))
            draws = stoker.Weighted([1.0] * len(pictures(folder)), num_samples=count)
            loaders[folder, count] = stoker.ImageLoader(
                folder, batch_size=BATCH, sampler=draws, dtype=dtype, transform=transform, **options
            )
        return ((images, len(labels)) for images, labels in loaders[folder, count])

    return epoch


def accelerate_way() -> Epoch:
    from torch.utils.data import DataLoader, RandomSampler
    from torchvision.datasets import ImageFolder

    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
    import stoker
    from stoker.acceleration import isinstance_accelerated

    def epoch(folder: Path, count: int) -> Batches:
        dataset = ImageFolder(str(folder), v2_transform())
        sampler = RandomSampler(dataset, replacement=True, num_samples=count)
        loader: Any = stoker.accelerate(DataLoader(dataset, batch_size=BATCH, sampler=sampler, num_workers=2))
        if not isinstance_accelerated(loader):
            raise RuntimeError("accelerate() did not know the loader")
        return ((images, len(labels)) for images, labels in loader)

    return epoch


USUAL = "torch, PIL + v2, 2 workers"
EXACT = "stoker.ImageLoader float32"
WAYS: dict[str, Callable[[], Epoch]] = {
    USUAL: lambda: torch_way(2, tensors=False),
    "torch, decode_image + v2, 2 workers": lambda: torch_way(2, tensors=True),
    "torch, decode_image + v2, no worker": lambda: torch_way(0, tensors=True),
    "SPDL": spdl_way,
    "DALI (CPU)": dali_way,
    "TurboLoader train_aug": lambda: turboloader_way(antialias=False),
    "WebDataset, PIL + v2, 2 workers": lambda: webdataset_way(2),
    "FFCV": ffcv_way,
    "stoker.accelerate": accelerate_way,
    EXACT: lambda: stoker_way("float32"),
    "stoker.ImageLoader float32, fast=True": lambda: stoker_way("float32", fast=True),
    "stoker.ImageLoader uint8": lambda: stoker_way("uint8"),
}
PEERS = ["SPDL", "DALI (CPU)", "TurboLoader train_aug", "WebDataset, PIL + v2, 2 workers", "FFCV"]
BEST_TORCH = ["torch, decode_image + v2, 2 workers", "torch, decode_image + v2, no worker"]
QUICK = [USUAL, *BEST_TORCH[1:], EXACT]


# --- the process ---

TICK = os.sysconf("SC_CLK_TCK")


def children(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # a thread that has just ended
            for child in (task / "children").read_text().split():
                found += [int(child), *children(int(child))]
    return found


def cpu_seconds() -> float:
    """Of this process, of its children that ended, and of those that live."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    living = 0
    for child in children(os.getpid()):
        fields = Path(f"/proc/{child}/stat").read_text().rsplit(")", 1)[1].split()
        living += int(fields[11]) + int(fields[12])
    return sum(u.ru_utime + u.ru_stime for u in used) + living / TICK


def peak_bytes() -> int:
    total = 0
    for pid in (os.getpid(), *children(os.getpid())):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                total += int(line.split()[1]) * 1024
    return total


def measure(epoch: Epoch, folder: Path, images: int) -> dict[str, Any]:
    begin, cpu = time.perf_counter(), cpu_seconds()
    seen = sum(count for _, count in epoch(folder, images))
    took = cpu_seconds() - cpu
    return {"cpu": took, "wall": time.perf_counter() - begin, "images": seen, "peak": peak_bytes()}


def look(epoch: Epoch, folder: Path) -> dict[str, Any]:
    """What kind of batches come, and the mean of their values: a way that does less work must not win.

    It is the way's first epoch of the set, so the time to its first batch has all starts in it but the imports.
    """
    import numpy

    begin = time.perf_counter()
    first = total = 0.0
    batches = 0
    shape: list[int] = []
    kind = ""
    for images, _ in epoch(folder, 8 * BATCH):
        first = first or time.perf_counter() - begin
        array = numpy.asarray(images)
        shape, kind = list(array.shape), str(array.dtype)
        if kind == "uint8":
            array = ((array / 255.0 - MEAN) / STD).transpose(0, 3, 1, 2)
        total += float(array.mean(dtype=numpy.float64))
        batches += 1
    return {"shape": shape[1:], "dtype": kind, "mean": total / batches, "first_batch": first}


def main() -> None:
    # What a library prints must not be taken for an answer.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    random.seed(1)
    epoch = WAYS[sys.argv[1]]()
    print(json.dumps({"ready": True}), file=answers)
    for line in sys.stdin:
        order = json.loads(line)
        folder = Path(order["set"])
        answer = look(epoch, folder) if order.get("look") else measure(epoch, folder, order["images"])
        print(json.dumps(answer), file=answers)


if __name__ == "__main__":
    main()
