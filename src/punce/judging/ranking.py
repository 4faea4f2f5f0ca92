"""How well scores rank, without negatives: AUC of labelled (P) against unlabelled (U) rows, and what follows from it.

U holds a share π of positives, so  AUC_PU = π/2 + (1 − π)·AUC.  Solved for AUC this divides the noise of AUC_PU by
1 − π and can leave [0, 1]. Where calibrated probabilities p(x) of the rows of U are at hand, AUC is instead that of P
against U with every row of U weighing 1 − p, its chance of being a negative: the same number in expectation, always
within [0, 1], and with an error about 1 − π/2 times as large (simulated, as in benchmarks/honesty.py).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.stats import norm

from punce.errors import InputError, number_of
from punce.judging.estimates import Estimate, estimate_of, squared_error
from punce.labels import NEGATIVE, POSITIVE, Labels
from punce.row_numbers import floats_of
from punce.scenario import check_prior

Floats = npt.NDArray[np.float64]
_BEYOND_CHANCE = 3.0  # standard errors of AUC_PU above one half
_DOUBT = 0.5  # rows of each side
_WIDEST_AUC = 0.2  # of the AUC that assumes no shape of the scores: beyond, its weighted form is off by points


def auc_between(positive_scores: npt.ArrayLike, other_scores: npt.ArrayLike) -> float:
    """P(a positive scores above another row), ties counting half. O(n log n)."""
    return float(share_below(*score_pair(positive_scores, other_scores)).mean())


def score_pair(positive_scores: npt.ArrayLike, unlabelled_scores: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Both columns checked. Infinite scores are fine: every number made of them rests on their order alone."""
    return (
        checked_column(positive_scores, "positive_scores", finite=False),
        checked_column(unlabelled_scores, "unlabelled_scores", finite=False),
    )


def is_beyond_chance(p: Floats, u: Floats) -> bool:
    """Whether labelled rows rank above unlabelled ones by more than chance would make them (Mann-Whitney)."""
    chance = np.sqrt((len(p) + len(u) + 1) / (12 * len(p) * len(u)))
    return bool(auc_between(p, u) > 0.5 + _BEYOND_CHANCE * chance)


def corrected_auc_draws(p: Floats, u: Floats, priors: Floats, rng: np.random.Generator) -> Floats:
    """(AUC_PU − π/2)/(1 − π), not kept in [0, 1]; priors[0] is the estimate, the rest are draws. Shape: (1 + B,)."""
    of_p, of_u = share_below(p, u), share_below(u, p)
    # DeLong et al. 1988. Without doubt, intervals from ten labelled rows that are narrow enough to be stated hold the
    # true AUC in half of all draws, and those from two in a sixth (tests/judging/test_metrics.py).
    error = np.sqrt(squared_error(of_p, _DOUBT) + squared_error(of_u, _DOUBT))
    auc_pu = of_p.mean() + error * np.concatenate([[0.0], rng.standard_normal(len(priors) - 1)])
    corrected: Floats = (auc_pu - priors / 2) / (1 - priors)
    return corrected


def weighted_auc(p: Floats, u: Floats, chances: Floats) -> float:
    """AUC of P against U in which a row of U weighs 1 − its chance of being positive. Shape: (n_P,), (n_U,), (n_U,)."""
    order = np.argsort(u, kind="stable")
    ordered, beaten = u[order], np.concatenate([[0.0], np.cumsum(1.0 - chances[order])])
    wins = beaten[np.searchsorted(ordered, p, side="left")] + beaten[np.searchsorted(ordered, p, side="right")]
    return float(wins.mean() / (2 * max(beaten[-1], 1e-12)))


def auc_of(
    p: Floats,
    u: Floats,
    chances: Floats | None,
    priors: Floats,
    unknown: str,
    confidence: float,
    rng: np.random.Generator,
    rests_on: str = "",
) -> Estimate:
    """AUC, unless what the ranking alone says about it is too vague or impossible; `rests_on` names the rows then."""
    rests_on = rests_on or f"at a share of positives of {priors[0]:.2f}, {len(p)} held-out labelled rows"
    # The corrected AUC assumes no shape of the scores: it decides whether a number is stated. The weighted one has
    # about 1 − π/2 times its error, and so an interval that much narrower.
    free = estimate_of(corrected_auc_draws(p, u, priors, rng), confidence)
    value, scale = (free.value, 1.0) if chances is None else (weighted_auc(p, u, chances), 1.0 - priors[0] / 2)
    low, high = (float(np.clip(value + scale * (end - free.value), 0.0, 1.0)) for end in (free.low, free.high))
    found = Estimate(value, low, high)
    if unknown:
        return Estimate.impossible(unknown)
    if free.low > 1.0 or found.value > 1.0:
        return Estimate.impossible(
            f"labelled rows rank higher above unlabelled ones than a perfect classifier would put them at a share of "
            f"positives of {priors[0]:.2f}"
        )
    if free.high - free.low > _WIDEST_AUC:
        ends = f"{max(0, free.low):.2f} and {free.high:.2f}" + (", although above 1 is impossible" * (free.high > 1))
        return Estimate.impossible(f"{rests_on} leave it anywhere between {ends}")
    return found


