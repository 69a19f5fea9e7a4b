"""How far a run has come, in numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from .._errors import error
from .._native import CorruptError

Direction = Literal["max", "min"]


@dataclass
class Progress:
    """Counters and metrics; everything in it is a plain value.

    ``epoch`` is the one being worked on: ``epoch_end`` moves it on. ``steps_in_epoch`` counts optimizer
    steps, not batches.
    """

    epoch: int = 0
    global_step: int = 0
    steps_in_epoch: int = 0
    history: list[dict[str, float]] = field(default_factory=list)
    best: float | None = None

    def step(self) -> None:
        """One more optimizer step is done."""
        self.global_step += 1
        self.steps_in_epoch += 1

    def close_epoch(self, metrics: Mapping[str, float]) -> None:
        """The epoch is over; its metrics join the history."""
        if metrics:
            self.history.append({"epoch": self.epoch, "step": self.global_step, **metrics})
        self.epoch += 1
        self.steps_in_epoch = 0

    def improves(self, value: float, direction: Direction) -> bool:
        """Whether ``value`` is the best so far, which it then becomes. NaN and infinities never are."""
        if not math.isfinite(value):
            return False
        if self.best is not None and (value <= self.best if direction == "max" else value >= self.best):
            return False
        self.best = value
        return True

    def to_state(self) -> dict[str, Any]:
        """A copy, so that it stays what it was when later steps are done."""
        return {**vars(self), "history": [dict(entry) for entry in self.history]}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Progress:
        """The inverse of ``to_state``; what it does not know is passed over, what is absent starts anew.

        Raises:
            CorruptError: the counters, without which there is no going on, are absent or no counts.
        """
        for name in ("epoch", "global_step"):
            if not isinstance(state.get(name), int):
                raise error(
                    CorruptError,
                    "corrupt",
                    f"the session's progress has {name} {state.get(name)!r}, not a count",
                    "was it written by another program? start the run in another directory",
                )
        return cls(**{known.name: state[known.name] for known in fields(cls) if known.name in state})
