"""A likelihood for the share that needs no pure region: the ROC curve of the labelled against the unlabelled rows.

Everything that held-out scores say whatever their scale is in that curve. Let v be the share of positives that score
above a row: positives have v uniform on [0, 1], negatives have some distribution Q with little mass near 0, and the
unlabelled rows have F(v) = π·v + (1 − π)·Q(v). A shape of Q and a share π together say which rows are labelled:
pooled rows between v and v + dv are labelled with probability λ·dv / (λ·dv + (1 − λ)·dF), λ = n_P/n. The pooled
ranks place v (they come from all rows, so they are nearly exact), and the labels give a binomial likelihood, the
profile likelihood of a two-sample mixture (Qin 1998; Lancaster & Imbens 1996 for one logistic shape).

Q is not known, so the likelihood is averaged over several hundred shapes: two normal score distributions (the
binormal ROC curve), some with a second group of negatives nearer to the positives, some with negatives that look like
positives. Where scores separate the classes every shape gives the same π; where they overlap the shapes disagree, and
the interval is as wide as that. Few positives that are easy to find and many that are hard to find can look the same:
the shapes hold weak classifiers as well as strong ones, or every weak contrast would be taken for a high share.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from punce.priors.cautions import area_under_curve
from punce.priors.features import Float
from punce.priors.result import RawEstimate, bound_of
from punce.priors.sample import PriorEstimator, Sample, Scores

EDGES = np.r_[
    0.0, 0.01, 0.025, 0.05, 0.08, 0.12, np.arange(0.16, 0.81, 0.06), 0.87, 0.91, 0.94, 0.96, 0.975, 0.985, 0.995, 1.0
]
"""Cells of v, finer at both ends: the top says how pure it can get, the bottom where the labelled rows stop."""
SHARES = np.r_[0.002, 0.005, 0.01, 0.02, 0.035, 0.05, 0.07, np.arange(0.09, 0.92, 0.03), 0.94, 0.96, 0.975, 0.99]
CELLS = np.r_[0.0, (SHARES[1:] + SHARES[:-1]) / 2, 1.0]
"""Ends of the interval of shares that each of SHARES stands for; every share is as likely as any other beforehand."""
_SHAPES = 400
_RANKS = 4096  # cells of the pooled ranks
_OVERDISPERSION = 0.5
_LEAST_SHAPES = 15.0


class Posterior(NamedTuple):
    """Mass of each of SHARES, and log(evidence) against "labelled and unlabelled scores have one distribution".

    `auc` is the mean over the shapes of the AUC of positives against negatives.
    """

    mass: Float
    log_evidence: float
    auc: float


@dataclass(frozen=True)
class ROC(PriorEstimator):
    """The mean of the posterior over shares and shapes, with its 5th and 95th percentile. Reads scores by rank only.

    The likelihood is raised to the power 1/(1 + (1 − a)/2), a = 2·AUC_PU − 1: scores of a model that learned from the
    labelled rows follow the accidents of that sample, also out of fold, and the more so the weaker the contrast a
    between labelled and unlabelled rows.
    """

    reads = "scores"

    def estimate(self, sample: Sample, rng: np.random.Generator) -> RawEstimate:
        """The share of positives among the unlabelled rows of `sample`; nothing here is random."""
        mass, log_evidence, _ = posterior(sample.scores)
        value = float(mass @ SHARES)
        low, high = np.interp([0.05, 0.95], np.r_[0.0, np.cumsum(mass)], CELLS)
        diagnostics = {"log_evidence": log_evidence, "shares": SHARES, "mass": mass}
        return RawEstimate(value, float(low), float(high), diagnostics, bound_of(value), sample.scores.notes)


def posterior(scores: Scores) -> Posterior:
    """What the scores say about the share, averaged over the shapes."""
    n_p, n_u = len(scores.p), len(scores.u)
    loglik = log_likelihood(scores, shapes())
    null = n_p * math.log(n_p / (n_p + n_u)) + n_u * math.log(n_u / (n_p + n_u))
    widths, top = np.diff(CELLS), float(loglik.max())
    log_evidence = math.log(float((np.exp(loglik - top) * widths).sum()) / len(loglik)) + top - null
    contrast = min(max(2.0 * area_under_curve(scores.p, scores.u) - 1.0, 0.0), 1.0)
    power = 1.0 / (1.0 + _OVERDISPERSION * (1.0 - contrast))
    while True:
        likelihood = np.exp(power * (loglik - top)) * widths
        by_shape = likelihood.sum(axis=1) / likelihood.sum()
        # No shape is the true one. With very many rows one of them would win alone, and look certain.
        if 1.0 / (by_shape**2).sum() >= _LEAST_SHAPES:
            auc = float(by_shape @ np.trapezoid(1.0 - shapes(), EDGES, axis=1))
            return Posterior(likelihood.sum(axis=0) / likelihood.sum(), log_evidence, auc)
        power *= 0.8


def log_likelihood(scores: Scores, q: Float, shares: Float = SHARES) -> Float:
    """Of every shape and share. Shape: q (S, len(EDGES)) -> (S, len(shares))."""
    n_p, n = len(scores.p), len(scores.p) + len(scores.u)
    labelled = n_p / n
    of_unlabelled = shares[:, None] * EDGES + (1.0 - shares[:, None]) * q[:, None, :]
    pooled = labelled * EDGES + (1.0 - labelled) * of_unlabelled  # (S, shares, edges)
    width = np.diff(pooled)
    count_p = np.diff(_labelled_above(scores, pooled))
    count_u = n * width - count_p
    p = np.clip(labelled * np.diff(EDGES) / np.maximum(width, 1e-12), 1e-9, 1.0 - 1e-9)
    return np.asarray((count_p * np.log(p) + count_u * np.log1p(-p)).sum(axis=-1), dtype=np.float64)


def _labelled_above(scores: Scores, pooled: Float) -> Float:
    """How many labelled rows are among the given top share of all rows; rows that tie are spread evenly."""
    values = -np.concatenate([scores.p, scores.u])
    _, cell = np.unique(values, return_inverse=True)
    counts = [np.bincount(part, minlength=cell.max() + 1) for part in (cell, cell[: len(scores.p)])]
    rows, labelled = (np.r_[0, np.cumsum(count)] for count in counts)
    table = np.interp(np.linspace(0.0, len(values), _RANKS + 1), rows, labelled)
    # Interpolation in an even table: np.interp would search for each of some hundred thousand points.
    position = pooled * _RANKS
    left = np.minimum(position.astype(np.int32), _RANKS - 1)
    return np.asarray(table[left] + (position - left) * (table[left + 1] - table[left]), dtype=np.float64)


@cache
def shapes() -> Float:
    """Q at EDGES for shapes that fill the assumed space evenly. Shape (S, len(EDGES)).

    Negatives lie 0.2 to 5.2 standard deviations of the positives below them (AUC 0.56 to 1, a quarter of them below
    0.81), with a spread of their own, mostly a smaller one. Three in ten shapes have a second, mostly small group in
    between. Negatives that look exactly like positives, which no data can show, are 0.3 % on average where the rest is
    far, and up to 30 % where it is near: columns that miss much of the class miss all of it in some rows. All of it was
    fitted to the design sets of benchmarks/open_tables.py, some with most of their columns left out.
    """
    # Kronecker sequence of the square roots of primes: even, the same on every machine, and no seed to choose.
    x = np.modf(0.5 + np.arange(_SHAPES)[:, None] * np.sqrt([2.0, 3.0, 5.0, 7.0, 11.0, 13.0, 17.0]))[0].T
    x = np.clip(x, 1e-3, 1.0 - 1e-3)
    distance = 0.2 + 5.0 * x[0] ** 1.2
    nearer = np.minimum(0.8, distance) + np.maximum(distance - 0.8, 0.0) * x[1]
    spread, spread_of_nearer = np.exp(0.25 * ndtri(x[2:4]) - 0.2)
    share_of_nearer = np.where(x[4] < 0.3, 1.0 - np.cbrt(x[5]), 0.0)[:, None]
    mean_alike = 0.003 + 0.297 * np.exp(-np.maximum(distance - 1.0, 0.0) / 0.3)
    alike = np.minimum(-mean_alike * np.log(x[6]), 0.7)[:, None]
    z = ndtri(EDGES)

    def normal(distance: Float, spread: Float) -> Float:
        return np.asarray(ndtr((z - distance[:, None]) / spread[:, None]), dtype=np.float64)

    mixed = (1.0 - share_of_nearer) * normal(distance, spread) + share_of_nearer * normal(nearer, spread_of_nearer)
    return np.asarray(alike * EDGES + (1.0 - alike) * mixed, dtype=np.float64)
