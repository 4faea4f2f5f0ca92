"""A small model, parts of a table to score with it, and a cluster of two worker processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from punce import PUClassifier

PARTS, ROWS = 4, 300


def rows(seed: int, n: int, share: float = 0.3) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    y = rng.random(n) < share
    frame = pd.DataFrame(rng.normal(size=(n, 4)) + 1.5 * y[:, None] * np.array([1, 1, 0, 0]), columns=list("abcd"))
    return frame.assign(town=np.where(rng.random(n) < 0.5, "Ulm", "Rom"), y=y)


def saved_model(folder: Path) -> Path:
    X = pd.concat([rows(0, 120, 1.0), rows(1, 480)], ignore_index=True).drop(columns="y")
    PUClassifier(prior=0.3, scenario="case_control").fit(X, np.arange(600) < 120).save(folder)
    return folder


def written_parts(folder: Path, parts: int = PARTS, n: int = ROWS) -> Path:
    folder.mkdir(parents=True)
    for k in range(parts):
        rows(10 + k, n).drop(columns="y").to_parquet(folder / f"part-{k:03}.parquet", index=False)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    """Every file, hidden ones too."""
    return {file.name: file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


@contextmanager
def local_cluster() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed", reason="the extra punce[cluster] is not installed")
    options = {"processes": True, "dashboard_address": None, "silence_logs": 50, "host": "127.0.0.1"}
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, **options) as started:
        yield started
