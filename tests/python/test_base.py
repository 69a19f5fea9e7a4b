"""The package's surface: errors, names, and what importing it costs."""

import subprocess
import sys
from pathlib import Path

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


def test_a_duration_reads_the_same_as_in_the_reports() -> None:
    shown = [_native.format_duration(s) for s in (0.00085, 4.25, 185.0, float("inf"), float("nan"))]
    assert shown[:3] == ["850 µs", "4.25 s", "3 min 5 s"]
    assert shown[3] == shown[4] == "2500000 h 0 min"


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "session.json"
    _native.write_file_durably(str(path), "one")
    _native.write_file_durably(str(path), "two, ä")
    assert path.read_text() == "two, ä"
    assert [entry.name for entry in tmp_path.iterdir()] == ["session.json"]
    with pytest.raises(stoker.Error, match="absent") as caught:
        _native.write_file_durably(str(tmp_path / "absent/x"), "three")
    assert caught.value.code == "not-found"
