"""Every cell of every table keeps the name that it had when its results were stored."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from punce.experiments import EXPERIMENTS
from punce.experiments.scales import SCALES

RECORDED: dict[str, dict[str, str]] = json.loads(
    Path(__file__).with_name("cell_hashes.json").read_text(encoding="utf-8")
)
"""For each scale and experiment: the number of cells, and the sha256 of their places, keys and encoder names."""

STORED = Path(__file__).parents[2] / "results"


def recorded_form(scale: str, experiment: str) -> str:
    cells = EXPERIMENTS[experiment].cells(SCALES[scale])
    lines = [
        f"{row} | {column} | {cell.seed} | {cell.key} | {cell.encoder_name}"
        for (row, column), found in cells.items()
        for cell in found
    ]
    return f"{len(lines)} cells, sha256 {hashlib.sha256(chr(10).join(sorted(lines)).encode()).hexdigest()}"


@pytest.mark.parametrize("scale", SCALES)
def test_the_cells_of_a_scale_are_those_recorded(scale: str) -> None:
    # A new table is not recorded: nothing was stored for it.
    assert {name: recorded_form(scale, name) for name in RECORDED[scale]} == RECORDED[scale]


# A run keeps encoders and locks beside the results, which git leaves out.
@pytest.mark.parametrize("scale", [folder.name for folder in STORED.iterdir() if any(folder.glob("*.json"))])
def test_every_stored_result_belongs_to_a_cell(scale: str) -> None:
    known = {
        cell.name: cell.config()
        for experiment in EXPERIMENTS.values()
        for found in experiment.cells(SCALES[scale]).values()
        for cell in found
    }
    for path in STORED.joinpath(scale).glob("*.json"):
        assert json.loads(path.read_text(encoding="utf-8"))["config"] == known.get(path.stem), path.name
