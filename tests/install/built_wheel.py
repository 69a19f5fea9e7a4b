"""The wheel that a user would install, built once for all tests here."""

from __future__ import annotations

import functools
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@functools.cache
def built_wheel() -> Path:
    """Builds it as ``make wheel`` does; the same file for every caller."""
    subprocess.run([ROOT / "scripts/wheel"], check=True)
    (path,) = (ROOT / "dist").glob("*.whl")
    return path
