"""The examples run."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.slow
def test_pipeline_and_grid_search(capsys: pytest.CaptureFixture[str]) -> None:
    main = runpy.run_path(str(EXAMPLES / "scikit_learn.py"))["main"]
    assert main(epochs=1, n_folds=2) > 0.9
    said = capsys.readouterr().out
    assert said.count("'pu__loss'") == 4  # three tried, and the best of them
