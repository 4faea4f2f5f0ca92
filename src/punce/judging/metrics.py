"""How good is a classifier when no negatives exist, and the ordinary numbers for when they do.

From held-out labelled scores (P), held-out unlabelled scores (U) and the prior π, with t = share of P above the
threshold and q = share of U above it:

    recall = t          precision = π·t / q              F1 = 2π·t / (q + π)
    accuracy = π·t + (1 − q) − π(1 − t)                  AUC = (AUC_PU − π/2) / (1 − π)

for the rows of U. In ``case_control`` U is the population. In ``single_set`` the population is P ∪ U with β = n_P/n,
π_pop = β + (1−β)π and q_pop = β·t + (1−β)q in place of π and q. (Starting from the accuracy that counts U as
negative the correction is 2(π_pop − β)·t − (π_pop − β), not 2π_pop·t: the labelled part is already right.)

All of this holds if labelled rows are a random sample of the positives and were *held out of everything*: labels shape
contrastive features, so rows that took part in pretraining look better than new ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from punce.errors import InputError
from punce.labels import NEGATIVE, POSITIVE, Labels
from punce.scenario import Scenario, check_prior, check_scenario

Floats = npt.NDArray[np.float64]
_CELLS = 4_000_000  # bootstrap entries held in memory at once: 32 MB


@dataclass(frozen=True)
class Estimate:
    """A number with its interval; NaN where it is undefined (precision when nothing is called positive)."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class MixMetrics:
    """Metrics over one mix of rows, in which `prior` is the share of positives and `called` the share called so."""

    prior: float
    called: Estimate
    precision: Estimate
    accuracy: Estimate
    f1: Estimate


@dataclass(frozen=True)
class PUMetrics:
    """Estimates without negatives. `notes` says where the numbers contradict the assumptions behind them."""

    recall: Estimate
    auc: Estimate
    unlabelled: MixMetrics
    population: MixMetrics
    threshold: float
    scenario: Scenario
    confidence: float
    n_positive: int
    n_unlabelled: int
    notes: tuple[str, ...]

    @property
    def five(self) -> dict[str, Estimate]:
        """The five numbers that people ask for, over the unlabelled rows, in the order in which they are shown."""
        mix = self.unlabelled
        return {
            "recall": self.recall,
            "precision": mix.precision,
            "accuracy": mix.accuracy,
            "f1": mix.f1,
            "auc": self.auc,
        }


@dataclass(frozen=True)
class _Shares:
    """t, q and π, each as the estimate followed by its draws. Shape: (1 + B,)."""

    recall: Floats
    called: Floats
    prior: Floats


def _pair(positive_scores: npt.ArrayLike, unlabelled_scores: npt.ArrayLike) -> tuple[Floats, Floats]:
    # Infinite scores are fine here: every number below rests on their order alone.
    return (
        checked_column(positive_scores, "positive_scores", finite=False),
        checked_column(unlabelled_scores, "unlabelled_scores", finite=False),
    )


