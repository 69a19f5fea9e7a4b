"""``stoker trace``: the same figures as the brute-force oracle, on recorded traces and on small odd ones."""

from __future__ import annotations

import gzip
import json
import random
import signal
import subprocess
import time
from collections.abc import Callable
from html.parser import HTMLParser
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
        assert {k: v for k, v in rank["launches"].items() if k != "call_us"} == truth["launches"]
    assert [(s["name"], s["duration_us"], s["launched"], s["gpu_busy_us"]) for s in rank["steps"]] == [
        (name, us(time), launched, us(busy)) for name, time, launched, busy in oracle.steps(events)
    ]
    assert {
        m["device"]: (m["events"], m["peak_allocated_bytes"], m["peak_reserved_bytes"])
        for m in rank["memory"]
    } == oracle.memory_peaks(events)
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


def random_trace(seed: int) -> dict[str, Any]:
    """Events in no order on two threads and three streams, that overlap as no GPU would let them."""
    rng = random.Random(seed)

    def event(category: str, name: str, most: float, **args: object) -> dict[str, Any]:
        return {
            "ph": "X",
            "cat": category,
            "name": name,
            "pid": 1,
            "tid": rng.choice([11, 12]),
            "ts": rng.randrange(1_000_000) / 1000,
            "dur": rng.randrange(int(most * 1000)) / 1000,
            "args": args,
        }

    events = [event("user_annotation", f"ProfilerStep#{i}", 300) for i in range(rng.randrange(4))]
    for number in range(rng.randrange(1, 80)):
        name = rng.choice(["gemm", "ncclKernel_Sum", "relu", "Memset (Device)"])
        category = rng.choice(["kernel", "kernel", "gpu_memcpy"])
        stream = rng.choice([7, 7, 20, 21])
        events.append(event(category, name, 40, device=0, stream=stream, correlation=number))
        if rng.random() < 0.9:
            launch = event("cuda_runtime", "cudaLaunchKernel", 10, correlation=number)
            launch["ts"] = max(0, rng.choice([launch["ts"], events[-1]["ts"] - 5]))
            events.append(launch)
    for _ in range(rng.randrange(80)):
        events.append(event("cpu_op", rng.choice(["aten::add", "aten::mm", "enumerate(DataLoader)#x"]), 60))
    rng.shuffle(events)
    return {"traceEvents": events}


def test_random_traces_equal_the_oracle(cli: Cli, tmp_path: Path) -> None:
    files = []
    for seed in range(150):
        files.append(tmp_path / f"{seed}.json")
        files[-1].write_text(json.dumps(random_trace(seed)))
    for file, rank in zip(files, ask(cli, *files)["ranks"], strict=True):
        expect_equal(rank, oracle.load(file))


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


def refused(cli: Cli, *words: str | Path) -> str:
    """What is said where the answer is no."""
    done = cli("trace", *words)
    assert done.returncode == 1
    assert done.stdout == ""
    return done.stderr


def test_what_is_no_trace_is_refused_with_the_next_step(cli: Cli, tmp_path: Path) -> None:
    empty = tmp_path / "empty.json"
    empty.touch()
    assert refused(cli, empty).startswith(
        f"error: {empty} is empty\nhint: the profiler writes its file when it stops"
    )
    other = tmp_path / "other.json"
    other.write_text('{"a": 1}')
    assert refused(cli, other).startswith(f"error: {other} is not a profiler trace")
    assert refused(cli, tmp_path) == (
        f"error: {tmp_path} is a directory\nhint: give the trace files in it: {tmp_path}/*.json*\n"
    )
    assert refused(cli, tmp_path / "absent.json").startswith("error: cannot look at ")
    assert "is not a regular file" in refused(cli, "/dev/null")


def test_command_line_is_checked(cli: Cli) -> None:
    for words, says in [((), "files"), (("--jsn", "x"), "--json"), (("--html", "a", "x"), "--html")]:
        done = cli("trace", *words)
        assert done.returncode == 2, words
        assert says in done.stderr
    helped = cli("trace", "--help")
    assert helped.returncode == 0
    assert "FILE.json[.gz]" in helped.stdout


