"""Hooks on the interpreter itself: garbage collections and the exception that ends the script."""

from __future__ import annotations

import gc
import sys
import traceback
from collections.abc import Callable
from types import TracebackType

from . import hook_file, sites

_GC = sites.Site("gc")
_EXCEPTION = sites.Site("exception")

# The young generation is collected thousands of times a minute, in microseconds.
_OLDEST_UNSEEN_GENERATION = 0


def _on_gc(phase: str, info: dict[str, int]) -> None:
    generation = info["generation"]
    if generation <= _OLDEST_UNSEEN_GENERATION or not sites.claimed():
        return
    if phase == "start":
        _GC.begin()
    else:
        _GC.end(float(generation))


def patch() -> Callable[[], None]:
    """Installs them; the result takes them out."""
    before = sys.excepthook

    def on_exception(kind: type[BaseException], error: BaseException, where: TracebackType | None) -> None:
        try:
            hook_file.set_exception(
                kind.__name__, str(error), "".join(traceback.format_exception(kind, error, where))
            )
            if sites.claimed():
                _EXCEPTION.instant()
        finally:
            before(kind, error, where)

    sys.excepthook = on_exception
    gc.callbacks.append(_on_gc)

    def undo() -> None:
        if sys.excepthook is on_exception:
            sys.excepthook = before
        if _on_gc in gc.callbacks:
            gc.callbacks.remove(_on_gc)

    return undo
