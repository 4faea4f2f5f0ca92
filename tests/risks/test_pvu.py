"""PvU and the Elkan–Noto numbers behind it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier

from punce.errors import InputError
from punce.risks import PN, PvU, RiskWarning
from punce.risks.elkan_noto import (
    decision_threshold,
    duplicate_weights,
    label_frequency_from_positives,
    out_of_fold_scores,
    rescale_to_prior,
    weighted_duplicates,
)
from punce.risks.pvu import Correction
from tests.risks.cases import batch


def gaussian_pu(
    n: int, prior: float, n_p: int, distance: float = 1.0, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, PU labels, and P(y=1 | x, unlabelled) for unit Gaussians at ±distance in two dimensions."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.ones(n_p, dtype=bool), rng.random(n) < prior])
    X = rng.normal(size=(len(y), 2)) + np.where(y, distance, -distance)[:, None]
    labels = np.concatenate([np.ones(n_p, dtype=np.int8), np.zeros(n, dtype=np.int8)])
    odds = prior / (1 - prior) * np.exp(2.0 * distance * X.sum(1))
    return X, labels, odds / (1 + odds)


def test_no_correction_is_pn() -> None:
    scores, labels = batch(10, 30)
    assert torch.equal(PvU(correction="none")(scores, labels), PN()(scores, labels))


def test_true_weights_give_the_supervised_risk() -> None:
    # With w = the hidden labels themselves, weighted duplicates are supervised learning on all rows.
    scores, labels = batch(10, 30)
    hidden = ((torch.arange(40) % 3) == 0).double()
    y = torch.where(labels == 1, 1, hidden.long())
    assert torch.allclose(PvU()(scores, labels, hidden), PN()(scores, y), atol=1e-13)


def test_weights_may_be_the_array_that_is_made_for_them() -> None:
    scores, labels = batch(10, 30)
    weights = np.linspace(0, 1, 40)
    expected = PvU()(scores, labels, torch.from_numpy(weights))
    assert torch.equal(PvU()(scores, labels, weights), expected)
    assert torch.equal(PvU().value(scores, labels, weights), expected)


def test_missing_weights_are_explained() -> None:
    scores, labels = batch(10, 30)
    with pytest.raises(InputError, match="weighted_duplicates"):
        PvU()(scores, labels)
    with pytest.warns(RiskWarning, match="counts every unlabelled row positive with 0.4") as caught:
        constant = PvU(0.4)(scores, labels)
    assert caught[0].filename == __file__
    assert torch.equal(constant, PvU(0.4)(scores, labels, torch.full_like(scores, 0.4)))


def test_bad_weights_are_refused() -> None:
    scores, labels = batch(10, 30)
    with pytest.raises(InputError, match=r"weights must lie in \[0, 1\], got values from 0 to 2"):
        PvU()(scores, labels, torch.linspace(0, 2, 40))
    with pytest.raises(InputError, match="weights must have the shape of scores"):
        PvU()(scores, labels, torch.zeros(39))
    with pytest.raises(InputError, match="weights: 40 of 40 are not finite"):
        PvU()(scores, labels, torch.full((40,), float("nan")))
    with pytest.raises(InputError, match="weights belong to correction='weighted'"):
        PvU(correction="none")(scores, labels, torch.zeros(40))


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InputError, match="correction must be one of"):
        PvU(correction="nothing")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="needs prior="):
        PvU(correction="threshold")
    with pytest.raises(InputError, match="only surrogate='logistic'"):
        PvU(0.4, "threshold", surrogate="sigmoid")


@pytest.mark.parametrize("prior", [0.1, 0.5, 0.8])
def test_threshold_correction_cuts_where_the_posterior_is_one_half(prior: float) -> None:
    # Four cells with known p_P and p_N; the minimiser of the balanced risk is g = log p_P/p_U, cell by cell.
    p_p = np.array([0.6, 0.25, 0.1, 0.05])
    p_n = np.array([0.05, 0.15, 0.3, 0.5])
    p_u = prior * p_p + (1 - prior) * p_n
    best_score = np.log(p_p / p_u)
    posterior = prior * p_p / p_u
    cut = PvU(prior, "threshold").decision_score
    assert np.array_equal(best_score > cut, posterior > 0.5)
    assert PvU(prior).decision_score == 0.0
    # The same cells for a population that holds a fifth of labelled rows beside the unlabelled ones.
    p_all = 0.2 * p_p + 0.8 * p_u
    posterior_all = (0.2 + 0.8 * prior) * p_p / p_all
    cut_all = PvU(prior, "threshold", target_share=0.2).decision_score
    assert np.array_equal(best_score > cut_all, posterior_all > 0.5)


@pytest.mark.parametrize("correction", ["weighted", "none"])
def test_a_target_share_without_a_cut_to_move_is_refused(correction: Correction) -> None:
    with pytest.raises(InputError, match=f"cut of correction='threshold'; '{correction}' has no use for it"):
        PvU(0.4, correction, target_share=0.2)


def test_decision_threshold_has_elkan_and_notos_as_a_special_case() -> None:
    for prior, share in [(0.3, 0.5), (0.6, 0.1), (0.05, 0.02)]:
        c = share / (share + (1 - share) * prior)
        assert decision_threshold(prior, share, target_share=share) == pytest.approx(c / 2, abs=1e-15)
    assert decision_threshold(0.5) == pytest.approx(0.5)  # balanced P and U, half of U positive: cut at p_P = p_U
    with pytest.raises(InputError, match="nothing to decide"):
        decision_threshold(0.5, target_share=1.0)


def test_weights_recover_the_posterior() -> None:
    X, labels, posterior = gaussian_pu(6000, prior=0.3, n_p=2000)
    weights = weighted_duplicates(X, labels)
    is_u = labels == 0
    assert weights.shape == (8000,)
    assert (weights[~is_u] == 1).all()
    assert weights.min() >= 0.0
    assert weights.max() <= 1.0
    rescaled = weighted_duplicates(X, labels, prior=0.3)
    assert rescaled[is_u].mean() == pytest.approx(0.3, abs=1e-12)
    error = np.abs(rescaled[is_u] - posterior[is_u]).mean()
    # The logistic P-vs-U model is itself an approximation here (its true log-odds level off at c).
    assert error < 0.09
    assert error < np.abs(0.3 - posterior[is_u]).mean() / 4


def test_c_is_right_for_separable_classes_and_too_low_for_overlapping_ones() -> None:
    true_c = 2000 / (2000 + 0.3 * 6000)
    X, labels, _ = gaussian_pu(6000, prior=0.3, n_p=2000, distance=4.0)
    assert label_frequency_from_positives(out_of_fold_scores(X, labels), labels) == pytest.approx(true_c, abs=0.02)
    X, labels, _ = gaussian_pu(6000, prior=0.3, n_p=2000)
    assert label_frequency_from_positives(out_of_fold_scores(X, labels), labels) < true_c - 0.04


def test_scores_are_out_of_fold() -> None:
    # Pure noise: a forest that had seen the row would give labelled rows a far higher g than unlabelled ones.
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(400, 5)), (np.arange(400) % 4 == 0).astype(np.int8)
    forest = RandomForestClassifier(n_estimators=20, random_state=0)
    g = out_of_fold_scores(X, labels, model=forest)
    assert abs(g[labels == 1].mean() - g[labels == 0].mean()) < 0.05
    assert g.mean() == pytest.approx(0.25, abs=0.03)
    seen = forest.fit(X, labels).predict_proba(X)[:, 1]
    assert seen[labels == 1].mean() - seen[labels == 0].mean() > 0.4


def test_frames_and_seeds() -> None:
    X, labels, _ = gaussian_pu(300, prior=0.3, n_p=60)
    from_array = out_of_fold_scores(X, labels, random_state=1)
    from_frame = out_of_fold_scores(pd.DataFrame(X, index=range(1000, 1360)), labels, random_state=1)
    np.testing.assert_allclose(from_frame, from_array, rtol=1e-9)
    assert not np.array_equal(from_array, out_of_fold_scores(X, labels, random_state=2))


def test_duplicate_weights_formula() -> None:
    g = np.array([0.0, 0.1, 0.5, 1.0])
    assert duplicate_weights(g, 0.5) == pytest.approx([0.0, 1 / 9, 1.0, 1.0])
    assert duplicate_weights(g, 0.8)[1:3] == pytest.approx([0.25 / 9, 0.25])
    assert label_frequency_from_positives(g, np.array([0, 1, 1, 0])) == pytest.approx(0.3)


@pytest.mark.parametrize("prior", [0.001, 0.2, 0.5, 0.9, 0.999])
def test_rescaling_meets_the_prior_exactly_and_keeps_the_order(prior: float) -> None:
    odds = np.random.default_rng(3).lognormal(sigma=3.0, size=501)
    weights = rescale_to_prior(odds, prior)
    assert weights.mean() == pytest.approx(prior, abs=1e-12)
    assert ((weights >= 0) & (weights <= 1)).all()
    assert (np.diff(weights[np.argsort(odds)]) >= 0).all()


def test_rescaling_handles_ties_zeros_and_one_row() -> None:
    assert rescale_to_prior(np.ones(4), 0.3) == pytest.approx([0.3] * 4)
    assert rescale_to_prior(np.array([2.0, 0.0, 0.0, 2.0]), 0.5) == pytest.approx([1, 0, 0, 1])
    assert rescale_to_prior(np.array([7.0]), 0.25) == pytest.approx([0.25])
    seven = np.repeat([1.0, 0.0], [7, 93])
    assert rescale_to_prior(seven, 0.07) == pytest.approx(seven)  # 0.07 · 100 > 7 in floating point
    with pytest.raises(InputError, match="only 1 of 4 unlabelled rows"):
        rescale_to_prior(np.array([2.0, 0.0, 0.0, 0.0]), 0.5)
    with pytest.raises(InputError, match="odds must be finite"):
        rescale_to_prior(np.array([np.nan]), 0.5)


def test_too_few_rows_are_refused_with_the_count() -> None:
    X = np.zeros((20, 2))
    labels = np.r_[np.ones(3), np.zeros(17)].astype(np.int8)
    with pytest.raises(InputError, match="3 rows of the rarer kind"):
        out_of_fold_scores(X, labels)
    with pytest.raises(InputError, match="X has 20 rows but there are 19 labels"):
        out_of_fold_scores(X, labels[:-1])
    with pytest.raises(InputError, match="no labelled positive"):
        out_of_fold_scores(X, np.zeros(20, dtype=np.int8))
    with pytest.raises(InputError, match="Elkan–Noto weighting is defined for"):
        out_of_fold_scores(X, -labels)
    with pytest.raises(InputError, match="at least one labelled positive"):
        label_frequency_from_positives(np.zeros(3), np.zeros(3))
