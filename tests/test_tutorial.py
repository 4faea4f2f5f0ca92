"""The tutorial's commands, run as they stand there. `python -m tests.test_tutorial` writes what they print into it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd
import pytest

from examples.tumours import tumours

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "tutorial.md"
_BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)


def run(command: str, folder: Path) -> str:
    """What the command prints, in a terminal of 100 columns."""
    program, _, arguments = command.partition(" ")
    words = arguments.replace("examples/", f"{ROOT}/examples/").split()
    called = [sys.executable, *(["-m", "punce"] if program == "punce" else []), *words]
    environment = {**os.environ, "COLUMNS": "100", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        called, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}"
    return done.stdout


def commands(block: str) -> list[str]:
    return re.findall(r"^\$ (.*)$", block, flags=re.MULTILINE)


def truth(run_folder: Path) -> dict[str, float]:
    """Share, recall, precision and accuracy of a run's calls, by the true diagnoses."""
    scores = pd.read_parquet(run_folder / "scores.parquet")
    malignant = tumours()[1][scores["id"]].to_numpy()
    called = (scores["probability"] >= json.loads((run_folder / "metrics.json").read_text())["threshold"]).to_numpy()
    return {
        "share": malignant.mean(),
        "precision": malignant[called].mean(),
        "recall": called[malignant].mean(),
        "accuracy": (called == malignant).mean(),
    }


@pytest.mark.slow
def test_the_tutorial_runs_and_tells_the_truth(tmp_path: Path) -> None:
    for block in _BLOCK.findall(PAGE.read_text()):
        for command in commands(block):
            run(command, tmp_path)
    first, second = truth(tmp_path / "first"), truth(tmp_path / "second")
    assert second["accuracy"] > first["accuracy"] + 0.1
    labelling = json.loads((tmp_path / "first" / "metrics.json").read_text())["labelling"]
    assert labelling["fires"]
    missed = []
    for folder, real in (("first", first), ("second", second)):
        audit = json.loads((tmp_path / folder / "review" / "audit.json").read_text())
        for name in ("share", "accuracy"):
            interval = audit["audited"][name]
            missed += [] if interval["low"] <= real[name] <= interval["high"] else [(folder, name)]
    assert len(missed) <= 1, missed  # intervals of 90 %: one of four may miss, as draws differ between processors


def main() -> None:
    """Run everything once and write what it prints into the page."""
    with tempfile.TemporaryDirectory() as folder:

        def shown(block: re.Match[str]) -> str:
            lines = [f"$ {command}\n{run(command, Path(folder))}" for command in commands(block[1])]
            # Times and progress differ from run to run.
            kept = [line for line in "".join(lines).splitlines() if not line.startswith("table: ")]
            return (
                "```console\n" + re.sub(r"\n{2,}", "\n\n", "\n".join(line.rstrip() for line in kept)).strip() + "\n```"
            )

        text = _BLOCK.sub(shown, PAGE.read_text())
        rows = [
            f"| {name} | " + " | ".join(f"{value:.3f}" for value in truth(Path(folder) / name).values()) + " |"
            for name in ("first", "second")
        ]
    head = ["| the calls of | share | precision | recall | accuracy |", "|---|---|---|---|---|"]
    told = "\n".join(["<!-- truth -->", *head, *rows, "<!-- end of truth -->"])
    PAGE.write_text(re.sub(r"<!-- truth -->.*<!-- end of truth -->", told, text, flags=re.DOTALL))


if __name__ == "__main__":
    main()
