"""What a session keeps beside its checkpoints, what it tells, and when it saves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import stoker
import torch
from stoker.session import budget as budget_module
from stoker.session.budget import Budget, Pace, SavePlan
from support.trainee import BATCH, SAMPLES, Run

PER_EPOCH = SAMPLES // BATCH


def test_user_values_come_back(tmp_path: Path) -> None:
    run = Run()
    with run.session(tmp_path, user={"note": "a", "seen": 0}) as session:
        session.user["seen"] = 12
        run.train(session, 1)
    with Run().session(tmp_path, user={"note": "b", "seen": 0}) as session:
        assert session.user == {"note": "a", "seen": 12}


def test_session_json_names_both_sessions(tmp_path: Path) -> None:
    for epochs in (1, 2):
        run = Run()
        with run.session(tmp_path) as session:
            run.train(session, epochs)
    record = json.loads((tmp_path / "session.json").read_text())
    assert record["schema"] == "stoker.session.v1"
    assert [(s["resumed_from"], s["outcome"], s["step"]) for s in record["sessions"]] == [
        (None, "finished", PER_EPOCH),
        (PER_EPOCH, "finished", 2 * PER_EPOCH),
    ]


def test_a_scheduler_that_was_forgotten_is_warned_of_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run = Run()
    with run.session(tmp_path, scheduler=None) as session:
        run.train(session, 2)
    assert capfd.readouterr().err.count("the scheduler is not in the session") == 1


def test_evaluating_restores_the_modes_it_found(tmp_path: Path) -> None:
    run = Run()
    run.model[1].eval()  # frozen statistics
    with run.session(tmp_path) as session:
        with session.evaluating():
            assert not run.model.training
            assert not torch.is_grad_enabled()
            assert list(session.batches([1, 2])) == [1, 2]
        assert run.model.training
        assert not run.model[1].training


def test_a_failed_save_does_not_end_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    run = Run()
    save = stoker.Store.save

    def full(self: stoker.Store, step: int, **state: Any) -> None:
        if step == 2:
            raise stoker.NoSpaceError("the disk is full")
        save(self, step, **state)

    monkeypatch.setattr(stoker.Store, "save", full)
    with run.session(tmp_path, every=2) as session:
        run.train(session, 1)
    assert stoker.Store(tmp_path, read_only=True).latest == PER_EPOCH
    assert "step 2 could not be saved, training goes on: the disk is full" in capfd.readouterr().err


def test_the_budget_counts_from_the_start_of_the_process() -> None:
    age = budget_module.process_age_s()
    assert 0 < age < 24 * 3600
    assert Budget("1h").left_s() == pytest.approx(3600 - age, abs=5)
    assert Budget("1h", "session").left_s() == pytest.approx(3600, abs=5)


def test_work_fits_into_a_budget_with_a_margin() -> None:
    now = 100.0
    budget = Budget(10, "session", clock=lambda: now)
    assert budget.fits(work_s=4, save_s=2)
    assert not budget.fits(work_s=5, save_s=2)
    now = 109.8
    assert not budget.fits(0, 0)
    assert Budget(None).fits(1e9, 1e9)


def test_auto_saves_at_the_young_daly_interval() -> None:
    now = 0.0
    pace = Pace()
    plan = SavePlan("auto", life_s=1800, pace=pace, clock=lambda: now)
    assert not plan.due(0)
    assert plan.due(1)  # at once, which measures the cost
    pace.took("save", 1.0)
    plan.saved(1)
    assert plan.interval_s() == pytest.approx((2 * 1.0 * 1800) ** 0.5)
    now = 59.0
    assert not plan.due(50)
    now = 61.0
    assert plan.due(51)


def test_the_interval_has_a_floor_and_a_ceiling() -> None:
    for cost, interval in (
        (1e-6, budget_module.SHORTEST_INTERVAL_S),
        (1e4, budget_module.LONGEST_INTERVAL_S),
    ):
        pace = Pace()
        pace.took("save", cost)
        assert SavePlan("auto", 3600, pace).interval_s() == interval


def test_saves_every_so_many_steps(tmp_path: Path) -> None:
    run = Run()
    with run.session(tmp_path, every=4, keep=stoker.Keep(last=0)) as session:
        run.train(session, 1)
    assert [c.step for c in stoker.Store(tmp_path, read_only=True).list()] == [4, 8, 9]
