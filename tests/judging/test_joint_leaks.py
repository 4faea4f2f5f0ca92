"""Columns that give the label away are named; columns that tell the classes apart are not."""

from __future__ import annotations

import shlex

import numpy as np
import pandas as pd
import pytest

from punce.columns.bins import Bins
from punce.columns.encoder import TableEncoder
from punce.judging.joint_leaks import JointLeak, find_joint_leak, most_hidden

N_LABELLED, N_ROWS = 150, 1500


def table(seed: int = 0, distance: float = 1.2, n_hidden: int = 450) -> tuple[pd.DataFrame, np.ndarray]:
    """Labelled positives first, then hidden ones, then negatives; four columns that tell the classes apart."""
    rng = np.random.default_rng(seed)
    is_positive = np.arange(N_ROWS) < N_LABELLED + n_hidden
    x = rng.normal(size=(N_ROWS, 4)) + distance * is_positive[:, None]
    return pd.DataFrame(x, columns=["w", "x", "y", "z"]), (np.arange(N_ROWS) < N_LABELLED).astype(np.int64)


def planted(kind: str) -> tuple[pd.DataFrame, np.ndarray, set[str]]:
    frame, labels = table()
    rng, is_p, n = np.random.default_rng(1), labels == 1, N_ROWS
    a, b = rng.normal(size=n), rng.normal(size=n)
    if kind == "missing values":
        frame["reviewed"] = np.where(is_p, a, np.nan)
    elif kind == "missing for some":
        frame["reviewed"] = np.where(is_p & (rng.random(n) < 0.7), a, np.nan)
    elif kind == "case number":
        frame["case"] = np.arange(n) * 7 + 1000.0  # the labelled rows were entered first
    else:  # each alone says nothing
        frame["a"], frame["b"] = a, np.where((a * b > 0) == is_p, b, -b)
    return frame, labels, set(frame.columns) - {"w", "x", "y", "z"}


def found(frame: pd.DataFrame, labels: np.ndarray, scores: np.ndarray | None = None) -> JointLeak | None:
    encoder = TableEncoder.fit(frame)
    values = encoder.transform(frame).values
    binned = Bins.fit(values, encoder.categorical).transform(values)
    # Scores that could not be better: whether to look for columns is not what is tested here.
    return find_joint_leak(
        lambda rows: binned[rows], labels, encoder.outputs, labels * 1.0 if scores is None else scores
    )


@pytest.mark.parametrize("kind", ["missing values", "missing for some", "case number", "two columns"])
def test_planted_columns_are_named(kind: str) -> None:
    frame, labels, columns = planted(kind)
    leak = found(frame, labels)
    assert leak is not None
    assert set(leak.columns) == columns
    assert leak.auc_with > leak.auc_without + 0.05
    assert leak.hidden_with < 0.05
    assert leak.share_without == pytest.approx(1 / 3, abs=0.15)
    assert all(f"--drop {name}" in str(leak) for name in columns)


def test_a_command_to_copy_holds_names_as_the_shell_reads_them() -> None:
    frame, labels, columns = planted("case number")
    (name,) = columns
    leak = found(frame.rename(columns={name: "customer's id; echo #"}), labels)
    assert leak is not None
    offered = str(leak).partition("leave it out (")[2].partition("); a")[0]
    assert shlex.split(offered) == ["--drop", "customer's id; echo #"]


def test_the_quick_model_gives_no_warnings_of_its_own() -> None:
    """Without the column it knows nothing of the class; the fit knows how few rows are labelled."""
    frame, labels = table(distance=0.0)
    frame["reviewed"] = np.where(np.arange(N_ROWS) < 20, 1.0, 0.0)
    leak = found(frame, np.where(np.arange(N_ROWS) < 20, labels, 0))
    assert leak is not None
    assert leak.columns == ("reviewed",)


@pytest.mark.parametrize("distance", [0.7, 4.0])
def test_columns_that_tell_the_classes_apart_are_not_named(distance: float) -> None:
    assert found(*table(distance=distance)) is None


def test_a_table_without_hidden_positives_has_no_columns_to_blame_when_all_of_them_tell() -> None:
    frame, labels = table(distance=6.0, n_hidden=0)
    assert found(frame, labels) is None


def test_ordinary_scores_are_not_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    frame, labels = table()
    monkeypatch.setattr("punce.judging.joint_leaks.QuickModel", None)
    assert found(frame, labels, frame["w"].to_numpy()) is None


def test_the_bound_holds_for_the_true_share() -> None:
    rng = np.random.default_rng(0)
    bounds = []
    for _ in range(100):
        is_positive = rng.random(2000) < 0.1
        u = rng.normal(size=2000) + 6.0 * is_positive
        scores = np.concatenate([6.0 + rng.normal(size=100), u])
        bounds.append(most_hidden(scores, np.arange(2100) < 100) >= is_positive.mean())
    assert np.mean(bounds) >= 0.95


def test_scores_that_separate_leave_room_for_few_and_noise_for_all() -> None:
    is_p = np.arange(3000) < 100
    assert most_hidden(is_p * 1.0, is_p) < 0.003
    assert most_hidden(np.zeros(3000), is_p) == 1.0
