#!/usr/bin/env python3
"""What does recording cost the trainee? One question, answered by blocks with and without hooks, in pairs.

In one process, with a real ring and the real recorder draining and sampling it all the while, blocks of training steps
alternate: hooks in, hooks out, in random order within a pair. The figure is the median over the pairs of
(with - without) / without, with a 95 % bootstrap interval; for wall, thread CPU and process CPU time. Putting the hooks
in, resetting the weights, making the optimizer and one step that warms up lie outside what is timed; iterating the
DataLoader lies inside. The MLPs are made as deep as it takes for a step of 5 ms and of 1 ms on this machine.
Each block's last loss is checked: the hooks must not change what is computed.

A long measurement may be cut in pieces: `--keep FILE` adds this call's pairs to those in FILE and shows all of them.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from stoker import hooks
from stoker.hooks import sites
from stoker.notebook import command_path
from torch import nn
from torch.utils.data import DataLoader, Dataset

CLOCKS = {"wall": time.perf_counter, "thread_cpu": time.thread_time, "process_cpu": time.process_time}
# Allowed share of the thread's CPU time; the issue that asks for the least of it.
BARS = {"mlp_5ms": 0.005, "mlp_1ms": 0.01, "efficientnet_b3": 0.01}
RESAMPLES = 2000

_MARK = sites.Site("bench.block")

Pair = dict[str, list[float]]  # clock: seconds with hooks, seconds without


class Batches(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """The same batch, `steps` times: the loader costs what a loader costs, and no collation."""

    def __init__(self, steps: int, images: torch.Tensor) -> None:
        self.steps = steps
        self.batch = images, torch.randint(0, 10, (len(images),))

    def __len__(self) -> int:
        return self.steps

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.batch


@dataclass
class Training:
    """A block of steps that starts from the same weights each time."""

    model: nn.Module
    images: torch.Tensor
    steps: int

    def __post_init__(self) -> None:
        self.start = {name: value.clone() for name, value in self.model.state_dict().items()}
        self.loss_of = nn.CrossEntropyLoss()
        self.loader = DataLoader(Batches(self.steps, self.images), batch_size=None)
        self.warm = DataLoader(Batches(1, self.images), batch_size=None)
        self.warm.dataset.batch = self.loader.dataset.batch  # type: ignore[attr-defined]

    def block(self) -> dict[str, float]:
        """Trains `steps` steps; the seconds by each clock, and the last loss."""
        self.model.load_state_dict(self.start)
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.model.train()
        self.epoch(self.warm, optimizer)
        gc.collect()
        before = {name: clock() for name, clock in CLOCKS.items()}
        loss = self.epoch(self.loader, optimizer)
        return {name: clock() - before[name] for name, clock in CLOCKS.items()} | {"loss": float(loss)}

    def epoch(
        self, loader: DataLoader[tuple[torch.Tensor, torch.Tensor]], optimizer: torch.optim.Optimizer
    ) -> torch.Tensor:
        for images, labels in loader:
            optimizer.zero_grad()
            loss = self.loss_of(self.model(images), labels)
            loss.backward()
            optimizer.step()
        return loss.detach()

    def step_s(self) -> float:
        """Seconds a step, the median of five blocks."""
        return statistics.median(self.block()["wall"] for _ in range(5)) / self.steps


def mlp(target_s: float, steps: int) -> Training:
    """As many layers as it takes for a step of `target_s` seconds; the time is linear in them."""
    width, batch = (420, 64) if target_s > 0.002 else (128, 32)

    def deep(layers: int) -> Training:
        hidden = [layer for _ in range(layers) for layer in (nn.Linear(width, width), nn.ReLU())]
        return Training(nn.Sequential(*hidden, nn.Linear(width, 10)), torch.randn(batch, width), steps)

    few, many = deep(2).step_s(), deep(8).step_s()
    return deep(max(1, round(2 + 6 * (target_s - few) / (many - few))))


def efficientnet() -> Training:
    """526 modules, in each of which a hook would cost."""
    import torchvision

    model = torchvision.models.efficientnet_b3(num_classes=10)
    for module in model.modules():
        if isinstance(module, nn.Dropout) or type(module).__name__ == "StochasticDepth":
            module.p = 0.0  # the same loss each time
    return Training(model, torch.randn(2, 3, 64, 64), steps=2)


SCENARIOS: dict[str, Callable[[], Training]] = {
    "mlp_5ms": lambda: mlp(0.005, steps=40),
    "mlp_1ms": lambda: mlp(0.001, steps=150),
    "efficientnet_b3": efficientnet,
}


def hooks_in() -> None:
    """Back in, with the ring claimed, as in every step of a run but the first."""
    sites.reset()
    hooks.install()
    _MARK.instant()


def compare(training: Training, pairs: int, order: random.Random) -> list[Pair]:
    reference = training.block()["loss"]
    done: list[Pair] = []
    for _ in range(pairs):
        taken: dict[bool, dict[str, float]] = {}
        for hooked in order.sample([True, False], 2):
            if hooked:
                hooks_in()
            taken[hooked] = training.block()
            if hooked:
                hooks.stop()
            assert taken[hooked]["loss"] == reference, "hooks change the result"
        done.append({name: [taken[True][name], taken[False][name]] for name in CLOCKS})
    return done


def change(pairs: list[Pair], clock: str) -> dict[str, float]:
    """The median change and its 95 % interval by resampling the pairs."""
    values = [pair[clock][0] / pair[clock][1] - 1 for pair in pairs]
    draw = random.Random(0)
    medians = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(RESAMPLES))
    return {
        "median": statistics.median(values),
        "low": medians[int(0.025 * RESAMPLES)],
        "high": medians[int(0.975 * RESAMPLES) - 1],
    }


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def record(names: list[str], pairs: int, seed: int) -> dict[str, dict[str, object]]:
    """Measures the named scenarios beside a recorder; for each its pairs and the recorder's share of a core."""
    order = random.Random(seed)
    measured: dict[str, dict[str, object]] = {}
    with tempfile.TemporaryDirectory() as folder:
        words = [command_path(), "run", "--attach", str(os.getpid()), "--name", "overhead"]
        recorder = subprocess.Popen(
            words, stdout=subprocess.PIPE, text=True, env={**os.environ, "STOKER_RUNS": folder}
        )
        try:
            assert recorder.stdout is not None
            ready = json.loads("".join(iter(recorder.stdout.readline, "}\n")) + "}")
            os.environ["STOKER_RING"], os.environ["STOKER_RUN"] = ready["ring"], ready["run"]
            for name in names:
                training = SCENARIOS[name]()
                began, cpu = time.perf_counter(), cpu_seconds(recorder.pid)
                taken = compare(training, pairs, order)
                share = (cpu_seconds(recorder.pid) - cpu) / (time.perf_counter() - began)
                measured[name] = {"steps": training.steps, "pairs": taken, "recorder_cores": [share]}
        finally:
            recorder.terminate()
            recorder.communicate()
        kept = json.loads((Path(ready["run"]) / "run.json").read_text())
        assert kept["python"]["recorded"], kept["python"]["why"]
    return measured


