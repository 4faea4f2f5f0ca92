"""Means, intervals, paired differences and marks, against scipy and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from punce.errors import InputError
from punce.experiments.present.statistics import holm, paired_difference, standing, summarise

values = st.lists(st.floats(50, 100), min_size=2, max_size=6).filter(lambda seen: np.std(seen) > 1e-3)


@given(values)
def test_a_summary_is_that_of_scipy(seen: list[float]) -> None:
    summary = summarise(seen)
    low, high = stats.t.interval(0.95, len(seen) - 1, loc=np.mean(seen), scale=stats.sem(seen))
    assert summary.mean == pytest.approx(np.mean(seen))
    assert summary.deviation == pytest.approx(np.std(seen, ddof=1))
    assert summary.error == pytest.approx(stats.sem(seen))
    assert (summary.low, summary.high) == pytest.approx((low, high))


def test_one_seed_has_a_mean_and_nothing_else() -> None:
    summary = summarise([94.7])
    assert (summary.n, summary.mean) == (1, 94.7)
    assert summary.deviation is summary.error is summary.low is summary.high is None


@pytest.mark.parametrize("seen", [[], [math.nan], [1.0, math.inf]])
def test_what_cannot_be_summarised_is_refused(seen: list[float]) -> None:
    with pytest.raises(InputError, match="all finite"):
        summarise(seen)


@given(values)
def test_a_paired_difference_is_scipys_paired_test(seen: list[float]) -> None:
    rng = np.random.default_rng(len(seen))
    first = dict(enumerate(seen))
    second = {seed: value - 0.3 + rng.normal() for seed, value in first.items()}
    expected = stats.ttest_rel(list(first.values()), list(second.values()))
    found = paired_difference(first, second)
    assert found is not None
    assert found.p == pytest.approx(expected.pvalue)
    assert found.is_clear == (expected.pvalue < 0.05)


def test_only_shared_seeds_are_compared() -> None:
    found = paired_difference({0: 95.0, 1: 96.0, 7: 10.0}, {0: 94.0, 1: 94.5, 9: 99.0})
    assert found is not None
    assert (found.n, found.mean) == (2, 1.25)
    assert paired_difference({0: 95.0}, {1: 94.0}) is None


def test_equal_differences_leave_nothing_to_test_with() -> None:
    """0.1 + 0.2 is not 0.3: rounding must not make a certainty."""
    found = paired_difference({0: 0.3, 1: 0.7, 2: 0.9}, {0: 0.1 + 0.2 - 1, 1: 0.7 - 1, 2: 0.9 - 1})
    assert found is not None
    assert found.mean == pytest.approx(1.0)
    assert found.p is None
    assert not found.is_clear


def test_the_best_and_those_behind_it() -> None:
    group = {
        "a": {0: 95.0, 1: 95.6, 2: 95.3},
        "b": {0: 94.0, 1: 94.61, 2: 94.29},  # a point behind in each seed
        "c": {0: 95.5, 1: 95.0, 2: 95.2},  # here and there
        "d": {},
    }
    found = standing(group)
    assert found is not None
    assert found.best == {"a"}
    assert found.behind == {"b"}


def test_equal_means_are_equally_best() -> None:
    found = standing({"a": {0: 59.17, 1: 60.0}, "b": {0: 60.0, 1: 59.17}, "c": {0: 50.0, 1: 50.0}})
    assert found is not None
    assert found.best == {"a", "b"}


def test_nothing_is_marked_with_one_seed_and_nothing_is_best_of_one() -> None:
    one_seed = standing({"a": {0: 95.0}, "b": {0: 60.0}})
    assert one_seed is not None
    assert one_seed.best == {"a"}
    assert not one_seed.behind
    assert standing({"a": {0: 95.0, 1: 96.0}, "b": {}}) is None


def test_holm_steps_down_and_stops() -> None:
    assert holm({"a": 0.01, "b": 0.02, "c": 0.04}) == {"a", "b", "c"}  # 0.05/3, 0.05/2, 0.05
    assert holm({"a": 0.01, "b": 0.03, "c": 0.031}) == {"a"}
    assert holm({"a": 0.02, "b": 0.02, "c": 0.02}) == set()
    assert holm({}) == set()
