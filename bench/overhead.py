#!/usr/bin/env python3
"""What does recording cost the trainee? One question, answered by blocks with and without hooks, in pairs.

In one process, with a real ring and the real recorder draining and sampling it all the while, blocks of training steps
alternate: hooks in, hooks out, in random order within a pair. The figure is the median over the pairs of
(with - without) / without, with a 95 % interval from order statistics; for wall, thread CPU and process CPU time.
Each block's loss is checked: the hooks must not change what is computed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from stoker import hooks
from stoker.hooks import sites
from stoker.notebook import command_path
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

BAR = 0.01
CLOCKS = {"wall": time.perf_counter, "thread_cpu": time.thread_time, "process_cpu": time.process_time}

Step = Callable[[], float]

_MARK = sites.Site("bench.block")


def trainer(model: nn.Module, loader: DataLoader[tuple[torch.Tensor, ...]]) -> Step:
    """A function that trains one epoch, from the same weights each time, and returns its last loss."""
    loss_of = nn.CrossEntropyLoss()
    start = {name: value.clone() for name, value in model.state_dict().items()}

    def epoch() -> float:
        model.load_state_dict(start)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        model.train()
        for images, labels in loader:
            optimizer.zero_grad()
            loss = loss_of(model(images), labels)
            loss.backward()
            optimizer.step()
        return float(loss.detach())

    return epoch


def mlp(steps: int) -> Step:
    """A step of about 5 ms on one thread."""
    width = 420
    layers = [layer for _ in range(6) for layer in (nn.Linear(width, width), nn.ReLU())]
    data = TensorDataset(torch.randn(steps * 64, width), torch.randint(0, 10, (steps * 64,)))
    return trainer(nn.Sequential(*layers, nn.Linear(width, 10)), DataLoader(data, batch_size=64))


def efficientnet(steps: int) -> Step:
    """526 modules, in each of which a hook would cost."""
    import torchvision

    model = torchvision.models.efficientnet_b3(num_classes=10)
    for module in model.modules():
        if isinstance(module, nn.Dropout) or type(module).__name__ == "StochasticDepth":
            module.p = 0.0  # the same loss each time
    data = TensorDataset(torch.randn(steps * 2, 3, 64, 64), torch.randint(0, 10, (steps * 2,)))
    return trainer(model, DataLoader(data, batch_size=2))


def hooks_in() -> None:
    """Back in, with the ring claimed, as in every step of a run but the first."""
    sites.reset()
    hooks.install()
    _MARK.instant()


def measure(epoch: Step) -> dict[str, float]:
    before = {name: clock() for name, clock in CLOCKS.items()}
    loss = epoch()
    return {name: clock() - before[name] for name, clock in CLOCKS.items()} | {"loss": loss}


def interval(values: list[float]) -> tuple[float, float, float]:
    """Median and its 95 % interval by order statistics (normal approximation of the binomial)."""
    ordered = sorted(values)
    n = len(ordered)
    reach = 0.98 * n**0.5
    low = ordered[max(0, int(n / 2 - reach))]
    high = ordered[min(n - 1, int(n / 2 + reach))]
    middle = ordered[n // 2] if n % 2 else (ordered[n // 2 - 1] + ordered[n // 2]) / 2
    return middle, low, high


def compare(epoch: Step, pairs: int, seed: int) -> dict[str, object]:
    order = random.Random(seed)
    reference = epoch()
    changes: dict[str, list[float]] = {name: [] for name in CLOCKS}
    without_s: list[float] = []
    for _ in range(pairs):
        taken: dict[bool, dict[str, float]] = {}
        for hooked in order.sample([True, False], 2):
            if hooked:
                hooks_in()
            taken[hooked] = measure(epoch)
            if hooked:
                hooks.stop()
            assert taken[hooked]["loss"] == reference, "hooks change the result"
        for name in CLOCKS:
            changes[name].append(taken[True][name] / taken[False][name] - 1)
        without_s.append(taken[False]["wall"])
    result: dict[str, object] = {"pairs": pairs, "block_ms": 1e3 * interval(without_s)[0]}
    for name, values in changes.items():
        median, low, high = interval(values)
        result[name] = {"median": median, "low": low, "high": high}
    return result


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="20 pairs in place of 100: a look, not a figure")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument("--seed", type=int, default=0, help="order within the pairs, and the data")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)

    with tempfile.TemporaryDirectory() as folder:
        words = [command_path(), "run", "--attach", str(os.getpid()), "--name", "overhead"]
        recorder = subprocess.Popen(
            words, stdout=subprocess.PIPE, text=True, env={**os.environ, "STOKER_RUNS": folder}
        )
        assert recorder.stdout is not None
        ready = json.loads("".join(iter(recorder.stdout.readline, "}\n")) + "}")
        os.environ["STOKER_RING"], os.environ["STOKER_RUN"] = ready["ring"], ready["run"]
        pairs = 20 if args.quick else 100
        began, cpu = time.perf_counter(), cpu_seconds(recorder.pid)
        scenarios = {
            "mlp": {"steps": 20, **compare(mlp(20), pairs, args.seed)},
            "efficientnet_b3": {"steps": 1, **compare(efficientnet(1), pairs, args.seed)},
        }
        recorder_share = (cpu_seconds(recorder.pid) - cpu) / (time.perf_counter() - began)
        recorder.terminate()
        recorder.communicate()
        kept = json.loads((Path(ready["run"]) / "run.json").read_text())
        assert kept["python"]["recorded"], kept["python"]["why"]

    medians = [scenarios[name]["thread_cpu"]["median"] for name in scenarios]  # type: ignore[index]
    result = {
        "schema": "stoker.bench.overhead.v1",
        "bar": BAR,
        "met": max(medians) <= BAR,
        "recorder_cores": recorder_share,
        "scenarios": scenarios,
    }
    if args.json:
        print(json.dumps(result, indent=2))
    else:
        for name, scenario in scenarios.items():
            step_ms = scenario["block_ms"] / scenario["steps"]  # type: ignore[operator]
            print(f"{name}: step {step_ms:.2f} ms, {pairs} pairs")
            for clock in CLOCKS:
                figure = scenario[clock]
                print(f"  {clock:12} {figure['median']:+.2%}  [{figure['low']:+.2%}, {figure['high']:+.2%}]")  # type: ignore[index]
        verdict = "met" if result["met"] else "MISSED"
        print(f"recorder: {recorder_share:.2%} of a core; bar {BAR:.0%} of thread CPU: {verdict}")
    return 0 if result["met"] else 1


if __name__ == "__main__":
    sys.exit(main())
