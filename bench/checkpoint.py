"""What does a checkpoint cost the training, and what does loading one cost? Stoker's Store against its peers.

A model with its Adam moments is saved every ``--steps`` steps of 100 ms. Each round takes every way once, in an order
that rotates; each way is waited for at the end of its stretch, and the disk is synced, untimed, between two ways.
``blocked`` is the time that the save call keeps the loop; ``added wall`` and ``added CPU`` are against the same steps
without a save. ``Store (90 % frozen)`` saves a state of which a tenth moves. Whatever can load is loaded and compared
before anything is timed. The floors are one copy of the state by all CPUs into memory that is there, and writing it
from aligned memory with O_DIRECT and fdatasync.

Peers that are not installed are named and left out. A venv of their own that sees this torch:
``python -m venv build/peers``, a ``.pth`` line to this environment's site-packages, and there
``pip install --no-deps torchsnapshot pyyaml aiofiles nest_asyncio psutil importlib_metadata``; ``--peers build/peers``.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
from stoker import _native
from stoker.store import Keep, Store
from support.checkpoint_ways import (
    FROZEN,
    KEYS,
    OURS,
    TORCH_SAVE,
    State,
    Way,
    Ways,
    check,
    flat,
    make_state,
    tensors,
    total_bytes,
)

ROOT = Path(__file__).resolve().parents[1]
NOTHING = "nothing"
STEP_S = 0.1
ASYNC = ("DCP.async_save", "torchsnapshot.async_take")
HASH_BYTES_PER_S = 10e9  # per core: what the bar of loading allows for the check


class Steps:
    """A training of fixed work: about 100 ms a step of one thread's matrix products."""

    def __init__(self, state: State) -> None:
        self._a = torch.full((256, 256), 1 / 256)
        self._changing = [t for t in tensors(state) if t.dim() > 0]
        self._some = self._changing[:: max(1, len(self._changing) // (len(self._changing) // 10 or 1))]
        self._products = 10
        for _ in range(3):
            start = time.perf_counter()
            self.run(1)
            self._products = max(1, round(self._products * STEP_S / (time.perf_counter() - start)))

    def change(self, frozen: bool) -> None:
        """What the optimizer does: every tensor moves, or a tenth of them."""
        for tensor in self._some if frozen else self._changing:
            tensor.view(-1)[0] += 1

    def run(self, count: int) -> None:
        """Computes ``count`` steps."""
        for _ in range(count * self._products):
            self._a @ self._a


def stretch(way: Way | None, steps: Steps, first: int, count: int, saves: int) -> dict[str, float]:
    """Seconds a checkpoint of ``saves`` times ``count`` steps, each begun by a save."""
    blocked = 0.0
    unmeasured_wall = unmeasured_cpu = 0.0
    wall, cpu = time.perf_counter(), time.process_time()
    for number in range(saves):
        start, start_cpu = time.perf_counter(), time.process_time()
        steps.change(way is not None and way.frozen)
        unmeasured_wall += time.perf_counter() - start
        unmeasured_cpu += time.process_time() - start_cpu
        if way is not None:
            start = time.perf_counter()
            way.save(first + number)
            blocked += time.perf_counter() - start
        steps.run(count)
    if way is not None:
        way.finish()
    return {
        "blocked": blocked / saves,
        "wall": (time.perf_counter() - wall - unmeasured_wall) / saves,
        "cpu": (time.process_time() - cpu - unmeasured_cpu) / saves,
    }


def measure(ways: dict[str, Way], state: State, rounds: int, count: int, saves: int) -> Way:
    """Fills each way's figures; returns those of the steps alone."""
    steps = Steps(state)
    nothing = Way(lambda _step: None)
    everything: list[tuple[str, Way]] = [(NOTHING, nothing), *ways.items()]
    number = 1
    for turn in range(rounds + 1):  # the first warms up: files, staging memory
        for k in range(len(everything)):
            name, way = everything[(k + turn) % len(everything)]
            taken = stretch(None if name == NOTHING else way, steps, number, count, saves)
            number += saves
            os.sync()  # what a way left in the page cache is not the next one's to write
            for key in KEYS if turn > 0 else ():
                way.taken[key].append(taken[key])
    return nothing


def row(way: Way, nothing: Way) -> dict[str, float]:
    """Milliseconds a checkpoint: minimum and median."""
    found = {}
    for key, label in (("blocked", "blocked"), ("wall", "added_wall"), ("cpu", "added_cpu")):
        base = nothing.taken[key] if key != "blocked" else [0.0]
        found[f"{label}_min_ms"] = 1e3 * (min(way.taken[key]) - min(base))
        found[f"{label}_median_ms"] = 1e3 * (statistics.median(way.taken[key]) - statistics.median(base))
    return found


def floors(root: Path, state: State) -> dict[str, float]:
    """Milliseconds of copying the state into memory that is there, and of writing as much durably."""
    size = total_bytes(state)
    whole = size // 4096 * 4096
    memory = mmap.mmap(-1, whole)
    target = torch.frombuffer(memory, dtype=torch.uint8)
    target.fill_(1)
    places, at = [], 0
    for tensor in tensors(state):
        raw = tensor.reshape(-1).view(torch.uint8)
        if at + raw.numel() <= whole:
            places.append((target[at : at + raw.numel()], raw))
            at += raw.numel()
    copies, writes = [], []
    cpus = len(os.sched_getaffinity(0))
    with ThreadPoolExecutor(cpus) as pool:
        for _ in range(5):
            start = time.perf_counter()
            list(
                pool.map(
                    lambda mine: [to.copy_(piece) for to, piece in mine],
                    [places[i::cpus] for i in range(cpus)],
                )
            )
            copies.append(time.perf_counter() - start)
    for _ in range(3):
        start = time.perf_counter()
        fd = os.open(root / "floor", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_DIRECT)
        view = memoryview(memory)
        for begin in range(0, whole, 16 << 20):
            os.write(fd, view[begin : begin + (16 << 20)])
        os.fdatasync(fd)
        os.close(fd)
        view.release()
        writes.append(time.perf_counter() - start)
    (root / "floor").unlink()
    return {"copy_ms": 1e3 * min(copies), "write_ms": 1e3 * min(writes)}


# Loading in a process of its own, so that its peak is its own. Prints the best seconds and the growth of the peak.
LOADER = """
import json, re, sys, time
sys.path.insert(0, sys.argv[3])
import torch
torch.set_num_threads(1)
torch.rand(8) @ torch.rand(8)
if sys.argv[1] == "stoker":
    from stoker.store import Store
    store = Store(sys.argv[2], read_only=True)
    load = store.load
else:
    from safetensors.torch import load_file
    def load():
        return {name: tensor.clone() for name, tensor in load_file(sys.argv[2]).items()}
def memory(name):  # bytes
    return 1024 * int(re.search(name + r":\\s+(\\d+)", open("/proc/self/status").read())[1])
open("/proc/self/clear_refs", "w").write("5")  # the peak starts again from here
before, best = memory("VmRSS"), 1e9
for turn in range(int(sys.argv[4])):
    start = time.perf_counter()
    state = load()
    best = min(best, time.perf_counter() - start)
    if turn == 0:
        grown = memory("VmHWM") - before
    del state
print(json.dumps([best, grown]))
"""


def loading(root: Path, state: State, rounds: int) -> dict[str, float]:
    """Both ways from the page cache: best seconds over alternating processes, and the first load's peak."""
    from safetensors.torch import save_file

    save_file(flat(state), root / "load.safetensors")
    with Store(root / "load", keep=Keep(last=1)) as store:
        store.save(1, **state)
    best = {"stoker": 1e9, "safetensors": 1e9}
    grown = {"stoker": 0, "safetensors": 0}
    for _ in range(rounds):
        for kind, path in (("stoker", root / "load"), ("safetensors", root / "load.safetensors")):
            command = [sys.executable, "-c", LOADER, kind, str(path), str(ROOT / "python"), "3"]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            seconds, peak = json.loads(done.stdout)
            best[kind] = min(best[kind], seconds)
            grown[kind] = max(grown[kind], peak)
    size = total_bytes(state)
    allowed = 1.1 * best["safetensors"] + size / HASH_BYTES_PER_S
    return {
        "stoker_ms": 1e3 * best["stoker"],
        "safetensors_clone_ms": 1e3 * best["safetensors"],
        "allowed_ms": 1e3 * allowed,
        "peak_above_state_mb": (grown["stoker"] - size) / 1e6,
        "safetensors_peak_above_state_mb": (grown["safetensors"] - size) / 1e6,
    }


def bars(rows: dict[str, dict[str, float]], load: dict[str, float]) -> dict[str, dict[str, Any]]:
    """Each bar with its figure, what is allowed, and whether it holds."""
    found: dict[str, dict[str, Any]] = {}

    def bar(name: str, figure: float, allowed: float) -> None:
        found[name] = {"figure": figure, "allowed": allowed, "held": figure <= allowed}

    ours = rows[OURS]
    peers = {name: way for name, way in rows.items() if name not in (OURS, FROZEN)}
    for kind in ("min", "median"):
        key = f"blocked_{kind}_ms"
        bar(f"blocked {kind}, ms: 1/12 of torch.save", ours[key], rows[TORCH_SAVE][key] / 12)
        others = [peers[name][key] for name in ASYNC if name in peers]
        if others:
            bar(f"blocked {kind}, ms: 1/2 of the best async peer", ours[key], min(others) / 2)
        for what in ("wall", "cpu"):
            key = f"added_{what}_{kind}_ms"
            bar(
                f"added {what} {kind}, ms: 1/2 of the best peer",
                ours[key],
                min(p[key] for p in peers.values()) / 2,
            )
    bar("load, ms: 1.1 × (load_file + clone) + hashing at 10 GB/s", load["stoker_ms"], load["allowed_ms"])
    bar("peak of a load above the state, MB", load["peak_above_state_mb"], 64.0)
    return found


def print_tables(answer: dict[str, Any], ways: dict[str, Way]) -> None:
    """Markdown, as bench/RESULTS.md has it."""
    size, load, floor = answer["size_bytes"] / 1e6, answer["load"], answer["floors"]
    print(
        f"{size:.0f} MB, {answer['rounds']} rounds of {answer['saves']} saves every {answer['steps']} steps of 100 ms, "
        f"{answer['cpus']} CPUs, torch {torch.__version__}; ms per checkpoint: minimum (median)\n"
    )
    print("| | blocked | added wall | added CPU | durable | verified on load |\n|---|---|---|---|---|---|")
    for name, figures in answer["ways"].items():
        cells = [
            f"{figures[key + '_min_ms']:.0f} ({figures[key + '_median_ms']:.0f})"
            for key in ("blocked", "added_wall", "added_cpu")
        ]
        print(f"| {name} | {' | '.join(cells)} | {ways[name].durable} | {ways[name].verified} |")
    print(
        f"| floor: copy; O_DIRECT write + fdatasync | {floor['copy_ms']:.0f} | {floor['write_ms']:.0f} | | | |\n"
    )
    print("| load, page cache warm | best ms | peak above the state, MB |\n|---|---|---|")
    print(
        f"| stoker.Store.load, every tensor hashed | {load['stoker_ms']:.0f} | {load['peak_above_state_mb']:.0f} |"
    )
    print(
        f"| safetensors.load_file + clone | {load['safetensors_clone_ms']:.0f} "
        f"| {load['safetensors_peak_above_state_mb']:.0f} |\n"
    )
    print("| bar | figure | allowed | |\n|---|---|---|---|")
    for name, item in answer["bars"].items():
        print(
            f"| {name} | {item['figure']:.1f} | {item['allowed']:.1f} | {'held' if item['held'] else 'MISSED'} |"
        )


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", default="403MB", help="of the state (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--steps", type=int, default=4, help="between two saves, 100 ms each (default: %(default)s)"
    )
    parser.add_argument("--saves", type=int, default=2, help="in a way's stretch (default: %(default)s)")
    parser.add_argument(
        "--threads", type=int, default=1, help="of the training's torch (default: %(default)s)"
    )
    parser.add_argument("--peers", default=str(ROOT / "build/peers"), help="a venv with more peers")
    parser.add_argument("--dir", help="where to save; default: a temporary directory under the current one")
    parser.add_argument("--quick", action="store_true", help="40 MB, 3 rounds")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def main() -> int:
    """Measures, prints, and says by the exit code whether every bar is held."""
    args = parse()
    if args.quick:
        args.size, args.rounds = "40MB", 3
    sys.path.extend(map(str, Path(args.peers).glob("lib/python*/site-packages")))
    warnings.filterwarnings("ignore")
    torch.set_num_threads(args.threads)  # the training has its core, what saves in the background the rest
    state = make_state(_native.parse_size(args.size))
    with tempfile.TemporaryDirectory(dir=args.dir or ".") as name:
        root = Path(name)
        ways = Ways(root, state).found
        check(ways, state)
        nothing = measure(ways, state, args.rounds, args.steps, args.saves)
        rows = {name: row(way, nothing) for name, way in ways.items()}
        for path in root.iterdir():
            if path.name not in ("store", "frozen"):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        load = loading(root, state, 2 if args.quick else 3)
        answer = {
            "schema": "stoker.bench_checkpoint.v2",
            "size_bytes": total_bytes(state),
            "rounds": args.rounds,
            "steps": args.steps,
            "saves": args.saves,
            "cpus": len(os.sched_getaffinity(0)),
            "ways": rows,
            "floors": floors(root, state),
            "load": load,
            "bars": bars(rows, load),
        }
    if args.json:
        print(json.dumps(answer))
    else:
        print_tables(answer, ways)
    return 0 if all(item["held"] for item in answer["bars"].values()) else 1


if __name__ == "__main__":
    sys.exit(main())
