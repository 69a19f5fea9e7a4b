"""Crash-safe checkpoints: a directory of them, each whole or absent."""

from __future__ import annotations

import logging
import os
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from . import _native
from ._errors import bad_input, error
from ._events import span
from ._model_keys import adapt_keys
from ._native import BadInputError, CorruptError, Error
from ._rebuild import Loaded, Rebuilder
from ._state import Flattened, StateError

__all__ = ["Checkpoint", "Damaged", "Keep", "LoadedState", "Store", "adapt_keys"]

_log = logging.getLogger("stoker.store")
_MAX_HOURS = 1_000_000
# What putting a state together raises when the typed JSON is not as Stoker writes it.
_MALFORMED = (
    KeyError,
    ValueError,
    TypeError,
    StopIteration,
    RuntimeError,
    AttributeError,
    IndexError,
    OverflowError,
)


@dataclass(frozen=True)
class Keep:
    """Which checkpoints stay; one that any rule wants is kept.

    Args:
        last: The newest so many; 0 keeps all.
        every_steps: Also the first at or after each multiple of so many steps; 0: no such rule.
        every_hours: Also the first at or after each multiple of so many hours since the store was first
            opened, over restarts; 0: no such rule.
        every_epochs: Also the first at or after each multiple of so many epochs, by the metric ``epoch``,
            which a Session sets; 0: no such rule.
        best: Also the one with the best value of this metric, as given to :meth:`Store.save`. NaN never wins.
        mode: "max" or "min": what is better.
    """

    last: int = 3
    every_steps: int = 0
    every_hours: float = 0
    every_epochs: int = 0
    best: str | None = None
    mode: str = "max"

    def __post_init__(self) -> None:
        """Raises BadInputError for what is no rule."""
        if self.last < 0 or self.every_steps < 0 or self.every_epochs < 0:
            raise bad_input("Keep: `last`, `every_steps` and `every_epochs` are counts, ≥ 0")
        if not 0 <= self.every_hours <= _MAX_HOURS:
            raise bad_input(f"Keep: `every_hours` is between 0 and {_MAX_HOURS:,}, not {self.every_hours}")
        if self.mode not in ("max", "min"):
            raise bad_input(f"Keep: mode is 'max' or 'min', not {self.mode!r}")


@dataclass(frozen=True)
class Checkpoint:
    """What is known of one checkpoint without reading its tensors."""

    step: int
    pin: str | None
    exact: bool
    path: str
    created_ns: int  # since 1970, UTC
    size_bytes: int
    tensor_count: int
    metrics: dict[str, float]


class Damaged(NamedTuple):
    """A checkpoint that cannot be trusted, and why: the tensor, the file, the offset, both hashes."""

    step: int
    path: str
    why: str


class LoadedState(dict[str, Any]):
    """The state that was saved, by the names it was saved under.

    Attributes:
        info: The checkpoint that it came from.
        skipped: Newer checkpoints that were damaged and passed over, newest first.
    """

    def __init__(self, state: Mapping[str, Any], info: Checkpoint, skipped: list[Damaged]) -> None:
        super().__init__(state)
        self.info = info
        self.skipped = skipped

    @property
    def step(self) -> int:
        """The checkpoint's global step."""
        return self.info.step

    @property
    def metrics(self) -> dict[str, float]:
        """The metrics given when it was saved."""
        return self.info.metrics


