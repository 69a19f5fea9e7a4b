"""The package's surface: errors, names, and what importing it costs."""

import subprocess
import sys

import pytest
import stoker
from stoker import _native


def test_import_loads_neither_torch_nor_numpy() -> None:
    code = "import sys, stoker; print(sorted({'torch', 'numpy', 'stoker._native'} & set(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_errors_are_stoker_errors_with_code_and_hint() -> None:
    with pytest.raises(stoker.BadInputError, match="'4 parsecs' is not a size") as caught:
        _native.parse_size("4 parsecs")
    assert isinstance(caught.value, stoker.Error)
    assert caught.value.code == "bad-input"
    assert "4GB" in caught.value.hint


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'ImageLoadr'"):
        stoker.ImageLoadr  # noqa: B018
