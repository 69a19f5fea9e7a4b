"""Calls a function once a module has been loaded by whoever wants it; never loads one itself."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import ModuleType

_waiting: dict[str, Callable[[], None]] = {}


def when_loaded(name: str, action: Callable[[], None]) -> None:
    """Runs ``action`` after module ``name`` has been executed, at once if it is there already."""
    if name in sys.modules:
        _run(action, name)
        return
    _waiting[name] = action
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


def stop() -> None:
    """Forgets all that is waiting."""
    _waiting.clear()
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)


def _run(action: Callable[[], None], name: str) -> None:
    try:
        action()
    except Exception as error:
        sys.stderr.write(f"stoker: hooks on {name} failed: {type(error).__name__}: {error}\n")


class _Finder(importlib.abc.MetaPathFinder):
    """Lets the other finders find, and asks the loader they name to tell us when it is done."""

    def __init__(self) -> None:
        self._busy = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if self._busy or fullname not in _waiting:
            return None
        self._busy = True
        try:
            spec = _find_elsewhere(fullname, path, target)
        finally:
            self._busy = False
        if spec is not None and spec.loader is not None:
            _watch(spec.loader, fullname)
        return spec


def _find_elsewhere(
    fullname: str, path: Sequence[str] | None, target: ModuleType | None
) -> importlib.machinery.ModuleSpec | None:
    for finder in sys.meta_path:
        if finder is _finder:
            continue
        spec = finder.find_spec(fullname, path, target)
        if spec is not None:
            return spec
    return None


def _watch(loader: object, name: str) -> None:
    """Wraps this one loader object's exec_module; the wrapper removes itself when it has run."""
    execute = loader.exec_module  # type: ignore[attr-defined]

    def exec_module(module: ModuleType) -> None:
        execute(module)
        del loader.exec_module  # type: ignore[attr-defined]
        action = _waiting.pop(name, None)
        if not _waiting and _finder in sys.meta_path:
            sys.meta_path.remove(_finder)
        if action is not None:
            _run(action, name)

    loader.exec_module = exec_module  # type: ignore[attr-defined]


_finder = _Finder()
