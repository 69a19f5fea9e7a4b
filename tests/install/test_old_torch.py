"""Stoker on the oldest torch that it promises, 2.1 (the oldest 2.x with wheels for Python 3.11)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from built_wheel import built_wheel

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples/plant-disease"
REQUIREMENTS = ["torch==2.1.2", "torchvision==0.16.2", "numpy<2"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(2400),
    pytest.mark.skipif(
        sys.version_info >= (3, 12), reason="torch 2.1 has no wheels for Python 3.12 and newer"
    ),
]


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The variables of an environment with torch 2.1 and the wheel.

    The checkout's extension would not do: it asks for the system's libjpeg.so.62, and torchvision 0.16 brings an
    older library of that very name.
    """
    folder = tmp_path_factory.mktemp("torch21") / "venv"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    for words in (REQUIREMENTS, ["--no-index", str(built_wheel())]):
        subprocess.run([folder / "bin/python", "-m", "pip", "install", "--quiet", *words], check=True)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {**environment, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}


def run(environment: dict[str, str], folder: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def train(script: str) -> list[str]:
    return ["python", str(EXAMPLE / script), "--data", str(EXAMPLE / "leaves"), "--epochs", "1"]


def test_torch_is_the_old_one(old: dict[str, str], tmp_path: Path) -> None:
    assert run(old, tmp_path, "python", "-c", "import torch; print(torch.__version__)").startswith("2.1.")


def test_run_records_steps(old: dict[str, str], tmp_path: Path) -> None:
    run(old, tmp_path, "stoker", "run", "--", *train("train.py"))
    assert '"optimizer"' in run(old, tmp_path, "stoker", "report", "--json")


def test_accelerate_is_applied(old: dict[str, str], tmp_path: Path) -> None:
    run(old, tmp_path, "stoker", "run", "--accelerate", "--", *train("train.py"))
    (run_json,) = (tmp_path / "runs").glob("*/run.json")
    assert '"applied": true' in run_json.read_text()


def test_session_saves_and_ends(old: dict[str, str], tmp_path: Path) -> None:
    run(old, tmp_path, *train("train_stoker.py"), "--out", "run")
    run(old, tmp_path, "stoker", "ckpt", "verify", "run")
