"""What a session says: one line at a time on stderr, so that the script's own output stays the script's."""

from __future__ import annotations

import sys


class Talk:
    """Prints ``stoker: …`` lines; a line said with ``once`` is not said again."""

    def __init__(self, quiet: bool = False) -> None:
        """``quiet`` keeps everything but warnings to itself."""
        self._quiet = quiet
        self._said: set[str] = set()

    def say(self, text: str) -> None:
        """News that needs no action."""
        if not self._quiet:
            print(f"stoker: {text}", file=sys.stderr, flush=True)

    def warn(self, text: str, *, once: bool = False) -> None:
        """Something the user should know."""
        if once and text in self._said:
            return
        self._said.add(text)
        print(f"stoker: warning: {text}", file=sys.stderr, flush=True)
