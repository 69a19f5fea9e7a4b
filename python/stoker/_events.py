"""What Stoker's own Python tells the recorder, if one listens."""

from __future__ import annotations

from . import _native


class span:
    """``with span("checkpoint") as event:`` reports how long the block took, also one that raises.

    ``event.value`` is the event's figure, 0 unless the block sets it.
    """

    def __init__(self, name: str) -> None:
        """``name`` is one of docs/formats/events.md."""
        self.value = 0.0
        self._name = name
        self._number: int | None = None  # None: nobody listens, or not yet begun

    def __enter__(self) -> span:
        if _native.events_on():
            self._number = _native.event_name(self._name)
            _native.event_begin(self._number)
        return self

    def __exit__(self, *_: object) -> None:
        if self._number is not None:
            _native.event_end(self._number, self.value)
