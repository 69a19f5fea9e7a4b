"""``stoker.Session``: what a training loop sees."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

import torch

from .._errors import bad_input
from .._events import span
from .._native import format_duration
from .batches import Batches
from .budget import ASSUMED_LIFE_S, Budget, BudgetReached, Pace, SavePlan, process_age_s
from .engine import Engine
from .keeper import Keeper
from .lane import Lane
from .parts import Parts, named
from .progress import Direction
from .run_log import ScalarLog, SessionFile
from .signals import Stopped
from .talk import Talk

if TYPE_CHECKING:
    from ..store import Keep


class Session:
    """A run that cannot be lost: it saves itself at step boundaries and goes on there when started again.

    The loop stays the user's. ``batches`` alone is needed; ``backward`` and ``step`` are a convenience, and
    an optimizer that is stepped without them is noticed by torch's own hook. A checkpoint holds everything
    that the next step depends on, so that a run which was killed and resumed gives the same losses, bit for
    bit, as one which was not, as long as its kernels are deterministic.

    Use it in a ``with`` block and from one thread, the main one if signals are to be caught.

    Args:
        dir: The run's directory: checkpoints, ``session.json``, ``log.jsonl``. One session at a time may have
            it.
        model, optimizer, scheduler, ema: One object with ``state_dict`` and ``load_state_dict``, a list of
            them, or a dict by name.
        scaler: The ``GradScaler``, if the loop uses one.
        loader: The training data: a ``stoker.ImageLoader``, a torch ``DataLoader``, or anything that can be
            iterated; also a list or a dict of them. Other loaders that are given to ``batches`` join by
            themselves.
        every: How often to save: a number of steps, a duration such as "5m", or "auto", the Young-Daly
            interval from what a save costs and how long the session lives. The end of an epoch is always
            saved.
        budget: How long the process may run, "40m" or seconds. Before it is over, everything is saved and
            ``BudgetReached`` (exit code 75, "to be continued") ends the process.
        budget_since: "process": imports count; "session": time counts from entering the block.
        mirror: Refused for now: a second, slow place for the checkpoints.
        keep: Which checkpoints stay, a ``stoker.Keep``.
        clip_grad_norm: For ``step``: the largest norm of each optimizer's gradients.
        user: Further objects with ``state_dict``, by name, or plain values, which ``session.user`` then
            holds.
        quiet: Say warnings only.

    Raises:
        InUseError: another process has the directory; names it.
        BadInputError: the directory holds a run of another model (names the first keys that differ), or one
            of another format.
        CorruptError: no checkpoint in the directory is whole.
        IoError: the directory cannot be written.
    """

    def __init__(
        self,
        dir: str | Path,
        *,
        model: Any = None,
        optimizer: Any = None,
        scheduler: Any = None,
        scaler: Any = None,
        ema: Any = None,
        loader: Any = None,
        every: str | int = "auto",
        budget: str | float | None = None,
        budget_since: Literal["process", "session"] = "process",
        mirror: str | Path | None = None,
        keep: Keep | None = None,
        clip_grad_norm: float | None = None,
        user: Mapping[str, Any] | None = None,
        quiet: bool = False,
    ) -> None:
        """Checks the arguments; the directory is opened on entering the ``with`` block."""
        if mirror is not None:
            raise bad_input("mirror= is not there yet", "copy the run's directory after the session")
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            raise bad_input("a session of several processes (torch.distributed) is not there yet")
        objects = {name: part for name, part in (user or {}).items() if hasattr(part, "state_dict")}
        self.user: dict[str, Any] = {name: v for name, v in (user or {}).items() if name not in objects}
        self._directory = Path(dir)
        self._keep = keep
        self._clip = clip_grad_norm
        self._talk = Talk(quiet)
        self._parts = Parts(
            model=model, optimizer=optimizer, scheduler=scheduler, scaler=scaler, ema=ema, user=objects
        )
        self._loaders = named(loader)
        self._pace = Pace()
        self._budget = Budget(budget, budget_since)
        self._plan = SavePlan(every, self._budget.limit_s or ASSUMED_LIFE_S, self._pace)
        self._log = ScalarLog(self._directory)
        self._own_step = False
        self._evaluating = False

    # --- the with block ---

    def __enter__(self) -> Session:
        """Opens the directory and goes on where the last session stopped."""
        age_s = process_age_s()
        self._keeper = Keeper(self._directory, self._keep, self._pace, self._talk)
        try:
            self._open(age_s)
        except BaseException:
            self._keeper.close()
            raise
        return self

    def _open(self, age_s: float) -> None:
        self._engine = Engine(self._parts, self._keeper, self._budget, self._plan, self._pace, self._talk)
        self._engine.user = self.user
        for name, loader in self._loaders.items():
            self._engine.add_lane(name, Lane(loader, self._talk))
        resumed = self._engine.resume()
        if resumed is not None:
            at = f"step {resumed}, epoch {self.epoch}"
            self._talk.say(
                f"resumed {self._directory} at {at}, {format_duration(age_s)} after the process started"
            )
        self._log.cut_after(self.global_step)
        self._parts.warn_of_missing(self._talk)
        self._file = SessionFile(self._directory)
        self._file.begin(resumed)
        self._hooks = [hook for o in self._parts.optimizers.values() if (hook := self._watch(o)) is not None]
        self._engine.guard.install()

    def _watch(self, optimizer: Any) -> Any:
        register = getattr(optimizer, "register_step_post_hook", None)
        if register is None:
            self._talk.warn("this torch tells nobody of an optimizer's step: call session.step()", once=True)
            return None
        return register(lambda *_: None if self._own_step else self._engine.stepped())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Saves, waits until it is durable, and lets go of the directory, the signals and the hooks."""
        outcome = describe_outcome(error)
        try:
            try:
                self._engine.close(error)
            finally:
                self._keeper.close()
        except Exception as failure:
            outcome = f"{outcome}; the last save failed: {failure}"
            if error is None:
                raise
            self._talk.warn(f"the last save failed: {failure}")
        finally:
            for hook in self._hooks:
                hook.remove()
            self._log.close()
            self._file.end(outcome, self.global_step)
            self._engine.guard.restore()
        if error is None and self._engine.guard.signum is not None:
            raise Stopped(self._engine.guard.signum)

    # --- the loop ---

    @property
    def global_step(self) -> int:
        """Steps since the run began: calls of ``step``, or batches at which an optimizer stepped."""
        return self._engine.progress.global_step

    @property
    def epoch(self) -> int:
        """The epoch that is being worked on, from 0; ``epoch_end`` moves it on."""
        return self._engine.progress.epoch

    @property
    def best(self) -> float | None:
        """The best value that ``epoch_end`` was given, None before the first."""
        return self._engine.progress.best

    @property
    def history(self) -> list[dict[str, float]]:
        """What ``epoch_end`` was told, one entry an epoch, those of earlier sessions included."""
        return [dict(entry) for entry in self._engine.progress.history]

    def epochs(self, count: int) -> Iterator[int]:
        """The epochs that are left of ``count``, the one in which the last session stopped first."""
        while self.epoch < count and not self._engine.ended:
            self._engine.set_random()
            epoch = self.epoch
            yield epoch
            if self.epoch == epoch and not self._engine.ended:
                self.epoch_end()

    def batches(self, loader: Iterable[Any]) -> Iterator[Any]:
        """The loader's batches; in the epoch of a resume, those that are left of it.

        Inside ``evaluating`` a loader is iterated as it is; so is one that the session does not know while
        the model is in eval mode.
        """
        engine = self._engine
        if self._evaluating:
            return iter(loader)
        lane = next((lane for lane in engine.lanes.values() if lane.loader is loader), None)
        if lane is None:
            if any(not model.training for model in self._parts.models.values()):
                return iter(loader)
            lane = Lane(loader, self._talk)
            engine.add_lane(f"joined-{len(engine.lanes)}", lane)
        return Batches(engine, lane)

    def backward(self, loss: Any, *batch: Any) -> torch.Tensor:
        """The backward pass, scaled if there is a scaler.

        Args:
            loss: A scalar tensor, or a function that computes it from ``batch``.
            batch: What the function takes.

        Returns:
            The loss, unscaled and detached.
        """
        value: torch.Tensor = loss(*batch) if callable(loss) else loss
        scaler = self._parts.scaler
        (value if scaler is None else scaler.scale(value)).backward()
        return value.detach()

    def step(self, optimizer: Any = None) -> None:
        """Unscales and clips the gradients, steps, updates the scaler and sets the gradients to None.

        Never steps a scheduler. A step that the scaler skips counts as well.

        Args:
            optimizer: One of the session's; None: all of them.
        """
        chosen = list(self._parts.optimizers.values()) if optimizer is None else [optimizer]
        if not chosen:
            raise bad_input("step() needs an optimizer", "pass optimizer= to the session")
        self._own_step = True
        try:
            for one in chosen:
                self._step_one(one)
            if self._parts.scaler is not None:
                self._parts.scaler.update()
        finally:
            self._own_step = False
        for one in chosen:
            one.zero_grad(set_to_none=True)
        self._engine.stepped(called=True)

    def _step_one(self, optimizer: Any) -> None:
        scaler = self._parts.scaler
        if self._clip is not None:
            if scaler is not None:
                scaler.unscale_(optimizer)
            gradients = [p for group in optimizer.param_groups for p in group["params"]]
            torch.nn.utils.clip_grad_norm_(gradients, self._clip)
        if scaler is None:
            optimizer.step()
        else:
            scaler.step(optimizer)

    def epoch_end(self, *, best: Direction | None = None, **metrics: float | torch.Tensor) -> None:
        """The epoch is over; saves.

        Args:
            best: Whether the first of the metrics is better when higher ("max") or lower ("min"); the
                checkpoint with its best value is kept. NaN is never best.
            metrics: Plain numbers, kept in ``history`` and with the checkpoint.
        """
        if self._engine.ended:
            return
        numbers = {name: float(value) for name, value in metrics.items()}
        if best is not None:
            if best not in ("max", "min") or not numbers:
                raise bad_input(f"best must be 'max' or 'min' and comes with a metric, not {best!r}")
            metric = next(iter(numbers))
            self._keeper.keep_best(metric, best)
            self._engine.progress.improves(numbers[metric], best)
        self._engine.close_epoch(numbers)

    def log(self, **scalars: float | torch.Tensor) -> None:
        """Adds a line to ``log.jsonl`` and, where a recorder listens, to its counters.

        A tensor on a GPU is waited for. After a resume the lines of steps that are done again are gone.
        """
        numbers = {name: float(value) for name, value in scalars.items()}
        self._log.add(self.global_step, self.epoch, numbers)

    @contextlib.contextmanager
    def evaluating(self) -> Iterator[None]:
        """Eval mode and no gradients for the length of a block, then the modes that were there before."""
        models = list(self._parts.models.values())
        modes = [(module, module.training) for model in models for module in model.modules()]
        trained = [model for model in models if model.training]
        before, self._evaluating = self._evaluating, True
        try:
            with span("eval"), torch.no_grad():
                for model in models:
                    model.eval()
                yield
        finally:
            self._evaluating = before
            for model in trained:
                model.train()  # by name, since a recorder listens to that
            for module, training in modes:
                module.training = training


def describe_outcome(error: BaseException | None) -> str:
    """One line for ``session.json``."""
    if error is None:
        return "finished"
    if isinstance(error, Stopped | BudgetReached):
        return str(error)
    return f"{type(error).__name__}: {error}".splitlines()[0]
