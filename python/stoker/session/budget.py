"""How long a session may live, and how often it is worth saving."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from .. import _native
from .._errors import bad_input
from .._native import format_duration

TO_BE_CONTINUED = 75  # EX_TEMPFAIL: try again later

# The Young-Daly interval is kept between these: below, saving would never rest; above, a wrong guess of the
# session's life would cost too much.
SHORTEST_INTERVAL_S = 5.0
LONGEST_INTERVAL_S = 600.0
# How long a borrowed machine is taken to live when no budget says more.
ASSUMED_LIFE_S = 3600.0

Clock = Callable[[], float]


class BudgetReached(SystemExit):
    """The budget is used up and everything is saved; the process ends with 75, "to be continued"."""

    def __init__(self, message: str) -> None:
        """``message`` says what was saved and when."""
        super().__init__(TO_BE_CONTINUED)
        self.message = message

    def __str__(self) -> str:
        """The message rather than the exit code."""
        return self.message


def process_age_s(proc: Path = Path("/proc")) -> float:
    """Seconds since this process started, imports included."""
    # The command name, in parentheses, may itself hold spaces and parentheses.
    fields = (proc / "self/stat").read_text().rpartition(")")[2].split()
    started_s = int(fields[19]) / os.sysconf("SC_CLK_TCK")
    return float((proc / "uptime").read_text().split()[0]) - started_s


class Pace:
    """What recent steps, evaluations and saves took: the basis for predictions.

    A prediction is the longest of the last few, since being late costs work and being early costs a second.
    """

    def __init__(self, remembered: int = 20) -> None:
        """Remembers the last ``remembered`` durations of each kind."""
        self._remembered = remembered
        self._taken: dict[str, list[float]] = {}

    def took(self, what: str, duration_s: float) -> None:
        """One more ``what`` took ``duration_s``."""
        taken = self._taken.setdefault(what, [])
        taken.append(duration_s)
        del taken[: -self._remembered]

    def longest_s(self, what: str) -> float:
        """The longest remembered ``what``, 0 if there was none."""
        return max(self._taken.get(what, ()), default=0.0)

    def typical_s(self, what: str) -> float | None:
        """The median ``what``, None if there was none."""
        taken = sorted(self._taken.get(what, ()))
        return taken[len(taken) // 2] if taken else None


class Budget:
    """Tells when what comes next would not fit any more into the time that is left.

    Args:
        limit: "40m", seconds, or None for no limit.
        since: "process": imports and set-up count; "session": only what comes after.
    """

    MARGIN = 1.5  # on the predicted step and save
    RESERVE_S = 0.5  # for leaving the interpreter

    def __init__(
        self,
        limit: str | float | None,
        since: Literal["process", "session"] = "process",
        clock: Clock = time.monotonic,
    ) -> None:
        if since not in ("process", "session"):
            raise bad_input(f"budget_since must be 'process' or 'session', not {since!r}")
        self.limit_s = None if limit is None else parse_duration_s(limit)
        self._clock = clock
        self._start = clock() - (process_age_s() if since == "process" else 0.0)

    def left_s(self) -> float:
        """Seconds left, infinite without a limit."""
        return math.inf if self.limit_s is None else self.limit_s - (self._clock() - self._start)

    def fits(self, work_s: float, save_s: float) -> bool:
        """Whether ``work_s`` more seconds of work and a save after it fit."""
        return self.left_s() > self.MARGIN * (work_s + save_s) + self.RESERVE_S

    def describe(self) -> str:
        """For messages: how much of what is left."""
        return f"{format_duration(max(self.left_s(), 0))} of {format_duration(self.limit_s or 0)} left"


class SavePlan:
    """When the next save is due.

    Args:
        every: A number of steps, a duration ("5m"), or "auto": the interval of Young and Daly, sqrt(2 · cost
            · life), from the measured cost of a save and the life that the machine is expected to have. The
            first step is saved at once, which measures the cost.
        life_s: The session's expected life.
    """

    def __init__(self, every: str | int, life_s: float, pace: Pace, clock: Clock = time.monotonic) -> None:
        """Counts from now on."""
        self._steps = every if isinstance(every, int) else None
        self._interval_s = None if every == "auto" or isinstance(every, int) else parse_duration_s(every)
        if self._steps is not None and self._steps < 1:
            raise bad_input(f"every must be at least one step, not {every}")
        self._life_s = life_s
        self._pace = pace
        self._clock = clock
        self._saved_at = clock()
        self._saved_step = 0

    def interval_s(self) -> float:
        """Seconds between saves, 0 before the first of them under "auto"."""
        if self._interval_s is not None:
            return self._interval_s
        cost_s = self._pace.typical_s("save")
        if cost_s is None:
            return 0.0
        return min(max(math.sqrt(2 * cost_s * self._life_s), SHORTEST_INTERVAL_S), LONGEST_INTERVAL_S)

    def saved(self, step: int) -> None:
        """The state of ``step`` is stored: start counting again."""
        self._saved_at = self._clock()
        self._saved_step = step

    def due(self, step: int) -> bool:
        """Whether to save now, ``step`` being the last finished one."""
        if self._steps is not None:
            return step - self._saved_step >= self._steps
        return step > self._saved_step and self._clock() - self._saved_at >= self.interval_s()


def parse_duration_s(value: str | float) -> float:
    """``"40m"``, ``"1h30m"`` or a number of seconds."""
    return _native.parse_duration_s(value) if isinstance(value, str) else float(value)
