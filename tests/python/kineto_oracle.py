"""What a trace says, by brute force: the definitions of docs/design/watch-kineto.md with none of the C++'s ways.

Times are whole nanoseconds. A set of busy stretches is found by walking over all edges of all events, an operator's own
time by asking for each stretch between two edges which of the open operators is innermost.

``hta_view`` applies HolisticTraceAnalysis's own rules to the same events, each where it differs, so that every
exception from its figures is shown to be that rule and nothing else.
"""

from __future__ import annotations

import gzip
import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

GPU = {"kernel", "Kernel", "gpu_memcpy", "Memcpy", "gpu_memset", "Memset"}
RUNTIME = {"cuda_runtime", "Runtime", "cuda_driver", "hip_runtime"}
OP = {"cpu_op", "Operator"}
KERNEL_WAIT_BELOW_NS = 30_000

Span = tuple[int, int]


@dataclass
class Piece:
    """One piece of work on a GPU, its class by name, and the start of the call that launched it."""

    name: str
    kind: str
    stream: int
    start: int
    end: int
    launch: int | None
    call: int


def load(path: Path) -> list[dict[str, Any]]:
    """All events, numbers as they are written."""
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    document = json.loads(data, strict=False, parse_float=Decimal)
    return list(document["traceEvents"])


def ns(value: int | Decimal) -> int:
    """Microseconds as written, to whole nanoseconds."""
    return int((Decimal(value) * 1000).to_integral_value(ROUND_HALF_UP))


def classify(event: dict[str, Any]) -> str:
    """The class of a piece of GPU work."""
    if re.match(r"nccl.*Kernel", event["name"]):
        return "communication"
    if event["cat"] not in {"kernel", "Kernel"} or re.match(r"Memcpy|Memset|dma", event["name"]):
        return "memory"
    return "compute"


def pieces(events: list[dict[str, Any]]) -> list[Piece]:
    """GPU work by start; launched before the last profiler step, where there is more than one."""
    complete = [e for e in events if e.get("ph") == "X" and "dur" in e]
    launches: dict[int, Span] = {}
    for e in complete:
        if e.get("cat") in RUNTIME and "correlation" in e.get("args", {}):
            number = int(e["args"]["correlation"])
            launches[number] = max((ns(e["ts"]), ns(e["dur"])), launches.get(number, (-(2**63), 0)))
    steps = [
        e for e in complete if e.get("cat") == "user_annotation" and e["name"].startswith("ProfilerStep")
    ]
    last = max(ns(e["ts"]) for e in steps) if len({e["name"] for e in steps}) > 1 else None
    found = []
    for e in complete:
        if e.get("cat") not in GPU:
            continue
        launch, call = launches.get(int(e["args"].get("correlation", -1)), (None, 0))
        if last is None or (launch is not None and launch < last):
            start = ns(e["ts"])
            found.append(
                Piece(
                    e["name"],
                    classify(e),
                    int(e["args"]["stream"]),
                    start,
                    start + ns(e["dur"]),
                    launch,
                    call,
                )
            )
    return sorted(found, key=lambda p: p.start)


def covered(groups: dict[str, list[Span]]) -> dict[frozenset[str], int]:
    """For every set of groups, the time for which exactly these have something open."""
    edges = sorted(
        (at, step, group)
        for group, spans in groups.items()
        for s in spans
        for at, step in zip(s, (1, -1), strict=True)
    )
    open_now: dict[str, int] = defaultdict(int)
    time: dict[frozenset[str], int] = defaultdict(int)
    before = 0
    for at, step, group in edges:
        time[frozenset(g for g, n in open_now.items() if n > 0)] += at - before
        open_now[group] += step
        before = at
    time.pop(frozenset(), None)
    return dict(time)


def union(spans: Iterable[Span]) -> int:
    """The time with at least one of the spans."""
    return sum(covered({"any": list(spans)}).values())


def common(a: list[Span], b: list[Span]) -> int:
    """The time in which both have a span."""
    return covered({"a": a, "b": b}).get(frozenset("ab"), 0)


def gaps(work: list[Piece]) -> list[tuple[str, Span]]:
    """Every stretch without work, with what it waited for."""
    found = []
    until = work[0].start
    for piece in work:
        if piece.start > until:
            if piece.launch is not None and piece.launch > until:
                why = "host_wait"
            else:
                why = "kernel_wait" if piece.start - until < KERNEL_WAIT_BELOW_NS else "other"
            found.append((why, (until, piece.start)))
        until = max(until, piece.end)
    return found


