from __future__ import annotations

import json

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from punce.errors import InputError
from punce.judging.calibration import Method, PUCalibrator

METHODS: list[Method] = ["sigmoid", "isotonic"]


def two_gaussians(
    n_p: int, n_u: int, prior: float, seed: int = 0
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Scores of P and U, and the true P(y=1 | s) of the U rows."""
    random = np.random.default_rng(seed)
    y = random.random(n_u) < prior
    u = random.normal(np.where(y, 1.0, -1.0), 1.0)
    truth = 1 / (1 + (1 - prior) / prior * np.exp(-2 * u))
    return random.normal(1.0, 1.0, n_p), u, truth


@pytest.mark.parametrize("prior", [0.1, 0.5, 0.9])
@pytest.mark.parametrize(("method", "n_p", "tolerance"), [("sigmoid", 100, 0.05), ("isotonic", 3000, 0.04)])
def test_probabilities_are_the_true_posterior(method: Method, n_p: int, tolerance: float, prior: float) -> None:
    p, u, truth = two_gaussians(n_p, 8000, prior)
    ours = PUCalibrator.fit(p, u, prior, method).probability(u)
    assert np.abs(ours - truth).mean() < tolerance
    assert ours.mean() == pytest.approx(prior, abs=0.01)


@settings(max_examples=30, deadline=None)
@given(
    n_p=st.integers(1, 60),
    n_u=st.integers(1, 80),
    prior=st.floats(0.01, 0.99),
    seed=st.integers(0, 99),
    method=st.sampled_from(METHODS),
)
def test_monotone_within_the_unit_interval_for_any_sample(
    n_p: int, n_u: int, prior: float, seed: int, method: Method
) -> None:
    p, u, _ = two_gaussians(n_p, n_u, prior, seed)
    grid = np.linspace(-6, 6, 200)
    probability = PUCalibrator.fit(p, u, prior, method).probability(grid)
    assert np.isfinite(probability).all()
    assert probability.min() >= 0
    assert probability.max() <= 1
    assert (np.diff(probability) >= -1e-12).all()


def test_constant_and_separated_scores_stay_sensible() -> None:
    for method in METHODS:
        constant = PUCalibrator.fit(np.zeros(5), np.zeros(7), 0.3, method).probability([0.0, 1.0])
        assert constant == pytest.approx([0.3, 0.3], abs=0.02)
        separated = PUCalibrator.fit(np.full(50, 9.0), np.r_[np.full(30, 9.0), np.full(70, -9.0)], 0.3, method)
        assert separated.probability([-9.0, 9.0]) == pytest.approx([0.0, 1.0], abs=0.05)


@pytest.mark.parametrize(("n_p", "n_u"), [(2, 3), (10, 200), (50, 4000), (2000, 50)])
@pytest.mark.parametrize("method", METHODS)
def test_no_more_certainty_than_the_held_out_rows_show(method: Method, n_p: int, n_u: int) -> None:
    prior, n_hidden = 0.3, max(1, round(0.3 * n_u))
    separated = PUCalibrator.fit(
        np.linspace(5, 9, n_p), np.r_[np.linspace(5, 9, n_hidden), np.linspace(-9, -5, n_u - n_hidden)], prior, method
    )
    low, high = separated.probability([-99.0, 99.0])
    doubt = 1 / (2 + 1 / (1 / n_p + 1 / n_u))
    assert low >= prior * doubt * (1 - 1e-9)
    assert high <= 1 - (1 - prior) * doubt * (1 - 1e-9)
    assert high - low > 0.7 * (1 - doubt)  # and not much less, where the classes are clear


@pytest.mark.parametrize("prior", [0.05, 0.4, 0.95])
@pytest.mark.parametrize(("n_p", "n_u"), [(3, 5), (40, 700), (900, 3000)])
@pytest.mark.parametrize("method", METHODS)
def test_the_mean_over_unlabelled_rows_is_the_prior(method: Method, n_p: int, n_u: int, prior: float) -> None:
    p, u, _ = two_gaussians(n_p, n_u, prior)
    assert PUCalibrator.fit(p, u, prior, method).probability(u).mean() == pytest.approx(prior, abs=1e-6)


@pytest.mark.parametrize(("method", "n_p"), [("sigmoid", 20), ("isotonic", 800)])
def test_a_prior_that_is_too_high_calls_no_clear_negative(method: Method, n_p: int) -> None:
    random = np.random.default_rng(0)
    u = np.concatenate([random.normal(4.0, 1.0, 600), random.normal(-4.0, 1.0, 1400)])
    calibrator = PUCalibrator.fit(random.normal(4.0, 1.0, n_p), u, 0.5, method)  # the truth is 0.3
    assert calibrator.score_at(0.5) > -2.0
    assert calibrator.probability(u).mean() < 0.45


def test_few_labelled_rows_do_not_make_a_step_at_the_lowest_of_them() -> None:
    """Log-loss on new rows, ten held-out labelled ones: a step would cost about 0.3 and more."""
    losses = []
    for seed in range(10):
        random = np.random.default_rng(seed)
        y = random.random(4300) < 0.5
        scores = random.normal(np.where(y, 2.5, -2.5), 1.0)
        calibrator = PUCalibrator.fit(random.normal(2.5, 1.0, 10), scores[:300], 0.5)
        probability = calibrator.probability(scores[300:])
        losses.append(-np.log(np.where(y[300:], probability, 1 - probability)).mean())
    assert np.mean(losses) < 0.15


def test_rows_inside_an_isotonic_step_keep_their_order() -> None:
    p, u, _ = two_gaussians(600, 3000, 0.4)
    calibrator = PUCalibrator.fit(p, u, 0.4, "isotonic")
    inside = np.sort(u[(u > calibrator.scores[0]) & (u < calibrator.scores[-1])])
    assert len(inside) > 0.9 * len(u)
    assert (np.diff(calibrator.logits) > 0).mean() > 0.9  # the others are at the upper limit
    below_limit = calibrator.probability(inside) < calibrator.probability(calibrator.scores[-1])
    assert (np.diff(calibrator.probability(inside[below_limit])) > 0).all()


def test_another_share_at_deployment_shifts_the_odds() -> None:
    p, u, _ = two_gaussians(2000, 5000, 0.25)
    calibrator = PUCalibrator.fit(p, u, 0.25)
    at_quarter, at_tenth = calibrator.probability([0.3]), calibrator.probability([0.3], deploy_prior=0.1)
    odds = at_quarter / (1 - at_quarter) * (0.1 / 0.9) / (0.25 / 0.75)
    assert at_tenth == pytest.approx(odds / (1 + odds))
    assert calibrator.shifted(0.6).probability(u) == pytest.approx(calibrator.probability(u, 0.6), abs=1e-9)
    assert calibrator.shifted(0.6).prior == 0.6


@pytest.mark.parametrize("wanted", [0.05, 0.3, 0.5, 0.9])
def test_the_score_at_a_probability_is_where_it_is_first_reached(wanted: float) -> None:
    p, u, _ = two_gaussians(800, 2000, 0.4)
    for method in METHODS:
        calibrator = PUCalibrator.fit(p, u, 0.4, method)
        cut = calibrator.score_at(wanted)
        assert ((u >= cut) == (calibrator.probability(u) >= wanted)).all()


@pytest.mark.parametrize("wanted", [1e-6, 0.05, 0.5, 0.9, 1 - 1e-6])
@pytest.mark.parametrize("method", METHODS)
def test_the_margin_says_whether_a_probability_is_reached_and_keeps_the_order(method: Method, wanted: float) -> None:
    """However far out the row: the first and the last of these probabilities are below and above all there are."""
    p, u, _ = two_gaussians(800, 2000, 0.4)
    calibrator = PUCalibrator.fit(p, u, 0.4, method)
    scores = np.sort(np.concatenate([u, np.linspace(-50, 50, 401), [-1e9, 1e9]]))
    margin = calibrator.margin(scores, wanted)
    assert ((margin >= 0) == (calibrator.probability(scores) >= wanted)).all()
    assert (np.diff(margin) >= 0).all()
    assert (np.diff(margin[1:-1][np.append(True, np.diff(scores[1:-1]) > 1e-9)]) > 0).all()


def test_no_score_reaches_a_probability_beyond_all_and_every_score_one_below() -> None:
    p, u, _ = two_gaussians(60, 200, 0.4)
    calibrator = PUCalibrator.fit(p, u, 0.4)
    assert calibrator.score_at(1 - 1e-9) == np.inf
    assert calibrator.score_at(1e-9) == -np.inf


def test_it_survives_json() -> None:
    p, u, _ = two_gaussians(60, 90, 0.4)
    calibrator = PUCalibrator.fit(p, u, 0.4)
    again = PUCalibrator.from_json(json.loads(json.dumps(calibrator.to_json())))
    assert again == calibrator


def test_refusals() -> None:
    with pytest.raises(InputError, match="held-out scores of labelled rows"):
        PUCalibrator.fit([], [0.0], 0.3)
    with pytest.raises(InputError, match="unlabelled rows: 1 of 2 is not finite, first at row 1"):
        PUCalibrator.fit([0.0], [0.0, np.nan], 0.3)
    with pytest.raises(InputError, match="prior must lie in"):
        PUCalibrator.fit([0.0], [0.0], 1.0)
    with pytest.raises(InputError, match="calibration method"):
        PUCalibrator.fit([0.0], [0.0], 0.3, "platt")  # type: ignore[arg-type]


# Rows of known class ------------------------------------------------------------------------------------------------


def test_rows_of_known_class_correct_probabilities_that_biased_labels_put_too_low() -> None:
    """Only the highest-scored positives are labelled, so the rest looks negative; sixty judged rows say otherwise."""
    rng = np.random.default_rng(0)
    y = rng.random(3000) < 0.4
    scores = np.where(y, 1.0, -1.0) + rng.normal(size=3000)
    map_of = PUCalibrator.fit(np.sort(scores[y])[-100:], scores, 0.05)
    # Chosen by their score, most of them near the boundary: that must not matter.
    judged = rng.choice(3000, 60, replace=False, p=(w := np.exp(-np.abs(scores))) / w.sum())
    bent = map_of.bent(scores[judged], y[judged])
    assert map_of.probability(scores).mean() < 0.1
    assert bent.probability(scores).mean() == pytest.approx(y.mean(), abs=0.1)
    assert np.all(np.diff(bent.probability(np.sort(scores))) >= 0)


def test_rows_of_known_class_that_agree_change_little() -> None:
    rng = np.random.default_rng(1)
    y = rng.random(3000) < 0.4
    scores = np.where(y, 1.0, -1.0) + rng.normal(size=3000)
    map_of = PUCalibrator.fit(scores[y][:300], scores, 0.4)
    judged = rng.choice(3000, 200, replace=False)
    bent = map_of.bent(scores[judged], y[judged])
    assert np.abs(bent.probability(scores) - map_of.probability(scores)).mean() < 0.05
