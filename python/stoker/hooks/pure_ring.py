"""Writes events into the ring without the extension, for interpreters that cannot load it.

docs/formats/ring.md has the layout; every method here is the namesake of a function in ``stoker._native``.
"""

from __future__ import annotations

import mmap
import os
import struct
import threading
import time

_HEADER_BYTES = 4096
_NAME_BYTES = 64
_SLOT_BYTES = 64
_EVENT = struct.Struct("<QIIIId")  # time, name, thread, kind, reserved, value
_COUNT = struct.Struct("<Q")
_BEGIN, _END, _INSTANT, _COUNTER = 1, 2, 3, 4


class PureRing:
    """One process's writer. Each thread takes a slot; the event is stored first, its count after it.

    Raises:
        ValueError: the file is not a ring of this version.
        OSError: it cannot be opened or mapped.
    """

    def __init__(self, path: str) -> None:
        """Maps the ring at ``path``."""
        with open(path, "r+b") as file:
            self._bytes = mmap.mmap(file.fileno(), 0)
        if self._bytes[:8] != b"STKRING1":
            raise ValueError(f"{path} is not an event ring of this version")
        self._names, self._slots, self._capacity = struct.unpack_from("<III", self._bytes, 8)
        self._slots_at = _HEADER_BYTES + self._names * _NAME_BYTES
        self._events_at = self._slots_at + self._slots * _SLOT_BYTES
        self._mine = threading.local()
        self._lock = threading.Lock()

    def event_name(self, name: str) -> int:
        """The number of ``name`` in the ring's table; 0 when the table is full."""
        text = name.encode()[: _NAME_BYTES - 4]
        with self._lock:
            used: int = min(struct.unpack_from("<I", self._bytes, 20)[0], self._names)
            for number in range(1, used):
                at = _HEADER_BYTES + number * _NAME_BYTES
                if self._bytes[at + 4 : at + _NAME_BYTES].rstrip(b"\0") == text:
                    return number
            if used >= self._names:
                return 0
            struct.pack_into("<I", self._bytes, 20, used + 1)
            at = _HEADER_BYTES + used * _NAME_BYTES
            self._bytes[at + 4 : at + 4 + len(text)] = text
            struct.pack_into("<I", self._bytes, at, 1)
            return used

    def event_begin(self, name: int) -> None:
        """A span opens on this thread."""
        self._write(name, _BEGIN, 0.0)

    def event_end(self, name: int, value: float = 0.0) -> None:
        """The innermost open span of this name closes."""
        self._write(name, _END, value)

    def event_instant(self, name: int, value: float = 0.0) -> None:
        """A point in time."""
        self._write(name, _INSTANT, value)

    def event_counter(self, name: int, value: float) -> None:
        """A new reading."""
        self._write(name, _COUNTER, value)

    def _claim(self) -> int:
        """A fresh slot for this thread, or -1. Slots of ended threads are not reused here."""
        with self._lock:
            for slot in range(self._slots):
                at = self._slots_at + slot * _SLOT_BYTES
                if struct.unpack_from("<I", self._bytes, at + 8)[0] != 0:
                    continue
                name = threading.current_thread().name.encode()[:15]
                struct.pack_into("<III", self._bytes, at + 8, 1, os.getpid(), threading.get_native_id())
                self._bytes[at + 24 : at + 24 + len(name)] = name
                return slot
        return -1

    def _write(self, name: int, kind: int, value: float) -> None:
        slot = getattr(self._mine, "slot", None)
        if slot is None:
            slot = self._mine.slot = self._claim()
        if slot < 0:
            homeless = _COUNT.unpack_from(self._bytes, 24)[0]
            _COUNT.pack_into(self._bytes, 24, homeless + 1)
            return
        count_at = self._slots_at + slot * _SLOT_BYTES
        count = _COUNT.unpack_from(self._bytes, count_at)[0]
        at = self._events_at + (slot * self._capacity + (count & (self._capacity - 1))) * _EVENT.size
        _EVENT.pack_into(self._bytes, at, time.monotonic_ns(), name, slot, kind, 0, value)
        _COUNT.pack_into(self._bytes, count_at, count + 1)
