"""The example's notebook, run from its first cell to its last as a reader would."""

from __future__ import annotations

import shutil
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/plant-disease"


def texts(notebook: nbformat.NotebookNode) -> str:
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    shown = [output.get("text", "") or output.get("data", {}).get("text/html", "") for output in outputs]
    return "\n".join(shown)


def test_its_outputs_are_not_stored() -> None:
    notebook = nbformat.read(EXAMPLE / "leaf.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells)


def test_it_trains_and_shows_the_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOKER_RUNS", str(tmp_path / "recorded"))
    shutil.copy(EXAMPLE / "leaf.ipynb", tmp_path)
    (tmp_path / "leaves").symlink_to(EXAMPLE / "leaves")
    notebook = nbformat.read(tmp_path / "leaf.ipynb", as_version=4)
    client = NotebookClient(notebook, timeout=240, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    said = texts(notebook)
    assert "epoch 1: top-1" in said
    assert "step" in said.split("epoch 1: top-1")[1], "no verdict below the training cell"
    assert list((tmp_path / "runs/notebook").glob("step-*/manifest.json"))
