"""Small class folders that the feed tests make for themselves: photographs' statistics, known content, odd files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from PIL import Image


def picture(seed: int, width: int, height: int) -> Image.Image:
    """Smooth colour with some noise, so that JPEG and resizing have something to do."""
    rng = np.random.default_rng(seed)
    few = Image.fromarray(rng.integers(0, 256, (7, 7, 3), dtype=np.uint8))
    coarse = few.resize((width, height), Image.Resampling.BICUBIC)
    noise = rng.integers(-12, 13, (height, width, 3))
    return Image.fromarray(np.clip(np.asarray(coarse, dtype=int) + noise, 0, 255).astype(np.uint8))


def make_folder(root: Path, classes: int = 3, images: int = 9, side: tuple[int, int] = (96, 80)) -> Path:
    """``classes`` folders of ``images`` pictures: JPEG, every third a PNG, every fourth of another shape."""
    for label in range(classes):
        folder = root / f"class_{label}"
        folder.mkdir(parents=True)
        for number in range(images):
            width, height = side if number % 4 else (side[1], side[0] + 7)
            made = picture(label * 1000 + number, width, height)
            if number % 3 == 2:
                made.save(folder / f"{number:03}.png")
            else:
                made.save(folder / f"{number:03}.jpg", quality=90)
    return root


def tensors(batches: object) -> list[tuple[torch.Tensor, torch.Tensor]]:
    return [(x.clone(), y.clone()) for x, y in batches]  # type: ignore[attr-defined]


def same(a: list[tuple[torch.Tensor, torch.Tensor]], b: list[tuple[torch.Tensor, torch.Tensor]]) -> bool:
    return len(a) == len(b) and all(
        torch.equal(p[0], q[0]) and torch.equal(p[1], q[1]) for p, q in zip(a, b, strict=True)
    )