def split(work: list[Piece]) -> dict[str, int]:
    """The idle time by what it waited for."""
    sums = dict.fromkeys(("host_wait", "kernel_wait", "other"), 0)
    for why, (start, end) in gaps(work):
        sums[why] += end - start
    return sums


def gpu(events: list[dict[str, Any]]) -> dict[str, Any] | None:
    """All figures over the GPU's work, or nothing where there is none."""
    work = pieces(events)
    if not work:
        return None
    groups: dict[str, list[Span]] = defaultdict(list)
    for p in work:
        groups[p.kind].append((p.start, p.end))
    classes = covered(groups)
    span = max(p.end for p in work) - work[0].start
    busy = sum(classes.values())

    def with_class(kind: str) -> int:
        return sum(time for kinds, time in classes.items() if kind in kinds)

    communication = with_class("communication")
    hidden = sum(t for kinds, t in classes.items() if {"communication", "compute"} <= kinds)
    host_waits = [gap for why, gap in gaps(work) if why == "host_wait"]
    host = [
        e for e in events if e.get("ph") == "X" and "dur" in e and e.get("cat") in OP | {"user_annotation"}
    ]
    loader = [spans_of(e) for e in host if e["name"].startswith("enumerate(DataLoader)")]
    ops = [spans_of(e) for e in host if e["cat"] in OP and not e["name"].startswith("enumerate(DataLoader)")]
    three = covered({"wait": host_waits, "loader": loader, "ops": ops})
    kernels: dict[tuple[str, str], list[int]] = defaultdict(list)
    for p in work:
        kernels[p.name, p.kind].append(p.end - p.start)
    return {
        "kernel": span,
        "idle": span - busy,
        "compute": with_class("compute"),
        "non_compute": busy - with_class("compute"),
        "communication": communication,
        "exposed": communication - hidden,
        "overlap_pct": 100 * hidden / communication if communication else None,
        "classes": classes,
        "split": split(work),
        "data_wait": sum(t for kinds, t in three.items() if {"wait", "loader"} <= kinds),
        "launch_bound": three.get(frozenset({"wait", "ops"}), 0),
        "streams": {s: split([p for p in work if p.stream == s]) for s in {p.stream for p in work}},
        "kernels": {key: (len(times), sum(times)) for key, times in kernels.items()},
        "launches": {
            "matched": sum(p.launch is not None for p in work),
            "unmatched": sum(p.launch is None for p in work),
            **delays([p.start - p.launch for p in work if p.launch is not None]),
            "shorter_than_launch": sum(p.launch is not None and p.end - p.start < p.call for p in work),
        },
    }


