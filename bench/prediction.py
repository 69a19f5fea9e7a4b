"""Does the predicted gain come true? Records a training script, then the same one with --accelerate, and compares.

    python bench/prediction.py [--pairs 3] [--runs DIR] -- python train.py --data leaves

Prints one line a pair: step before and after, predicted gain with its interval, measured gain, the miss. Needs a
quiet machine: a neighbour changes the step time of one side only.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path


def record(runs: Path, command: list[str], *flags: str) -> str:
    environment = {**os.environ, "STOKER_RUNS": str(runs)}
    subprocess.run(
        ["stoker", "run", "--no-report", *flags, "--", *command],
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    name = max(path.parent.name for path in runs.glob("*/run.json"))
    subprocess.run(["stoker", "report", str(runs / name), "--json"], check=True, stdout=subprocess.DEVNULL)
    return str(runs / name)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("command", nargs="+")
    args = parser.parse_args()
    worst = 0.0
    print("before ms  after ms  predicted       measured  miss")
    for _ in range(args.pairs):
        before = record(args.runs, args.command)
        after = record(args.runs, args.command, "--accelerate")
        done = subprocess.run(
            ["stoker", "report", "--compare", before, after, "--json"],
            check=True,
            capture_output=True,
            text=True,
        )
        c = json.loads(done.stdout)
        p, miss = c["predicted"], c["miss_points"]
        said = (
            f"{p['points']:5.1f} ({p['low']:.0f}-{p['high']:.0f})"
            if miss is not None
            else f"none: {p.get('why')}"
        )
        print(
            f"{c['before']['step_ms']:9.1f}  {c['after']['step_ms']:8.1f}  {said:14}  "
            f"{c['measured_gain_points']:8.1f}  {'-' if miss is None else f'{miss:.1f}'}",
            flush=True,
        )
        worst = max(worst, miss or 0.0)
    print(f"worst miss: {worst:.1f} points")
    return 0


if __name__ == "__main__":
    sys.exit(main())