class Store:
    """A directory of checkpoints, each whole or absent.

    ``save`` copies the state and returns; a thread writes, syncs and renames it. What ``wait`` or
    ``close`` confirmed survives power loss; a save still on its way is whole or absent. Use it in a
    ``with`` block, or ``close`` it.

    A state is nested dicts, lists and tuples of torch tensors, NumPy arrays, numbers, strings, bytes, None
    and a few more (``docs/formats/store.md``); it comes back equal, type by type. Nothing is pickled.

    Args:
        dir: Made if missing.
        keep: Which checkpoints stay; may be set later as ``store.keep``.
        read_only: Takes no lock and changes nothing; works beside a running writer.

    Raises:
        InUseError: another process, or another Store, writes there; the message names it.
    """

    def __init__(
        self, dir: str | os.PathLike[str], *, keep: Keep | None = None, read_only: bool = False
    ) -> None:
        """Opens the directory and takes its lock."""
        self.dir = os.fspath(dir)
        self._native = _native._Store(self.dir, read_only)
        self._keep = Keep()
        self.keep = keep if keep is not None else Keep()
        # Also at the interpreter's end: a save on its way is finished there.
        self._finalizer = weakref.finalize(self, _close_quietly, self._native)
        self._tell()

    @property
    def keep(self) -> Keep:
        """The rules in force; what is set here counts from the next save on."""
        return self._keep

    @keep.setter
    def keep(self, keep: Keep) -> None:
        self._keep = keep
        self._native.set_keep(
            {
                "last": keep.last,
                "every_steps": keep.every_steps,
                "every_ns": round(keep.every_hours * 3600e9),
                "every_epochs": keep.every_epochs,
                "best_metric": keep.best or "",
                "better": "higher" if keep.mode == "max" else "lower",
            }
        )

    def save(
        self,
        step: int,
        /,
        *,
        metrics: Mapping[str, float] | None = None,
        pin: str | None = None,
        exact: bool = True,
        **state: Any,
    ) -> None:
        """Saves ``state`` under a global step number; returns once every byte is copied.

        Blocks while an earlier save is still being written. Tensors may be changed as soon as it returns.

        Args:
            step: ≥ 0; a step that exists and is whole is never replaced.
            metrics: Figures of this step, for ``Keep(best=…)``.
            pin: A name under which it is kept until removed by hand, beside the step's own checkpoint.
            exact: False for a state that is no step's boundary: never the latest, never the best; needs a
                pin.
            **state: What to save, by name.

        Raises:
            BadInputError: a value that is not stored, by its name; a step that exists.
            NoSpaceError: it does not fit; the message has both numbers. Nothing was changed.
            Error: also what the save before failed with, in its background thread.
        """
        try:
            with span("checkpoint") as event:
                try:
                    flat = Flattened(state)
                except StateError as problem:
                    raise bad_input(f"cannot save step {step}: {problem}") from None
                event.value = float(sum(entry[4] for entry in flat.entries))
                figures = {name: float(value) for name, value in (metrics or {}).items()}
                self._native.save(step, flat.entries, flat.text, figures, pin or "", exact)
        finally:
            self._tell()

    def wait(self) -> None:
        """Blocks until the last save is durable.

        Raises:
            Error: what it failed with, once; the store is as it was before that save.
        """
        try:
            self._native.wait()
        finally:
            self._tell()

    def load(self, step: int | str | None = None, *, pin: str | None = None) -> LoadedState:
        """Reads a checkpoint and checks every byte of it.

        Args:
            step: A number, "latest" or None for the newest exact one that is whole, "best" for the best one.
            pin: The newest with this pin, or the one of ``step``.

        Raises:
            BadInputError: there is none (``code`` is "not-found").
            CorruptError: the step asked for is damaged, or every one is; the message names tensor, file
                and offset.
        """
        loaded = self._load(step, pin)
        for damaged in loaded.skipped:
            _log.warning("step %d is damaged and was passed over: %s", damaged.step, damaged.why)
        return loaded

    def _load(self, step: int | str | None, pin: str | None) -> LoadedState:
        """``load`` without a word of what was passed over, for those who say it themselves."""
        number = self._number(step)
        with span("checkpoint.load"):
            info, text, tensors, skipped = self._native.load(number, pin or "")
            state = _rebuilt(info["path"], text, tensors)
        return LoadedState(state, _checkpoint(info), [Damaged(**item) for item in skipped])

    def _number(self, step: int | str | None) -> int | None:
        if step is None or step == "latest":
            return None
        if step == "best":
            best = self.best
            if best is None:
                raise error(
                    BadInputError, "not-found", f"{self.dir} has no best checkpoint", "save with `metrics=`"
                )
            return best
        if isinstance(step, str):
            raise bad_input(f"step is a number, 'latest' or 'best', not {step!r}")
        return int(step)

    def list(self) -> list[Checkpoint]:
        """The checkpoints whose manifest is sound, by step."""
        return [_checkpoint(info) for info in self._native.list()["checkpoints"]]

    @property
    def latest(self) -> int | None:
        """The newest exact step, or None."""
        latest: int | None = self._native.list()["latest"]
        return latest

    @property
    def best(self) -> int | None:
        """The best step by the rule that the newest checkpoint was saved under, or None."""
        best: int | None = self._native.list()["best"]
        return best

    def verify(self, step: int | None = None) -> list[Damaged]:  # type: ignore[valid-type]
        """Checks every byte of a step, or of all; returns the damaged ones."""
        return [Damaged(**item) for item in self._native.verify(step)]

    def close(self) -> None:
        """Waits for the save on its way and lets go of the lock. Reading goes on working.

        Raises:
            Error: what that save failed with.
        """
        self._finalizer.detach()
        try:
            self._native.close()
        finally:
            self._tell()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _tell(self) -> None:
        for warning, text in self._native.take_notices():
            _log.log(logging.WARNING if warning else logging.INFO, text)


def _rebuilt(path: str, text: str, tensors: Iterable[Loaded]) -> dict[str, Any]:
    try:
        return Rebuilder(text, tensors).state()
    except ImportError as problem:
        raise error(
            BadInputError,
            "unsupported",
            f"{path}: this state cannot be had without {problem.name}",
            f"install {problem.name}",
        ) from None
    except _MALFORMED as problem:
        raise error(
            CorruptError,
            "corrupt",
            f"{path}: its state cannot be put together: {problem!r}",
            "was it written by a newer Stoker?",
        ) from problem


def _checkpoint(info: Mapping[str, Any]) -> Checkpoint:
    return Checkpoint(**{**info, "pin": info["pin"] or None})


def _close_quietly(native: _native._Store) -> None:
    try:
        native.close()
    except Error as problem:
        _log.error("the last checkpoint was not saved: %s", problem)
