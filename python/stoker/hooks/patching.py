"""Putting something in another's place, so that it can be taken out again."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

Undo = Callable[[], None]


def replace(owner: Any, name: str, wrapper: Any) -> Undo:
    """Sets ``owner.name``; the result puts the old one back, or removes ours if it was inherited."""
    had = name in vars(owner)
    before = vars(owner).get(name)
    setattr(owner, name, wrapper)

    def undo() -> None:
        if vars(owner).get(name) is not wrapper:
            return  # somebody has wrapped us since: ours passes through once the sites are silent
        if had:
            setattr(owner, name, before)
        else:
            delattr(owner, name)

    return undo


def all_of(*undo: Undo) -> Undo:
    """One that undoes them all, the last first."""

    def run() -> None:
        for step in reversed(undo):
            step()

    return run


def compiling_test() -> Callable[[], bool]:
    """``torch.compiler.is_compiling``, under which hooks pass through; torch < 2.3 has none and is never asked."""
    compiler = getattr(sys.modules["torch"], "compiler", None)
    return getattr(compiler, "is_compiling", None) or (lambda: False)
