"""Names of a model's tensors, whatever wraps the model or a part of it."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any

from ._errors import bad_input
from ._native import BadInputError

_WRAPPERS = ("module", "_orig_mod")  # of DataParallel and DDP, of torch.compile


def bare(key: str) -> str:
    """``key`` without the names of wrappers, wherever in it they stand: parts of a model are wrapped too."""
    *owners, name = key.split(".")
    return ".".join([*(owner for owner in owners if owner not in _WRAPPERS), name])


def bare_names(keys: Iterable[str]) -> dict[str, str]:
    """The bare name of each key; a key keeps its own where two would come to have the same."""
    names = {key: bare(key) for key in keys}
    times = Counter(names.values())
    return {key: name if times[name] == 1 else key for key, name in names.items()}


def adapt_keys(
    state: Mapping[str, Any], model_state: Mapping[str, Any] | Iterable[str], *, strict: bool = True
) -> OrderedDict[str, Any]:
    """A model's state under the keys that another wrapping of the model has.

    ``module.`` (DataParallel, DDP) and ``_orig_mod.`` (torch.compile) are added or taken away, wherever in
    a key they stand, until the keys fit.

    Args:
        state: The model's state from a checkpoint.
        model_state: The model's own ``state_dict()``, or just its keys; with the former, shapes are
            compared too.
        strict: Raise when keys or shapes differ; else what fits is returned.

    Raises:
        BadInputError: a checkpoint of another model; the first keys and shapes that differ are named.
    """
    wanted = list(model_state)
    shapes = model_state if isinstance(model_state, Mapping) else {}
    by_bare: dict[str, list[str]] = {}
    for key in state:
        by_bare.setdefault(bare(key), []).append(key)
    adapted: OrderedDict[str, Any] = OrderedDict()
    missing, used, unlike = [], set(), []
    for key in wanted:
        found = [key] if key in state else by_bare.get(bare(key), [])
        if len(found) != 1:
            missing.append(key)
            continue
        used.add(found[0])
        here = getattr(shapes.get(key), "shape", None) if shapes else None
        there = getattr(state[found[0]], "shape", None)
        if here is not None and there is not None and tuple(here) != tuple(there):
            unlike.append(f"{key} is {_shape(here)} in the model and {_shape(there)} in the checkpoint")
            continue
        adapted[key] = state[found[0]]
    extra = [key for key in state if key not in used]
    if strict and (missing or extra or unlike):
        raise _other_model(missing, extra, unlike)
    metadata = getattr(state, "_metadata", None)
    if metadata is not None:
        adapted._metadata = metadata  # type: ignore[attr-defined]
    return adapted


def _shape(shape: Iterable[int]) -> str:
    return "×".join(map(str, shape)) or "a single number"


def _first(keys: list[str], count: int = 3) -> str:
    more = f" and {len(keys) - count} more" if len(keys) > count else ""
    return ", ".join(keys[:count]) + more


def _other_model(missing: list[str], extra: list[str], unlike: list[str]) -> BadInputError:
    lines = ["the checkpoint is of another model"]
    if unlike:
        lines.append(f"shapes differ: {_first(unlike)}")
    if missing:
        lines.append(f"not in the checkpoint: {_first(missing)}")
    if extra:
        lines.append(f"not in the model: {_first(extra)}")
    return bad_input(
        "\n  ".join(lines),
        "build the model that was saved, or give this run another directory",
    )
