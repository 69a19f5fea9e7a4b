"""``accelerate``: a torch ``DataLoader`` over image files, fed by Stoker's threads.

What its batches mean stays the same. The epoch's seeds are drawn from torch's generators in
``DataLoader``'s own sequence, so where no transform is random the batches, and torch's random state after
the epoch, are those of the original, bit for bit. Random transforms draw from the same distributions, keyed
by the epoch's base seed; as with ``num_workers`` ≥ 1, they leave the process's own random state alone.
"""

from __future__ import annotations

import os
import sys
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from . import _native
from ._batches import Batch, EpochIterator, refuse_in_worker
from ._errors import bad_input
from ._loader_options import installed_arithmetic, native_options
from ._torchvision import Data, Pipeline, Unknown, read_loader
from .transforms import compile_recipe

_SEED_MASK = 2**64 - 1


def accelerate(dataloader: Any, *, explain: bool = False, verify: int = 0) -> Any:
    """A loader that iterates like ``dataloader``, but reads and decodes with C++ threads, not workers.

    Known are ``ImageFolder`` and ``DatasetFolder`` with the default image loader, and ``Subset`` of them;
    v1 and v2 transforms RandomResizedCrop, Resize, CenterCrop, RandomHorizontalFlip, ToTensor, ToImage with
    ToDtype(float32, scale=True), Normalize; torch's own samplers. With anything else the loader comes back
    as it is, and a warning says which part was not known.

    The result has the attributes of ``dataloader`` and counts as an instance of ``DataLoader``.

    Args:
        dataloader: A ``torch.utils.data.DataLoader``.
        explain: Print how each transform was understood, or what was not.
        verify: So many samples are first compared with the original pipeline; a difference leaves the
            loader as it was.
    """
    try:
        fast = AcceleratedLoader(dataloader)
        if explain:
            print(fast.explain())
        for number in range(min(verify, len(fast.data.samples))):
            _verify_sample(fast, number)
    except Unknown as why:
        warnings.warn(f"stoker.accelerate left the loader as it was: it does not know {why}", stacklevel=2)
        if explain:
            print(f"not accelerated: {why}")
        return dataloader
    return fast


