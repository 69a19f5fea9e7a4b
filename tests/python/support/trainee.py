"""A small training run for the session's tests: in this process, or as a script that a test kills.

Dropout, BatchNorm, momentum, a scheduler and random augmentation in the data: whatever a resume forgets shows
in the losses, which are logged as hexadecimal floats.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import stoker
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

LEAVES = Path(__file__).resolve().parents[3] / "examples/plant-disease/leaves"
SAMPLES = 36
BATCH = 4  # 9 batches an epoch


class Points(Dataset[tuple[torch.Tensor, int]]):
    """Points with a class each; reading one adds noise from all three generators, as augmentation would."""

    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(7)
        self.points = torch.randn(SAMPLES, 8, generator=generator)

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        noise = torch.randn(8) * 0.1 + random.random() * 0.1 + float(np.random.rand()) * 0.1
        return self.points[index] + noise, index % 3


class Stream:
    """Batches without indices or length."""

    def __init__(self) -> None:
        self.data = Points()

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        for at in range(0, SAMPLES, BATCH):
            samples = [self.data[i] for i in range(at, at + BATCH)]
            yield torch.stack([x for x, _ in samples]), torch.tensor([y for _, y in samples])


class Run:
    """Everything that a training script makes before its loop."""

    def __init__(self, kind: str = "torch", workers: int = 0) -> None:
        torch.set_num_threads(1)
        stoker.seed_everything(3)
        self.model = nn.Sequential(
            nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 3)
        )
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.05)
        self.scheduler = torch.optim.lr_scheduler.OneCycleLR(self.optimizer, 0.05, total_steps=200)
        self.loader: Any = Stream()
        if kind == "images":
            self.loader = stoker.ImageLoader(
                LEAVES / "val",
                batch_size=12,  # 7 batches an epoch
                transform=[stoker.RandomResizedCrop(16), stoker.RandomHorizontalFlip()],
                dtype="float32",
                shuffle=True,
                seed=3,
            )
        if kind == "accelerated":
            self.loader = stoker.accelerate(image_folder_loader())
        if kind == "torch":
            options: dict[str, Any] = {"multiprocessing_context": "fork"} if workers else {}
            self.loader = DataLoader(Points(), batch_size=BATCH, shuffle=True, num_workers=workers, **options)
        self.losses: dict[int, str] = {}

    def session(self, directory: Path, **options: Any) -> stoker.Session:
        parts = {"model": self.model, "optimizer": self.optimizer, "scheduler": self.scheduler, "quiet": True}
        return stoker.Session(directory, loader=self.loader, **{**parts, **options})

    def train_batch(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """One plain step; knows nothing of the session."""
        if x.dim() == 4:  # images: eight means of red
            x, y = nn.functional.adaptive_avg_pool2d(x, (2, 4))[:, 0].flatten(1), y % 3
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        self.scheduler.step()
        return loss

    def train(
        self, session: stoker.Session, epochs: int, after_step: Callable[[int], None] = lambda step: None
    ) -> None:
        for _ in session.epochs(epochs):
            for x, y in session.batches(self.loader):
                loss = self.train_batch(x, y)
                self.losses[session.global_step] = loss.item().hex()
                after_step(session.global_step)
            session.epoch_end()

    def weights(self) -> str:
        """A hash of the weights and of everything else in the model."""
        digest = hashlib.sha256()
        for name, value in self.model.state_dict().items():
            digest.update(name.encode() + value.numpy().tobytes())
        return digest.hexdigest()


def image_folder_loader() -> Any:
    """Seven shuffled batches of twelve leaves, cropped at random."""
    from torchvision.datasets import ImageFolder
    from torchvision.transforms import v2

    steps = [v2.RandomResizedCrop(16), v2.RandomHorizontalFlip(), v2.ToImage()]
    steps.append(v2.ToDtype(torch.float32, scale=True))
    return DataLoader(ImageFolder(LEAVES / "val", v2.Compose(steps)), batch_size=12, shuffle=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("dir", type=Path)
    parser.add_argument("--losses", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--kind", default="torch")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds that a step takes")
    parser.add_argument("--signal-at", type=int, help="the step in which to send SIGTERM")
    args = parser.parse_args()

    run = Run(args.kind, args.workers)
    losses = args.losses.open("a")

    def after_step(step: int) -> None:
        losses.write(json.dumps([step, run.losses[step]]) + "\n")
        losses.flush()
        time.sleep(args.pause)
        if args.signal_at == step:
            os.kill(os.getpid(), signal.SIGTERM)

    with run.session(args.dir, every=args.every, quiet=False) as session:
        for _ in session.epochs(args.epochs):
            for x, y in session.batches(run.loader):
                loss = run.train_batch(x, y)
                run.losses[session.global_step] = loss.item().hex()
                session.log(loss=loss.item())
                after_step(session.global_step)
            with session.evaluating():
                score = float(run.model(run.loader.dataset.points).mean()) if args.kind == "torch" else 0.0
            session.epoch_end(score=score, best="max")
    print(run.weights())


if __name__ == "__main__":
    main()
