"""Places that events come from. A site costs one C call an event, in which nothing is allocated.

Of all Python processes that a command starts (launchers, DataLoader workers, helpers), the first that trains
is the trainee: it claims the ring at its first event. The others stay silent.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

from . import hook_file

Emit = Callable[..., None]


def _nothing(value: float = 0.0) -> None:
    """The event function of a process that is not recorded."""


class Site:
    """One event name: ``begin()``, ``end(value)``, ``instant(value)``, ``counter(value)``."""

    __slots__ = ("begin", "counter", "end", "instant", "name")

    begin: Emit
    end: Emit
    instant: Emit
    counter: Emit

    def __init__(self, name: str) -> None:
        """``name`` is one of docs/formats/events.md."""
        self.name = name
        _sites.append(self)
        _bind(self, _writer)

    def first(self, kind: str, value: float = 0.0) -> None:
        """The process's first event: claims the ring; is dropped if another process has it."""
        _claim()
        getattr(self, kind)(*([] if kind == "begin" else [value]))


_sites: list[Site] = []
_writer: object = None  # None: not claimed yet; False: silent; else the module or object that writes


def _bind(site: Site, writer: object) -> None:
    for code, kind in enumerate(
        ("begin", "end", "instant", "counter"), start=1
    ):  # EventKind of base/events.h
        if writer is None:
            emit: Emit = partial(site.first, kind)
        elif writer is False:
            emit = _nothing
        else:
            number = writer.event_name(site.name)  # type: ignore[attr-defined]
            native = getattr(writer, "_EventCall", None)
            emit = native(code, number) if native else partial(getattr(writer, "event_" + kind), number)
        setattr(site, kind, emit)


def _use(writer: object) -> None:
    global _writer
    _writer = writer
    for site in _sites:
        _bind(site, writer)


def _open_ring(path: str) -> object:
    """The extension's writer or, where it does not load, the pure-Python one."""
    try:
        from stoker import _native

        _native.events_attach(path)
        return _native
    except ImportError:
        from .pure_ring import PureRing

        hook_file.set_python(writer="pure Python: the extension does not load in this interpreter")
        return PureRing(path)


def _claim() -> None:
    if _writer is not None:
        return
    if not hook_file.claim():
        silence()
        return
    try:
        _use(_open_ring(os.environ["STOKER_RING"]))
        hook_file.set_python(recorded=True, why="")
    except Exception as error:
        silence()
        hook_file.set_python(recorded=False, why=f"{type(error).__name__}: {error}")


def claimed() -> bool:
    """True when this process is the one that is recorded."""
    return _writer is not None and _writer is not False


def silence() -> None:
    """Makes every site of this process do nothing; also what a forked child does first."""
    _use(False)


def reset() -> None:
    """Back to the state before the first event, for a recording that starts anew in the same process."""
    _use(None)


os.register_at_fork(after_in_child=silence)
