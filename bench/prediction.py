"""Does the predicted gain come true? Records a training script, then the same one with --accelerate, and compares.

    python bench/prediction.py [--pairs 3] [--runs DIR] [-- python train.py --data leaves]

Without a command it is examples/plant-disease/train.py. Prints one line a pair: step before and after, predicted gain
with its interval, measured gain, the miss. Needs a quiet machine: a neighbour changes the step time of one side only.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def example(epochs: int, out: Path) -> list[str]:
    """The command that is measured where none is given."""
    script = ROOT / "examples/plant-disease/train.py"
    return [sys.executable, str(script), "--epochs", str(epochs), "--out", str(out)]


def record(runs: Path, command: list[str], *flags: str) -> str:
    """Records one run of the command and returns its folder."""
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


def measure_pair(runs: Path, command: list[str]) -> dict[str, Any]:
    """Runs the command without and with --accelerate; returns `stoker report --compare --json`."""
    before = record(runs, command)
    after = record(runs, command, "--accelerate")
    done = subprocess.run(
        ["stoker", "report", "--compare", before, after, "--json"],
        check=True,
        capture_output=True,
        text=True,
    )
    compared: dict[str, Any] = json.loads(done.stdout)
    return compared


def line(c: dict[str, Any]) -> str:
    """One pair as a row of the table."""
    p, miss = c["predicted"], c["miss_points"]
    said = (
        f"{p['points']:5.1f} ({p['low']:.0f}-{p['high']:.0f})"
        if miss is not None
        else f"none: {p.get('why')}"
    )
    return (
        f"{c['before']['step_ms']:9.1f}  {c['after']['step_ms']:8.1f}  {said:14}  "
        f"{c['measured_gain_points']:8.1f}  {'-' if miss is None else f'{miss:.1f}'}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, help="default 3, with --quick 1")
    parser.add_argument("--runs", type=Path, help="where to record; default: a temporary directory")
    parser.add_argument("--quick", action="store_true", help="one pair of 4 epochs: a look, not a figure")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument("command", nargs="*", help="default: the plant-disease example, 12 epochs")
    args = parser.parse_args()
    pairs = args.pairs or (1 if args.quick else 3)
    compared = []
    if not args.json:
        print("before ms  after ms  predicted       measured  miss")
    with tempfile.TemporaryDirectory(prefix="stoker-prediction-") as folder:
        runs = args.runs or Path(folder, "runs")
        command = args.command or example(4 if args.quick else 12, Path(folder, "out"))
        for _ in range(pairs):
            compared.append(measure_pair(runs, command))
            if not args.json:
                print(line(compared[-1]), flush=True)
    worst = max((c["miss_points"] for c in compared if c["miss_points"] is not None), default=None)
    if args.json:
        print(json.dumps({"bench": "prediction", "pairs": compared, "worst_miss_points": worst}))
    else:
        print("no prediction to compare" if worst is None else f"worst miss: {worst:.1f} points")
    return 0


if __name__ == "__main__":
    sys.exit(main())
