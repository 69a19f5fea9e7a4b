"""A session in a process of its own that is killed, and goes on in another."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import stoker

TRAINEE = Path(__file__).parent / "support/trainee.py"
STEPS = 4 * 9


def start(tmp_path: Path, name: str, *options: str | int) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        str(TRAINEE),
        str(tmp_path / name),
        "--losses",
        str(tmp_path / f"{name}.losses"),
    ]
    return subprocess.Popen(
        [*command, *map(str, options)],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # so that a test may signal the whole group
        preexec_fn=lambda: signal.signal(
            signal.SIGINT, signal.SIG_DFL
        ),  # ignored where the tests run with `&`
    )


def finish(process: subprocess.Popen[str], code: int = 0) -> str:
    out, err = process.communicate(timeout=120)
    assert process.returncode == code, err
    return out if code == 0 else err


def losses(tmp_path: Path, name: str) -> dict[int, str]:
    """By step; a step that was done again after a kill must have had the same loss."""
    found: dict[int, str] = {}
    for line in (tmp_path / f"{name}.losses").read_text().splitlines():
        step, loss = json.loads(line)
        assert found.setdefault(step, loss) == loss, f"step {step} was another one after the resume"
    return found


def wait_for_lines(tmp_path: Path, name: str, count: int) -> None:
    path, end = tmp_path / f"{name}.losses", time.monotonic() + 60
    while not path.exists() or path.read_text().count("\n") < count:
        assert time.monotonic() < end
        time.sleep(0.005)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[int, str], str]:
    """Losses and weights of a run that nothing happened to."""
    tmp_path = tmp_path_factory.mktemp("whole")
    weights = finish(start(tmp_path, "whole"))
    return losses(tmp_path, "whole"), weights


def check_equal(tmp_path: Path, name: str, whole: tuple[dict[int, str], str], weights: str) -> None:
    assert losses(tmp_path, name) == whole[0]
    lines = [json.loads(line) for line in (tmp_path / name / "log.jsonl").read_text().splitlines()]
    assert [(line["step"], line["loss"].hex()) for line in lines] == list(whole[0].items())
    assert weights == whole[1]
    assert len(whole[0]) == STEPS


@pytest.mark.parametrize("at", [13, *(pytest.param(at, marks=pytest.mark.slow) for at in (2, 9, 20, 27))])
def test_c01_kill_9_loses_nothing_and_changes_no_loss(
    tmp_path: Path, whole: tuple[dict[int, str], str], at: int
) -> None:
    process = start(tmp_path, "run", "--pause", 0.01)
    wait_for_lines(tmp_path, "run", at)
    time.sleep(random.random() * 0.02)
    process.kill()
    process.communicate()
    check_equal(tmp_path, "run", whole, finish(start(tmp_path, "run")))


@pytest.mark.slow
def test_a_run_killed_again_and_again_gets_to_the_same_end(
    tmp_path: Path, whole: tuple[dict[int, str], str]
) -> None:
    for lines in range(5, 40, 5):
        process = start(tmp_path, "run", "--pause", 0.02)
        wait_for_lines(tmp_path, "run", lines)
        time.sleep(random.random() * 0.05)
        process.kill()
        process.communicate()
    check_equal(tmp_path, "run", whole, finish(start(tmp_path, "run")))


def test_c11_a_sigterm_saves_and_ends_with_143(tmp_path: Path, whole: tuple[dict[int, str], str]) -> None:
    said = finish(start(tmp_path, "run", "--every", 1000, "--signal-at", 5), 128 + signal.SIGTERM)
    assert "step 5 of epoch 0 is saved" in said
    record = json.loads((tmp_path / "run/session.json").read_text())
    assert record["sessions"][0]["outcome"] == "stopped by SIGTERM"
    check_equal(tmp_path, "run", whole, finish(start(tmp_path, "run")))


def test_c11_a_second_signal_ends_at_once_and_keeps_what_was_saved(
    tmp_path: Path, whole: tuple[dict[int, str], str]
) -> None:
    process = start(tmp_path, "run", "--pause", 0.5)
    wait_for_lines(tmp_path, "run", 2)
    process.send_signal(signal.SIGTERM)
    time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode in (-signal.SIGTERM, 128 + signal.SIGTERM)
    check_equal(tmp_path, "run", whole, finish(start(tmp_path, "run")))


def test_ctrl_c_saves_and_stops_with_130_although_workers_get_it_too(tmp_path: Path) -> None:
    process = start(tmp_path, "run", "--workers", 1, "--pause", 0.1, "--every", 1000)
    wait_for_lines(tmp_path, "run", 3)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert (stoker.Store(tmp_path / "run", read_only=True).latest or 0) >= 3
