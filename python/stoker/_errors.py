"""Errors raised from Python look like those from C++: a message, a code, and a next step."""

from __future__ import annotations

from typing import TypeVar

from ._native import BadInputError, Error

Kind = TypeVar("Kind", bound=Error)


def error(kind: type[Kind], code: str, message: str, hint: str = "") -> Kind:
    """A ``kind`` as the C++ core makes it; ``code`` is one of those in ``stoker/base/status.h``."""
    made = kind(f"{message}\nhint: {hint}" if hint else message)
    made.code = code
    made.hint = hint
    return made


def bad_input(message: str, hint: str = "") -> BadInputError:
    """The commonest: an argument or a file is not what the call takes."""
    return error(BadInputError, "bad-input", message, hint)
