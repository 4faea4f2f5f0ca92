"""Invented results to present: never written outside of a test's own folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from punce.experiments import EXPERIMENTS
from punce.experiments.cell import Cell
from punce.experiments.scales import Scale, find_scale
from punce.experiments.store import Record, ResultStore

LEVELS = {"punce": 95.0, "scl": 93.0, "dcl": 91.5, "infonce": 91.0, None: 90.0}
Value = Callable[[Cell], float]


def level(cell: Cell) -> float:
    """puNCE ahead of SCL ahead of InfoNCE ahead of nothing; seeds half a point apart, and alike for all."""
    loss = cell.pretraining.loss if cell.pretraining else None
    noise = np.random.default_rng([cell.seed, len(cell.describe())]).normal(0, 0.05)
    return LEVELS[loss] + 0.5 * cell.seed + 0.0002 * cell.data.n_labelled + float(noise)


def result(cell: Cell, value: Value = level) -> dict[str, Any]:
    accuracy = round(value(cell), 4)
    rng = np.random.default_rng(cell.seed)
    made: dict[str, Any] = {
        "test_accuracy": accuracy,
        "oracle_accuracy": accuracy + 0.4,
        "auc": 0.97,
        "prior": {"true": 0.49, "loss": 0.49, "risk": 0.39 if cell.transfer.prior != "true" else 0.49},
        "curve": [accuracy - 3, accuracy, accuracy + 0.4, accuracy - (0.2 if cell.pretraining else 2.0)],
    }
    if cell.embedding:
        points, is_positive = rng.normal(size=(40, 2)), rng.random(40) < 0.5
        points[is_positive] += 4
        made["embedding"] = {
            "x": points[:, 0].round(2).tolist(),
            "y": points[:, 1].round(2).tolist(),
            "is_positive": [int(one) for one in is_positive],
        }
    return made


def cells_of(names: Iterable[str], scale: Scale, seeds: Iterable[int] | None = None) -> list[Cell]:
    found: dict[str, Cell] = {}
    for name in names:
        wanted = list(seeds) if seeds is not None else None
        for cells in EXPERIMENTS[name].cells(scale, wanted).values():
            found |= {cell.key: cell for cell in cells}
    return list(found.values())


def fill(
    results: Path,
    names: Iterable[str] = tuple(EXPERIMENTS),
    scale: str = "laptop1",
    seeds: Iterable[int] | None = None,
    value: Value = level,
) -> list[Cell]:
    """Write an invented result for every cell of these experiments."""
    store, cells = ResultStore(results, scale), cells_of(names, find_scale(scale), seeds)
    for cell in cells:
        write(store, cell, result(cell, value))
    return cells


def write(store: ResultStore, cell: Cell, made: dict[str, Any] | None, error: str | None = None) -> Path:
    status: Any = "done" if made is not None else "failed"
    return store.write(Record(cell.key, cell.config(), status, made or {}, error))