def delays(waited: list[int]) -> dict[str, float]:
    """Lower median, 90th percentile and largest, in µs; 0 of none."""
    waited = sorted(waited) or [0]
    last = len(waited) - 1
    places = {"median": last // 2, "p90": last * 9 // 10, "max": last}
    return {f"delay_{name}_us": waited[place] / 1000 for name, place in places.items()}


def steps(events: list[dict[str, Any]]) -> list[tuple[str, int, int, int]]:
    """Name, length, launched work and busy time of every profiler step, by start."""
    work = pieces(events)
    found = [
        e
        for e in events
        if e.get("ph") == "X" and e.get("cat") == "user_annotation" and e["name"].startswith("ProfilerStep")
    ]
    result = []
    for e in sorted(found, key=lambda e: ns(e["ts"])):
        start, end = spans_of(e)
        launched = sum(p.launch is not None and start <= p.launch < end for p in work)
        busy = common([(p.start, p.end) for p in work], [(start, end)]) if work else 0
        result.append((e["name"], end - start, launched, busy))
    return result


def memory_peaks(events: list[dict[str, Any]]) -> dict[int, tuple[int, int, int]]:
    """Of every device (−1: the host): events, most allocated, most reserved."""
    result: dict[int, tuple[int, int, int]] = {}
    for e in events:
        args = e.get("args", {})
        if e.get("ph") == "i" and e.get("name") == "[memory]" and "Total Allocated" in args:
            device = args["Device Id"] if args["Device Type"] else -1
            count, allocated, reserved = result.get(device, (0, 0, 0))
            result[device] = (
                count + 1,
                max(allocated, args["Total Allocated"]),
                max(reserved, args.get("Total Reserved", 0)),
            )
    return result


def spans_of(event: dict[str, Any]) -> Span:
    """Start and end of one event."""
    return ns(event["ts"]), ns(event["ts"]) + ns(event["dur"])


def self_times(events: list[dict[str, Any]]) -> dict[str, tuple[int, int, int]]:
    """Count, total and own time of every operator."""
    threads: dict[tuple[Any, Any], list[tuple[int, int, int, str]]] = defaultdict(list)
    for place, e in enumerate(events):
        if e.get("ph") == "X" and e.get("cat") in OP and "dur" in e:
            start, end = spans_of(e)
            threads[e["pid"], e["tid"]].append((start, -(end - start), place, e["name"]))
    result: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for ops in threads.values():
        ops.sort()
        edges = sorted({at for start, shorter, _, _ in ops for at in (start, start - shorter)})
        opened = 0
        alive: list[tuple[int, int, int, str]] = []
        for start, end in pairwise(edges):
            while opened < len(ops) and ops[opened][0] <= start:
                alive.append(ops[opened])
                opened += 1
            alive = [op for op in alive if op[0] - op[1] > start]
            if alive:
                result[max(alive)[3]][2] += end - start
        for _, shorter, _, name in ops:
            result[name][0] += 1
            result[name][1] -= shorter
    return {name: (count, total, own) for name, (count, total, own) in result.items()}


def hta_view(events: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The same figures by HTA 0.5.0's rules, in microseconds.

    They differ thus: where times have decimals, starts are rounded up and ends down to whole microseconds; whatever
    has an integer ``stream`` counts as GPU work in the breakdown, CPU operators and synchronisations too; the class is
    by the name alone; a stream's gap is counted from the end of the piece that started before it, so that pieces that
    overlap count negative.
    """
    complete = [e for e in events if e.get("ph") == "X" and "dur" in e and e.get("cat") != "Trace"]
    rounds = any(isinstance(e.get("ts"), Decimal) for e in events)

    def times(e: dict[str, Any]) -> Span:
        if not rounds:
            return int(e["ts"]), int(Decimal(e["ts"]) + Decimal(e["dur"]))
        ts, dur = float(e["ts"]), float(e["dur"])
        return math.ceil(ts), math.floor(ts + dur)

    def stream(e: dict[str, Any]) -> int:
        try:
            return int(e.get("args", {}).get("stream", -1))
        except ValueError:
            return -1

    launches = {}
    for e in complete:
        number = e.get("args", {}).get("correlation")
        if stream(e) == -1 and number is not None:
            launches[int(number)] = times(e)[0]
    steps = [e for e in complete if e["name"].startswith("ProfilerStep") and stream(e) == -1]
    last = max(times(e)[0] for e in steps) if len({e["name"] for e in steps}) > 1 else None
    rows = []
    for e in complete:
        launch = launches.get(int(e.get("args", {}).get("correlation", -1)))
        if stream(e) == -1 or (last is not None and (launch is None or launch >= last)):
            continue
        start, end = times(e)
        rows.append((start, end, stream(e), e["cat"], e["name"], launch))
    if not rows:
        return None
    rows.sort(key=lambda r: r[0])
    no_compute = re.compile(r"(nccl.*Kernel)|(Memcpy)|(Memset)|(dma)|(.*Memcpy)|(.*Sync)")
    computing = [r for r in rows if not no_compute.match(r[4])]
    span = max(r[1] for r in rows) - rows[0][0]
    busy = union((r[0], r[1]) for r in rows)
    compute = union((r[0], r[1]) for r in computing)
    streams: dict[int, dict[str, int]] = {}
    for number in {r[2] for r in rows if r[3] in GPU}:
        sums = dict.fromkeys(("host_wait", "kernel_wait", "other"), 0)
        mine = [r for r in rows if r[2] == number and r[3] in GPU]
        for before, after in pairwise(mine):
            gap = after[0] - before[1]
            if after[5] is not None and after[5] > before[1]:
                sums["host_wait"] += gap
            else:
                sums["kernel_wait" if gap < 30 else "other"] += gap
        streams[number] = sums
    return {
        "kernel": span,
        "idle": span - busy,
        "compute": compute,
        "non_compute": busy - compute,
        "streams": streams,
    }
