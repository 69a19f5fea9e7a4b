"""One loader of a session while its batches are handed out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .loaders import Position, position_of
from .talk import Talk


class Lane:
    """Where one loader stands in the epoch.

    ``begun`` says that the epoch's order has been drawn, ``handed`` counts the batches that the loop has
    asked for and got, ``exhausted`` says that it has seen the end.
    """

    def __init__(self, loader: Any, talk: Talk) -> None:
        """At the start of an epoch."""
        self.loader = loader
        self.begun = False
        self.handed = 0
        self.exhausted = False
        self.returned = False  # to its place by a resume, and not iterated since
        self._position: Position = position_of(loader, talk)

    def begin(self, epoch: int) -> Iterator[Any]:
        """What is left of the epoch's batches."""
        self.returned = False
        self.begun = True
        return iter(()) if self.exhausted else self._position.begin(epoch)

    def start_over(self) -> None:
        """A new epoch."""
        self.begun = False
        self.handed = 0
        self.exhausted = False
        self.returned = False

    def at_end(self) -> bool:
        """Whether the batch that was handed out last is known to be the epoch's last."""
        try:
            return self.handed >= len(self.loader)
        except (TypeError, NotImplementedError):
            return False

    def to_state(self) -> dict[str, Any]:
        """For ``from_state``."""
        place = self._position.position(self.handed)
        return {"begun": self.begun, "handed": self.handed, "exhausted": self.exhausted, "position": place}

    def from_state(self, state: Mapping[str, Any]) -> None:
        """Back to where ``to_state`` was called."""
        self.begun, self.handed, self.exhausted = state["begun"], state["handed"], state["exhausted"]
        self.returned = self.begun
        self._position.seek(state["position"], within_epoch=self.begun and not self.exhausted)