def test_error_is_one_object_in_json(cli: Cli, tmp_path: Path) -> None:
    done = cli("trace", tmp_path / "absent.json", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["schema"] == "stoker.error.v1"


def test_several_ranks_are_judged_together(cli: Cli, shared: Path, tmp_path: Path) -> None:
    files = [shared / f"data/kineto-traces/sampled-rank-{i}.json.gz" for i in (0, 1)]
    answer = ask(cli, *files)
    assert [r["rank"] for r in answer["ranks"]] == [0, 1]
    assert answer["ranks"][0] == ask(cli, files[0])["ranks"][0]
    assert "straggler" in [f["cause"] for f in answer["findings"]]
    assert answer["verdict"] == answer["findings"][0]["cause"]

    done = cli("trace", files[0], tmp_path / "absent.json", "--json")
    assert done.returncode == 1
    partly = json.loads(done.stdout)
    assert len(partly["ranks"]) == 1
    assert partly["failed"][0]["file"] == str(tmp_path / "absent.json")


def test_schema_has_the_promised_fields(cli: Cli) -> None:
    answer = ask(cli, ROOT / "tests/data/kineto/ddp-step-end.json.gz")
    assert answer["schema"] == "stoker.trace.v1"
    (rank,) = answer["ranks"]
    assert rank["rank"] == 1
    numbers = ("idle_us", "compute_us", "non_compute_us", "kernel_us", "comm_overlap_pct")
    assert all(isinstance(rank[name], float) for name in numbers)
    assert {"stream", "host_wait_us", "kernel_wait_us", "other_us"} <= rank["streams"][0].keys()
    assert {"name", "class", "count", "total_us"} <= rank["kernels"][0].keys()
    assert rank["memory"][0]["peak_allocated_bytes"] >= max(
        p["allocated_bytes"] for p in rank["memory"][0]["timeline"]
    )
    assert rank["table_bytes"] > 0


def test_terminal_says_the_verdict_and_its_fix(cli: Cli) -> None:
    done = cli("trace", ROOT / "tests/data/kineto/mi250-toy.json.gz")
    assert done.returncode == 0
    assert "Tensor Cores: unavailable: an AMD device" in done.stdout
    assert "verdict: The GPU waits for the host to launch its next kernel [launch-bound]" in done.stdout
    assert all(len(line) <= 120 for line in done.stdout.splitlines())


def test_damaged_traces_are_read_as_far_as_they_go(cli: Cli, tmp_path: Path) -> None:
    whole = (ROOT / "tests/data/kineto/overlapping-pieces.json.gz").read_bytes()
    text = gzip.decompress(whole)
    cut = tmp_path / "cut.json"
    cut.write_bytes(text[: len(text) * 2 // 3])
    done = cli("trace", cut, "--json")
    assert done.returncode == 0
    assert "its JSON ends early at byte" in done.stderr
    rank = json.loads(done.stdout)["ranks"][0]
    assert 1000 < rank["events_kept"] < 3274
    assert len(rank["problems"]) == 1

    packed = tmp_path / "cut.json.gz"
    packed.write_bytes(whole[: len(whole) * 2 // 3])
    assert "its gzip data ends early" in cli("trace", packed).stderr

    odd = tmp_path / "odd.json"
    odd.write_bytes(
        text.replace(b'"dur":', b'"dur":-', 1).replace(b'"name":"aten::', b'"name":"\x01\x1b[31maten::')
    )
    done = cli("trace", odd)
    assert "1 events have a negative duration; left out" in done.stderr
    assert "\x1b" not in done.stdout


def members(tmp_path: Path, count: int) -> Path:
    """A gzip file of `count` MB of flow events that inflates to a list; each member is the same."""
    flow = b'{"ph":"s","id":1,"pid":1,"tid":2,"ts":3,"cat":"ac2g","name":"ac2g"},'
    member = gzip.compress(flow * (1_000_000 // len(flow)))
    path = tmp_path / "long.json.gz"
    path.write_bytes(gzip.compress(b"[") + member * count + gzip.compress(flow[:-1] + b"]"))
    return path


def test_text_is_never_in_memory(tmp_path: Path) -> None:
    trace = [ROOT / "build/release/bin/stoker", "trace", members(tmp_path, 600), "--json"]
    limited = [
        "sh",
        "-c",
        'ulimit -v 250000; exec "$@"',
        "sh",
    ]  # KiB, of which each thread's heap reserves 64 MiB
    done = subprocess.run([*limited, *trace], capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["ranks"][0]["text_bytes"] > 580_000_000


def test_interrupt_stops_at_once(tmp_path: Path) -> None:
    command = [ROOT / "build/release/bin/stoker", "trace", members(tmp_path, 6000)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        time.sleep(0.3)
        child.send_signal(signal.SIGINT)
        sent = time.monotonic()
        out, said = child.communicate(timeout=20)
        assert time.monotonic() - sent < 1
    assert child.returncode == 1
    assert out == ""
    assert said.startswith("error: stopped while reading the trace")


class Page(HTMLParser):
    """Checks that elements nest, and keeps what is shown."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        assert not {name for name, _ in attrs} & {"src", "href", "onload", "onerror"}
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_page_is_one_file_that_no_name_can_break(cli: Cli, tmp_path: Path) -> None:
    text = gzip.decompress((ROOT / "tests/data/kineto/ddp-step-end.json.gz").read_bytes())
    evil = tmp_path / "evil.json"
    evil.write_bytes(text.replace(b"ncclKernel_", b'ncclKernel_<script>alert(1)</script>&\\"'))
    page = tmp_path / "page.html"
    done = cli("trace", evil, "-o", page, "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["page"] == str(page)
    parsed = Page()
    parsed.feed(page.read_text())
    assert parsed.open == []
    assert "script" not in parsed.seen
    assert {"table", "svg", "caption"} <= parsed.seen
    assert '<script>alert(1)</script>&"AllReduce' in parsed.text
    assert "Verdict: " in parsed.text
    assert "Memory of device 1: at most" in parsed.text
    refused_page = cli("trace", evil, "-o", tmp_path / "no/such/page.html")
    assert refused_page.returncode == 1
    assert "no/such" in refused_page.stderr
