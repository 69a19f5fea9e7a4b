"""What a loader was asked to do, for the verdict: it decides whether and how fast Stoker's own could do the same."""

from __future__ import annotations

import sys
import weakref
from typing import Any

from . import hook_file

_MOST_LOADERS = 8
_LONGEST_REPR = 2000

_seen: weakref.WeakSet[Any] = weakref.WeakSet()


def note(loader: Any) -> None:
    """Writes the facts of a loader into ``hook.json`` when it is iterated for the first time. Never raises."""
    try:
        if loader in _seen or len(_seen) >= _MOST_LOADERS:
            return
        _seen.add(loader)
        hook_file.set_python(torch_threads=sys.modules["torch"].get_num_threads())
        hook_file.add_loader(_facts(loader))
    except Exception:  # a loader of unusual make is still a loader
        return


def _facts(loader: Any) -> dict[str, object]:
    dataset = getattr(loader, "dataset", None)
    transform = getattr(dataset, "transform", None)
    return {
        "loader": type(loader).__name__,
        "kind": _kind(dataset if dataset is not None else loader),
        "root": _text(getattr(dataset, "root", None)),
        "samples": _length(dataset if dataset is not None else loader),
        "batch_size": getattr(loader, "batch_size", None),
        "num_workers": getattr(loader, "num_workers", None),
        "persistent_workers": getattr(loader, "persistent_workers", None),
        "transforms": _text(transform)[:_LONGEST_REPR] if transform is not None else None,
    }


def _kind(dataset: Any) -> str:
    """``ImageFolder`` for torchvision's own; the class's full name for all else, a subclass of it too."""
    kind = type(dataset)
    if kind.__module__ in ("torchvision.datasets.folder", "stoker", "stoker.loader"):
        return kind.__name__
    return f"{kind.__module__}.{kind.__qualname__}"


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _length(dataset: Any) -> int | None:
    try:
        return len(dataset)
    except Exception:
        return None
