"""What every estimator in the catalogue promises."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

from punce.errors import InputError
from punce.priors import PRIORS, PriorEstimate, PriorWarning, estimate_prior
from punce.scenario import label_frequency, population_prior
from tests.priors.mixtures import Mixture, fast_classifier, gaussians

METHODS = sorted(PRIORS)
INVARIANT = [name for name in METHODS if PRIORS[name].reads == "scores"]

pytestmark = pytest.mark.filterwarnings("ignore::punce.priors.PriorWarning")


QUICK: dict[str, dict[str, int]] = {"km1": {"resamples": 2}, "km2": {"resamples": 2}, "elkan_noto": {"bootstrap": 20}}


def estimate(data: Mixture, method: str, **arguments: Any) -> PriorEstimate:
    arguments = {**QUICK.get(method, {}), **arguments}
    return estimate_prior(data.X, data.labels, method, **fast(method), **arguments)


def fast(method: str) -> dict[str, Any]:
    return {"classifier": fast_classifier()} if PRIORS[method].has_classifier else {}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("share", [0.1, 0.5, 0.8])
def test_finds_the_share_of_separable_classes(method: str, share: float) -> None:
    found = estimate(gaussians(share, n_p=400, n_u=800), method)
    assert 0.0 <= found.low <= found.value <= found.high <= 1.0
    assert found.value == pytest.approx(share, abs=0.15)


@pytest.mark.parametrize("method", METHODS)
def test_no_positive_hides(method: str) -> None:
    assert estimate(gaussians(0.0, gap=8.0), method).value < 0.1


@pytest.mark.parametrize("method", METHODS)
def test_hopeless_rows_are_near_one_or_flagged(method: str) -> None:
    data = gaussians(0.5, gap=0.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = estimate(data, method)
    assert found.value > 0.8 or found.warnings
    assert [str(w.message) for w in caught if w.category is PriorWarning] == list(found.warnings)


@pytest.mark.parametrize("method", METHODS)
def test_same_seed_same_answer(method: str) -> None:
    data = gaussians(0.3, n_p=60, n_u=200, gap=3.0)
    first, second = (estimate(data, method, random_state=7) for _ in range(2))
    assert first == second


@pytest.mark.parametrize("method", METHODS)
def test_one_answer_whether_alone_or_in_the_table(method: str, table: dict[str, PriorEstimate]) -> None:
    data = gaussians(0.3, n_p=60, n_u=200, gap=3.0)
    alone = estimate_prior(data.X, data.labels, method, **fast(method))
    assert (alone.value, alone.low, alone.high) == (table[method].value, table[method].low, table[method].high)


@pytest.fixture(scope="module")
def table() -> dict[str, PriorEstimate]:
    data = gaussians(0.3, n_p=60, n_u=200, gap=3.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PriorWarning)
        found = estimate_prior(data.X, data.labels, "all", classifier=fast_classifier())
    return {e.method: e for e in found}


@pytest.mark.parametrize("method", METHODS)
def test_scores_alone_are_enough(method: str) -> None:
    data = gaussians(0.4, n_p=400, n_u=800)
    found = estimate_prior(None, data.labels, method, scores=data.X[:, 0])
    assert found.value == pytest.approx(0.4, abs=0.12)


@pytest.mark.parametrize("method", INVARIANT)
@pytest.mark.parametrize("change", [np.exp, np.cbrt, lambda s: 1e6 * s - 3.0], ids=["exp", "cbrt", "affine"])
def test_increasing_maps_of_the_scores_change_nothing(method: str, change: Any) -> None:
    data = gaussians(0.4, n_p=80, n_u=300, gap=2.0)
    scores = np.round(data.X[:, 0], 2)  # with ties
    plain, mapped = (estimate_prior(None, data.labels, method, scores=s) for s in (scores, change(scores)))
    assert (plain.value, plain.low, plain.high) == (mapped.value, mapped.low, mapped.high)


@pytest.mark.parametrize("method", INVARIANT)
def test_the_order_of_rows_does_not_matter_to_scores(method: str) -> None:
    data = gaussians(0.4, n_p=80, n_u=300, gap=2.0)
    order = np.random.default_rng(1).permutation(len(data.labels))
    plain = estimate_prior(None, data.labels, method, scores=data.X[:, 0])
    shuffled = estimate_prior(None, data.labels[order], method, scores=data.X[order, 0])
    assert plain.value == shuffled.value


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("scenario", ["single_set", "case_control"])
def test_scenario_changes_only_the_population_prior(method: str, scenario: Any) -> None:
    data = gaussians(0.4, n_p=60, n_u=200)
    found = estimate(data, method, scenario=scenario)
    assert found.population_prior == population_prior(found.value, 60, 200, scenario)
    assert found.label_frequency == label_frequency(found.value, 60, 200)
    assert found.value == estimate(data, method).value


@pytest.mark.parametrize("method", METHODS)
def test_tables_with_missing_cells_and_categories(method: str) -> None:
    data = gaussians(0.5, n_p=200, n_u=400)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(data.X, columns=["a", "b"])
    frame.loc[rng.random(len(frame)) < 0.2, "a"] = np.nan
    frame["kind"] = np.where(data.is_positive ^ (rng.random(len(frame)) < 0.05), "x", "y")
    frame.loc[rng.random(len(frame)) < 0.1, "kind"] = None
    found = estimate_prior(frame, data.labels, method)
    assert found.value == pytest.approx(0.5, abs=0.25)


@pytest.mark.parametrize("method", METHODS)
def test_nothing_to_rank_by(method: str) -> None:
    labels = np.r_[np.ones(20), np.zeros(30)]
    with pytest.raises(InputError, match=r"20 labelled from 30 unlabelled rows.*give more rows, or"):
        estimate_prior(None, labels, method, scores=np.full(50, 0.3))
    with pytest.raises(InputError, match="all 3 feature columns are constant"):
        estimate_prior(np.ones((50, 3)), labels, method)


@pytest.mark.parametrize("method", [*METHODS, "all"])
def test_refuses_rows_no_estimate_can_come_from(method: str) -> None:
    X = np.random.default_rng(0).normal(size=(40, 2))
    with pytest.raises(InputError, match="no labelled positive"):
        estimate_prior(X, np.zeros(40), method)
    with pytest.raises(InputError, match="no unlabelled row"):
        estimate_prior(X, np.ones(40), method)
    with pytest.raises(InputError, match="first at row 3"):
        estimate_prior(None, np.r_[1, 1, np.zeros(38)], method, scores=np.r_[0, 0, 0, np.nan, np.ones(36)])


@pytest.mark.parametrize("method", METHODS)
def test_two_labelled_rows_give_an_answer_with_a_warning(method: str) -> None:
    data = gaussians(0.5, n_p=2, n_u=3)
    if method == "tedn":
        with pytest.raises(InputError, match="needs 3 labelled positives"):
            estimate(data, method)
        return
    found = estimate(data, method)
    assert 0.0 <= found.low <= found.value <= found.high <= 1.0
    assert "only 2 labelled positives" in found.warnings[0]