def pu_metrics(
    positive_scores: npt.ArrayLike,
    unlabelled_scores: npt.ArrayLike,
    prior: float,
    *,
    threshold: float = 0.0,
    scenario: Scenario = "single_set",
    labelled_share: float | None = None,
    prior_interval: tuple[float, float] | None = None,
    confidence: float = 0.95,
    n_draws: int = 1000,
    random_state: int = 0,
) -> PUMetrics:
    """Recall, precision, accuracy, F1 and AUC with intervals from held-out scores; a row is positive above `threshold`.

    `labelled_share` is n_P/n of the whole data in ``single_set``; by default the held-out rows are taken to have been
    drawn with the same shares. `prior_interval` carries the uncertainty of an estimated prior (an interval of the same
    `confidence`) into every number; without it the prior counts as known.

    Intervals: AUC by bootstrap over P and U; t and q are drawn from their Jeffreys posteriors, because the bootstrap of
    20 out of 20 would claim certainty.
    """
    p, u = _pair(positive_scores, unlabelled_scores)
    prior = check_prior(prior, open_interval=True)
    check_scenario(scenario)
    if not 0.0 < confidence < 1.0 or n_draws < 1:
        raise InputError(f"need 0 < confidence < 1 and n_draws >= 1, got {confidence} and {n_draws}")
    beta = len(p) / (len(p) + len(u)) if labelled_share is None else labelled_share
    beta = 0.0 if scenario == "case_control" else check_prior(beta, "labelled_share", open_interval=True)
    rng = np.random.default_rng(random_state)
    priors = prior_draws(prior, prior_interval, confidence, n_draws, rng)
    shares = _Shares(_share_draws(p > threshold, n_draws, rng), _share_draws(u > threshold, n_draws, rng), priors)
    auc_pu = np.concatenate([[auc_between(p, u)], _bootstrap_auc(p, u, n_draws, rng)])
    return PUMetrics(
        recall=_estimate(shares.recall, confidence),
        auc=_estimate(np.clip((auc_pu - priors / 2) / (1 - priors), 0, 1), confidence),
        unlabelled=_mix(shares, 0.0, confidence),
        population=_mix(shares, beta, confidence),
        threshold=float(threshold),
        scenario=scenario,
        confidence=confidence,
        n_positive=len(p),
        n_unlabelled=len(u),
        notes=_notes(shares, auc_pu, prior),
    )


def auc_between(positive_scores: npt.ArrayLike, other_scores: npt.ArrayLike) -> float:
    """P(a positive scores above another row), ties counting half. O(n log n)."""
    p, other = _pair(positive_scores, other_scores)
    other = np.sort(other)
    below = np.searchsorted(other, p, side="left") + np.searchsorted(other, p, side="right")
    return float(below.mean() / (2 * len(other)))


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
    from scipy.stats import norm

    z = rng.standard_normal(n_draws) / norm.ppf((1 + confidence) / 2)
    draws = prior + np.where(z < 0, z * (prior - low), z * (high - prior))
    return np.concatenate([[prior], np.clip(draws, 1e-6, 1 - 1e-6)])


def collapse_reason(positive_scores: npt.ArrayLike, unlabelled_scores: npt.ArrayLike, threshold: float = 0.0) -> str:
    """How a classifier has stopped telling rows apart; empty when it has not.

    Scores that are all equal, all on one side of the threshold, or no higher for labelled rows.
    """
    p, u = _pair(positive_scores, unlabelled_scores)
    both = np.concatenate([p, u])
    share_p, share_u = float((p > threshold).mean()), float((u > threshold).mean())
    # The spread of AUC when P and U are alike (Mann-Whitney), three of which are beyond chance.
    chance = np.sqrt((len(p) + len(u) + 1) / (12 * len(p) * len(u)))
    if np.ptp(both) <= 1e-6 * (1.0 + np.abs(both).max()):
        return "every row has the same score"
    if share_p == share_u and share_p in (0.0, 1.0):
        return "every row is called positive" if share_p else "no row is called positive"
    return "labelled rows score no higher than unlabelled ones" if auc_between(p, u) < 0.5 + 3 * chance else ""


def _mix(shares: _Shares, beta: float, confidence: float) -> MixMetrics:
    """The formulas of the module docstring for a mix with share β of labelled rows added to U."""
    recall = shares.recall
    prior = beta + (1 - beta) * shares.prior
    called = beta * recall + (1 - beta) * shares.called
    # The share of rows that are positive and called so, kept within what the two margins allow.
    both = np.clip(prior * recall, np.maximum(0.0, called + prior - 1.0), called)
    with np.errstate(invalid="ignore", divide="ignore"):
        precision = both / called
    accuracy = both + (1 - called) - (prior - both)
    return MixMetrics(
        prior=float(prior[0]),
        called=_estimate(called, confidence),
        precision=_estimate(precision, confidence),
        accuracy=_estimate(accuracy, confidence),
        f1=_estimate(2 * both / (called + prior), confidence),
    )


