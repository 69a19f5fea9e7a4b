"""What the loop iterates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .engine import Engine
from .lane import Lane


class Batches:
    """The iterator that ``Session.batches`` returns; each request for a batch may be a save point."""

    def __init__(self, engine: Engine, lane: Lane) -> None:
        """Starts the loader at the first request."""
        self._engine = engine
        self._lane = lane
        self._left: Iterator[Any] | None = None

    def __iter__(self) -> Batches:
        return self

    def __len__(self) -> int:
        """Batches of a whole epoch, as the loader says."""
        return len(self._lane.loader)

    def __next__(self) -> Any:
        """The next batch; what the previous one was for is done."""
        engine, lane = self._engine, self._lane
        if engine.ended:
            raise StopIteration
        if self._left is None:
            self._left = engine.begin(lane)
        engine.batch_wanted(lane)
        if engine.ended:
            raise StopIteration
        try:
            batch = next(self._left)
        except StopIteration:
            engine.exhausted(lane)
            raise
        engine.batch_given(lane)
        return batch
