"""The magics in a real kernel."""

from __future__ import annotations

import json
import os
import textwrap
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
pytest.importorskip("ipykernel", reason="ipykernel is not installed")
pytest.importorskip("torch", reason="torch is not installed")

SETUP = """
    %load_ext stoker
    import torch
    from torch.utils.data import DataLoader, TensorDataset
    model = torch.nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(torch.ones(400, 8)), batch_size=4)
"""
TRAIN = """
    for (x,) in loader:
        model(x).sum().backward()
        optimizer.step()
"""


def run(cells: list[str], folder: Path) -> list[str]:
    """Executes the cells in one kernel; all that each of them put out, as text."""
    book = nbformat.v4.new_notebook()
    book.cells = [nbformat.v4.new_code_cell(textwrap.dedent(cell).strip()) for cell in cells]
    nbclient.NotebookClient(book, timeout=240, resources={"metadata": {"path": str(folder)}}).execute()
    return [json.dumps(cell.outputs) for cell in book.cells]


def test_magics_record_a_cell_and_show_the_page_inline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STOKER_RUNS", str(tmp_path / "runs"))
    cells = [
        SETUP,
        "%%stoker first" + textwrap.dedent(TRAIN),
        "%stoker_start second",
        TRAIN,
        "%stoker_stop",
        "%stoker_report",
        "print('STOKER_RING' in __import__('os').environ, '__call__' in vars(torch.nn.Linear))",
    ]
    outputs = run(cells, tmp_path)
    assert "100 steps" in outputs[1]
    assert "100 steps" in outputs[5]
    for output in (outputs[1], outputs[5]):
        assert "<iframe" in output or "has no report page in it" in output
    assert "False False" in outputs[6]

    first, second = sorted(os.listdir(tmp_path / "runs"))
    for name in (first, second):
        kept = json.loads((tmp_path / "runs" / name / "run.json").read_text())
        assert kept["outcome"]["kind"] == "finished"
        assert kept["python"]["recorded"] is True
        assert not Path(f"/dev/shm/stoker-{name}.ring").exists()
