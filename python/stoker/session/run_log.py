"""Small files beside the checkpoints: who ran when, and the scalars that the user logged."""

from __future__ import annotations

import json
import os
import secrets
import socket
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from .. import _native


class SessionFile:
    """``session.json``: one entry for each process that worked on the run.

    ``run_id`` is the recorder's where one listens, so that a session leads to its report.
    """

    def __init__(self, directory: Path) -> None:
        """Reads what earlier sessions left; a damaged file is started anew, since nothing depends on it."""
        self._path = directory / "session.json"
        try:
            self._sessions: list[dict[str, Any]] = json.loads(self._path.read_text())["sessions"]
        except (OSError, ValueError, KeyError, TypeError):
            self._sessions = []
        self._own: dict[str, Any] = {}

    def begin(self, resumed_from: int | None) -> None:
        """Adds this process."""
        self._own = {
            "run_id": recorded_run_id() or new_run_id(),
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "started_utc": utc_now(),
            "resumed_from": resumed_from,
            "outcome": "running",
        }
        self._sessions.append(self._own)
        self._write()

    def end(self, outcome: str, step: int) -> None:
        """How this process left, and with how many steps done."""
        self._own.update(outcome=outcome, step=step, ended_utc=utc_now())
        self._write()

    def _write(self) -> None:
        record = {"schema": "stoker.session.v1", "sessions": self._sessions}
        _native.write_file_durably(str(self._path), json.dumps(record, indent=1) + "\n")


class ScalarLog:
    """``log.jsonl``: one line a call of ``Session.log``, cut back to the step that a resume starts from."""

    def __init__(self, directory: Path) -> None:
        """Opens nothing until the first line."""
        self._path = directory / "log.jsonl"
        self._file: TextIO | None = None

    def cut_after(self, step: int) -> None:
        """Forgets lines of steps that will be done again."""
        try:
            lines = self._path.read_text().splitlines(keepends=True)
        except FileNotFoundError:
            return
        kept = [line for line in lines if line_step(line) <= step]
        if len(kept) != len(lines):
            _native.write_file_durably(str(self._path), "".join(kept))

    def add(self, step: int, epoch: int, scalars: Mapping[str, float]) -> None:
        """Writes one line, and tells the recorder if one listens.

        The line is with the system at once: a killed process leaves every line up to its last checkpoint.
        """
        if self._file is None:
            self._file = self._path.open("a", buffering=1)
        self._file.write(json.dumps({"step": step, "epoch": epoch, **scalars}) + "\n")
        if _native.events_on():
            for name, value in scalars.items():
                _native.event_counter(_native.event_name(name), value)

    def close(self) -> None:
        """Closes the file; a later line opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None


def line_step(line: str) -> float:
    """The step of a line; infinite for one that a crash cut short."""
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return float("inf")


def recorded_run_id() -> str:
    """The id of the recording that this process is in, or nothing."""
    return Path(os.environ.get("STOKER_RUN", "")).name


def new_run_id() -> str:
    """``20260102T030405Z-train-1a2b``."""
    name = Path(sys.argv[0]).stem or "python"
    return f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{name}-{secrets.token_hex(2)}"


def utc_now() -> str:
    """``2026-01-02T03:04:05Z``."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
