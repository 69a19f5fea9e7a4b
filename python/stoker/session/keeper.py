"""Between a session and its store: what a checkpoint of a run consists of, and what saving it costs."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from .. import _native
from .._errors import bad_input, error
from ..store import Keep, LoadedState, Store
from .budget import Pace
from .progress import Direction
from .random_state import cuda_in_use
from .talk import Talk

FORMAT = 1  # of the state under "session"


class Keeper:
    """Saves and loads the states of one run.

    A save that fails does not end the training: what was stored before is still there, the failure is said
    and the next due save tries again. Only the last one, at the session's end, raises.
    """

    def __init__(self, directory: Path, keep: Keep | None, pace: Pace, talk: Talk) -> None:
        """Opens the store, and with it the directory's lock.

        Raises:
            InUseError: another session has the directory; names its owner.
            IoError: the directory cannot be made or written.
        """
        self._store = Store(directory, keep=keep)
        self._pace = pace
        self._talk = talk

    def keep_best(self, metric: str, direction: Direction) -> None:
        """Keeps the checkpoint with the best ``metric`` from now on, unless the user has set such a rule."""
        if self._store.keep.best is None:
            self._store.keep = replace(self._store.keep, best=metric, mode=direction)

    def load(self) -> LoadedState | None:
        """The newest whole checkpoint, None in a new directory. Says nothing of what it passed over.

        Raises:
            BadInputError: it is no session's, or one of another format.
            CorruptError: there are checkpoints, but none is whole.
        """
        try:
            loaded = self._store._load(None, None)
        except _native.Error as failure:
            if failure.code == "not-found":
                return None
            raise
        check_format(loaded)
        return loaded

    def save(self, step: int, state: Mapping[str, Any], metrics: Mapping[str, float], pin: str = "") -> None:
        """Returns once the state is copied; it is written behind.

        Raises:
            Error: whatever the store failed with; nothing is lost that was there before.
        """
        start = time.monotonic()
        self._store.save(step, metrics=metrics, pin=pin or None, **state)
        self._pace.took("save", time.monotonic() - start)

    def save_emergency(self, step: int, state: Mapping[str, Any]) -> None:
        """Stores what is in memory beside the checkpoints, marked as not exact, and waits for it."""
        self._store.save(step, pin="emergency", exact=False, **state)
        self._store.wait()

    def wait(self) -> None:
        """Returns when the last save is durable.

        Raises:
            Error: it failed.
        """
        start = time.monotonic()
        self._store.wait()
        self._pace.took("wait", time.monotonic() - start)

    def close(self) -> None:
        """Waits and lets go of the directory."""
        self._store.close()

    def cost_s(self) -> float:
        """What a save until it is durable took at most, of late."""
        return self._pace.longest_s("save") + self._pace.longest_s("wait")


def check_format(loaded: LoadedState) -> None:
    """Refuses a checkpoint that a session of this version cannot go on from.

    Raises:
        BadInputError: it is no session's (``code`` "bad-input"), or of another format ("unsupported").
    """
    session = loaded.get("session")
    if not isinstance(session, Mapping):
        raise bad_input(
            f"{loaded.info.path} was not saved by a session",
            "give the session a directory of its own; read this one with stoker.Store",
        )
    if (found := session.get("format")) != FORMAT:
        raise error(
            _native.BadInputError,
            "unsupported",
            f"{loaded.info.path} has session format {found!r}, this Stoker reads {FORMAT}",
            "go on with the Stoker that saved it, or give this run another directory",
        )


def machine_facts() -> dict[str, Any]:
    """What decides whether a resumed run can be bit-exact; compared on resume."""
    facts: dict[str, Any] = {"torch": str(torch.__version__), "torch_threads": torch.get_num_threads()}
    if cuda_in_use():
        facts["gpu"] = torch.cuda.get_device_name()
    return facts


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """``torch_threads 2 → 4``, for every fact that changed."""
    return [f"{key} {value} → {now.get(key)}" for key, value in before.items() if now.get(key) != value]
