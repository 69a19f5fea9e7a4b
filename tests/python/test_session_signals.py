"""Signals and the budget, in this process: where they come, what is saved, how the run ends."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import stoker
import torch
from support.trainee import BATCH, SAMPLES, Points, Run

PER_EPOCH = SAMPLES // BATCH


def send(signum: int = signal.SIGTERM) -> None:
    os.kill(os.getpid(), signum)


def train(
    directory: Path,
    *,
    in_step: Callable[[int], None] | None = None,
    in_evaluation: Any = None,
    **options: Any,
) -> Run:
    run = Run()
    with run.session(directory, **{"every": 1000, **options}) as session:
        for epoch in session.epochs(3):
            for x, y in session.batches(run.loader):
                run.train_batch(x, y)
                if in_step is not None:
                    in_step(session.global_step)
            with session.evaluating():
                if in_evaluation is not None and epoch == 1:
                    in_evaluation(run)
            session.epoch_end()
    return run


def stopped(directory: Path, **options: Any) -> tuple[int | str | None, int | None]:
    """The exit code, and the newest step that was saved."""
    with pytest.raises(SystemExit) as end:
        train(directory, **options)
    return end.value.code, stoker.Store(directory, read_only=True).latest


def check_resumes_exactly(tmp_path: Path, directory: Path) -> None:
    assert train(directory).weights() == train(tmp_path / "whole").weights()


def test_c11_a_sigterm_in_a_step_ends_the_step_first(tmp_path: Path) -> None:
    assert stopped(tmp_path / "run", in_step=lambda step: send() if step == 5 else None) == (143, 5)
    check_resumes_exactly(tmp_path, tmp_path / "run")


def test_c11_a_sigterm_while_waiting_for_data_saves_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch, fetched = Points.__getitem__, [0]

    def interrupted(self: Points, index: int) -> Any:
        fetched[0] += 1
        if fetched[0] == 5 * BATCH + 1:
            torch.rand(3)  # the random state has moved on since the boundary
            send()
        return fetch(self, index)

    with monkeypatch.context() as patch:
        patch.setattr(Points, "__getitem__", interrupted)
        assert stopped(tmp_path / "run") == (143, 5)
    check_resumes_exactly(tmp_path, tmp_path / "run")


def test_c11_a_sigterm_in_the_evaluation_saves_the_boundary_before_it(tmp_path: Path) -> None:
    def evaluate(run: Run) -> None:
        torch.rand(3)
        send()

    assert stopped(tmp_path / "run", in_evaluation=evaluate) == (143, 2 * PER_EPOCH)
    check_resumes_exactly(tmp_path, tmp_path / "run")


def test_an_evaluation_with_other_weights_in_the_model_is_waited_for(tmp_path: Path) -> None:
    def swap_for_a_moment(run: Run) -> None:
        weights = [p.detach().clone() for p in run.model.parameters()]
        for p in run.model.parameters():
            p.data.mul_(0.5)
        send()
        for p, before in zip(run.model.parameters(), weights, strict=True):
            p.data.copy_(before)

    assert stopped(tmp_path / "run", in_evaluation=swap_for_a_moment) == (143, 2 * PER_EPOCH)
    check_resumes_exactly(tmp_path, tmp_path / "run")


def test_ctrl_c_ends_with_130(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run with `&`

    def press(step: int) -> None:
        if step == 2:
            send(signal.SIGINT)

    try:
        assert stopped(tmp_path / "run", in_step=press) == (130, 2)
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_signal_that_the_process_was_told_to_ignore_stays_ignored(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # nohup
    try:
        train(tmp_path, in_step=lambda step: send(signal.SIGINT))
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_signal_during_a_save_stops_right_after_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save = stoker.Store.save

    def interrupted(self: stoker.Store, step: int, **state: Any) -> None:
        send()
        save(self, step, **state)

    monkeypatch.setattr(stoker.Store, "save", interrupted)
    assert stopped(tmp_path / "run", every=4) == (143, 4)


def test_a_signal_before_the_first_step_saves_nothing(tmp_path: Path) -> None:
    run = Run()
    with pytest.raises(SystemExit), run.session(tmp_path):
        send()
    assert stoker.Store(tmp_path, read_only=True).list() == []


def test_handlers_of_before_are_called_and_put_back(tmp_path: Path) -> None:
    called: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda signum, frame: called.append(signum))
    try:
        mine = signal.getsignal(signal.SIGTERM)
        assert stopped(tmp_path / "run", in_step=lambda step: send() if step == 5 else None) == (143, 5)
        assert called == [signal.SIGTERM]
        assert signal.getsignal(signal.SIGTERM) is mine
    finally:
        signal.signal(signal.SIGTERM, before)


def test_the_budget_stops_before_the_step_that_would_not_fit(tmp_path: Path) -> None:
    begin = time.monotonic()
    with pytest.raises(stoker.BudgetReached) as end:
        train(tmp_path / "run", in_step=lambda step: time.sleep(0.2), budget=2.5, budget_since="session")
    assert end.value.code == 75
    assert "is saved" in str(end.value)
    assert time.monotonic() - begin < 2.5
    assert 0 < (stoker.Store(tmp_path / "run", read_only=True).latest or 0) < 3 * PER_EPOCH
    check_resumes_exactly(tmp_path, tmp_path / "run")


def test_a_notebook_outlives_the_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stoker.session.engine.in_notebook", lambda: True)
    train(tmp_path / "run", budget=0.1, budget_since="session")
    assert (stoker.Store(tmp_path / "run", read_only=True).latest or 0) < PER_EPOCH
    check_resumes_exactly(tmp_path, tmp_path / "run")
