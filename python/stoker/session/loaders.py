"""Where a run stands in its data, and how to get back there.

Three kinds of loader, one interface: ``begin(epoch)`` gives the epoch's batches from wherever ``seek`` has
put it, and ``position()`` says where that is, counted in batches handed out, never in batches prefetched.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from .._native import format_duration
from . import random_state
from .talk import Talk


class Position(Protocol):
    """Of one loader."""

    def begin(self, epoch: int) -> Iterator[Any]:
        """An iterator over what is left of ``epoch``."""

    def position(self, batches: int) -> dict[str, Any]:
        """Plain values and tensors for ``seek``; ``batches`` have been handed out in this epoch."""

    def seek(self, position: Mapping[str, Any], *, within_epoch: bool) -> None:
        """The next ``begin`` goes on from here, or starts the epoch after this place."""


def position_of(loader: Any, talk: Talk) -> Position:
    """The way in which ``loader`` is resumed exactly."""
    if hasattr(loader, "state_dict") and hasattr(loader, "load_state_dict"):
        return OwnPosition(loader)
    return SampledPosition(loader) if has_order(loader) else SkippedPosition(loader, talk)


def has_order(loader: Any) -> bool:
    """Whether the batches of an epoch can be listed without reading a sample."""
    if type(loader) is not DataLoader or isinstance(loader.dataset, IterableDataset):
        return False
    return hasattr(loader.batch_sampler, "__len__")


class OwnPosition:
    """Of a loader that knows where it stands: ``stoker.ImageLoader``, torchdata's ``StatefulDataLoader``."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader
        self._sought = False

    def begin(self, epoch: int) -> Iterator[Any]:
        # After a seek the loader has its epoch already; setting it might throw the position away.
        if not self._sought and hasattr(self._loader, "set_epoch"):
            self._loader.set_epoch(epoch)
        self._sought = False
        return iter(self._loader)

    def position(self, batches: int) -> dict[str, Any]:
        return {"state": self._loader.state_dict()}

    def seek(self, position: Mapping[str, Any], *, within_epoch: bool) -> None:
        self._loader.load_state_dict(position["state"])
        self._sought = within_epoch


class SampledPosition:
    """Of a torch ``DataLoader`` over data with indices: the order is drawn again, no sample is decoded twice.

    The order is drawn from torch's generators as ``DataLoader`` itself does, so that a session changes no
    batch. What workers draw for augmentation follows from the epoch's seed and the batch's number instead of
    from a stream that began at the epoch's first batch; without workers it is the process's own stream, as
    ever.
    """

    def __init__(self, loader: DataLoader[Any]) -> None:
        """Makes a second loader over the same dataset, on which the order can be set."""
        self._loader = loader
        self._order = Order()
        options: dict[str, Any] = {
            "num_workers": loader.num_workers,
            "collate_fn": loader.collate_fn,
            "pin_memory": loader.pin_memory,
            "timeout": loader.timeout,
            "worker_init_fn": loader.worker_init_fn,
            "multiprocessing_context": loader.multiprocessing_context,
            "persistent_workers": loader.persistent_workers,
        }
        if loader.num_workers > 0:
            options["prefetch_factor"] = loader.prefetch_factor
        data: Any = Keyed(loader.dataset) if loader.num_workers > 0 else loader.dataset
        self._ordered: DataLoader[Any] = DataLoader(data, batch_sampler=self._order, **options)
        self._drawn_from: dict[str, Any] = {}
        self._generator_before: torch.Tensor | None = None
        self._sought: Mapping[str, Any] | None = None

    def begin(self, epoch: int) -> Iterator[Any]:
        if hasattr(self._loader.sampler, "set_epoch"):
            self._loader.sampler.set_epoch(epoch)
        skip = 0
        if self._sought is not None:
            random_state.restore(self._sought["drawn_from"])
            self._set_generator(self._sought["generator_before"])
            skip = int(self._sought["batches"])
            self._sought = None
        self._drawn_from = random_state.RandomState.now().to_state()
        self._generator_before = self._generator_state()
        # In DataLoader's own sequence: the base seed, then whatever the sampler draws.
        seed = int(torch.empty((), dtype=torch.int64).random_(generator=self._loader.generator).item())
        self._order.set(seed, list(self._loader.batch_sampler or ()), skip)
        drawn = torch.get_rng_state()
        batches = iter(self._ordered)
        torch.set_rng_state(drawn)
        return batches

    def position(self, batches: int) -> dict[str, Any]:
        return {
            "drawn_from": self._drawn_from,
            "generator_before": self._generator_before,
            "generator": self._generator_state(),
            "batches": batches,
        }

    def seek(self, position: Mapping[str, Any], *, within_epoch: bool) -> None:
        self._sought = position if within_epoch else None
        self._set_generator(position["generator"])

    def _generator(self) -> torch.Generator | None:
        return self._loader.generator or getattr(self._loader.sampler, "generator", None)

    def _generator_state(self) -> torch.Tensor | None:
        generator = self._generator()
        return None if generator is None else generator.get_state()

    def _set_generator(self, state: torch.Tensor | None) -> None:
        generator = self._generator()
        if generator is not None and state is not None:
            generator.set_state(state)


