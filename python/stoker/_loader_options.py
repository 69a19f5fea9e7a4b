"""What the native loader is told, by ``ImageLoader`` and ``accelerate`` alike."""

from __future__ import annotations

import sys
from typing import Literal

from .transforms import Recipe


def installed_arithmetic() -> Literal["pillow12", "pillow13"]:
    """Which order of resizing passes the installed Pillow has; without one, the newest."""
    version = getattr(sys.modules.get("PIL"), "__version__", None)
    if version is None:
        import importlib.metadata  # 10 ms that only this question needs

        try:
            version = importlib.metadata.version("pillow")
        except importlib.metadata.PackageNotFoundError:
            return "pillow13"
    return "pillow12" if int(version.split(".")[0]) < 13 else "pillow13"


def native_options(
    recipe: Recipe,
    *,
    dtype: str,
    exif: str = "ignore",
    on_error: str = "error",
    arithmetic: str,
    threads: int = 0,
    unit_scale: str = "multiply",
    fast: bool = False,
) -> dict[str, object]:
    """What ``_Loader.create`` takes."""
    options: dict[str, object] = {
        "transform": [dict(step) for step in recipe.steps],
        "dtype": dtype,
        "exif": exif,
        "on_error": on_error,
        "arithmetic": arithmetic,
        "threads": threads,
        "ahead": 0,
        "unit_scale": unit_scale,
        "fast": fast,
    }
    if recipe.normalize is not None and dtype == "float32":
        options["mean"] = [float(m) for m in recipe.normalize.mean]
        options["std"] = [float(s) for s in recipe.normalize.std]
    return options
