"""How long does a trace's analysis take, and how much memory? `stoker trace` against HolisticTraceAnalysis.

    python bench/trace.py --hta /path/to/venv/bin/python [--rounds 5] [trace.json.gz …]

HTA needs an environment of its own (`pip install HolisticTraceAnalysis==0.5.0`; or STOKER_BENCH_HTA). Without one only
Stoker is measured. Without traces it takes those of ../shared/data/kineto-traces with 60,000 events and more.

HTA is asked for the time breakdown, the idle breakdown, the kernel breakdown, the overlap and the launch statistics of
its rank; its import is not counted. Stoker's time is that of the whole process, which does more than that. First the
answers of both are checked equal on v100-ddp2-rank1. Rounds are interleaved; the median counts. The floor is zlib
alone, inflating the file in one call.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import zlib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
STOKER = ROOT / "build/release/bin/stoker"
TRACES = ROOT.parent / "shared/data/kineto-traces"
LARGE = ["v100-ddp2-rank1", "a100-sxm4-rank0", "a100-control", "v100-test", "v100-single"]
BAR_RATIO, BAR_MB, BAR_EVENT_BYTES = 15.0, 120.0, 48.0

HTA = """
import json, logging, sys, time, warnings
warnings.filterwarnings("ignore"); logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis
path = sys.argv[1]
start = time.perf_counter()
analyzer = TraceAnalysis(trace_files={0: path}, trace_dir=path.rsplit("/", 1)[0])
loaded = time.perf_counter()
total = analyzer.get_temporal_breakdown(visualize=False)
idle, _ = analyzer.get_idle_time_breakdown(ranks=[0], visualize=False)
analyzer.get_gpu_kernel_breakdown(visualize=False)
overlap = analyzer.get_comm_comp_overlap(visualize=False)
try:
    analyzer.get_cuda_kernel_launch_stats(ranks=[0], visualize=False)
except Exception as error:
    print("launch statistics failed:", error, file=sys.stderr)
ended = time.perf_counter()
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps({"load_s": loaded - start, "analyses_s": ended - loaded, "peak_mb": peak * 1024 / 1e6,
    "total": total.iloc[0].to_dict(), "idle": idle.to_dict("records"),
    "overlap": float(overlap["comp_comm_overlap_pctg"][0])}))
"""


# A process counts as its own peak that of the one that it was forked from; so a small one starts and measures it.
MEASURED = """
import os, sys, time
start = time.perf_counter()
child = os.fork()
if child == 0:
    os.execv(sys.argv[1], sys.argv[1:])
