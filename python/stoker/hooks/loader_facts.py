"""What a loader was asked to do, for the verdict: it decides whether and how fast Stoker's own could do the same."""

from __future__ import annotations

import importlib
import sys
import weakref
from typing import Any

from . import hook_file

_MOST_LOADERS = 8
_LONGEST_REPR = 2000
_MOST_FILES = 10_000  # whose names are looked at: a million would cost a second

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
    inner = _inside_subsets(dataset)
    transform = getattr(inner, "transform", None)
    return {
        "loader": type(loader).__name__,
        "kind": _kind(dataset if dataset is not None else loader),
        "root": _text(getattr(inner, "root", None)),
        "samples": _length(dataset if dataset is not None else loader),
        "batch_size": getattr(loader, "batch_size", None),
        "num_workers": getattr(loader, "num_workers", None),
        "persistent_workers": getattr(loader, "persistent_workers", None),
        "transforms": _text(transform)[:_LONGEST_REPR] if transform is not None else None,
        **_acceleration(loader),
    }


def _acceleration(loader: Any) -> dict[str, object]:
    """Whether ``stoker.accelerate`` would take ``loader``; nothing is said where that cannot be asked."""
    if type(loader).__module__.split(".")[0] == "stoker":
        return {}
    try:
        reader = importlib.import_module("stoker._torchvision")
        transforms = importlib.import_module("stoker.transforms")
        native = importlib.import_module("stoker._native")
    except ImportError as error:  # hooks go without the extension, accelerate does not
        return {"accelerable": None, "why": f"stoker.accelerate cannot be loaded here: {error}"}
    try:
        pipeline = reader.read_loader(loader, most_files=_MOST_FILES).pipeline
        recipe = [dict(step) for step in transforms.compile_recipe(pipeline.transforms).steps]
        native._draw_geometry({"transform": recipe}, 0, 0, 0, 640, 480)  # the core judges their order
    except reader.Unknown as why:
        return {"accelerable": False, "why": _first_line(why)}
    except native.Error as error:
        return {"accelerable": False, "why": f"this transform: {_first_line(error)}"}
    except Exception as error:
        return {"accelerable": None, "why": f"it could not be asked: {type(error).__name__}: {error}"}
    return {"accelerable": True, "recipe": recipe}


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:_LONGEST_REPR]


def _inside_subsets(dataset: Any) -> Any:
    subset = sys.modules["torch"].utils.data.Subset
    while type(dataset) is subset:
        dataset = dataset.dataset
    return dataset


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
