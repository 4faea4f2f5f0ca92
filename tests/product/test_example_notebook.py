"""The example notebook runs from its first cell to its last, and what it finds is right."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).parents[2] / "examples" / "first_hour.ipynb"


def shown(cell: Any) -> str:
    """What a cell printed or showed, as text."""
    texts = [part.get("text") or part.get("data", {}).get("text/plain", "") for part in cell.get("outputs", ())]
    return "\n".join(map(str, texts))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("ignore")  # of Jupyter, about its own loops and folders
def test_the_example_notebook_runs_and_is_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat = pytest.importorskip("nbformat", reason="nbclient and ipykernel are not installed (punce[dev])")
    client = pytest.importorskip("nbclient", reason="nbclient and ipykernel are not installed (punce[dev])")
    source = str(NOTEBOOK.parents[1] / "src")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([source, os.environ.get("PYTHONPATH", "")]))
    book = nbformat.read(NOTEBOOK, as_version=4)
    assert all(not cell.get("outputs") for cell in book.cells)  # kept empty: outputs in git grow and go stale
    client.NotebookClient(book, timeout=500, resources={"metadata": {"path": str(tmp_path)}}).execute()
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    assert "PUClassifier, fitted" in str(code[2].outputs)
    auc = next(float(shown(cell).rpartition(":")[2]) for cell in code if "true AUC" in shown(cell))
    assert auc > 0.97
    assert shown(code[-1]).strip().endswith("True")
