"""`stoker run` end to end: real processes, real signals, unchanged scripts."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Cli
from trace_decode import check_frames, perfetto_trace, segments, spans

STOKER = str(ROOT / "build/release/bin/stoker")

TINY = """
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    data = TensorDataset(torch.randn(256, 8), torch.randint(0, 4, (256,)))
    loader = DataLoader(data, batch_size=64, num_workers=WORKERS)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Sequential(nn.Linear(16, 4)))
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(2):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            for x, y in loader:
                model(x)
        torch.save(model.state_dict(), "model.pt")
    print("trained")
"""

# Trains for ever, a step in about 5 ms; says when it has begun.
ENDLESS = """
    import os, time, torch
    from torch import nn

    model = nn.Linear(8, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step = 0
    while True:
        model(torch.randn(4, 8)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        step += 1
        if step == 20:
            open("begun", "w").close()
        if os.path.exists("enough"):
            break
        time.sleep(0.004)
"""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Writes a script into the test's folder, which is also where runs go."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STOKER_RUNS", str(tmp_path / "runs"))

    def write(text: str, **names: object) -> Path:
        text = textwrap.dedent(text)
        for name, value in names.items():
            text = text.replace(name, str(value))
        path = tmp_path / "train.py"
        path.write_text(text)
        return path

    return write


def the_run() -> Path:
    (run,) = Path(os.environ["STOKER_RUNS"]).iterdir()
    return run


def run_json(run: Path | None = None) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(((run or the_run()) / "run.json").read_text())
    return value


def no_ring_left(run: Path) -> bool:
    return not list(Path("/dev/shm").glob(f"*{run.name}*")) and not list(run.glob("*.ring"))


@pytest.mark.parametrize("workers", [0, 2])
def test_unchanged_script_gives_spans_that_add_up(
    script: Callable[..., Path], cli: Cli, workers: int
) -> None:
    out = cli("run", "--", sys.executable, script(TINY, WORKERS=workers))
    assert out.returncode == 0
    assert "trained\n" in out.stdout
    run = the_run()
    recorded = run_json()
    assert recorded["outcome"]["kind"] == "finished"
    assert recorded["python"]["recorded"] is True
    assert recorded["python"]["version"] == sys.version.split()[0]

    seen = spans(run)
    main = [span for span in seen if span.tid == recorded["python"]["pid"]]
    assert {span.pid for span in seen} == {recorded["python"]["pid"]}, "workers write nothing"
    count = Counter(span.name for span in main if span.name != "gc")
    steps, batches = 8, 16
    assert count["optimizer"] == count["forward"] == count["backward"] == steps
    assert count["eval.forward"] == 8
    assert count["data.wait"] == batches + 4, "every epoch ends with one that finds no more"
    assert count["data.start"] == 4
    assert count["checkpoint"] == 2
    assert count["eval"] == 2
    assert sum(span.value for span in main if span.name == "data.wait") == 4 * 256
    saved = [span for span in main if span.name == "checkpoint"]
    assert saved[-1].value == Path("model.pt").stat().st_size
    assert all(span.end_ns > span.begin_ns for span in main if span is not main[-1])
    # In each step: wait, forward, backward, optimizer, one after the other.
    order = [span.name for span in main if span.name in ("forward", "backward", "optimizer")]
    assert order == ["forward", "backward", "optimizer"] * steps
    assert no_ring_left(run)


def test_the_trace_is_what_its_format_says(script: Callable[..., Path], cli: Cli) -> None:
    cli("run", "--", sys.executable, script(TINY, WORKERS=0))
    (segment,) = segments(the_run())
    assert check_frames(segment.read_bytes()) >= 2
    trace = perfetto_trace(the_run())
    assert trace.packet[0].clock_snapshot.primary_trace_clock == 3  # MONOTONIC
    assert all(packet.trusted_packet_sequence_id == 1 for packet in trace.packet)
    counters = {
        packet.track_descriptor.name for packet in trace.packet if packet.track_descriptor.HasField("counter")
    }
    assert {"cpu.trainee", "memory.trainee", "cpu.limit"} <= counters


def test_exit_code_is_passed_on(script: Callable[..., Path], cli: Cli) -> None:
    out = cli("run", "--", sys.executable, script("import sys; sys.exit(3)"))
    assert out.returncode == 3
    assert run_json()["outcome"] == {"kind": "exit", "code": 3, "why": "the script exited with 3"}


def test_exception_is_kept_with_its_traceback(script: Callable[..., Path], cli: Cli) -> None:
    out = cli("run", "--", sys.executable, script("def f():\n    raise ValueError('no such leaf')\nf()"))
    assert out.returncode == 1
    assert "no such leaf" in out.stderr, "the user still sees it"
    kept = run_json()
    assert kept["outcome"]["why"] == "an exception ended the script"
    assert kept["exception"]["type"] == "ValueError"
    assert "line 2, in f" in kept["exception"]["traceback"]


def test_script_that_never_trains_is_told_what_is_missing(script: Callable[..., Path], cli: Cli) -> None:
    out = cli("run", "--", sys.executable, script("print('hello')"))
    assert out.returncode == 0
    assert out.stdout.startswith("hello\n")
    assert "no step seen" in out.stderr
    assert "train a few batches" in out.stderr
    assert run_json()["python"]["recorded"] is False


@pytest.mark.parametrize(
    ("flag", "why"), [("-I", "-I ignores"), ("-E", "-E ignores"), ("-S", "-S does not load")]
)
def test_python_that_ignores_the_environment_says_so(
    script: Callable[..., Path], cli: Cli, flag: str, why: str
) -> None:
    out = cli("run", "--", sys.executable, flag, script("print('hello')"))
    assert out.returncode == 0
    assert why in run_json()["python"]["why"]
    assert why in out.stderr


def test_command_that_is_not_there_leaves_no_run(
    script: Callable[..., Path], cli: Cli, tmp_path: Path
) -> None:
    script("")
    out = cli("run", "--", "no-such-python", "train.py")
    assert out.returncode == 127
    assert "cannot start 'no-such-python'" in out.stderr
    assert list((tmp_path / "runs").iterdir()) == []


def test_unknown_flag_is_a_usage_error_and_runs_nothing(
    script: Callable[..., Path], cli: Cli, tmp_path: Path
) -> None:
    script("")
    out = cli("run", "--accelarate", "--", sys.executable, "-c", "open('ran', 'w')")
    assert out.returncode == 2
    assert "did you mean '--accelerate'?" in out.stderr
    assert not (tmp_path / "ran").exists()


def test_json_keeps_stdout_to_one_object(script: Callable[..., Path], cli: Cli) -> None:
    out = cli("run", "--json", "--", sys.executable, script("print('hello')"))
    assert json.loads(out.stdout)["schema"] == "stoker.run-result.v1"
    assert "hello" in out.stderr


def test_hidden_sitecustomize_still_runs(script: Callable[..., Path], cli: Cli, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "sitecustomize.py").write_text("import builtins; builtins.from_mine = 'from mine'")
    path = os.pathsep.join([str(mine), os.environ["PYTHONPATH"]])
    text = "import sys; print(from_mine, any('_inject' in folder for folder in sys.path))"
    out = cli("run", "--", sys.executable, script(text), env={**os.environ, "PYTHONPATH": path})
    assert out.stdout.startswith("from mine False\n")


def test_torch_is_not_imported_for_a_script_that_does_not_want_it(
    script: Callable[..., Path], cli: Cli
) -> None:
    out = cli(
        "run",
        "--",
        sys.executable,
        script("import sys; print('torch' in sys.modules, 'numpy' in sys.modules)"),
    )
    assert out.stdout.startswith("False False\n")


@pytest.fixture
def endless(script: Callable[..., Path], tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A recorded script that trains for ever; both processes are gone after the test, whatever became of it."""
    parent = subprocess.Popen(
        [STOKER, "run", "--no-report", "--", sys.executable, str(script(ENDLESS))], start_new_session=True
    )
    try:
        deadline = time.monotonic() + 120
        while not (tmp_path / "begun").exists():
            assert time.monotonic() < deadline
            assert parent.poll() is None
            time.sleep(0.05)
        yield parent
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(parent.pid, signal.SIGKILL)
        parent.wait()


def test_sigkill_of_the_trainee_is_reported(endless: subprocess.Popen[bytes]) -> None:
    os.kill(run_json()["trainee_pid"], signal.SIGKILL)
    assert endless.wait(30) == 137
    kept = run_json()
    assert kept["outcome"]["kind"] == "signal"
    assert kept["outcome"]["signal"] == 9
    assert Counter(span.name for span in spans(the_run()))["optimizer"] >= 19
    assert no_ring_left(the_run())


def test_sigterm_is_passed_on(endless: subprocess.Popen[bytes]) -> None:
    endless.terminate()
    assert endless.wait(30) == 128 + signal.SIGTERM
    assert run_json()["outcome"]["signal"] == signal.SIGTERM


def wait_for_end(pid: int) -> None:
    deadline = time.monotonic() + 30
    while Path(f"/proc/{pid}").exists() and "State:\tZ" not in Path(f"/proc/{pid}/status").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_sigkill_of_the_parent_loses_nothing_and_the_trainee_trains_on(
    endless: subprocess.Popen[bytes], cli: Cli, tmp_path: Path
) -> None:
    trainee = run_json()["trainee_pid"]
    endless.kill()
    endless.wait()
    before = time.monotonic_ns()
    time.sleep(0.5)  # the trainee's own time: it goes on without us
    out = cli("report", "--json")
    assert out.returncode == 0, out.stderr
    assert run_json()["outcome"]["kind"] == "running"
    steps = [span for span in spans(the_run()) if span.name == "optimizer"]
    assert steps[-1].end_ns > before, "events after the parent's death are there"

    (tmp_path / "enough").touch()
    wait_for_end(trainee)
    out = cli("report", "--json")
    assert out.returncode == 0, out.stderr
    kept = run_json()
    assert kept["outcome"]["kind"] == "lost"
    assert "taken from its ring" in kept["outcome"]["why"]
    assert kept["python"]["recorded"] is True
    after = [span for span in spans(the_run()) if span.name == "optimizer"]
    assert len(after) > len(steps)
    assert len({span.begin_ns for span in after}) == len(after), "nothing twice"
    assert no_ring_left(the_run())


def test_sigkill_of_both_leaves_what_had_been_reported(
    endless: subprocess.Popen[bytes], cli: Cli, tmp_path: Path
) -> None:
    trainee = run_json()["trainee_pid"]
    endless.kill()
    os.kill(trainee, signal.SIGKILL)
    endless.wait()
    wait_for_end(trainee)
    out = cli("report")
    assert out.returncode == 0, out.stderr
    assert run_json()["outcome"]["kind"] == "lost"
    assert len([span for span in spans(the_run()) if span.name == "optimizer"]) >= 19
    assert no_ring_left(the_run())


def test_launcher_that_imports_torch_does_not_take_the_trainees_place(
    script: Callable[..., Path], cli: Cli, tmp_path: Path
) -> None:
    train = script(TINY, WORKERS=0)
    launcher = tmp_path / "launch.py"
    launcher.write_text(
        f"import subprocess, sys, torch\nsys.exit(subprocess.call([sys.executable, {str(train)!r}]))"
    )
    assert cli("run", "--", sys.executable, launcher).returncode == 0
    recorded = run_json()
    assert recorded["python"]["recorded"] is True
    assert recorded["python"]["pid"] != recorded["trainee_pid"]
    assert sum(span.name == "optimizer" for span in spans(the_run())) == 8
