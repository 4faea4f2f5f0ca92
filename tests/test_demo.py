"""The demo runs: a small version of what ``make demo`` does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

DEMO = Path(__file__).parents[1] / "examples" / "demo.py"
METHODS = ["InfoNCE", "SCL", "puNCE", "nnPU from scratch"]


def test_the_demo_prints_its_table_and_leaves_picture_and_numbers(tmp_path: Path) -> None:
    out = tmp_path / "out"
    environment = os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "80"}
    done = subprocess.run(
        [sys.executable, str(DEMO), "--quick", "--out", str(out)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    results = json.loads((out / "results.json").read_text())["results"]
    assert [result["method"] for result in results] == METHODS
    for result in results:
        row = next(line for line in done.stdout.splitlines() if line.startswith(f"│ {result['method']} "))
        assert f"{100 * result['true_accuracy']:.1f}" in row
        assert 0.5 < result["true_accuracy"] <= 1.0  # better than a coin even after two epochs
    assert (out / "scores.png").read_bytes().startswith(b"\x89PNG")
    assert str(out / "scores.png") in done.stdout