def counted_auc(p: Floats, n: Floats, n_draws: int, confidence: float, rng: np.random.Generator) -> Estimate:
    """That of P against N, which no prior corrects."""
    rests_on = f"{len(p)} held-out labelled positives and {len(n)} negatives"  # of which there are at least 30
    return auc_of(p, n, None, np.zeros(1 + n_draws), "", confidence, rng, rests_on)


def ranking_score(
    scores: Floats,
    labels: Labels,
    called: npt.NDArray[np.bool_],
    sample_weight: npt.ArrayLike | None = None,
    prior: float | None = None,
) -> float:
    """Mean of two AUCs of labelled against unlabelled rows: that of the ranking and that of the rows `called` positive.

    Corrected to the same mean of true AUCs where the `prior` of these rows is known.
    """
    from sklearn.metrics import roc_auc_score

    kept = labels != NEGATIVE
    is_p, weights = labels[kept] == POSITIVE, None if sample_weight is None else np.asarray(sample_weight)[kept]
    # The ranking alone hardly depends on the prior or the threshold a model was given: noise would choose between them.
    auc = float(np.mean([roc_auc_score(is_p, values[kept], sample_weight=weights) for values in (scores, called)]))
    if prior is None:
        return auc
    prior = check_prior(prior, open_interval=True)
    return (auc - prior / 2) / (1 - prior)


def prior_draws(
    prior: float, interval: tuple[float, float] | None, confidence: float, n_draws: int, rng: np.random.Generator
) -> Floats:
    """The prior, then draws from a normal distribution with a half for each side of its interval. Shape: (1 + B,)."""
    if interval is None:
        return np.full(1 + n_draws, prior)
    low, high = interval
    if not 0.0 <= low <= prior <= high <= 1.0:
        raise InputError(f"prior_interval must hold the prior {prior:g} and lie in [0, 1], got ({low:g}, {high:g})")
    z = rng.standard_normal(n_draws) / norm.ppf((1 + confidence) / 2)
    draws = prior + np.where(z < 0, z * (prior - low), z * (high - prior))
    return np.concatenate([[prior], np.clip(draws, 1e-6, 1 - 1e-6)])


def collapse_reason(
    positive_scores: npt.ArrayLike,
    unlabelled_scores: npt.ArrayLike,
    threshold: float = 0.0,
    others: str = "unlabelled ones",
) -> str:
    """How a classifier has stopped telling rows apart; empty when it has not.

    Scores that are all equal, all on one side of the threshold, or no higher for labelled rows. `others` are the rows
    in the place of unlabelled ones, in words.
    """
    p, u = score_pair(positive_scores, unlabelled_scores)
    both = np.concatenate([p, u])
    share_p, share_u = float((p > threshold).mean()), float((u > threshold).mean())
    if np.ptp(both) <= 1e-6 * (1.0 + np.abs(both).max()):
        return "every row has the same score"
    if share_p == share_u and share_p in (0.0, 1.0):
        return "every row is called positive" if share_p else "no row is called positive"
    return "" if is_beyond_chance(p, u) else f"labelled rows do not score higher than {others} beyond chance"


def checked_column(values: npt.ArrayLike, name: str, *, finite: bool = True) -> Floats:
    """One non-empty column of numbers without NaN, and without infinity unless `finite` is False. Shape: (n,)."""
    column = floats_of(values, name)
    if column.ndim != 1 or len(column) == 0:
        raise InputError(f"{name} must be a non-empty column of numbers, got shape {column.shape}")
    bad = np.flatnonzero(~np.isfinite(column) if finite else np.isnan(column))
    if len(bad):
        what = "not finite" if finite else "NaN"
        are = number_of(len(bad), f"of {len(column)} is", f"of {len(column)} are")
        raise InputError(f"{name}: {are} {what}, first at row {bad[0]}")
    return column


def share_below(scores: Floats, others: Floats, counts: Floats | None = None) -> Floats:
    """For each of `scores` the share of `others` below it; `counts` say how much each of them counts.

    Shape: (n,), (m,), (m,) -> (n,).
    """
    if counts is not None:
        order = np.argsort(others)
        ordered, total = others[order], np.r_[0.0, np.cumsum(counts[order])]
        ends = (total[np.searchsorted(ordered, scores, side=side)] for side in ("left", "right"))
        return np.asarray(sum(ends) / (2 * total[-1]), dtype=np.float64)
    ordered = np.sort(others)
    below = np.searchsorted(ordered, scores, side="left") + np.searchsorted(ordered, scores, side="right")
    shares: Floats = below / (2 * len(ordered))  # left and right: a tie counts one half
    return shares
