"""How many images does a second of CPU decode? Stoker's loader against torch's DataLoader, in one run.

RandomResizedCrop 224 + flip + normalise, batches of 64, warm page cache. CPU is user and system time of the process
and its children, so worker processes count. Each round takes every way once, in an order that rotates; the figures are
those of each way's best round, and the ratios are within this run. What comes out is compared before anything is timed.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader, RandomSampler
from torchvision.datasets import ImageFolder
from torchvision.io import ImageReadMode, decode_image
from torchvision.transforms import v2

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
import stoker
from stoker.acceleration import isinstance_accelerated

ROOT = Path(__file__).resolve().parents[1]
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
FLOATS = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]
TRAIN = v2.Compose([v2.RandomResizedCrop(224), v2.RandomHorizontalFlip(), *FLOATS])
PLAIN = v2.Compose([v2.Resize(256), v2.CenterCrop(224), *FLOATS])
OURS = [stoker.RandomResizedCrop(224), stoker.RandomHorizontalFlip()]
BATCH = 64

Loader = Iterable[tuple[Any, Any]]


def torch_loader(data: Path, images: int, workers: int) -> DataLoader[Any]:
    dataset = ImageFolder(str(data), TRAIN)
    sampler = RandomSampler(dataset, replacement=True, num_samples=images)
    return DataLoader(dataset, batch_size=BATCH, sampler=sampler, num_workers=workers)


def torch_decode_image(data: Path, images: int, workers: int) -> DataLoader[Any]:
    def load(path: str) -> torch.Tensor:
        return decode_image(path, ImageReadMode.RGB)

    dataset = ImageFolder(str(data), TRAIN, loader=load)
    sampler = RandomSampler(dataset, replacement=True, num_samples=images)
    return DataLoader(dataset, batch_size=BATCH, sampler=sampler, num_workers=workers)


def accelerated(data: Path, images: int) -> Any:
    loader = stoker.accelerate(torch_loader(data, images, 2))
    if not isinstance_accelerated(loader):
        raise SystemExit("error: accelerate() did not know the loader")
    return loader


def image_loader(data: Path, images: int, **options: Any) -> stoker.ImageLoader:
    count = len(ImageFolder(str(data)).samples)
    sampler = stoker.Weighted([1.0] * count, num_samples=images)
    return stoker.ImageLoader(data, batch_size=BATCH, sampler=sampler, **options)


WAYS: dict[str, Callable[[Path, int], Any]] = {
    "torch, PIL + v2, 2 workers": lambda d, n: torch_loader(d, n, 2),
    "torch, decode_image + v2, 2 workers": lambda d, n: torch_decode_image(d, n, 2),
    "torch, decode_image + v2, no worker": lambda d, n: torch_decode_image(d, n, 0),
    "stoker.accelerate": accelerated,
    "stoker.ImageLoader float32": lambda d, n: image_loader(
        d, n, dtype="float32", transform=[*OURS, stoker.Normalize(MEAN, STD)]
    ),
    "stoker.ImageLoader uint8": lambda d, n: image_loader(d, n, transform=OURS),
}
USUAL = "torch, PIL + v2, 2 workers"
BAR = 3.0


def check_equal(data: Path, count: int) -> None:
    """The first images, without randomness: Stoker's floats are torchvision's, bit for bit."""
    reference = ImageFolder(str(data), PLAIN)
    step = max(1, len(reference) // count)
    chosen = list(range(0, len(reference), step))[:count]
    transform = [stoker.Resize(256), stoker.CenterCrop(224), stoker.Normalize(MEAN, STD)]
    with stoker.ImageLoader(
        data, batch_size=len(chosen), dtype="float32", transform=transform, sampler=chosen
    ) as loader:
        images, labels = next(iter(loader))
    expected = torch.stack([reference[i][0] for i in chosen])
    if not torch.equal(images, expected) or labels.tolist() != [reference.targets[i] for i in chosen]:
        raise SystemExit("error: Stoker's images are not torchvision's; nothing was timed")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a difference in the random pipeline is warned of
        stoker.accelerate(torch_loader(data, BATCH, 0), verify=16)


def cpu_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def measure(loader: Loader, images: int) -> tuple[float, float]:
    """(CPU, wall) seconds of one epoch, from asking for its first batch to its end with all workers gone."""
    begin, cpu = time.perf_counter(), cpu_seconds()
    seen = sum(len(labels) for _, labels in loader)
    took = cpu_seconds() - cpu, time.perf_counter() - begin
    if seen != images:
        raise SystemExit(f"error: {seen} of {images} images came")
    return took


def run(data: Path, images: int, rounds: int) -> dict[str, Any]:
    loaders = {name: make(data, images) for name, make in WAYS.items()}
    best = dict.fromkeys(WAYS, (float("inf"), float("inf")))
    names = list(WAYS)
    for number in range(rounds + 1):  # the first round warms caches and is thrown away
        for name in names[number % len(names) :] + names[: number % len(names)]:
            size = images if number > 0 else BATCH
            cpu, wall = measure(loaders[name] if number > 0 else WAYS[name](data, size), size)
            if number > 0:
                best[name] = (min(best[name][0], cpu), min(best[name][1], wall))
            print(f"  round {number}: {name}: {size / cpu:,.0f} img/CPU-s", file=sys.stderr)
    usual = images / best[USUAL][0]
    rows = {
        name: {
            "images_per_cpu_s": images / cpu,
            "images_per_s": images / wall,
            "ratio_to_usual": images / cpu / usual,
        }
        for name, (cpu, wall) in best.items()
    }
    ratio = rows["stoker.ImageLoader float32"]["ratio_to_usual"]
    return {
        "schema": "stoker.bench.loader.v1",
        "data": data.name,
        "images": images,
        "rounds": rounds,
        "cpus": os.cpu_count(),
        "load": os.getloadavg()[0],
        "torch": torch.__version__,
        "ways": rows,
        "bar": {"ratio": ratio, "at_least": BAR, "met": ratio >= BAR},
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=ROOT / "examples/plant-disease/leaves/train")
    parser.add_argument("--quick", action="store_true", help="fewer images and rounds; about a minute")
    parser.add_argument("--images", type=int, help="images an epoch; default 3200, with --quick 960")
    parser.add_argument("--rounds", type=int, help="default 5, with --quick 2")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    images = args.images or (960 if args.quick else 3200)
    check_equal(args.data, 32)
    result = run(args.data, images, args.rounds or (2 if args.quick else 5))
    if args.json:
        print(json.dumps(result, indent=2))
    else:
        print(f"{'':40} img/CPU-s   img/s   ratio")
        for name, row in result["ways"].items():
            print(
                f"{name:40} {row['images_per_cpu_s']:9,.0f} {row['images_per_s']:7,.0f} "
                f"{row['ratio_to_usual']:6.2f}×"
            )
        print(f"bar: ImageLoader float32 ≥ {BAR}× usual: {'met' if result['bar']['met'] else 'MISSED'}")
        print(f"load while measuring: {result['load']:.1f} on {result['cpus']} CPUs")
    return 0 if result["bar"]["met"] else 1


if __name__ == "__main__":
    raise SystemExit(main())
