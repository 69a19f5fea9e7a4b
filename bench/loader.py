"""How many images does a second of CPU load? Stoker's loader against torch's, against its peers, and against the floor.

RandomResizedCrop 224 + flip + normalise to float32, batches of 64, warm page cache, long epochs, on three sets of real
JPEGs (bench/support/photo_sets.py). Each way runs in a process of its own, which waits while others are timed; rounds
are interleaved, and the figures are those of each way's best round. CPU is user and system time of the process and its
children; workers that persist are started before the clock. The floor is one thread without a loader, reading from
memory (bench/image_floor.cpp): decode only the crop, resize, normalise. Stoker's pixels are compared with torchvision's
before anything is timed, and every way's batches are looked at. A peer that does not run prints its last line.

Peers come from the Python that ``--peers`` names: ``python -m venv V && V/bin/pip install spdl turboloader webdataset
nvidia-dali-cuda130``, with the torch of this checkout on its path.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any, TextIO

from support import loader_ways as ways
from support import photo_sets

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))

FLOOR = "floor: exact crop decode + resize, no loader"
FLOOR_PROGRAM = ROOT / "build/release/bin/image_floor"
# Of the issue that asked for this: times usual torch, times best torch, times the best peer.
BARS = {"leaves": (7.0, 5.0, 3.4), "500x375": (3.9, 2.3, 2.1), "1024x768": (3.0, 1.8, 1.05)}
WALL_BAR = 1.9


class Way:
    """A process that loads epochs when it is told to."""

    def __init__(self, name: str, python: str) -> None:
        self.name = name
        self.failure = ""
        self.log = tempfile.TemporaryFile("w+")  # noqa: SIM115  (as long as the process lives)
        self.process = subprocess.Popen(
            [python, str(ROOT / "bench/support/loader_ways.py"), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
        )

    def hear(self) -> dict[str, Any]:
        """The next answer; {} when there will be none, and why in ``failure``."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if line:
            return dict(json.loads(line))
        self.process.wait()
        self.log.seek(0)
        lines = [text.strip() for text in self.log.read().splitlines() if text.strip()]
        self.failure = (lines or [f"exit {self.process.returncode}"])[-1][:160]
        return {}

    def ask(self, order: dict[str, Any]) -> dict[str, Any]:
        if self.failure:
            return {}
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(order) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        return self.hear()

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def floor_round(folder: Path) -> float:
    """Images per CPU-second of the best of three passes over the folder."""
    command = [str(FLOOR_PROGRAM), str(folder.resolve()), "--rounds", "3", "--images", "1000"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout)["images_per_cpu_s"])


