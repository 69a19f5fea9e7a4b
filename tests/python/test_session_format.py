"""A session and what it finds in its directory: a run of its own format, or something else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import stoker
from stoker.session.progress import Progress
from support.trainee import Run


def stored(directory: Path) -> Any:
    """The state of a short run."""
    run = Run("torch", 0)
    with run.session(directory, keep=stoker.Keep(last=0)) as session:
        run.train(session, 1)
    with stoker.Store(directory, read_only=True) as store:
        return store.load()


def test_a_run_of_another_format_is_refused_with_a_next_step(tmp_path: Path) -> None:
    state = stored(tmp_path / "ours")
    state["session"]["format"] = 2
    with stoker.Store(tmp_path / "newer") as store:
        store.save(state.step, **state)
    with (
        pytest.raises(stoker.BadInputError, match="session format 2, this Stoker reads 1") as caught,
        Run("torch", 0).session(tmp_path / "newer"),
    ):
        pass
    assert caught.value.code == "unsupported"
    assert "the Stoker that saved it" in caught.value.hint


def test_a_checkpoint_that_no_session_saved_is_refused(tmp_path: Path) -> None:
    with stoker.Store(tmp_path) as store:
        store.save(1, model={"w": 1.0})
    with (
        pytest.raises(stoker.BadInputError, match="was not saved by a session") as caught,
        Run("torch", 0).session(tmp_path),
    ):
        pass
    assert "stoker.Store" in caught.value.hint
    with stoker.Store(tmp_path):  # the refusal let go of the directory
        pass


def test_progress_passes_over_what_it_does_not_know() -> None:
    progress = Progress.from_state({"epoch": 2, "global_step": 7, "samples_seen": 99})
    assert (progress.epoch, progress.global_step, progress.history, progress.best) == (2, 7, [], None)


@pytest.mark.parametrize("state", [{"epoch": 2}, {"epoch": None, "global_step": 7}, {}])
def test_progress_without_its_counters_is_corrupt_and_names_the_one(state: dict[str, Any]) -> None:
    missing = "global_step" if state.get("epoch") == 2 else "epoch"
    with pytest.raises(stoker.CorruptError, match=f"has {missing} None") as caught:
        Progress.from_state(state)
    assert caught.value.hint
