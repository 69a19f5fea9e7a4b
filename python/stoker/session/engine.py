"""The machine under ``Session``: which moments are step boundaries, and what happens at one.

1. A *boundary* is a moment at which the loop asks for a batch, has seen the end of its batches, or calls
   ``epoch_end``, and no gradients wait for an optimizer step. The end of an epoch is one even so; the
   gradients are saved with it.
2. At a boundary everything small is copied: counters, random states, positions. Weights are not, since
   nothing changes them before the loop gets its next batch. A save is this copy plus the weights as they are
   then.
3. From the batch that is given to the next boundary a step is *open*: nothing is saved, and a signal waits.
4. *Outside* the batches (evaluation) the user's code runs without an open step. A signal is saved for at
   once, unless the weights were touched since the boundary (an EMA swapped in, statistics moved): then it
   waits for ``epoch_end``.
5. What ends a run (a signal, the budget) saves first and waits until the save is durable.
"""

from __future__ import annotations

import copy
import os
import signal
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .. import _native
from .._native import format_duration
from . import random_state
from .budget import Budget, BudgetReached, Pace, SavePlan
from .keeper import FORMAT, Keeper, differences, machine_facts
from .lane import Lane
from .parts import Parts
from .progress import Progress
from .random_state import RandomState
from .signals import SignalGuard, Stopped, in_notebook
from .talk import Talk


@dataclass(frozen=True)
class Boundary:
    """The run at a step's boundary, without what ``Parts`` holds."""

    progress: dict[str, Any]
    lanes: dict[str, dict[str, Any]]
    random: RandomState
    user: dict[str, Any]
    with_gradients: bool = False
    metrics: Mapping[str, float] = field(default_factory=dict)

    @property
    def step(self) -> int:
        """Optimizer steps done."""
        return int(self.progress["global_step"])

    def mark(self) -> tuple[Any, ...]:
        """Equal marks, equal places."""
        ends = tuple((name, lane["exhausted"]) for name, lane in sorted(self.lanes.items()))
        return (self.step, self.progress["epoch"], ends)

    def to_state(self) -> dict[str, Any]:
        """For the store."""
        session = {"format": FORMAT, "progress": self.progress, "machine": machine_facts(), "user": self.user}
        return {"session": session, "loader": self.lanes, "random": self.random.to_state()}


