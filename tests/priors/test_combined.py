"""The likelihood behind the default estimate, and what the default promises."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import norm

from punce.priors import combined, estimate_prior, learners, roc
from punce.priors.copies import find_copies
from punce.priors.sample import Sample, Scores
from tests.priors.mixtures import gaussians

pytestmark = pytest.mark.filterwarnings("ignore::punce.priors.PriorWarning")

Floats = npt.NDArray[np.float64]


# --- The likelihood --------------------------------------------------------------------------------------------------


def likelihood_reference(p: Floats, u: Floats, q: Floats, share: float) -> float:
    """Every row one by one: which cell of v its pooled rank falls into, and how probable its label is there."""
    n_p, n = len(p), len(p) + len(u)
    edges = [n_p / n * v + (1 - n_p / n) * (share * v + (1 - share) * q_v) for v, q_v in zip(roc.EDGES, q, strict=True)]
    total = 0.0
    for rank, (_, labelled) in enumerate(sorted([(-s, True) for s in p] + [(-s, False) for s in u])):
        for k in range(len(edges) - 1):
            # A row stands for the stretch of ranks around it; cells may cut through.
            inside = max(0.0, min(edges[k + 1], (rank + 1) / n) - max(edges[k], rank / n)) * n
            if inside > 0:
                probability = n_p / n * (roc.EDGES[k + 1] - roc.EDGES[k]) / (edges[k + 1] - edges[k])
                total += inside * math.log(probability if labelled else 1.0 - probability)
    return total


@pytest.mark.parametrize("share", [0.05, 0.4, 0.9])
def test_likelihood_is_that_of_the_labels_given_the_ranks(share: float) -> None:
    rng = np.random.default_rng(3)
    p, u = rng.normal(2.0, 1.0, 32), np.r_[rng.normal(2.0, 1.0, 40), rng.normal(0.0, 1.0, 56)]  # 128: divides the table
    q = roc.shapes()[[0, 7, 100]]
    found = roc.log_likelihood(Scores(p, u), q, np.array([share]))
    expected = [[likelihood_reference(p, u, shape, share)] for shape in q]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_the_true_share_and_shape_win() -> None:
    rng = np.random.default_rng(0)
    p, u = rng.normal(2.0, 1.0, 2000), np.r_[rng.normal(2.0, 1.0, 1200), rng.normal(0.0, 1.0, 2800)]
    true_shape = norm.cdf(norm.ppf(roc.EDGES) - 2.0)[None, :]
    shares = np.array([0.2, 0.25, 0.3, 0.35, 0.4])
    assert roc.log_likelihood(Scores(p, u), true_shape, shares)[0].argmax() == 2


def test_shapes_are_distributions_below_the_positives() -> None:
    q = roc.shapes()
    np.testing.assert_allclose(q[:, [0, -1]], [[0.0, 1.0]] * len(q), atol=1e-12)
    assert (np.diff(q) >= 0).all()
    assert (q[:, 1:-1].mean(axis=1) < roc.EDGES[1:-1].mean()).all()


# --- The estimate ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("share", "most"), [(0.1, 0.05), (0.5, 0.05), (0.8, 0.08)])
def test_intervals_cover_where_the_classes_overlap(share: float, most: float) -> None:
    """Scores of AUC 0.92, where no threshold isolates positives: 20 draws, at least 17 hold the truth."""
    found = []
    for seed in range(20):
        data = gaussians(share, n_p=200, n_u=1000, gap=2.0, seed=seed)
        found.append(estimate_prior(None, data.labels, scores=data.X[:, 0]))
    assert sum(e.low <= share <= e.high for e in found) >= 17
    assert np.mean([e.value for e in found]) == pytest.approx(share, abs=most)


def test_learners_that_disagree_widen_the_interval() -> None:
    sure, other = (np.clip((combined.GRID - at) / 0.02 + 0.5, 0.0, 1.0) for at in (0.3, 0.5))
    alone, mixed = (combined._interval(combined.pool(cdfs, [1.0, 1.0])) for cdfs in ([sure, sure], [sure, other]))
    assert alone == (pytest.approx(0.291), pytest.approx(0.309))
    assert mixed == (pytest.approx(0.292), pytest.approx(0.508))
    vague = combined.GRID
    assert combined._mean(combined.pool([sure, vague], [1.0, 1.0])) == pytest.approx(0.3, abs=0.01)


def test_a_learner_that_leaves_the_classes_mixed_counts_little() -> None:
    near, far = (np.clip((combined.GRID - at) / 0.02 + 0.5, 0.0, 1.0) for at in (0.3, 0.5))
    assert combined._mean(combined.pool([near, far], [0.45**4, 0.1**4])) == pytest.approx(0.3, abs=0.002)


def test_four_views_of_a_table() -> None:
    data = gaussians(0.4, n_p=60, n_u=200, gap=3.0)
    parts = estimate_prior(data.X, data.labels).diagnostics["parts"]
    assert list(parts) == ["boosting", "linear", "kernel", "mean"]


@pytest.mark.parametrize("share", [0.1, 0.3, 0.6])
def test_much_overlap_is_not_taken_for_a_high_share(share: float) -> None:
    """Scores of AUC 0.76: with strong classifiers alone in mind a weak contrast looks like many positives."""
    found = []
    for seed in range(12):
        data = gaussians(share, n_p=300, n_u=1500, gap=1.0, seed=seed)
        found.append(estimate_prior(None, data.labels, scores=data.X[:, 0]))
    assert abs(np.mean([e.value for e in found]) - share) < 0.1
    assert sum(e.low <= share <= e.high for e in found) >= 10


@pytest.mark.parametrize("seed", range(5))
def test_noise_cannot_be_known(seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels = np.arange(1000) < 100
    found = estimate_prior(rng.normal(size=(1000, 5)), labels, random_state=seed)
    assert found.reason
    assert (found.low, found.high) == (0.0, 1.0)
    assert 0.3 < found.value < 0.8
    assert any("cannot be known" in text for text in found.warnings)


def test_a_share_near_one_with_many_labels_is_known() -> None:
    data = gaussians(0.9, n_p=500, n_u=1000, gap=5.0)
    found = estimate_prior(data.X, data.labels)
    assert found.reason == ""
    assert found.value == pytest.approx(0.9, abs=0.05)


# --- Copies ----------------------------------------------------------------------------------------------------------


def test_copies_of_labelled_rows_are_a_lower_end_and_share_a_fold() -> None:
    data = gaussians(0.02, n_p=60, n_u=200, gap=8.0)
    X = np.vstack([data.X, data.X[data.labels == 1]])  # the labelled rows are among the unlabelled ones as well
    labels = np.r_[data.labels, np.zeros(60, np.int8)]
    found = estimate_prior(X, labels)
    assert found.diagnostics["copies"] == pytest.approx(60 / 260)
    assert found.low >= 60 / 260
    assert found.value == pytest.approx(64 / 260, abs=0.05)
    fold_with = Sample(X, labels == 1).copies.fold_with
    np.testing.assert_array_equal(fold_with[-60:], np.flatnonzero(data.labels == 1))


def test_repeats_of_a_coarse_table_say_nothing() -> None:
    rng = np.random.default_rng(0)
    values = rng.integers(0, 3, (300, 2)).astype(np.float32)
    found = find_copies(values, np.arange(300) < 50)
    assert found.share == 0.0
    np.testing.assert_array_equal(found.fold_with, np.arange(300))


def test_the_kernel_learner_leaves_very_long_tables_to_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    data = gaussians(0.3, 40, 200)
    sample = Sample(data.X, data.labels == 1)
    assert "kernel" in learners.learned_scores(sample)
    monkeypatch.setattr(learners, "_MOST_KERNEL_ROWS", 100)
    assert "kernel" not in learners.learned_scores(sample)
