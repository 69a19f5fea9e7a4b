"""Errors raised from Python look like those from C++: a message, and a next step."""

from __future__ import annotations

from ._native import BadInputError


def bad_input(message: str, hint: str = "") -> BadInputError:
    """A ``BadInputError`` with its code and hint set, as the C++ core makes them."""
    error = BadInputError(f"{message}\nhint: {hint}" if hint else message)
    error.code = "bad-input"
    error.hint = hint
    return error
