"""Every model of a table, the first prior's too, reads its columns in one way, in training and next week."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from punce import PUClassifier
from punce.priors import estimate_prior
from punce.priors.features import Rows, as_rows
from punce.routes.table import TableRoute

ROWS = 200


def problem() -> tuple[pd.DataFrame, npt.NDArray[np.int8]]:
    """Floats and plain categories; half of the unlabelled rows are positive, and labelled rows come first."""
    random = np.random.default_rng(0)
    labels = (np.arange(ROWS) < 60).astype(np.int8)
    y = (labels == 1) | (np.arange(ROWS) % 2 == 0)
    frame = pd.DataFrame(random.normal(2.0 * y[:, None], 1.0, (ROWS, 2)), columns=["a", "b"])
    frame["town"] = np.where(y, random.choice(["Ulm", "Bonn"], ROWS), random.choice(["Bonn", "Kiel"], ROWS))
    return frame, labels


def prepared(X: Any) -> Any:
    """What the first prior is estimated on."""
    classifier = PUClassifier()
    classifier.seed_ = 0
    return TableRoute().prepare(X, classifier._settings(None))


def same(one: Rows, other: Rows) -> bool:
    return bool(np.array_equal(one.values, other.values, equal_nan=True)) and bool(
        (one.categorical == other.categorical).all()
    )


def clean_tables() -> dict[str, Any]:
    frame, _ = problem()
    gaps = frame.mask(np.random.default_rng(1).random(frame.shape) < 0.1)
    more = frame.assign(
        count=np.arange(ROWS) % 7, flag=frame["a"] > 0, small=frame["b"].astype(np.float32), constant=1.0
    )
    return {
        "floats and categories": frame,
        "gaps": gaps,
        "other numbers": more,
        "categories by type": frame.astype({"town": "category"}),
        "many levels": frame.assign(street=[f"street {k % 150}" for k in range(ROWS)]),
        "shuffled index": frame.sample(frac=1.0, random_state=0),
        "matrix": frame[["a", "b"]].to_numpy(),
        "matrix of integers": np.random.default_rng(2).integers(0, 300, (ROWS, 300)),
    }


@pytest.mark.parametrize("name", list(clean_tables()))
def test_a_clean_table_gives_the_prior_the_same_bits_as_the_table_itself(name: str) -> None:
    table = clean_tables()[name]
    assert same(as_rows(prepared(table)), as_rows(table))


def test_a_clean_table_has_the_prior_of_the_table_itself() -> None:
    frame, labels = problem()
    direct, through = (estimate_prior(X, labels, random_state=0) for X in (frame, prepared(frame)))
    assert (direct.value, direct.low, direct.high) == (through.value, through.low, through.high)


def test_row_numbers_do_not_reach_the_prior() -> None:
    frame, labels = problem()
    numbered = frame.assign(**{"Unnamed: 0": np.arange(ROWS)})  # saved with its index, labelled rows first
    assert same(as_rows(prepared(numbered)), as_rows(frame))
    assert PUClassifier().fit(numbered, labels).first_prior_.value == pytest.approx(0.5, abs=0.2)


def test_the_prior_reads_numbers_and_dates_as_the_model_does() -> None:
    frame, _ = problem()
    days = pd.Series(pd.date_range("2024-01-01", periods=ROWS, freq="37h"))
    dirty = frame.assign(
        a=frame["a"].astype(object).where(frame.index % 50 != 3, "?"),
        b=frame["b"].where(frame.index != 5, np.inf),
        day=days.dt.strftime("%Y-%m-%d %H:%M:%S"),
    )
    read = prepared(dirty)
    assert read.columns.tolist() == ["a", "b", "town", "day:days", "day:weekday", "day:month", "day:hour"]
    assert as_rows(read).categorical.tolist() == [False, False, True, False, False, False, False]
    assert np.flatnonzero(read["a"].isna()).tolist() == [3, 53, 103, 153]
    assert read["a"].dropna().to_numpy() == pytest.approx(frame["a"][read["a"].notna()].to_numpy())
    assert np.flatnonzero(read["b"].isna()).tolist() == [5]
    assert read["day:weekday"].tolist() == days.dt.day_of_week.tolist()


@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e300])
def test_what_is_too_large_for_the_prior_does_not_stop_a_fit(value: float) -> None:
    frame, labels = problem()
    frame.loc[5, "b"] = value
    assert 0.0 < PUClassifier().fit(frame, labels).prior_.value < 1.0


def test_columns_may_have_the_names_of_a_dates_parts() -> None:
    frame, _ = problem()
    frame["day"] = pd.date_range("2024-01-01", periods=ROWS)
    assert as_rows(prepared(frame.rename(columns={"a": "day:days"}))).values.shape == (ROWS, 6)
