"""Reads a run's trace with Perfetto's own protobuf classes, independently of Stoker's reader."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest


@dataclass
class Span:
    name: str
    pid: int
    tid: int
    begin_ns: int
    end_ns: int = 0
    value: float = 0.0


def segments(run: Path) -> list[Path]:
    return sorted((run / "trace").glob("trace-*.pftrace"))


def perfetto_trace(run: Path) -> Any:
    pb2 = pytest.importorskip(
        "perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="perfetto is not installed"
    )
    trace = pb2.Trace()
    for segment in segments(run):
        trace.MergeFromString(segment.read_bytes())
    return trace


def spans(run: Path) -> list[Span]:
    """Spans in order of their ends; those left open come last with ``end_ns`` 0."""
    names: dict[int, str] = {}
    tracks: dict[int, tuple[int, int]] = {}
    stacks: dict[int, list[Span]] = {}
    done: list[Span] = []
    for packet in perfetto_trace(run).packet:
        for entry in packet.interned_data.event_names:
            names[entry.iid] = entry.name
        if packet.HasField("track_descriptor") and packet.track_descriptor.HasField("thread"):
            thread = packet.track_descriptor.thread
            tracks[packet.track_descriptor.uuid] = (thread.pid, thread.tid)
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        stack = stacks.setdefault(event.track_uuid, [])
        if event.type == event.TYPE_SLICE_BEGIN:
            stack.append(Span(names[event.name_iid], *tracks[event.track_uuid], packet.timestamp))
        elif event.type == event.TYPE_SLICE_END:
            span = stack.pop()
            assert span.name == names[event.name_iid], "spans nest"
            span.end_ns = packet.timestamp
            span.value = event.debug_annotations[0].double_value if event.debug_annotations else 0.0
            done.append(span)
    return done + [span for stack in stacks.values() for span in stack]


def check_frames(data: bytes) -> int:
    """Walks a segment by docs/formats/trace.md alone; returns its number of frames, all of them whole."""
    at = start = frames = 0
    while at < len(data):
        if data[at] == 0x0A:
            size, shift, at = 0, 0, at + 1
            while True:
                byte = data[at]
                size |= (byte & 0x7F) << shift
                shift, at = shift + 7, at + 1
                if byte < 0x80:
                    break
            at += size
            continue
        assert data[at : at + 3] == b"\xc2\x3e\x08"
        size, crc = struct.unpack_from("<II", data, at + 3)
        assert size == at - start
        assert crc == zlib.crc32(data[start:at])
        at = start = at + 11
        frames += 1
    assert start == len(data)
    return frames
