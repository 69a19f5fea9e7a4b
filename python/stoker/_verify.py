"""One sample through torchvision's own functions, at Stoker's parameters: what ``verify=`` compares with."""

from __future__ import annotations

from typing import Any

from . import _native
from ._loader_options import native_options
from ._torchvision import Data
from .transforms import Normalize, RandomResizedCrop, Resize, compile_recipe


def expected_sample(data: Data, number: int) -> Any:
    """The float tensor that torchvision makes of sample ``number`` at seed 0, epoch 0, position 0."""
    import torch
    from torchvision.datasets.folder import default_loader  # type: ignore[import-untyped]
    from torchvision.transforms import functional  # type: ignore[import-untyped]

    picture = default_loader(data.samples[number][0])
    options = native_options(compile_recipe(data.pipeline.transforms), dtype="float32", arithmetic="pillow13")
    drawn = _native._draw_geometry(options, 0, 0, 0, picture.width, picture.height)
    left, top, width, height = drawn["crop"]
    picture = picture.crop((left, top, left + width, top + height))
    if drawn["size"] != picture.size:
        picture = picture.resize(drawn["size"], resample=_resample(data))
    left, top, width, height = drawn["window"]
    picture = picture.crop((left, top, left + width, top + height))
    if drawn["mirror"]:
        picture = functional.hflip(picture)
    image = functional.pil_to_tensor(picture).to(torch.float32)
    image = image.div(255) if data.pipeline.unit_scale == "divide" else image.mul_(1.0 / 255.0)
    for transform in data.pipeline.transforms:
        if isinstance(transform, Normalize):
            image = functional.normalize(image, list(transform.mean), list(transform.std))
    return image


def _resample(data: Data) -> Any:
    from PIL import Image

    for transform in data.pipeline.transforms:
        if isinstance(transform, RandomResizedCrop | Resize):
            return getattr(Image.Resampling, transform.interpolation.upper())
    return Image.Resampling.BILINEAR
