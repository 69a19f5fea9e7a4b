"""What happens to each picture between file and batch: torchvision's names, arguments and distributions.

A list of them goes to ``ImageLoader(transform=[…])``; the C++ core folds it into the decoder's one pass. They
are descriptions: calling them on a picture is not what they are for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ._errors import bad_input

Interpolation = Literal["nearest", "bilinear", "bicubic"]
Size = int | tuple[int, int] | Sequence[int]
Step = dict[str, object]


def _pair(name: str, size: Size) -> tuple[int, int]:
    """(height, width); an int is a square."""
    sides = (size, size) if isinstance(size, int) else tuple(size)
    if len(sides) == 1:
        sides = (sides[0], sides[0])
    if len(sides) != 2 or not all(isinstance(side, int) for side in sides):
        raise bad_input(f"{name}: size {size!r} is neither an int nor (height, width)")
    return sides[0], sides[1]


def _check_interpolation(name: str, interpolation: str) -> None:
    if interpolation not in ("nearest", "bilinear", "bicubic"):
        raise bad_input(
            f"{name}: interpolation {interpolation!r} is not known", 'use "nearest", "bilinear" or "bicubic"'
        )


@dataclass(frozen=True)
class RandomResizedCrop:
    """A random part of the picture, resized to ``size``.

    Args:
        size: Height and width of the result in pixels; an int is a square.
        scale: Least and largest share of the picture's area that is kept.
        ratio: Least and largest width / height of that part.
        interpolation: "bilinear" and "bicubic" are antialiased, as Pillow does it.
    """

    size: Size
    scale: tuple[float, float] = (0.08, 1.0)
    ratio: tuple[float, float] = (3.0 / 4.0, 4.0 / 3.0)
    interpolation: Interpolation = "bilinear"

    def __post_init__(self) -> None:
        """Refuses what can never work."""
        _pair("RandomResizedCrop", self.size)
        _check_interpolation("RandomResizedCrop", self.interpolation)

    def step(self) -> Step:
        """As the C++ core takes it."""
        height, width = _pair("RandomResizedCrop", self.size)
        return {
            "kind": "RandomResizedCrop",
            "height": height,
            "width": width,
            "scale": [float(s) for s in self.scale],
            "ratio": [float(r) for r in self.ratio],
            "interpolation": self.interpolation,
        }


@dataclass(frozen=True)
class Resize:
    """The picture at another size.

    Args:
        size: An int is the length of the shorter side, and the shape is kept; (height, width) is exact.
        interpolation: "bilinear" and "bicubic" are antialiased, as Pillow does it.
    """

    size: Size
    interpolation: Interpolation = "bilinear"

    def __post_init__(self) -> None:
        """Refuses what can never work."""
        _pair("Resize", self.size)
        _check_interpolation("Resize", self.interpolation)

    def step(self) -> Step:
        """As the C++ core takes it; width 0 stands for "the shorter side"."""
        height, width = _pair("Resize", self.size)
        if isinstance(self.size, int) or len(self.size) == 1:
            width = 0
        return {"kind": "Resize", "height": height, "width": width, "interpolation": self.interpolation}


@dataclass(frozen=True)
class CenterCrop:
    """The middle of the picture; black where the picture is smaller than ``size``."""

    size: Size

    def __post_init__(self) -> None:
        """Refuses what can never work."""
        _pair("CenterCrop", self.size)

    def step(self) -> Step:
        """As the C++ core takes it."""
        height, width = _pair("CenterCrop", self.size)
        return {"kind": "CenterCrop", "height": height, "width": width}


@dataclass(frozen=True)
class RandomHorizontalFlip:
    """Left and right swapped with probability ``p``."""

    p: float = 0.5

    def step(self) -> Step:
        """As the C++ core takes it."""
        return {"kind": "RandomHorizontalFlip", "p": float(self.p)}


@dataclass(frozen=True)
class Normalize:
    """``(x − mean) / std`` for each of red, green and blue, with x in [0, 1]. Comes last."""

    mean: Sequence[float]
    std: Sequence[float]

    def __post_init__(self) -> None:
        """Refuses what can never work."""
        if len(self.mean) != 3 or len(self.std) != 3:
            raise bad_input("Normalize: mean and std need three numbers each, for red, green and blue")
        if not all(s > 0 for s in self.std):
            raise bad_input(f"Normalize: std {tuple(self.std)} has a number that is not above 0")


Transform = RandomResizedCrop | Resize | CenterCrop | RandomHorizontalFlip | Normalize


@dataclass(frozen=True)
class Recipe:
    """A checked list of transforms, split as the C++ core takes it."""

    steps: tuple[Mapping[str, object], ...]
    normalize: Normalize | None


def compile_recipe(transforms: Sequence[Transform]) -> Recipe:
    """Checks kinds and the place of Normalize. The order of the others is the C++ core's to judge.

    Raises:
        BadInputError: an object that is no transform of this module, or Normalize before the end.
    """
    steps: list[Mapping[str, object]] = []
    normalize: Normalize | None = None
    for number, transform in enumerate(transforms):
        if isinstance(transform, Normalize):
            if number != len(transforms) - 1:
                raise bad_input("Normalize must be the last transform")
            normalize = transform
        elif isinstance(transform, RandomResizedCrop | Resize | CenterCrop | RandomHorizontalFlip):
            steps.append(transform.step())
        else:
            kind = f"{type(transform).__module__}.{type(transform).__qualname__}"
            raise bad_input(
                f"transform {number} is a {kind}, which ImageLoader does not know",
                "use stoker.RandomResizedCrop, Resize, CenterCrop, RandomHorizontalFlip and Normalize; "
                "an existing DataLoader goes through stoker.accelerate()",
            )
    return Recipe(tuple(steps), normalize)
