"""``stoker report``: the recorded run in tests/data, and what it says when it cannot answer."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from conftest import ROOT, Cli
from leaf_folder import make_folder

RUN = ROOT / "tests/data/runs/leaves"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A copy of the recorded run, in a folder of runs of its own."""
    return Path(shutil.copytree(RUN, tmp_path / "runs" / "20261201T195428Z-train-2b70"))


def test_report_says_what_binds_and_the_fix(cli: Cli, run: Path) -> None:
    done = cli("report", run)
    assert done.returncode == 0, done.stderr
    assert "what binds it: data-bound" in done.stdout
    assert "    loader = stoker.accelerate(loader)\n" in done.stdout
    assert "together            100.0 %" in done.stdout
    one_line = " ".join(done.stdout.split())
    assert "an estimate: its rate was not measured (no image under /home/user/leaf/small/train)" in one_line


def test_the_rate_is_measured_with_the_recorded_recipe(cli: Cli, run: Path, tmp_path: Path) -> None:
    make_folder(tmp_path / "small/train", images=20)
    facts = json.loads((run / "run.json").read_text())
    facts["cwd"] = str(tmp_path)
    (run / "run.json").write_text(json.dumps(facts))
    assert "Stoker's loader, measured on this run's files" in " ".join(cli("report", run).stdout.split())


def test_a_recipe_that_cannot_be_is_no_rate(cli: Cli, run: Path) -> None:
    facts = json.loads((run / "run.json").read_text())
    facts["loaders"][0]["recipe"] = [{"kind": "Resize", "height": 10**6, "width": 0}]
    (run / "run.json").write_text(json.dumps(facts))
    out = " ".join(cli("report", run).stdout.split())
    assert "an estimate: its rate was not measured (Resize: a side of 1000000 pixels is outside" in out


def test_the_verdict_is_written_once_and_stays(cli: Cli, run: Path) -> None:
    cli("report", run)
    first = json.loads((run / "run.json").read_text())["verdict"]
    assert first["schema"] == "stoker.verdict.v1"
    assert first["predicted_gain_points"] is not None
    cli("report", run)
    assert json.loads((run / "run.json").read_text())["verdict"] == first


def test_json_is_one_object_that_agrees_with_the_metrics(cli: Cli, run: Path) -> None:
    report = json.loads(cli("report", run, "--json").stdout)
    assert report["schema"] == "stoker.report.v1"
    assert report["metrics"]["steps"] == 42
    assert len(report["metrics"]["epochs"]) == 3
    assert sum(phase["percent"] for phase in report["metrics"]["phases"]) == pytest.approx(100)
    assert len(report["timeline"]["end_s"]) == 42


def test_compare_keeps_the_result_with_the_second_run(cli: Cli, run: Path) -> None:
    after = Path(shutil.copytree(run, run.parent / "20261201T195429Z-train-2b71"))
    done = cli("report", "--compare", run, after, "--json")
    assert done.returncode == 0, done.stderr
    comparison = json.loads(done.stdout)
    assert comparison["measured_gain_points"] == pytest.approx(0)
    assert comparison["miss_points"] == pytest.approx(comparison["predicted"]["points"])
    assert json.loads((after / "run.json").read_text())["comparison"] == comparison
    assert "comparison" not in json.loads((run / "run.json").read_text())


def test_no_run_and_unknown_run_say_the_next_step(cli: Cli, run: Path, tmp_path: Path) -> None:
    none = cli("report", cwd=tmp_path, env={"STOKER_RUNS": str(tmp_path / "nothing")})
    assert none.returncode == 1
    assert "hint: record one with `stoker run -- python train.py`" in none.stderr
    wrong = cli("report", "20261201T195428Z-train-2b7", cwd=tmp_path)
    assert wrong.returncode == 0  # a beginning is enough where it is the only one
    missing = cli("report", "leaf-7", cwd=tmp_path)
    assert missing.returncode == 1
    assert "no run 'leaf-7'" in missing.stderr


def test_compare_takes_two_runs(cli: Cli, run: Path) -> None:
    done = cli("report", "--compare", run)
    assert done.returncode == 2
    assert "--compare takes two runs" in done.stderr


def test_a_damaged_run_file_is_named(cli: Cli, run: Path) -> None:
    (run / "run.json").write_text("{not json")
    done = cli("report", run)
    assert done.returncode == 1
    assert "run.json" in done.stderr