def _notes(shares: _Shares, auc_pu: Floats, prior: float) -> tuple[str, ...]:
    notes = []
    hits = shares.prior[1:] * shares.recall[1:]
    if np.mean(hits > shares.called[1:]) > 0.95:
        notes.append(
            f"prior × recall = {prior * shares.recall[0]:.3f} exceeds the share of unlabelled rows above the threshold "
            f"({shares.called[0]:.3f}): the prior is too high, or labelled rows are easier than other positives"
        )
    if np.mean(auc_pu[1:] > 1 - shares.prior[1:] / 2) > 0.95:
        notes.append(
            f"labelled rows are separated from unlabelled ones (AUC {auc_pu[0]:.3f}) better than a perfect classifier "
            f"could at prior {prior:g} ({1 - prior / 2:.3f}): the prior is too high, or they were seen in training"
        )
    return tuple(notes)


def _estimate(values: Floats, confidence: float) -> Estimate:
    """values[0] is the estimate, the rest are draws; the interval always holds the estimate."""
    value = float(values[0])
    draws = values[1:][~np.isnan(values[1:])]
    if np.isnan(value) or len(draws) == 0:
        return Estimate(value, np.nan, np.nan)
    low, high = np.quantile(draws, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Estimate(value, min(value, float(low)), max(value, float(high)))


def _share_draws(above: npt.NDArray[np.bool_], n_draws: int, rng: np.random.Generator) -> Floats:
    return np.concatenate([[above.mean()], rng.beta(above.sum() + 0.5, (~above).sum() + 0.5, n_draws)])


def _bootstrap_auc(p: Floats, u: Floats, n_draws: int, rng: np.random.Generator) -> Floats:
    """AUC of P against U on `n_draws` resamples, in chunks of bounded memory.

    Resampled U is a row of counts over sorted U; their running sum at each p is what p beats.
    """
    ordered = np.sort(u)
    below = np.stack([np.searchsorted(ordered, p, side=side) for side in ("left", "right")])
    aucs = np.empty(n_draws)
    chunk = max(1, _CELLS // (len(p) + len(u)))
    for start in range(0, n_draws, chunk):
        size = min(chunk, n_draws - start)
        beaten = np.zeros((size, len(u) + 1))
        np.cumsum(_resample_counts(size, len(u), rng), axis=1, out=beaten[:, 1:])
        wins = (beaten[:, below[0]] + beaten[:, below[1]]) / (2 * len(u))
        aucs[start : start + size] = (wins * _resample_counts(size, len(p), rng)).sum(axis=1) / len(p)
    return aucs


def _resample_counts(size: int, n: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """How often each of n rows is drawn in n draws with replacement, `size` times over. Shape: (size, n)."""
    drawn = rng.integers(0, n, (size, n)) + n * np.arange(size)[:, None]
    return np.bincount(drawn.ravel(), minlength=size * n).reshape(size, n)


def checked_column(values: npt.ArrayLike, name: str, *, finite: bool = True) -> Floats:
    """One non-empty column of numbers without NaN, and without infinity unless `finite` is False. Shape: (n,)."""
    if hasattr(values, "detach"):  # a torch tensor, without importing torch
        values = values.detach().cpu().numpy()
    column = np.asarray(values, dtype=np.float64)
    if column.ndim != 1 or len(column) == 0:
        raise InputError(f"{name} must be a non-empty column of numbers, got shape {column.shape}")
    bad = np.flatnonzero(~np.isfinite(column) if finite else np.isnan(column))
    if len(bad):
        what = "not finite" if finite else "NaN"
        raise InputError(f"{name}: {len(bad)} of {len(column)} are {what}, first at row {bad[0]}")
    return column
