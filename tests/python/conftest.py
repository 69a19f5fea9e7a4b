"""Tests run against the checkout: the package in python/, the command in build/release/bin."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"

# Child processes see the same package and command as the tests themselves.
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")]).rstrip(
    os.pathsep
)
os.environ["PATH"] = os.pathsep.join([str(ROOT / "build/release/bin"), os.environ.get("PATH", "")])

Cli = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def cli() -> Cli:
    """Runs ``stoker`` with the given words; keyword arguments go to subprocess.run."""

    def run(*words: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
        command = [str(ROOT / "build/release/bin/stoker"), *map(str, words)]
        return subprocess.run(command, **{"capture_output": True, "text": True, "timeout": 120, **options})  # type: ignore[call-overload, no-any-return]

    return run


@pytest.fixture
def shared() -> Path:
    """The folder of real inputs that lies beside a developer's checkout."""
    if not SHARED.is_dir():
        pytest.skip("no ../shared beside this checkout")
    return SHARED