class AcceleratedLoader:
    """What ``accelerate`` returns. Attributes that it lacks are those of the original loader."""

    def __init__(self, dataloader: Any) -> None:
        """Raises ``Unknown`` with the part of ``dataloader`` that has no counterpart."""
        self.original = dataloader
        self.data = read_loader(dataloader)
        self._index = _native._FileIndex.from_list(
            [(os.fsencode(p), int(t)) for p, t in self.data.samples], []
        )
        self._seen = self._fingerprint(self.data)
        self._native = self._make_native()
        self._live: weakref.ref[EpochIterator] | None = None
        self._base_seed: int | None = None  # of persistent workers, which draw one for all their epochs
        self._iterations = 0
        self._drawn_from: dict[str, Any] | None = None  # random states before the current epoch's draws
        self._batches_done = 0
        self._sought: Mapping[str, Any] | None = None

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """``DataLoader``, so that code which asks ``isinstance(x, DataLoader)`` goes on as before."""
        data_loader: type = sys.modules["torch.utils.data"].DataLoader
        return data_loader

    def __getattr__(self, name: str) -> Any:
        """An attribute of the original: dataset, batch_size, sampler, drop_last, num_workers, …"""
        if name == "original":  # not made yet: no endless search
            raise AttributeError(name)
        return getattr(self.original, name)

    def __len__(self) -> int:
        """Batches in an epoch."""
        return len(self.original.batch_sampler)

    def __iter__(self) -> Iterator[Batch]:
        """Begins an epoch, or goes on in one after ``load_state_dict``."""
        refuse_in_worker()
        try:
            self._follow_changes()
        except Unknown as why:
            warnings.warn(
                f"stoker.accelerate goes back to the original loader: it does not know {why}", stacklevel=2
            )
            return _original_iter(self.original)
        sought, self._sought = self._sought, None
        if sought is None:
            return self._begin(0)
        # The epoch's draws are made again from the state they came from; the process's own state stays.
        now = self._random_state()
        self._set_random_state(sought["drawn_from"])
        self._base_seed, self._iterations = sought["base_seed"], sought["iterations"]
        begun = self._begin(int(sought["batches"]), at_once=True)
        self._set_random_state(now)
        return begun

    def set_epoch(self, epoch: int) -> None:
        """The next iteration is a whole epoch; a sampler with epochs (``DistributedSampler``) is told its number."""
        self._sought = None
        if hasattr(self.original.sampler, "set_epoch"):
            self.original.sampler.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Where the current epoch stands: random states (tensors) and a count of batches handed out."""
        if self._drawn_from is None:
            return {"format": 1, "batches": 0, "drawn_from": None, **self._worker_state()}
        return {"format": 1, "batches": self._batches_done, **self._drawn_from}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The next iteration goes on where ``state`` was taken; nothing that is behind it is decoded."""
        if state.get("format") != 1:
            raise bad_input(f"this loader state has format {state.get('format')!r}, not 1")
        self._base_seed, self._iterations = state["base_seed"], int(state["iterations"])
        self._sought = state if state["drawn_from"] is not None else None
        self._drawn_from = None

    def stats(self) -> dict[str, Any]:
        """As ``ImageLoader.stats``."""
        return self._native.stats()

    def close(self) -> None:
        """Ends the threads; the loader cannot be iterated afterwards."""
        self._native.stop()

    def explain(self) -> str:
        """How the original was understood, a line each."""
        lines = [f"accelerated: {len(self.data.samples)} files, {len(self.data.classes)} classes"]
        lines += [f"  {line}" for line in self.data.pipeline.mapping]
        lines.append(
            f"  pixels as Pillow's ({installed_arithmetic()}); {self._native.stats()['threads']} threads"
        )
        if self.original.num_workers > 0:
            lines.append(
                f"  num_workers={self.original.num_workers} is not used: threads take the workers' place"
            )
        return "\n".join(lines)

    # --- inside ---

    def _begin(self, skip: int, *, at_once: bool = False) -> EpochIterator:
        state = self._random_state()
        workers = self._worker_state()
        seed = self._draw_base_seed()
        keep = self.original.persistent_workers and self.original.num_workers > 0
        epoch = self._iterations if keep else 0
        self._iterations += 1
        self._drawn_from = {"drawn_from": state, **workers}
        self._batches_done = skip
        native = self._free_native()
        begun = _LazyStart(native, self._lister(), self.original.batch_size, seed, epoch, skip)
        # With workers, DataLoader draws the first indices while it is made; without, for the first batch.
        if at_once or self.original.num_workers > 0:
            begun.start()
        mine = self._iterations
        iterator = EpochIterator(
            begun,
            lambda: True,  # while it lives, its native loader is its own
            lambda done: self._on_batch(mine, skip + done),
            lambda: self._on_end(mine),
            _pin if self.original.pin_memory and sys.modules["torch"].cuda.is_available() else None,
        )
        self._live = weakref.ref(iterator)
        return iterator

    def _draw_base_seed(self) -> int:
        keep = self.original.persistent_workers and self.original.num_workers > 0
        if keep and self._base_seed is not None:
            return self._base_seed
        torch = sys.modules["torch"]
        seed = int(torch.empty((), dtype=torch.int64).random_(generator=self.original.generator).item())
        self._base_seed = seed if keep else None
        return seed

    def _worker_state(self) -> dict[str, Any]:
        return {"base_seed": self._base_seed, "iterations": self._iterations}

    def _lister(self) -> Callable[[], list[int]]:
        """Draws the epoch's samples from the sampler, as numbers into the file list."""
        sampler, indices = self.original.batch_sampler, self.data.indices

        def items() -> list[int]:
            drawn = [int(i) for batch in sampler for i in batch]
            return drawn if indices is None else [int(indices[i]) for i in drawn]

        return items

    def _free_native(self) -> _native._Loader:
        """One that no living iterator waits on: ``next(iter(loader))`` inside a loop must not disturb it."""
        live = self._live() if self._live is not None else None
        if live is not None and not live.ended:
            self._native = self._make_native()
        return self._native

    def _make_native(self) -> _native._Loader:
        pipeline = self.data.pipeline
        options = native_options(
            compile_recipe(pipeline.transforms),
            dtype="float32",
            arithmetic=installed_arithmetic(),
            unit_scale=pipeline.unit_scale,
        )
        try:
            return _native._Loader.create(self._index, options)
        except _native.BadInputError as error:
            raise Unknown(f"this transform: {error}") from error

    def _follow_changes(self) -> None:
        """Takes over a transform or a list of files that the user has changed since."""
        data = read_loader(self.original)
        seen = self._fingerprint(data)
        if seen == self._seen:
            self.data = data
            return
        self.data, self._seen = data, seen
        self._index = _native._FileIndex.from_list([(os.fsencode(p), int(t)) for p, t in data.samples], [])
        self._native = self._make_native()

    @staticmethod
    def _fingerprint(data: Data) -> tuple[Pipeline, int, int]:
        return data.pipeline, id(data.samples), len(data.samples)

    def _random_state(self) -> dict[str, Any]:
        generator = self.original.generator or getattr(self.original.sampler, "generator", None)
        return {
            "torch": sys.modules["torch"].get_rng_state(),
            "generator": None if generator is None else generator.get_state(),
        }

    def _set_random_state(self, state: Mapping[str, Any]) -> None:
        sys.modules["torch"].set_rng_state(state["torch"])
        generator = self.original.generator or getattr(self.original.sampler, "generator", None)
        if generator is not None and state["generator"] is not None:
            generator.set_state(state["generator"])

    def _on_batch(self, iteration: int, done: int) -> None:
        if iteration == self._iterations:
            self._batches_done = done

    def _on_end(self, iteration: int) -> None:
        if iteration == self._iterations:
            self._drawn_from = None