class Numbered(list[int]):
    """A batch's indices, and the seed for whatever randomness its samples have."""

    seed = 0


class Order:
    """A batch sampler that is told the batches."""

    def __init__(self) -> None:
        self._batches: list[list[int]] = []
        self._seed = 0
        self._skip = 0

    def set(self, seed: int, batches: list[list[int]], skip: int) -> None:
        """The epoch's batches, of which the first ``skip`` are done."""
        self._seed, self._batches, self._skip = seed, batches, skip

    def __iter__(self) -> Iterator[Numbered]:
        """What is left."""
        for number in range(self._skip, len(self._batches)):
            batch = Numbered(self._batches[number])
            batch.seed = (self._seed + 0x9E3779B97F4A7C15 * (number + 1)) % 2**63
            yield batch

    def __len__(self) -> int:
        """Batches that are left."""
        return len(self._batches) - self._skip


class Keyed:
    """A dataset whose random transforms, in a worker, draw from the batch's seed."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def __getitems__(self, batch: Numbered) -> Any:
        """The samples of one batch."""
        if get_worker_info() is not None:
            seed_worker(batch.seed)
        if callable(many := getattr(self._dataset, "__getitems__", None)):
            return many(batch)
        return [self._dataset[index] for index in batch]

    def __getitem__(self, index: int) -> Any:
        return self._dataset[index]

    def __len__(self) -> int:
        return len(self._dataset)

    def __getattr__(self, name: str) -> Any:
        """Everything else is the dataset's, for ``worker_init_fn``."""
        if name.startswith("__") or name == "_dataset":
            raise AttributeError(name)
        return getattr(self._dataset, name)


def seed_worker(seed: int) -> None:
    """Seeds the generators of a loader's worker process."""
    random.seed(seed)
    torch.manual_seed(seed)
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed(seed % 2**32)


class SkippedPosition:
    """Of anything else that can be iterated: a resume reads the batches that are done again."""

    def __init__(self, loader: Iterable[Any], talk: Talk) -> None:
        self._loader = loader
        self._talk = talk
        self._drawn_from: dict[str, Any] = {}
        self._sought: Mapping[str, Any] | None = None

    def begin(self, epoch: int) -> Iterator[Any]:
        for name in ("", "sampler", "dataset"):
            part: Any = getattr(self._loader, name, None) if name else self._loader
            if hasattr(part, "set_epoch"):
                part.set_epoch(epoch)
        sought, self._sought = self._sought, None
        if sought is not None:
            random_state.restore(sought["drawn_from"])
        self._drawn_from = random_state.RandomState.now().to_state()
        batches = iter(self._loader)
        if sought is not None:
            self._skip(batches, int(sought["batches"]))
        return batches

    def _skip(self, batches: Iterator[Any], count: int) -> None:
        start = time.monotonic()
        for _ in range(count):
            next(batches, None)
        took = format_duration(time.monotonic() - start)
        kind = type(self._loader).__name__
        self._talk.say(
            f"read {count} batches of the {kind} again to get back to its place, which took {took}"
        )

    def position(self, batches: int) -> dict[str, Any]:
        return {"drawn_from": self._drawn_from, "batches": batches}

    def seek(self, position: Mapping[str, Any], *, within_epoch: bool) -> None:
        self._sought = position if within_epoch else None
