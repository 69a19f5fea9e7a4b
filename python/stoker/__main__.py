"""``python -m stoker``: becomes the ``stoker`` command that belongs to this package."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def command() -> Path:
    """Finds the command: in an installed package inside it, in a checkout where the build puts it."""
    package = Path(__file__).resolve().parent
    places = (package / "bin/stoker", package.parent.parent / "build/release/bin/stoker")
    for place in places:
        if place.is_file():
            return place
    raise FileNotFoundError(f"the stoker command is at neither {places[0]} nor {places[1]}")


def main() -> None:
    """Replaces this process by the command."""
    path = command()
    os.execv(path, [str(path), *sys.argv[1:]])


if __name__ == "__main__":
    main()
