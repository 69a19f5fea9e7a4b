"""One iteration over a native loader, shared by ``ImageLoader`` and ``accelerate``."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from typing import Any, Protocol

from ._errors import bad_input, error
from ._native import Error

Batch = tuple[Any, Any]


class BatchSource(Protocol):
    """``_native._Loader``, or what starts one late."""

    def next(self, framework: str) -> tuple[Any, Any, int] | None:
        """(images, labels, batches done), or None at the end."""


def framework() -> str:
    """Whose arrays to give: torch's when it is imported, else NumPy's if installed, else DLPack's ("")."""
    if "torch" in sys.modules:
        return "torch"
    return "numpy" if importlib.util.find_spec("numpy") is not None else ""


def refuse_in_worker() -> None:
    """Raises inside a torch DataLoader worker: threads do not survive the fork that made it."""
    data = sys.modules.get("torch.utils.data")
    if data is not None and data.get_worker_info() is not None:
        raise bad_input(
            "a Stoker loader cannot be used inside a DataLoader worker",
            "it has threads of its own: iterate it directly in the training process",
        )


class EpochIterator:
    """An iterator over one epoch, or the rest of one. Recorder hooks wrap ``__next__``.

    It is good until its loader begins another iteration or is closed.
    """

    def __init__(
        self,
        native: BatchSource,
        still_mine: Callable[[], bool],
        on_batch: Callable[[int], None],
        on_end: Callable[[], None],
        finish: Callable[[Batch], Batch] | None = None,
    ) -> None:
        """``on_batch`` gets the number of batches done; ``finish`` has the last word on each."""
        self._native = native
        self._still_mine = still_mine
        self._on_batch = on_batch
        self._on_end = on_end
        self._finish = finish
        self._framework = framework()
        self._ended = False

    @property
    def ended(self) -> bool:
        """The end was reached: nothing more will be asked of the native loader."""
        return self._ended

    def __iter__(self) -> EpochIterator:
        return self

    def __next__(self) -> Batch:
        """The next (images, labels).

        Raises:
            StopIteration: the epoch's end, again and again.
            Error: a bad file under ``on_error="error"``; another iteration began; the loader was closed.
        """
        if self._ended:
            raise StopIteration
        if not self._still_mine():
            raise error(
                Error,
                "cancelled",
                "this iteration was left: another one over the same loader began after it",
                "use one at a time, or a second loader",
            )
        given = self._native.next(self._framework)
        if given is None:
            self._ended = True
            self._on_end()
            raise StopIteration
        images, labels, done = given
        self._on_batch(done)
        return (images, labels) if self._finish is None else self._finish((images, labels))
