"""Where the chance to be labelled is known: a random sample of the positives, and the share that follows from it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from punce.errors import InputError
from punce.judging.propensity import Thinned, by_propensity
from punce.judging.used_prior import first_prior, given_prior
from punce.scenario import Scenario
from tests.judging.test_labelling import N, labelled, rows


def test_labelled_rows_are_thinned_to_a_random_sample_by_their_propensity() -> None:
    x, y = rows(0)
    weight = np.exp(x[:, 0] - x[y, 0].mean())
    labels = labelled(y, weight, 0)
    kept, weights = by_propensity(labels, weight, None, seed=0)
    assert weights is not None
    assert kept[labels == 0].all()
    assert kept[labels == 1].mean() == pytest.approx((weight[labels == 1].min() / weight[labels == 1]).mean(), abs=0.15)
    assert weights[labels == 1].mean() == pytest.approx(1.0)
    # The preferred column, weighted, has the mean that it has in all positives.
    assert np.average(x[labels == 1, 0], weights=weights[labels == 1]) == pytest.approx(x[y, 0].mean(), abs=0.3)
    assert x[labels == 1, 0].mean() > x[y, 0].mean() + 0.5
    # Of unlabelled rows it need not be known.
    gaps = pd.Series(np.where(labels == 1, weight, np.nan)).astype("Float64").astype(object)
    assert np.array_equal(by_propensity(labels, gaps, None, seed=0)[0], kept)
    for wrong in (np.ones(3), np.zeros(N), np.full(N, np.nan), ["high"] * N, pd.Series(["high"] * N)):
        with pytest.raises(InputError, match="propensity"):
            by_propensity(labels, wrong, None, seed=0)


def preferred(seed: int) -> tuple[np.ndarray, np.ndarray, Thinned]:
    """Scores, classes and labels: half of the positives are easy to find, and nine in ten of these are labelled."""
    rng = np.random.default_rng(seed)
    y = rng.random(3000) < 0.3
    is_easy = y & (rng.random(3000) < 0.5)
    scores = np.where(is_easy, 4.0, np.where(y, 1.5, -2.0)) + rng.normal(size=3000)
    chance = np.where(is_easy, 0.9, 0.3)
    codes = (y & (rng.random(3000) < chance)).astype(np.int8)
    return scores, y, Thinned(codes, by_propensity(codes, chance, None, seed)[0], "single_set")


def test_the_share_is_not_that_of_the_positives_that_are_seldom_left_unlabelled() -> None:
    """Without the rows that are thinned out the estimate was 0.03 instead of 0.15 of the unlabelled rows."""
    scores, y, thinned = preferred(0)
    found = first_prior(None, thinned.codes, "auto", "single_set", scores=scores)
    share = thinned.among_unlabelled(found)
    true = y[thinned.labelled == 0].mean()
    assert share.low <= true <= share.high
    assert share.value == pytest.approx(true, abs=0.03)
    assert share.population_prior == pytest.approx(y.mean(), abs=0.03)
    assert share.label_frequency == pytest.approx(thinned.labelled[y].mean(), abs=0.06)


@pytest.mark.parametrize("prior", [0.15, (0.15, 0.1, 0.2)])
def test_a_given_share_comes_back_as_it_was(prior: float | tuple[float, float, float]) -> None:
    _, y, thinned = preferred(1)
    used = first_prior(None, thinned.codes, thinned.given(prior), "single_set")
    n_u, returned = int((thinned.labelled == 0).sum()), int((thinned.labelled == 1).sum() - (thinned.codes == 1).sum())
    assert used.value == pytest.approx((0.15 * n_u + returned) / (n_u + returned))
    back = thinned.among_unlabelled(used)
    expected = prior if isinstance(prior, tuple) else (prior, prior, prior)
    assert (back.value, back.low, back.high) == pytest.approx(expected)
    assert back.population_prior == pytest.approx((thinned.labelled.sum() + 0.15 * n_u) / 3000)
    assert thinned.given("auto") == "auto"


@pytest.mark.parametrize("scenario", ["single_set", "case_control"])
def test_nothing_changes_where_nothing_is_thinned_out_or_the_labelled_rows_are_a_sample_of_their_own(
    scenario: Scenario,
) -> None:
    _, _, thinned = preferred(2)
    whole = replace(thinned, kept=np.ones(3000, dtype=bool), scenario=scenario)
    estimate = given_prior(0.2, whole.codes, scenario)
    assert np.array_equal(whole.codes, whole.labelled)
    assert whole.rows.all()
    assert whole.among_unlabelled(estimate) is estimate
    apart = replace(thinned, scenario="case_control")
    assert np.array_equal(apart.codes, apart.labelled)
    assert np.array_equal(apart.rows, apart.kept)
    assert apart.given(0.2) == 0.2
    assert apart.among_unlabelled(estimate).value == 0.2
