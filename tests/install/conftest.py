"""The wheel that a user would install, built once for all tests here."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def wheel() -> Path:
    """Builds it as ``make wheel`` does."""
    subprocess.run([ROOT / "scripts/wheel"], check=True)
    (path,) = (ROOT / "dist").glob("*.whl")
    return path