def check_equal(data: Path, count: int) -> None:
    """Without randomness Stoker's floats are torchvision's, bit for bit; with it, those of the same crops."""
    import stoker
    import torch
    from torch.utils.data import DataLoader
    from torchvision.datasets import ImageFolder
    from torchvision.transforms import v2

    floats = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(ways.MEAN, ways.STD)]
    reference = ImageFolder(str(data), v2.Compose([v2.Resize(256), v2.CenterCrop(224), *floats]))
    step = max(1, len(reference) // count)
    chosen = list(range(0, len(reference), step))[:count]
    transform = [stoker.Resize(256), stoker.CenterCrop(224), stoker.Normalize(ways.MEAN, ways.STD)]
    with stoker.ImageLoader(
        data, batch_size=len(chosen), dtype="float32", transform=transform, sampler=chosen
    ) as loader:
        images, labels = next(iter(loader))
    expected = torch.stack([reference[i][0] for i in chosen])
    if not torch.equal(images, expected) or labels.tolist() != [reference.targets[i] for i in chosen]:
        raise SystemExit("error: Stoker's images are not torchvision's; nothing was timed")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a difference in the random pipeline is warned of
        stoker.accelerate(DataLoader(ImageFolder(str(data), ways.v2_transform()), batch_size=64), verify=16)


def check_look(way: Way, folder: Path, expected: float | None) -> dict[str, Any]:
    """The way's batches are 3 × 224 × 224 and about as bright as the usual ones. Returns what was seen."""
    seen = way.ask({"set": str(folder), "look": True})
    if not seen:
        return {}
    bad = sorted(seen["shape"]) != [3, 224, 224] or seen["dtype"] not in ("float32", "uint8")
    if bad or (expected is not None and abs(seen["mean"] - expected) > 0.25):
        way.failure = f"its batches are not the usual ones: {seen}"
        way.close()
    return seen


class Best:
    """The best of several rounds."""

    def __init__(self) -> None:
        self.per_cpu_s: list[float] = []
        self.per_s: list[float] = []
        self.first_batch = 0.0
        self.peak = 0

    def add(self, answer: dict[str, Any]) -> None:
        self.per_cpu_s.append(answer["images"] / answer["cpu"])
        self.per_s.append(answer["images"] / answer["wall"])
        self.peak = max(self.peak, answer["peak"])


def run_set(name: str, running: list[Way], rounds: int, seconds: float, talk: TextIO) -> dict[str, Any]:
    folder = photo_sets.photo_set(name)
    check_equal(folder, 32)
    usual_mean: float | None = None
    best = {way.name: Best() for way in running}
    floors: list[float] = []
    images: dict[str, int] = {}
    for way in running:
        seen = check_look(way, folder, usual_mean)
        if not seen:
            continue
        best[way.name].first_batch = seen["first_batch"]
        usual_mean = seen["mean"] if usual_mean is None else usual_mean
        # A short epoch warms up and says how long the others must be.
        trial = way.ask({"set": str(folder), "images": 8 * ways.BATCH})
        if trial:
            count = trial["images"] / trial["wall"] * seconds
            images[way.name] = max(8, round(count / ways.BATCH)) * ways.BATCH
    for number in range(rounds):
        shift = number % len(running)
        for way in running[shift:] + running[:shift]:
            answer = way.ask({"set": str(folder), "images": images.get(way.name, 0)})
            if answer:
                best[way.name].add(answer)
                print(
                    f"  {name}, round {number + 1}: {way.name}: {best[way.name].per_cpu_s[-1]:,.0f}",
                    file=talk,
                    flush=True,
                )
        if FLOOR_PROGRAM.is_file():
            floors.append(floor_round(folder))
    rows: dict[str, Any] = {}
    for way in running:
        mine = best[way.name]
        if way.failure or not mine.per_cpu_s:
            rows[way.name] = {"failed": way.failure}
            continue
        ordered = sorted(mine.per_cpu_s)
        rows[way.name] = {
            "images_per_cpu_s": ordered[-1],
            "median_images_per_cpu_s": ordered[len(ordered) // 2],
            "images_per_s": max(mine.per_s),
            "first_batch_s": mine.first_batch,
            "peak_bytes": mine.peak,
        }
    rows[FLOOR] = {"images_per_cpu_s": max(floors)} if floors else {"failed": "image_floor is not built"}
    return {"ways": rows, "bars": bars(name, rows)}


def bars(name: str, rows: dict[str, Any]) -> dict[str, Any]:
    def rate(names: list[str]) -> float | None:
        return max(
            (rows[n]["images_per_cpu_s"] for n in names if n in rows and "failed" not in rows[n]),
            default=None,
        )

    ours = rate([ways.EXACT])
    if ours is None:
        return {}
    against = {
        "usual torch": (rate([ways.USUAL]), BARS[name][0]),
        "best torch": (rate(ways.BEST_TORCH), BARS[name][1]),
        "best peer": (rate(ways.PEERS), BARS[name][2]),
    }
    found = {
        f"exact / {who}": {"ratio": ours / other, "at_least": least, "met": ours / other >= least}
        for who, (other, least) in against.items()
        if other
    }
    wall = rows[ways.EXACT]["images_per_s"] / ours
    found["wall rate / rate per CPU-s"] = {"ratio": wall, "at_least": WALL_BAR, "met": wall >= WALL_BAR}
    floor = rate([FLOOR])
    if floor:
        found["exact / floor"] = {"ratio": ours / floor}
    return found


def table(result: dict[str, Any]) -> str:
    sets = result["sets"]
    names = list(dict.fromkeys(name for one in sets.values() for name in one["ways"]))
    lines = [
        "| images per CPU-second (per second) | " + " | ".join(sets) + " | first batch, s | peak, MB |",
        "|---|" + "---|" * (len(sets) + 2),
    ]
    for name in names:
        cells = []
        firsts, peaks = [], []
        for one in sets.values():
            row = one["ways"].get(name, {"failed": "not run"})
            if "failed" in row:
                cells.append(f"failed: {row['failed']}".replace("|", "\\|"))
                continue
            wall = f" ({row['images_per_s']:,.0f})" if "images_per_s" in row else ""
            cells.append(f"{row['images_per_cpu_s']:,.0f}{wall}")
            if wall:
                firsts.append(row["first_batch_s"])
                peaks.append(row["peak_bytes"])
        extra = f"{max(firsts):.2f} | {max(peaks) / 1e6:,.0f}" if firsts else "– | –"
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {extra} |")
    lines += ["", "| bar | " + " | ".join(sets) + " |", "|---|" + "---|" * len(sets)]
    for bar in dict.fromkeys(bar for one in sets.values() for bar in one["bars"]):
        cells = []
        for one in sets.values():
            got = one["bars"].get(bar)
            if got is None:
                cells.append("–")
            elif "met" in got:
                cells.append(f"{got['ratio']:.2f} of {got['at_least']}: {'met' if got['met'] else 'MISSED'}")
            else:
                cells.append(f"{got['ratio']:.2f}")
        lines.append(f"| {bar} | " + " | ".join(cells) + " |")
    lines += ["", result["conditions"]]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="torch, the floor and Stoker only; under a minute"
    )
    parser.add_argument(
        "--set", action="append", choices=photo_sets.NAMES, help="one of the sets; default all"
    )
    parser.add_argument("--way", action="append", help="only ways whose name has this in it")
    parser.add_argument("--peers", default=os.environ.get("STOKER_BENCH_PEERS", sys.executable))
    parser.add_argument("--rounds", type=int, help="default 4, with --quick 2")
    parser.add_argument("--seconds", type=float, help="of an epoch; default 3, with --quick 1")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()

    chosen = ways.QUICK if args.quick else list(ways.WAYS)
    if args.way:
        chosen = [name for name in chosen if any(part in name for part in args.way)]
    sets = args.set or photo_sets.NAMES
    for name in sets:
        photo_sets.photo_set(name)
    begin = time.perf_counter()
    running = [Way(name, args.peers if name in ways.PEERS else sys.executable) for name in chosen]
    try:
        for way in running:
            way.hear()
        result: dict[str, Any] = {"schema": "stoker.bench.loader.v2", "sets": {}}
        for name in sets:
            rounds, seconds = (
                args.rounds or (2 if args.quick else 4),
                args.seconds or (1 if args.quick else 3),
            )
            result["sets"][name] = run_set(name, running, rounds, seconds, sys.stderr)
    finally:
        for way in running:
            way.close()
    import torch

    result["conditions"] = (
        f"{os.cpu_count()} CPUs, {cpu_model()}; torch {torch.__version__}; load at the end {os.getloadavg()[0]:.1f}; "
        f"{rounds} rounds of epochs of about {seconds:g} s; took {time.perf_counter() - begin:.0f} s"
    )
    print(json.dumps(result, indent=2) if args.json else table(result))
    met = [bar["met"] for one in result["sets"].values() for bar in one["bars"].values() if "met" in bar]
    return 0 if all(met) else 1


def cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "CPU of no name"


if __name__ == "__main__":
    raise SystemExit(main())
