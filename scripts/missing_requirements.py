"""Prints the pinned requirements in the given files that this Python does not have at that version."""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Iterator
from pathlib import Path


def pins(path: Path) -> Iterator[tuple[str, str]]:
    """Yields name and version of each `name==version` line."""
    for line in path.read_text().splitlines():
        name, _, version = line.partition("#")[0].strip().partition("==")
        if name:
            yield name, version


def has(name: str, version: str) -> bool:
    """Tells whether exactly that version is installed."""
    try:
        return importlib.metadata.version(name) == version
    except importlib.metadata.PackageNotFoundError:
        return False


for file in sys.argv[1:]:
    for name, version in pins(Path(file)):
        if not has(name, version):
            print(f"{name}=={version}")
