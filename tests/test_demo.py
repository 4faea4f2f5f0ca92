"""The demo runs: a small version of what ``make demo`` does."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

DEMO = Path(__file__).parents[1] / "examples" / "demo.py"
RUNS = {"draw 1": "run-1", "puNCE + nnPU": "pair"}


def demo(out: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(DEMO), "--quick", "--out", str(out)],
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "100"},
        timeout=200,
    )


@pytest.mark.slow
def test_the_demo_fits_prints_its_tables_and_says_where_the_page_is(tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = demo(out)
    assert done.returncode == 0, done.stderr
    content = json.loads((out / "results.json").read_text())
    results = content["results"]
    assert [result["method"] for result in results] == list(RUNS)
    for result in results:
        row = next(line for line in done.stdout.splitlines() if line.startswith(f"│ {result['method']} "))
        assert f"{100 * result['true_accuracy']:.1f} %" in row
        assert f"{100 * result['estimated_accuracy']:.1f} %" in row
        assert f"{result['hidden']:.0f} (" in row
        assert 0.5 < result["true_accuracy"] <= 1.0  # better than a coin even after two epochs
        run = out / RUNS[result["method"]]
        assert f"$ punce fit {out / 'digits-1'} " in done.stdout
        assert len(pd.read_parquet(run / "scores.parquet")) == 300
        assert (run / "report.html").exists()
    assert f"The page to look at: {out / 'report.html'}" in done.stdout
    page = (out / "report.html").read_text()
    assert "Runs side by side" in page
    assert all(name in page for name in ("default", "puNCE + nnPU"))
    heaviest = max(content["members"], key=lambda name: content["members"][name]["weight"])
    assert f"│ {heaviest} " in done.stdout
    assert "even a perfect ranking puts a labelled digit above 83% of them, give or take chance" in done.stdout


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(SystemExit, match="holds something else"):
        runpy.run_path(str(DEMO))["clear"](tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
