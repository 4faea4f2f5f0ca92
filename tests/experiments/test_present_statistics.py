"""Means, intervals, paired differences and marks, against scipy and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from punce.errors import InputError
from punce.experiments.present.statistics import common_seeds, p_ahead, rejected_names, standing, summarise

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
def test_the_test_is_scipys_paired_one(seen: list[float]) -> None:
    rng = np.random.default_rng(len(seen))
    first = dict(enumerate(seen))
    second = {seed: value - 0.3 + rng.normal() for seed, value in first.items()}
    expected = stats.ttest_rel(list(first.values()), list(second.values()))
    ahead, behind = (first, second) if expected.statistic > 0 else (second, first)
    assert (p_ahead(ahead, behind), p_ahead(behind, ahead)) == (pytest.approx(expected.pvalue), 1.0)


def test_only_shared_seeds_are_compared() -> None:
    assert p_ahead({0: 95.0, 1: 96.0, 7: 10.0}, {0: 94.0, 1: 94.5, 9: 99.0}) == p_ahead(
        {0: 95.0, 1: 96.0}, {0: 94.0, 1: 94.5}
    )
    assert p_ahead({0: 95.0}, {1: 94.0}) is None


def test_equal_differences_leave_nothing_to_test_with() -> None:
    """0.1 + 0.2 is not 0.3: rounding must not make a certainty."""
    assert p_ahead({0: 0.3, 1: 0.7, 2: 0.9}, {0: 0.1 + 0.2 - 1, 1: 0.7 - 1, 2: 0.9 - 1}) is None


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


FIVE = {0: 95.0, 1: 95.0, 2: 95.01, 3: 99.0, 4: 99.0}
THREE = {0: 96.0, 1: 96.01, 2: 96.0}


def test_seeds_that_only_one_member_has_make_it_neither_best_nor_others_behind() -> None:
    """Over all of its seeds FIVE has the higher mean, over the three that both have it is clearly behind."""
    found = standing({"five": FIVE, "three": THREE})
    assert found is not None
    assert found.best == {"three"}
    assert found.behind == {"five"}


def test_who_leads_on_the_shared_seeds_is_not_behind() -> None:
    """The best is chosen over the seeds that most have; a member with two others may still lead where they meet."""
    group = {"a": {0: 90.0, 1: 90.1, 2: 99.0}, "b": {0: 80.0, 1: 80.0, 2: 80.0}, "few": {0: 95.0, 1: 95.2}}
    group |= {"c": {0: 79.0, 1: 79.3, 2: 79.0}, "d": {2: 70.0, 3: 1.0, 4: 1.0}}
    found = standing(group)
    assert found is not None
    assert found.best == {"a"}
    assert found.left_out == {"few", "d"}
    assert "few" not in found.behind


def test_a_member_with_few_seeds_does_not_take_those_of_the_others_away() -> None:
    three = {0: 0.0, 1: 0.1, 2: 0.2}
    assert common_seeds({"a": three, "b": three, "one": {1: 0.0}}) == {0, 1, 2}
    assert common_seeds({"a": three, "b": three, "c": {1: 0.0, 2: 0.0}}) == {1, 2}
    assert common_seeds({"a": three, "b": {0: 0.0}, "c": {0: 0.0}}) == {0}, "one seed of all before three of one"
    assert common_seeds({"a": {0: 0.0}, "b": {1: 0.0}}) == set()
    assert common_seeds({}) == set()


def test_without_a_common_seed_nothing_is_best() -> None:
    assert standing({"a": {0: 95.0, 1: 95.1}, "b": {2: 60.0, 3: 60.1}}) is None


def test_holm_steps_down_and_stops() -> None:
    assert rejected_names({"a": 0.01, "b": 0.02, "c": 0.04}) == {"a", "b", "c"}  # 0.05/3, 0.05/2, 0.05
    assert rejected_names({"a": 0.01, "b": 0.03, "c": 0.031}) == {"a"}
    assert rejected_names({"a": 0.02, "b": 0.02, "c": 0.02}) == set()
    assert rejected_names({}) == set()
