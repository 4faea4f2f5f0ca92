"""A run folder as ``punce fit`` leaves it, without the seconds of a fit."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd

from punce.product.plan import DataOptions
from punce.report import ReportContent, write_report

THRESHOLD = 0.5


def truth_of(n: int = 400) -> np.ndarray:
    return np.random.default_rng(5).random(n) < 0.4


def write_table(path: Path, n: int = 400) -> Path:
    """A table with names, a text column of formulas, and every tenth row labelled where it is positive."""
    rng = np.random.default_rng(0)
    y = truth_of(n)
    frame = pd.DataFrame({"a": np.where(y, 1.0, -1.0) + rng.normal(size=n), "b": rng.normal(size=n).round(3)})
    frame["note"] = np.where(np.arange(n) % 2, "=1+1", "<script>window.hacked = 1</script>")
    frame["name"] = [f"row {i}" for i in range(n)]
    frame["label"] = (y & (np.arange(n) % 10 < 2)).astype(int)
    frame.to_csv(path, index=False)
    return path


def finished_run(folder: Path, table: Path, *, share: float = 0.35, name: str | None = "name") -> Path:
    """A run on the table whose scores are its column a; it claims this share of positives."""
    frame = pd.read_csv(table)
    source = DataOptions(path=str(table), label="label", id=name)
    rows = np.flatnonzero(frame["label"] == 0)
    probability = 1 / (1 + np.exp(-2 * frame["a"].to_numpy()[rows] + 0.5))
    folder.mkdir(parents=True)
    config = {"data": asdict(source), "model": {"prior": "auto"}, "scores": "csv", "rows": len(frame), "finished": True}
    (folder / "config.json").write_text(json.dumps(config))
    names = frame["name"].to_numpy() if name else np.arange(len(frame)).astype(str)
    listed = pd.DataFrame({"row": rows, "id": names[rows], "probability": probability, "score": probability - 0.5})
    listed["seen_in_training"] = False
    listed.sort_values("probability", ascending=False).to_csv(folder / "scores.csv", index=False)
    number = {"value": 0.9, "low": 0.7, "high": 0.99, "reason": ""}
    claims = {"prior": {"value": share, "low": share - 0.06, "high": share + 0.06}, "recall": number}
    claims |= {"threshold": THRESHOLD, "unlabelled": {"precision": number, "accuracy": {**number, "low": 0.6}}}
    (folder / "metrics.json").write_text(json.dumps(claims))
    content = ReportContent("A run")
    (folder / "report.json").write_text(json.dumps(content.to_json()))
    write_report(content, folder / "report.html")
    return folder


def filled_in(review: Path, target: Path, *, yes: str = "yes", no: str = "no") -> Path:
    """review.csv with the true verdicts, as a person would fill it in."""
    frame = pd.read_csv(review, dtype=str, keep_default_na=False)
    y = truth_of()
    frame["verdict"] = [yes if y[int(name.split()[1])] else no for name in frame["id"]]
    frame.to_csv(target, index=False)
    return target
