"""What does a checkpoint cost the training? Stoker's Store against torch.save and safetensors, in one run.

Each round takes every way once, in an order that rotates; each way computes, saves in the middle, and is waited
for at the end. ``blocked`` is the time that the save call keeps the loop; ``added wall`` and ``added CPU`` are
against the same computing without a save. What was saved is loaded and compared before anything is timed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
from stoker.store import Keep, Store

State = dict[str, Any]
Ways = dict[str, tuple[Callable[[int], None], Callable[[], None]]]


def make_state(size_bytes: int) -> State:
    """A model and its Adam moments, 3 tensors a layer, ``size_bytes`` in all."""
    torch.manual_seed(0)
    side = 512
    count = max(1, size_bytes // (3 * side * side * 4))
    model = {f"layers.{i}.weight": torch.randn(side, side) for i in range(count)}
    moments = {
        i: {"step": torch.tensor(1.0), "m": torch.randn(side, side), "v": torch.rand(side, side)}
        for i in range(count)
    }
    return {"model": model, "optimizer": {"state": moments, "lr": 1e-3}, "epoch": 3}


def flat(state: Any, at: str = "") -> dict[str, torch.Tensor]:
    if isinstance(state, torch.Tensor):
        return {at: state}
    found: dict[str, torch.Tensor] = {}
    for key, item in state.items() if isinstance(state, dict) else ():
        found |= flat(item, f"{at}.{key}")
    return found


def tensors(state: Any) -> list[torch.Tensor]:
    return list(flat(state).values())


def sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def ways(root: Path, state: State) -> Ways:
    """name → save(step), which blocks as long as that way does, and finish(), which waits for the rest."""
    store = Store(root / "stoker", keep=Keep(last=1))

    def torch_save(step: int) -> None:
        torch.save(state, root / "plain.pt")

    def torch_durable(step: int) -> None:
        torch.save(state, root / "new.pt")
        sync(root / "new.pt")
        os.replace(root / "new.pt", root / "durable.pt")
        sync(root)

    found: Ways = {
        "stoker": (lambda step: store.save(step, **state), store.wait),
        "torch.save": (torch_save, lambda: None),
        "torch.save + fsync + rename": (torch_durable, lambda: None),
    }
    try:
        from safetensors.torch import save_file
    except ImportError:
        print("safetensors is not installed: left out", file=sys.stderr)
    else:
        found["safetensors.save_file"] = (
            lambda step: save_file(flat(state), root / "plain.safetensors"),
            lambda: None,
        )
    return found


def check(root: Path, state: State) -> None:
    with Store(root / "check") as store:
        store.save(1, **state)
        store.wait()
        loaded = store.load()
    if not all(torch.equal(a, b) for a, b in zip(tensors(dict(loaded)), tensors(state), strict=True)):
        raise SystemExit("error: what was loaded is not what was saved")
    shutil.rmtree(root / "check")


def work(count: int, a: torch.Tensor) -> None:
    """A fixed amount of computing, so that what a save takes from it shows as wall time."""
    for _ in range(count):
        a @ a


def one(
    save: Callable[[int], None] | None, finish: Callable[[], None], step: int, state: State, load: int
) -> dict[str, float]:
    """Seconds of one stretch of work with, or without, a save in its middle."""
    a = torch.full((256, 256), 1 / 256)
    changing = [t for t in tensors(state) if t.dim() > 0]
    for tensor in changing:
        tensor.view(-1)[0] += 1
    wall, cpu, blocked = time.perf_counter(), time.process_time(), 0.0
    work(load, a)
    if save is not None:
        start = time.perf_counter()
        save(step)
        blocked = time.perf_counter() - start
    work(load * 3, a)
    finish()
    return {"blocked": blocked, "wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}


def measure(root: Path, state: State, rounds: int) -> dict[str, dict[str, list[float]]]:
    found = ways(root, state)
    names = ["nothing", *found]
    figures: dict[str, dict[str, list[float]]] = {n: {"blocked": [], "wall": [], "cpu": []} for n in names}
    step = 0
    for number in range(rounds + 2):  # the first two warm up: files, staging memory
        for k in range(len(names)):
            name = names[(k + number) % len(names)]
            save, finish = found.get(name, (None, lambda: None))
            step += 1
            taken = one(save, finish, step, state, load=60)
            if number >= 2:
                for key, value in taken.items():
                    figures[name][key].append(value)
    return figures


def summary(figures: dict[str, dict[str, list[float]]]) -> dict[str, dict[str, float]]:
    base = {key: (min(v), statistics.median(v)) for key, v in figures["nothing"].items()}
    rows: dict[str, dict[str, float]] = {}
    for name, taken in figures.items():
        if name == "nothing":
            continue
        rows[name] = {}
        for key, label in (("blocked", "blocked"), ("wall", "added_wall"), ("cpu", "added_cpu")):
            rows[name][f"{label}_min_ms"] = 1e3 * (min(taken[key]) - base[key][0])
            rows[name][f"{label}_median_ms"] = 1e3 * (statistics.median(taken[key]) - base[key][1])
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", default="150MB", help="of the state (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--dir", help="where to save; default: a temporary directory under the current one")
    parser.add_argument("--quick", action="store_true", help="40 MB, 3 rounds")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    from stoker import _native

    size = _native.parse_size("40MB" if args.quick else args.size)
    rounds = 3 if args.quick else args.rounds
    torch.set_num_threads(1)  # the training has one core, what saves in the background the rest
    state = make_state(size)
    with tempfile.TemporaryDirectory(dir=args.dir or ".") as name:
        check(Path(name), state)
        rows = summary(measure(Path(name), state, rounds))
    real = sum(t.numel() * t.element_size() for t in tensors(state))
    ratio = rows["stoker"]["blocked_min_ms"] / rows["torch.save"]["blocked_min_ms"]
    median = rows["stoker"]["blocked_median_ms"] / rows["torch.save"]["blocked_median_ms"]
    passed = ratio <= 1 / 3 and median <= 1 / 3
    if args.json:
        answer = {"schema": "stoker.bench_checkpoint.v1", "size_bytes": real, "rounds": rounds, "ways": rows}
        print(
            json.dumps(
                {**answer, "blocked_ratio_min": ratio, "blocked_ratio_median": median, "passed": passed}
            )
        )
        return 0 if passed else 1
    print(f"{real / 1e6:.0f} MB, {rounds} rounds, ms per checkpoint: minimum (median)")
    print(f"{'':30}{'blocked':>18}{'added wall':>18}{'added CPU':>18}")
    for name, row in rows.items():
        keys = ("blocked", "added_wall", "added_cpu")
        cells = [f"{row[key + '_min_ms']:.0f} ({row[key + '_median_ms']:.0f})" for key in keys]
        print(f"{name:30}" + "".join(f"{cell:>18}" for cell in cells))
    verdict = "held" if passed else "MISSED"
    print(f"blocked against torch.save: {ratio:.2f} (median {median:.2f}); the bar is 0.33: {verdict}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
