"""``results/summary.json``: every number over seeds and every verdict, for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from punce.experiments.present.grid import Grid, Measured
from punce.experiments.present.settled import Books, Settled, settled_claims
from punce.experiments.present.verdicts import Finding
from punce.experiments.scale import Scale

_NUMBERS = ("test_accuracy", "oracle_accuracy", "auc", "oracle_linear_accuracy")


def summary_text(books: Books) -> str:
    """The file: the same bytes from the same results."""
    content = {
        "claims": [_claim(settled) for settled in settled_claims(books)],
        "scales": {scale.name: _scale(scale, grids) for scale, grids in books},
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _claim(settled: Settled) -> dict[str, Any]:
    return {
        "claim": settled.finding.text,
        "source": settled.finding.source,
        "scales": {scale.name: _verdict(finding) for scale, finding in settled.by_scale},
    }


def _verdict(finding: Finding) -> dict[str, Any]:
    lines = [{"answer": line.answer.value, "numbers": line.numbers} for line in finding.lines]
    return {"verdict": finding.verdict.word, "comparisons": lines}


def _scale(scale: Scale, grids: Mapping[str, Grid]) -> dict[str, Any]:
    shown = {name: grid for name, grid in grids.items() if grid.is_shown}
    return {"about": scale.about, "experiments": {name: _experiment(grid) for name, grid in shown.items()}}


def _experiment(grid: Grid) -> dict[str, Any]:
    places = (place for place in grid.all_places if grid[place].by_seed)
    return {f"{row} {column}": _place(grid[row, column]) for row, column in places}


def _place(measured: Measured) -> dict[str, Any]:
    found: dict[str, Any] = {"seeds": sorted(measured.by_seed)}
    for name in _NUMBERS:
        if (summary := measured.summary(name)) is not None:
            values = {key: value for key, value in asdict(summary).items() if value is not None}
            found[name] = {key: round(value, 4) for key, value in values.items()}
    if measured.paper is not None:
        found["paper"] = measured.paper.value
    return found
