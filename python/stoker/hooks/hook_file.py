"""``hook.json`` in the run's folder: what only the trainee knows, for the recorder to put into run.json."""

from __future__ import annotations

import json
import os
import sys
import time

now = time.monotonic_ns

_state: dict[str, dict[str, object]] = {}
_loaders: list[tuple[bool, str]] = []
_facts: list[dict[str, object]] = []
_pid = 0
_owned: tuple[int, str] | None = None  # the pid and run for which this process writes hook.json


def begin() -> None:
    """Says that the hooks are loaded, unless another process of this run has said so."""
    global _pid
    _pid = os.getpid()
    _state.clear()
    _loaders.clear()
    _facts.clear()
    _state["python"] = {
        "version": sys.version.split()[0],
        "executable": sys.executable,
        "recorded": False,
        "why": "no step seen: neither a DataLoader, a model nor an optimizer of torch was used; "
        "let the script train a few batches",
        "pid": _pid,
        "started_ns": now(),
    }
    try:
        os.close(os.open(os.path.join(_folder(), "hook.first"), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    except OSError:
        return
    _write()


def claim() -> bool:
    """Makes this process the run's trainee. False when another one is."""
    global _owned
    if os.getpid() != _pid:
        return False
    if _owns():
        return True
    try:
        os.close(os.open(os.path.join(_folder(), "hook.claim"), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    except OSError:
        return False
    _owned = (_pid, _folder())
    _write()
    return True


def set_python(**facts: object) -> None:
    """Adds to ``run.json``'s ``python``."""
    _state.get("python", {}).update(facts)
    _write()


def add_accelerate(applied: bool, why: str) -> None:
    """What became of ``--accelerate`` for one more loader; it counts as applied when it was for any."""
    _loaders.append((applied, why))
    any_applied = any(done for done, _ in _loaders)
    _state["accelerate"] = {
        "applied": any_applied,
        "why": "; ".join(dict.fromkeys(why for done, why in _loaders if done == any_applied)),
        "loaders": [{"applied": done, "why": why} for done, why in _loaders],
    }
    _write()


def add_loader(facts: dict[str, object]) -> None:
    """One more loader that the script iterates."""
    _facts.append(facts)
    _write()


def set_exception(kind: str, message: str, traceback: str) -> None:
    """The exception that ends the script."""
    _state["exception"] = {"type": kind, "message": message[:4000], "traceback": traceback[-32000:]}
    _write()


def _folder() -> str:
    return os.environ["STOKER_RUN"]


def _owns() -> bool:
    return _owned == (os.getpid(), _folder())


def _claimed_by_another() -> bool:
    return not _owns() and os.path.exists(os.path.join(_folder(), "hook.claim"))


def _write() -> None:
    """Replaces hook.json, unless another process is the trainee. A full disk is not the script's problem."""
    if os.getpid() != _pid or _claimed_by_another():
        return
    path = os.path.join(_folder(), "hook.json")
    temporary = f"{path}.{_pid}"
    try:
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump({**_state, "loaders": _facts}, file)
        os.replace(temporary, path)
    except OSError:
        pass