def pooled(
    kept: dict[str, dict[str, object]], more: dict[str, dict[str, object]]
) -> dict[str, dict[str, object]]:
    for name, one in more.items():
        if name in kept:
            one["pairs"] = kept[name]["pairs"] + one["pairs"]  # type: ignore[operator]
            one["recorder_cores"] = kept[name]["recorder_cores"] + one["recorder_cores"]  # type: ignore[operator]
        kept[name] = one
    return kept


def summary(name: str, one: dict[str, object]) -> dict[str, object]:
    pairs: list[Pair] = one["pairs"]  # type: ignore[assignment]
    changes = {clock: change(pairs, clock) for clock in CLOCKS}
    return {
        "pairs": len(pairs),
        "step_ms": 1e3 * statistics.median(pair["wall"][1] for pair in pairs) / one["steps"],  # type: ignore[operator]
        **changes,
        "bar": BARS[name],
        "met": changes["thread_cpu"]["high"] <= BARS[name],
        "recorder_cores": statistics.mean(one["recorder_cores"]),  # type: ignore[call-overload]
    }


def show(scenarios: dict[str, dict[str, object]]) -> None:
    print(
        "| | step, ms | pairs | thread CPU | process CPU | wall | bar, thread CPU | | recorder, of a core |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for name, one in scenarios.items():
        cells = [
            f"{one[clock]['median']:+.2%} [{one[clock]['low']:+.2%}, {one[clock]['high']:+.2%}]"  # type: ignore[index]
            for clock in ("thread_cpu", "process_cpu", "wall")
        ]
        met = "met" if one["met"] else "MISSED"
        print(
            f"| {name} | {one['step_ms']:.2f} | {one['pairs']} | {' | '.join(cells)} | {one['bar']:.1%} | {met} "
            f"| {one['recorder_cores']:.2%} |"
        )
    print(
        "\nMedian change of a block's time with hooks in, and its 95 % bootstrap interval; a bar is met where all "
        f"the interval lies below it.\n{os.cpu_count()} CPUs, one torch thread, torch {torch.__version__}, "
        f"Python {platform.python_version()}, load at the end {os.getloadavg()[0]:.1f}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="20 pairs: a look, not a figure")
    parser.add_argument("--pairs", type=int, default=150, help="pairs of blocks in this call (default: 150)")
    parser.add_argument("--only", choices=SCENARIOS, action="append", help="this scenario; may be repeated")
    parser.add_argument(
        "--keep", type=Path, help="add the pairs to this JSON file and show all that it holds"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument("--seed", type=int, default=0, help="order within the pairs, and the data")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)

    kept = json.loads(args.keep.read_text()) if args.keep and args.keep.exists() else {}
    measured = pooled(kept, record(args.only or list(SCENARIOS), 20 if args.quick else args.pairs, args.seed))
    if args.keep:
        args.keep.write_text(json.dumps(measured))
    scenarios = {name: summary(name, one) for name, one in measured.items()}
    met = all(one["met"] for one in scenarios.values())
    if args.json:
        print(
            json.dumps({"schema": "stoker.bench.overhead.v2", "met": met, "scenarios": scenarios}, indent=2)
        )
    else:
        show(scenarios)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
