"""What Pillow makes of a picture, and whether Stoker makes the same bytes.

As a program (``python pillow_reference.py SEED FILE…``) it compares with the Pillow that it finds, so that a test can
run it under another version: one line per difference on stdout, exit code 1 if there are any.
"""

from __future__ import annotations

import random
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import PIL
from PIL import Image
from stoker import _native

warnings.simplefilter("ignore", Image.DecompressionBombWarning)

FILTERS = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
}
ARITHMETIC = 13 if int(PIL.__version__.split(".")[0]) >= 13 else 12


@dataclass
class Case:
    """One random crop, resize, window and flip; boxes are left, top, width, height."""

    crop: tuple[int, int, int, int]
    size: tuple[int, int]
    window: tuple[int, int, int, int]
    mirror: bool
    interpolation: str

    def pillow(self, image: Image.Image) -> bytes:
        left, top, width, height = self.crop
        cropped = image.crop((left, top, left + width, top + height))
        resized = cropped.resize(self.size, FILTERS[self.interpolation])
        left, top, width, height = self.window
        seen = resized.crop((left, top, left + width, top + height))
        return (seen.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if self.mirror else seen).tobytes()

    def stoker(self, data: bytes, arithmetic: int = ARITHMETIC, exif_apply: bool = False) -> bytes:
        return _native.render_image(
            data,
            self.crop,
            self.size,
            self.window,
            self.mirror,
            self.interpolation,
            arithmetic,
            exif_apply=exif_apply,
        )


def random_cases(rng: random.Random, width: int, height: int, count: int) -> Iterator[Case]:
    """Crops of any size and place; sizes that shrink, grow or keep one side; windows that stick out."""
    for _ in range(count):
        crop_w, crop_h = rng.randint(1, width), rng.randint(1, height)
        if rng.random() < 0.2:
            crop_w, crop_h = width, height
        crop = (rng.randint(0, width - crop_w), rng.randint(0, height - crop_h), crop_w, crop_h)
        free = (rng.randint(1, 300), rng.randint(1, 300))
        out_w, out_h = rng.choice([(224, 224), free, (crop_w, free[1]), (free[0], crop_h)])
        window = (0, 0, out_w, out_h)
        if rng.random() < 0.5:
            left, top = rng.randint(-20, out_w - 1), rng.randint(-20, out_h - 1)
            window = (left, top, rng.randint(30, 200), rng.randint(30, 200))
        yield Case(crop, (out_w, out_h), window, rng.random() < 0.5, rng.choice(list(FILTERS)))


def differences(path: Path, rng: random.Random, count: int) -> list[str]:
    """The whole picture and ``count`` random cases of it that are not Pillow's, in words."""
    data = path.read_bytes()
    image = Image.open(path).convert("RGB")
    found = []
    height, width, pixels = _native.decode_rgb(data)
    if (width, height) != image.size or pixels != image.tobytes():
        found.append(f"{path}: the decoded picture differs")
    for case in random_cases(rng, width, height, count):
        if case.stoker(data) != case.pillow(image):
            found.append(f"{path}: {case}")
    return found


def main() -> int:
    rng = random.Random(int(sys.argv[1]))
    found = [line for name in sys.argv[2:] for line in differences(Path(name), rng, 8)]
    print(f"Pillow {PIL.__version__}: {len(found)} differences in {len(sys.argv) - 2} files")
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