class _LazyStart:
    """Starts a native loader's iteration when the sampler is to be asked."""

    def __init__(
        self,
        native: _native._Loader,
        items: Callable[[], list[int]],
        batch_size: int,
        seed: int,
        epoch: int,
        skip: int,
    ) -> None:
        self._native = native
        self._items: Callable[[], list[int]] | None = items
        self._batch_size = batch_size
        self._seed = seed & _SEED_MASK
        self._epoch = epoch
        self._skip = skip
        self._empty = False

    def start(self) -> None:
        if self._items is None:
            return
        items = self._items()
        self._items = None
        start = min(self._skip * self._batch_size, len(items))
        self._empty = start == len(items)
        if not self._empty:
            order = _native._Order.create("as-given", self._seed, max(items) + 1, items, None, 0)
            self._native.start(order, self._epoch, start, self._batch_size, 0, 1, False)

    def next(self, framework: str) -> tuple[Any, Any, int] | None:
        self.start()
        return None if self._empty else self._native.next(framework)


def _pin(batch: Batch) -> Batch:
    return batch[0].pin_memory(), batch[1].pin_memory()


def _verify_sample(fast: AcceleratedLoader, number: int) -> None:
    """Compares one sample with the original pipeline, random steps at the parameters that Stoker draws."""
    from ._verify import expected_sample

    order = _native._Order.create("as-given", 0, number + 1, [number], None, 0)
    native = fast._make_native()
    native.start(order, 0, 0, 1, 0, 1, False)
    given = native.next("torch")
    native.stop()
    assert given is not None
    expected = expected_sample(fast.data, number)
    if not sys.modules["torch"].equal(given[0][0], expected):
        worst = float((given[0][0] - expected).abs().max())
        path = fast.data.samples[number][0]
        raise Unknown(f"why {path} differs by up to {worst:.3g} from the original pipeline")


# --- every DataLoader of a process ---

_DECISION = "_stoker_decision"
_original: Any = None


def patch_dataloader(on_decision: Callable[[bool, str], None]) -> None:
    """From now on Stoker iterates every ``DataLoader`` that ``accelerate`` knows; others are left untouched.

    Args:
        on_decision: Called once a loader, at its first iteration, with (applied, why).
    """
    global _original
    from torch.utils.data import DataLoader

    if _original is not None:
        return
    _original = DataLoader.__iter__

    def patched(self: Any) -> Iterator[Any]:
        decision = self.__dict__.get(_DECISION)
        if decision is None:
            decision = _decide(self, on_decision)
            self.__dict__[_DECISION] = decision
        return iter(decision) if isinstance_accelerated(decision) else _original_iter(self)

    DataLoader.__iter__ = patched  # type: ignore[method-assign, assignment]


def isinstance_accelerated(thing: object) -> bool:
    """Whether ``thing`` is what ``accelerate`` makes; ``isinstance`` is told that it is a ``DataLoader``."""
    return type(thing) is AcceleratedLoader


def _decide(loader: Any, on_decision: Callable[[bool, str], None]) -> object:
    try:
        fast = AcceleratedLoader(loader)
    except Unknown as why:
        on_decision(False, f"it does not know {why}")
        return False
    steps = ", ".join(type(t).__name__ for t in fast.data.pipeline.transforms)
    on_decision(
        True, f"{len(fast.data.samples)} files with {steps or 'no transform'} are read by Stoker's threads"
    )
    return fast


def _original_iter(loader: Any) -> Iterator[Any]:
    return _original(loader) if _original is not None else iter(loader)
