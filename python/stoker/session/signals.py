"""Signals that ask a run to end: the first lets it save, the second ends it at once."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from .talk import Talk

CAUGHT = (signal.SIGTERM, signal.SIGINT)


class Stopped(SystemExit):
    """The run was asked to end and has saved; the process ends with 128 + the signal's number."""

    def __init__(self, signum: int) -> None:
        """``signum`` is the signal that asked."""
        super().__init__(128 + signum)
        self.signum = signum

    def __str__(self) -> str:
        return f"stopped by {signal.Signals(self.signum).name}"


class SignalGuard:
    """Handlers for SIGTERM and SIGINT while a session is open.

    What was there before is put back at the end and, if it is a function of the user's, called as well.

    ``asked`` runs in the handler, in the main thread between two bytecodes, at the first signal. A second
    signal of either kind is handed to the system's default, which ends the process.
    """

    def __init__(self, asked: Callable[[int], None], talk: Talk) -> None:
        """Installs nothing yet."""
        self.signum: int | None = None
        self._asked = asked
        self._talk = talk
        self._pid = os.getpid()
        self._before: dict[int, Any] = {}

    def install(self) -> None:
        """Takes the signals, except those that the process was started to ignore (``nohup``)."""
        if threading.current_thread() is not threading.main_thread():
            self._talk.warn("the session is not in the main thread, so a SIGTERM cannot be saved for")
            return
        for signum in CAUGHT:
            before = signal.getsignal(signum)
            if before is not signal.SIG_IGN and before is not None:
                self._before[signum] = signal.signal(signum, self._handle)

    def restore(self) -> None:
        """Puts the handlers back that were there, unless somebody has replaced ours since."""
        for signum, before in self._before.items():
            # Bound methods are equal, not identical, each time they are looked up.
            if signal.getsignal(signum) == self._handle:
                signal.signal(signum, before)
        self._before.clear()

    def _handle(self, signum: int, frame: FrameType | None) -> None:
        if os.getpid() != self._pid:
            self._in_child(signum)
        elif self.signum is not None:
            self._end_at_once(signum)
        else:
            self.signum = signum
            before = self._before.get(signum)
            if callable(before) and before is not signal.default_int_handler:
                before(signum, frame)
            self._asked(signum)

    def _in_child(self, signum: int) -> None:
        """A forked loader worker: Ctrl-C reaches it too, but its batches are still needed for the step."""
        if signum != signal.SIGINT:
            self._end_at_once(signum)

    def _end_at_once(self, signum: int) -> None:
        signal.signal(signum, signal.SIG_DFL)
        os.kill(os.getpid(), signum)


def in_notebook() -> bool:
    """Whether the process is a notebook's kernel, which should outlive the run."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")