_, status, usage = os.wait4(child, 0)
wall = time.perf_counter() - start
print(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e6, file=sys.stderr)
sys.exit(os.waitstatus_to_exitcode(status))
"""


def stoker(trace: Path) -> dict[str, Any]:
    """One run: wall and CPU seconds and peak memory of the process, and its answer."""
    command = [sys.executable, "-S", "-c", MEASURED, str(STOKER), "trace", str(trace), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"stoker trace {trace} failed: {done.stderr}")
    wall, cpu, peak = map(float, done.stderr.splitlines()[-1].split())
    return {"wall_s": wall, "cpu_s": cpu, "peak_mb": peak, "rank": json.loads(done.stdout)["ranks"][0]}


def hta(python: str, trace: Path) -> dict[str, Any]:
    """One load and five analyses in a fresh process."""
    done = subprocess.run(
        [python, "-c", HTA, str(trace.resolve())], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        sys.exit(f"HTA failed on {trace}:\n{done.stderr[-2000:]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def floor_s(trace: Path) -> float:
    """Inflation alone."""
    packed = trace.read_bytes()
    start = time.perf_counter()
    zlib.decompress(packed, 15 + 32)
    return time.perf_counter() - start


def differences(rank: dict[str, Any], theirs: dict[str, Any]) -> list[str]:
    """Where the two answers are not the same."""
    found = [
        f"{field}: {rank[f'{field}_us']} and {theirs['total'][f'{field}_time(us)']}"
        for field in ("idle", "compute", "non_compute", "kernel")
        if rank[f"{field}_us"] != theirs["total"][f"{field}_time(us)"]
    ]
    streams = {s["stream"]: s for s in rank["streams"]}
    for row in theirs["idle"]:
        ours = streams[row["stream"]][f"{row['idle_category']}_us"]
        if ours != row["idle_time"]:
            found.append(f"stream {row['stream']} {row['idle_category']}: {ours} and {row['idle_time']}")
    if round(rank["comm_overlap_pct"], 2) != theirs["overlap"]:
        found.append(f"overlap: {rank['comm_overlap_pct']} and {theirs['overlap']}")
    return found


def measure(trace: Path, python: str | None, rounds: int) -> dict[str, Any]:
    """Interleaved rounds on one trace; medians, and the largest peaks."""
    ours: list[dict[str, Any]] = []
    theirs: list[dict[str, Any]] = []
    floors: list[float] = []
    for _ in range(rounds):
        ours.append(stoker(trace))
        floors.append(floor_s(trace))
        if python:
            theirs.append(hta(python, trace))
            ours.append(stoker(trace))
    rank = ours[0]["rank"]
    row: dict[str, Any] = {
        "trace": trace.name.removesuffix(".json.gz"),
        "events": rank["events_seen"],
        "wall_s": statistics.median(r["wall_s"] for r in ours),
        "cpu_s": statistics.median(r["cpu_s"] for r in ours),
        "peak_mb": max(r["peak_mb"] for r in ours),
        "event_bytes": rank["table_bytes"] / rank["events_kept"],
        "floor_s": statistics.median(floors),
    }
    if theirs:
        row["hta_s"] = statistics.median(t["load_s"] + t["analyses_s"] for t in theirs)
        row["hta_load_s"] = statistics.median(t["load_s"] for t in theirs)
        row["hta_peak_mb"] = max(t["peak_mb"] for t in theirs)
        row["ratio"] = row["hta_s"] / row["wall_s"]
    return row


def table(rows: list[dict[str, Any]]) -> str:
    """Markdown."""
    lines = [
        "| trace | events | HTA load + analyses, s | HTA peak, MB | stoker, s (CPU s) | stoker peak, MB "
        "| bytes an event kept, names included | HTA / stoker | floor: zlib alone, s |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        theirs = ("–", "–", "–")
        if "hta_s" in r:
            theirs = (
                f"{r['hta_load_s']:.2f} + {r['hta_s'] - r['hta_load_s']:.2f}",
                f"{r['hta_peak_mb']:.0f}",
                f"{r['ratio']:.1f}",
            )
        lines.append(
            f"| {r['trace']} | {r['events']:,} | {theirs[0]} | {theirs[1]} | {r['wall_s']:.3f} ({r['cpu_s']:.3f}) "
            f"| {r['peak_mb']:.1f} | {r['event_bytes']:.1f} | {theirs[2]} | {r['floor_s']:.3f} |"
        )
    first = rows[0]
    bars = [
        ("peak memory, MB", first["peak_mb"], BAR_MB, first["peak_mb"] <= BAR_MB),
        ("bytes an event", first["event_bytes"], BAR_EVENT_BYTES, first["event_bytes"] <= BAR_EVENT_BYTES),
    ]
    if "ratio" in first:
        bars.insert(0, ("HTA / stoker", first["ratio"], BAR_RATIO, first["ratio"] >= BAR_RATIO))
    lines += ["", f"| bar, on {first['trace']} | |", "|---|---|"]
    lines += [
        f"| {what} | {is_:.1f} of {bar:g}: {'met' if ok else 'MISSED'} |" for what, is_, bar, ok in bars
    ]
    return "\n".join(lines)


def main() -> None:
    """Checks, measures, prints."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("traces", nargs="*", type=Path)
    parser.add_argument(
        "--hta", default=os.environ.get("STOKER_BENCH_HTA"), help="the Python that has HTA installed"
    )
    parser.add_argument("--rounds", type=int, help="default 5, with --quick 2")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    traces = args.traces or [TRACES / f"{name}.json.gz" for name in LARGE]
    rounds = args.rounds or (2 if args.quick else 5)
    if args.hta:
        for trace in traces:
            if trace.name.startswith("v100-ddp2"):
                differing = differences(stoker(trace)["rank"], hta(args.hta, trace))
                if differing:
                    sys.exit(f"{trace.name}: the answers differ: {'; '.join(differing)}")
    rows = [measure(trace, args.hta, rounds) for trace in traces]
    print(json.dumps(rows, indent=2) if args.json else table(rows))


if __name__ == "__main__":
    main()
