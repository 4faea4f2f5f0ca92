"""The share of positives among new rows, on scores whose distribution is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from punce.judging.calibration import PUCalibrator
from punce.judging.shift import SeenScores, Share, count, em_share
from punce.judging.used_prior import given_prior
from punce.labels import Labels


def scores(rng: np.random.Generator, n: int, share: float, distance: float = 2.0) -> np.ndarray:
    return rng.normal(size=n) + distance * (rng.random(n) < share)


def shares_of(rng: np.random.Generator, new: np.ndarray, prior: tuple[float, ...], far: float = 2.0) -> Share:
    p, u = scores(rng, 150, 1.0, far), scores(rng, 1_500, 0.3, far)
    calibrator = PUCalibrator.fit(p, u, prior[0])
    seen = SeenScores(count(calibrator.probability(p)), count(calibrator.probability(u)), prior, 0.0, prior[0])  # type: ignore[arg-type]
    return seen.share(count(calibrator.probability(new)))


@pytest.mark.parametrize("share", [0.05, 0.3, 0.8])
def test_the_interval_holds_the_share_as_often_as_it_says(share: float):
    covered, differs = 0, 0
    for seed in range(25):
        rng = np.random.default_rng(seed)
        found = shares_of(rng, scores(rng, 800, share), (0.3, 0.3, 0.3))
        covered += found.estimate.low <= share <= found.estimate.high
        differs += found.differs
        assert abs(found.estimate.value - share) < 0.15
    assert covered >= 19  # 90 % of 25, less what chance takes
    assert differs <= 1 if share == 0.3 else differs == 25


def test_an_uncertain_prior_widens_the_interval_but_not_the_doubt_whether_the_mix_differs():
    rng = np.random.default_rng(0)
    new = scores(rng, 800, 0.3)
    sure = shares_of(np.random.default_rng(1), new, (0.3, 0.3, 0.3))
    unsure = shares_of(np.random.default_rng(1), new, (0.3, 0.2, 0.4))
    assert unsure.estimate.high - unsure.estimate.low > 1.5 * (sure.estimate.high - sure.estimate.low)
    assert unsure.k == pytest.approx(sure.k)
    assert not unsure.differs


def test_scores_that_say_nothing_give_no_share():
    rng = np.random.default_rng(0)
    found = shares_of(rng, scores(rng, 500, 0.7, 0.0), (0.3, 0.3, 0.3), 0.0)
    assert np.isnan(found.estimate.value)
    assert "do not tell labelled rows from unlabelled" in found.estimate.reason
    assert not found.differs


def test_em_finds_the_share_of_calibrated_probabilities():
    rng = np.random.default_rng(0)
    x = scores(rng, 200_000, 0.15)
    ratio = np.exp(2.0 * x - 2.0)  # of N(2, 1) to N(0, 1)
    assert em_share(np.ones(len(x)), ratio) == pytest.approx(0.15, abs=0.005)
    assert em_share(np.ones(3), np.array([0.1, 0.2, 0.3])) == pytest.approx(0.0, abs=1e-9)


def test_rows_like_the_population_are_no_surprise_to_a_model_of_the_unlabelled_rows():
    rng = np.random.default_rng(0)
    labels: Labels = np.array([1] * 600 + [0] * 1_400)
    p, u, new = scores(rng, 600, 1.0), scores(rng, 1_400, 0.1), scores(rng, 1_000, 0.37)  # (600 + 140)/2000
    calibrator = PUCalibrator.fit(p, u, 0.1)
    at = calibrator.probability
    for beta, differs in ((0.3, False), (0.0, True)):
        seen = SeenScores.of(at(p), at(u), given_prior(0.1, labels, "single_set"), beta, calibrator.prior)
        found = seen.share(count(at(new)))
        assert found.estimate.low < 0.37 < found.estimate.high
        assert found.differs is differs
    assert SeenScores.from_json(seen.to_json()).share(count(at(new))) == found


def test_few_rows_give_a_wide_interval_and_none_give_no_share():
    covered = differs = 0
    for seed in range(25):
        rng = np.random.default_rng(seed)
        found = shares_of(rng, scores(rng, 20, 0.05, 4.0), (0.3, 0.3, 0.3), 4.0)
        covered += found.estimate.low <= 0.05 <= found.estimate.high
        differs += shares_of(rng, scores(rng, 5, 0.3, 4.0), (0.3, 0.3, 0.3), 4.0).differs
    assert covered >= 20
    assert differs <= 2
    assert "no row" in shares_of(rng, np.zeros(0), (0.3, 0.3, 0.3)).estimate.reason


@pytest.mark.parametrize("score", [-3.0, 0.0, 5.0])
def test_one_row_gives_no_share(score: float):
    found = shares_of(np.random.default_rng(0), np.array([score]), (0.3, 0.3, 0.3))
    assert np.isnan(found.estimate.value)
    assert "it may lie anywhere between" in found.estimate.in_words()
    assert not found.differs


def test_equal_probabilities_give_no_share():
    """Rounding must not pass for a difference between labelled and unlabelled rows."""
    for n_p, n_u in ((80, 720), (7, 333), (30, 970)):
        seen = SeenScores(count(np.full(n_p, 0.557)), count(np.full(n_u, 0.557)), (0.5, 0.0, 1.0), 0.0, 0.557)
        found = seen.share(count(np.full(800, 0.557)))
        assert np.isnan(found.estimate.value)
        assert not found.differs


def test_an_assumed_prior_gives_no_share_but_still_tells_whether_the_mix_differs():
    rng = np.random.default_rng(0)
    p, u, new = (expit(scores(rng, n, share)) for n, share in ((150, 1.0), (1_500, 0.3), (800, 0.9)))
    seen = SeenScores(count(p), count(u), (0.3, 0.0, 1.0), 0.0, 0.3)
    found = seen.share(count(new), has_prior=False)
    assert "is not known" in found.estimate.in_words()
    assert found.differs