class Engine:
    """Knows where the loop is, and saves, resumes and ends the run."""

    def __init__(
        self, parts: Parts, keeper: Keeper, budget: Budget, plan: SavePlan, pace: Pace, talk: Talk
    ) -> None:
        """At the beginning of a new run."""
        self.parts = parts
        self.lanes: dict[str, Lane] = {}
        self.progress = Progress()
        self.user: dict[str, Any] = {}
        self.guard = SignalGuard(self._signalled, talk)
        self.ended = False  # in a notebook, where the process must not: no more batches
        self.returning: dict[str, Any] | None = (
            None  # random state to be set again when the loop gets under way
        )
        self._keeper = keeper
        self._budget = budget
        self._plan = plan
        self._pace = pace
        self._talk = talk
        self._open = False  # a batch was given since the last boundary
        self._accumulating = False  # a batch was given since the last optimizer step
        self._outside = False
        self._busy = False  # with the store
        self._boundary: Boundary | None = None
        self._saved: tuple[Any, ...] | None = None  # mark of the last save
        self._saved_step = -1
        self._weights: list[float] = []
        self._moved_on_s = time.monotonic()  # the last boundary
        self._unclaimed: dict[str, dict[str, Any]] = {}  # places of loaders that have not come yet
        self._resumed_at: int | None = None
        self._took = {"load": 0.0, "seek": 0.0}  # seconds of the resume
        self._under_way_s = 0.0

    # --- resume ---

    def resume(self) -> int | None:
        """Puts the newest whole checkpoint back; its step, or None if there is none."""
        start = time.monotonic()
        loaded = self._keeper.load()
        if loaded is None:
            self._saved = self._take().mark()
            return None
        for damaged in loaded.skipped:
            self._talk.warn(
                f"step {damaged.step} is damaged, going on from step {loaded.step}: {damaged.why}"
            )
        session = loaded["session"]
        self.progress = Progress.from_state(session.get("progress", {}))
        self.parts.restore(loaded, self._talk)
        self.parts.set_gradients(loaded.get("gradients") or {})
        self.user.update(session.get("user", {}))
        self._unclaimed = dict(loaded["loader"])
        for name, lane in self.lanes.items():
            self._claim(name, lane)
        self.returning = loaded["random"]
        self.set_random()
        self._saved = self._take().mark()
        self._saved_step = self.progress.global_step
        self._plan.saved(self.progress.global_step)
        self._resumed_at = self.progress.global_step
        self._took["load"] = time.monotonic() - start - self._took["seek"]
        self._note_changes(session.get("machine", {}))
        return self._resumed_at

    def add_lane(self, name: str, lane: Lane) -> None:
        """A loader joins, at the place where a resumed run left it."""
        self.lanes[name] = lane
        self._claim(name, lane)

    def _claim(self, name: str, lane: Lane) -> None:
        if (state := self._unclaimed.pop(name, None)) is not None:
            start = time.monotonic()
            lane.from_state(state)
            self._took["seek"] += time.monotonic() - start

    def set_random(self) -> None:
        """Sets the generators to what they were when the run was saved, if the loop has not gone on since."""
        if self.returning is not None:
            for missing in random_state.restore(self.returning):
                self._talk.warn(
                    f"{missing} could not be set, so this run is not a bit-exact continuation", once=True
                )

    def _note_changes(self, machine: Mapping[str, Any]) -> None:
        if changed := differences(machine, machine_facts()):
            self._talk.warn(f"not a bit-exact continuation, since this has changed: {', '.join(changed)}")

    def _say_resumed(self) -> None:
        if self._resumed_at is None or self.progress.global_step == self._resumed_at:
            return
        self._resumed_at = None
        self._took["first step"] = time.monotonic() - self._under_way_s
        parts = ", ".join(f"{what} {format_duration(duration)}" for what, duration in self._took.items())
        self._talk.say(f"the resume took {parts}")

    # --- where the loop is ---

    def begin(self, lane: Lane) -> Iterator[Any]:
        """The loop enters a loader's batches."""
        if lane.begun and not lane.returned:
            self.close_epoch({})  # entered again without an epoch_end
        start = time.monotonic()
        returned = lane.returned
        now = RandomState.now().to_state() if returned else {}
        batches = lane.begin(self.progress.epoch)
        if returned:
            random_state.restore(self.returning or now)
        self.returning = None
        self._under_way_s = time.monotonic()
        self._took["seek"] += self._under_way_s - start
        return batches

    def batch_wanted(self, lane: Lane) -> None:
        """The loop asks for a batch: whatever it did with the one before is done."""
        if self._open and not self.parts.optimizers:
            self.stepped()
        if self._open and self._accumulating:
            return
        # After the last batch of an epoch the save is left to epoch_end, which knows the metrics.
        self._reach(may_save=not lane.at_end())

    def batch_given(self, lane: Lane) -> None:
        """A step opens."""
        self._open = self._accumulating = True
        self._outside = False
        lane.handed += 1

    def exhausted(self, lane: Lane) -> None:
        """The loop has seen the end of its batches; evaluation comes next."""
        lane.exhausted = True
        self._reach(may_save=False, ahead_s=self._pace.longest_s("evaluation"))
        self._outside = True
        self._weights = self.parts.fingerprint()

    def stepped(self, *, called: bool = False) -> None:
        """An optimizer has stepped; several at one batch are one step, unless each is a ``called`` one."""
        if called or self._accumulating:
            self.progress.step()
        self._accumulating = False

    def close_epoch(self, metrics: Mapping[str, float]) -> None:
        """The epoch is over: saves, also when gradients are left over."""
        if self._outside:
            self._pace.took("evaluation", time.monotonic() - self._moved_on_s)
        epoch, step = self.progress.epoch, self.progress.global_step
        self.progress.close_epoch(metrics)
        for lane in self.lanes.values():
            lane.start_over()
        self._boundary = self._take(metrics)
        self._pass_boundary()
        self._save_or_say(again=f"epoch-{epoch}" if self._saved_step == step else "")
        self._end_if_due(0.0)

    def close(self, error: BaseException | None) -> None:
        """The ``with`` block is left: saves what there is to save and waits for it."""
        if self.ended or isinstance(error, Stopped | BudgetReached):
            return  # saved already
        if error is not None and self._open:
            self._save_emergency()
            return
        # In an evaluation and after an exception the last boundary counts; else this is one, if the step is done.
        if error is None and not self._outside and not (self._open and self._accumulating):
            self._boundary = self._take()
            self._pass_boundary()
        self._save()
        self._wait()

    # --- what happens at a boundary ---

    def _take(self, metrics: Mapping[str, float] | None = None) -> Boundary:
        return Boundary(
            progress=self.progress.to_state(),
            lanes={name: lane.to_state() for name, lane in self.lanes.items()},
            random=RandomState.now(),
            user=copy.deepcopy(self.user) if self.user else {},
            # With several optimizers one may wait, or have gradients from the other's backward.
            with_gradients=self._accumulating or len(self.parts.optimizers) > 1,
            metrics=metrics or {},
        )

    def _reach(self, *, may_save: bool, ahead_s: float = 0.0) -> None:
        self._boundary = self._take()
        self._pass_boundary()
        self._say_resumed()
        self._end_if_due(ahead_s)
        if may_save and self._plan.due(self.progress.global_step):
            self._save_or_say()
            self._end_if_due(ahead_s)

    def _pass_boundary(self) -> None:
        now = time.monotonic()
        if self._open:
            self._pace.took("step", now - self._moved_on_s)
        self._moved_on_s = now
        self._open = self._outside = False

    def _end_if_due(self, ahead_s: float) -> None:
        """Ends the run if a signal has come, or if neither ``ahead_s`` nor a step fit into the budget."""
        if self.guard.signum is not None:
            self._stop(self.guard.signum)
        elif not self._budget.fits(max(ahead_s, self._pace.longest_s("step")), self._keeper.cost_s()):
            self._save()
            self._wait()
            self._end(BudgetReached(f"the budget is used up, {self._budget.describe()}; {self._standing()}"))

    def _stop(self, signum: int) -> None:
        self._save()
        self._wait()
        stopped = Stopped(signum)
        self._talk.say(f"{stopped}; {self._standing()}")
        raise KeyboardInterrupt if signum == signal.SIGINT and in_notebook() else stopped

    def _end(self, reached: BudgetReached) -> None:
        self._talk.say(f"{reached}")
        if not in_notebook():
            raise reached
        self.ended = True

    def _standing(self) -> str:
        step, epoch = self.progress.global_step, self.progress.epoch
        return f"step {step} of epoch {epoch} is saved; start the same command again to go on"

    def _signalled(self, signum: int) -> None:
        """In the signal handler, between two bytecodes of the main thread."""
        touched = self._outside and self.parts.fingerprint() != self._weights
        if self._busy or self._open or touched:
            # Not print: the handler may have interrupted one.
            name = signal.Signals(signum).name
            os.write(2, f"stoker: {name}: saving at the end of this step, then stopping\n".encode())
        else:
            self._stop(signum)

    # --- saving ---

    def _save_or_say(self, again: str = "") -> None:
        """A save on the way, whose failure must not end the training."""
        try:
            self._save(again)
        except (_native.NoSpaceError, _native.IoError) as error:
            self._plan.saved(self.progress.global_step)  # try again when the next one is due
            self._talk.warn(f"step {self.progress.global_step} could not be saved, training goes on: {error}")

    def _save(self, again: str = "") -> None:
        """Saves the boundary, unless it is saved; ``again`` names a second checkpoint of the same step."""
        boundary = self._boundary
        if boundary is None or boundary.mark() == self._saved:
            return
        self._busy = True
        try:
            state = {**self.parts.capture(), **boundary.to_state()}
            if boundary.with_gradients:
                state["gradients"] = self.parts.gradients()
            metrics = {"epoch": boundary.progress["epoch"], **boundary.metrics}  # for Keep(every_epochs=)
            self._keeper.save(boundary.step, state, metrics, pin=again)
        finally:
            self._busy = False
        self._saved, self._saved_step = boundary.mark(), boundary.step
        self._plan.saved(boundary.step)
        if self._budget.limit_s is not None and self._pace.typical_s("wait") is None:
            self._wait()  # once: to stop in time one must know how long it takes

    def _wait(self) -> None:
        self._busy = True
        try:
            self._keeper.wait()
        finally:
            self._busy = False

    def _save_emergency(self) -> None:
        self._busy = True
        try:
            here = self._take()
            state = {**self.parts.capture(), **here.to_state(), "gradients": self.parts.gradients()}
            self._keeper.save_emergency(here.step, state)
            self._talk.say(
                f"what is in memory at step {here.step} is stored as 'emergency', which is not exact; "
                "the next session goes on from the last boundary"
            )
        except Exception as error:  # the script's own exception matters more
            self._talk.warn(f"the state in the middle of a step could not be stored: {error}")
        finally:
            self._busy = False
