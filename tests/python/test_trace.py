"""``stoker trace``: the same figures as the brute-force oracle, on recorded traces and on small odd ones."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kineto_oracle as oracle
import pytest

ROOT = Path(__file__).resolve().parents[2]
KEPT = sorted((ROOT / "tests/data/kineto").glob("*.json.gz"))
RECORDED = [
    "a100-alexnet",
    "a100-control",
    "a100-sxm4-rank0",
    "a100-triton",
    "cpu-only",
    "mi250-toy",
    "no-device-properties",
    "sampled-rank-0",
    "sampled-rank-1",
    "v100-ddp2-rank1",
    "v100-single",
    "v100-test",
]
# Where HTA's figures are those of the definitions, and where a rule of its own changes them.
SAME_AS_HTA = {"a100-control", "sampled-rank-0", "sampled-rank-1", "v100-ddp2-rank1"}

Cli = Callable[..., subprocess.CompletedProcess[str]]


def ask(cli: Cli, *files: Path) -> dict[str, Any]:
    """The answer of ``stoker trace --json``."""
    done = cli("trace", *files, "--json")
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def us(ns: int) -> float:
    """As the answer has it."""
    return ns / 1000


def split_us(figures: dict[str, Any]) -> dict[str, float]:
    """The three kinds of idle time."""
    return {why: figures[f"{why}_us"] for why in ("host_wait", "kernel_wait", "other")}


def expect_equal(rank: dict[str, Any], events: list[dict[str, Any]]) -> None:
    """Every figure that the oracle has is the answer's, to the nanosecond."""
    truth = oracle.gpu(events)
    if truth is None:
        assert rank["idle_us"]["value"] is None
        assert rank["idle_us"]["why"]
    else:
        for field, name in [
            ("kernel_us", "kernel"),
            ("idle_us", "idle"),
            ("compute_us", "compute"),
            ("non_compute_us", "non_compute"),
            ("communication_us", "communication"),
            ("exposed_communication_us", "exposed"),
        ]:
            assert rank[field] == us(truth[name]), field
        if truth["overlap_pct"] is None:
            assert rank["comm_overlap_pct"]["value"] is None
        else:
            assert rank["comm_overlap_pct"] == pytest.approx(truth["overlap_pct"], rel=1e-12)
        assert {frozenset(k.split("+")): v for k, v in rank["breakdown_us"].items()} == {
            kinds: us(time) for kinds, time in truth["classes"].items() if time > 0
        }
        assert split_us(rank["idle_split"]) == {why: us(t) for why, t in truth["split"].items()}
        assert rank["idle_split"]["data_wait_us"] == us(truth["data_wait"])
        assert rank["idle_split"]["launch_bound_us"] == us(truth["launch_bound"])
        assert {s["stream"]: split_us(s) for s in rank["streams"]} == {
            stream: {why: us(t) for why, t in split.items()} for stream, split in truth["streams"].items()
        }
        assert {(k["name"], k["class"]): (k["count"], k["total_us"]) for k in rank["kernels"]} == {
            key: (count, us(total)) for key, (count, total) in truth["kernels"].items()
        }
        assert {k: rank["launches"][k] for k in ("matched", "unmatched", "shorter_than_launch")} == truth[
            "launches"
        ]
    assert {o["name"]: (o["count"], o["total_us"], o["self_us"]) for o in rank["ops"]} == {
        name: (count, us(total), us(own)) for name, (count, total, own) in oracle.self_times(events).items()
    }


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.name.removesuffix(".json.gz"))
def test_kept_traces_equal_the_oracle(cli: Cli, path: Path) -> None:
    expect_equal(ask(cli, path)["ranks"][0], oracle.load(path))


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_traces_equal_the_oracle(cli: Cli, shared: Path, name: str) -> None:
    path = shared / f"data/kineto-traces/{name}.json.gz"
    expect_equal(ask(cli, path)["ranks"][0], oracle.load(path))


def hta_says(shared: Path, name: str) -> dict[str, Any] | None:
    """HTA's answer, in the oracle's words."""
    answer = json.loads((shared / "data/kineto-traces/hta-0.5.0.json").read_text())[name]
    if isinstance(answer["temporal"], str):
        return None
    total = answer["temporal"][0]
    streams: dict[int, dict[str, int]] = {}
    for row in answer["idle"]:
        sums = streams.setdefault(row["stream"], dict.fromkeys(("host_wait", "kernel_wait", "other"), 0))
        sums[row["idle_category"]] = int(row["idle_time"])
    return {
        **{k: int(total[f"{k}_time(us)"]) for k in ("kernel", "idle", "compute", "non_compute")},
        "streams": streams,
    }


def expect_hta_explained(cli: Cli, shared: Path, name: str) -> None:
    """HTA's figures are the definitions', or those of its own rules over the same events."""
    path = shared / f"data/kineto-traces/{name}.json.gz"
    theirs = hta_says(shared, name)
    rank = ask(cli, path)["ranks"][0]
    if theirs is None:
        assert rank["idle_us"]["value"] is None
        return
    ours = {
        **{k: rank[f"{k}_us"] for k in ("kernel", "idle", "compute", "non_compute")},
        "streams": {s["stream"]: split_us(s) for s in rank["streams"]},
    }
    assert (ours == theirs) == (name in SAME_AS_HTA)
    assert oracle.hta_view(oracle.load(path)) == theirs


@pytest.mark.parametrize("name", RECORDED)
def test_every_difference_from_hta_is_one_of_its_rules(cli: Cli, shared: Path, name: str) -> None:
    expect_hta_explained(cli, shared, name)
