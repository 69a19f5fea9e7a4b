"""What a model is like, for the verdict: whether it has convolutions, and in which layout they run."""

from __future__ import annotations

import sys
from typing import Any

from . import hook_file

_largest = -1  # parameters of the largest model told of: of a GAN's two, the one that costs more


def note(model: Any, inputs: tuple[Any, ...]) -> None:
    """Writes the facts of a model into ``hook.json`` at its first training forward. Never raises.

    ``inputs`` are that forward's positional arguments.
    """
    global _largest
    try:
        weights = list(model.parameters())
        size = sum(weight.numel() for weight in weights)
        if size <= _largest:
            return
        _largest = size
        layouts = [_is_channels_last(weight) for weight in weights if weight.dim() == 4]
        last = layouts.count(True)
        hook_file.set_python(
            model={
                "class": type(model).__name__,
                "parameters": size,
                "convolutions": len(layouts),
                # One channels_last operand makes a convolution run so, and its output goes on in that layout.
                "channels_last": bool(_is_channels_last(_first_image(inputs)) or last > layouts.count(False)),
            }
        )
    except Exception:  # a model of unusual make is still a model
        return


def forget() -> None:
    """For a recording that starts anew in the same process."""
    global _largest
    _largest = -1


def _first_image(inputs: tuple[Any, ...]) -> Any:
    tensor = sys.modules["torch"].Tensor
    return next((one for one in inputs if isinstance(one, tensor) and one.dim() == 4), None)


def _is_channels_last(tensor: Any) -> bool | None:
    """None where both layouts are the same bytes: one channel, or 1x1 kernels."""
    if tensor is None:
        return None
    channels_last = bool(tensor.is_contiguous(memory_format=sys.modules["torch"].channels_last))
    return None if channels_last == bool(tensor.is_contiguous()) else channels_last
