"""Share, precision, recall and accuracy from rows that people judged: they hold whatever the labelling was.

The judged rows were drawn with known chances, equal within a stratum (:mod:`punce.judging.sampling`), so that those of
a stratum stand for its other rows. The numbers are for the unlabelled rows of the file and the calls of one run.
Nothing here rests on the labelled positives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from punce.judging.calibration import bend
from punce.judging.estimates import CONFIDENCE, Estimate
from punce.judging.sampling import QUANTITIES, Flags, Floats, Ints, Quantity, Strata, doubted
from punce.priors.result import Z_90

_DRAWS = 4000
_BEYOND = 2.5  # standard errors: four numbers are compared, and one in twenty audits may differ by chance
_PRIOR_ROWS = 1.0  # what is expected of a stratum counts like one judged row
_LEAST_VARIANCE = 1e-12


@dataclass(frozen=True)
class Sample:
    """Judged rows of one division into strata, from each of which they were drawn by chance. Shape: (m,) each."""

    strata: Strata
    rows: Ints
    """Their numbers among the unlabelled rows."""
    positive: Flags


@dataclass(frozen=True)
class Audit:
    """The four numbers with 90 % intervals, and how many rows they rest on."""

    share: Estimate
    precision: Estimate
    recall: Estimate
    accuracy: Estimate
    verdicts: int
    positives: int

    def of(self, quantity: Quantity) -> Estimate:
        """One of the four by its name."""
        found: Estimate = getattr(self, quantity)
        return found


def audit(samples: Sequence[Sample], called: Flags, probability: Floats, seed: int = 0) -> Audit:
    """Estimates for all rows of the strata. Shape: called and probability (N,), of the classifier that is audited.

    Every sample gives its own estimates, because rows of one stratum had the same chance and rows of another had not;
    they are averaged by their variances. The calls divide the strata of earlier classifiers further. The samples are in
    the order in which they were drawn: each was drawn by chance from the rows that no earlier one had taken, which is
    what it stands for (Raj 1956). Rows of later samples were taken out of its strata by other scores, not by chance.
    """
    rng = np.random.default_rng(seed)
    known = _Known(len(called), samples)
    curves = _curves(probability[known.rows], known.is_positive[known.rows], rng)
    by_sample = []
    for k, one in enumerate(samples):
        then = _Known(len(called), samples[: k + 1])
        by_sample.append(_quantities(_positives(one, then, called, probability, curves, rng), called))
    found = {name: _estimate(_combined([numbers[name] for numbers in by_sample])) for name in QUANTITIES}
    positives = int(known.is_positive.sum())
    if not positives:
        found["recall"] = Estimate.impossible("no judged row is positive")
    if not called.any():
        found["precision"] = Estimate.impossible("no row is called positive")
    return Audit(**found, verdicts=len(known.rows), positives=positives)


class _Known:
    """The rows of some samples. Shape: is_known and is_positive (N,)."""

    def __init__(self, n_rows: int, samples: Sequence[Sample]) -> None:
        self.rows = np.concatenate([one.rows for one in samples])
        self.is_known, self.is_positive = np.zeros(n_rows, dtype=bool), np.zeros(n_rows, dtype=bool)
        self.is_known[self.rows] = True
        self.is_positive[self.rows] = np.concatenate([one.positive for one in samples])


def _curves(said: Floats, positive: Flags, rng: np.random.Generator) -> Floats:
    """Draws of the logistic curve from what the classifier said of the judged rows to what they are. Shape: (B, 2)."""
    curve, covariance = bend(logit(doubted(said)), positive.astype(np.float64), np.ones(len(said)))
    return rng.multivariate_normal(curve, covariance, _DRAWS)


def _positives(
    sample: Sample, known: _Known, called: Flags, probability: Floats, curves: Floats, rng: np.random.Generator
) -> Floats:
    """Positives among rows that are not called and among those that are: estimates, then draws. Shape: (1 + B, 2).

    A cell is a stratum, divided by the calls. Its judged rows say what share of its other rows is positive: a Beta
    posterior, then the rows themselves, so that a cell that is judged to the last row leaves no doubt. What is expected
    of a cell beforehand comes from the classifier, moved by one curve to where all judged rows are: strata are wrong
    together. (Expecting one half of each pulls good classifiers to one half: measured, coverage fell to 50 %.)
    """
    _, first, cells = np.unique(2 * sample.strata.of_row + called, return_index=True, return_inverse=True)
    is_called, n_cells, of = called[first], len(first), cells[sample.rows]
    n = np.bincount(of, minlength=n_cells)
    rate = np.bincount(of, sample.positive, n_cells) / np.maximum(n, 1)
    said = np.bincount(cells, probability) / np.bincount(cells)
    expected = doubted(expit(curves[:, :1] + curves[:, 1:] * logit(doubted(said))))
    # A stratum gives up one row for having estimated its own spread.
    counted = np.maximum(n - 1.0, n / 2)
    rates = rng.beta(rate * counted + _PRIOR_ROWS * expected, (1 - rate) * counted + _PRIOR_ROWS * (1 - expected))
    rest = np.bincount(cells[~known.is_known], minlength=n_cells)
    point = np.where(n > 0, rate, expected.mean(axis=0)) * rest
    found = np.vstack([point, rng.binomial(rest, rates)]) + np.bincount(cells, known.is_positive)
    return np.column_stack([found[:, ~is_called].sum(axis=1), found[:, is_called].sum(axis=1)])


def _quantities(positives: Floats, called: Flags) -> dict[Quantity, Floats]:
    """The four numbers from positives among rows that are not called and that are. Shape: (B, 2) to (B,) each.

    0 of 0 is 0 here; who asks for such a number is told that there is none.
    """
    n, n_called = len(called), int(called.sum())
    missed, hits = positives.T
    return {
        "share": (hits + missed) / n,
        "precision": hits / max(n_called, 1),
        "recall": hits / np.maximum(hits + missed, 1e-9),
        "accuracy": (hits + (n - n_called) - missed) / n,
    }


def _combined(by_sample: list[Floats]) -> Floats:
    """The mean of the samples' numbers, weighted by the inverse of their variances. Shape: (1 + B,)."""
    if len(by_sample) == 1:
        return by_sample[0]
    numbers = np.stack(by_sample)
    weights = 1.0 / np.maximum(np.var(numbers[:, 1:], axis=1), _LEAST_VARIANCE)
    combined: Floats = weights @ numbers / weights.sum()
    return combined


def _estimate(values: Floats) -> Estimate:
    """values[0] is the estimate, the rest are draws; the interval always holds the estimate."""
    value = float(values[0])
    low, high = np.quantile(values[1:], [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Estimate(value, min(value, float(low)), max(value, float(high)))


# Beside what the labels say ----------------------------------------------------------------------------------------


def disagreements(claimed: dict[Quantity, Estimate], audited: Audit) -> list[Quantity]:
    """Numbers that the labels and the judged rows give differently, beyond what chance explains."""
    return [name for name in QUANTITIES if name in claimed and _differ(claimed[name], audited.of(name))]


def _differ(one: Estimate, other: Estimate) -> bool:
    if np.isnan(one.value) or np.isnan(other.value):
        return False
    low, high = sorted((one, other), key=lambda estimate: estimate.value)
    # Each interval's half towards the other number: intervals near 0 and 1 are lopsided.
    error = np.hypot(high.value - high.low, low.high - low.value) / Z_90
    return bool(high.value - low.value > _BEYOND * error)


def agreed_share(claimed: Estimate | None, audited: Estimate) -> Estimate:
    """The share to go on with: both weighted by their certainty where they agree, the audited one where they do not.

    They rest on different rows, so the interval shrinks as that of two independent estimates.
    """
    if claimed is None or np.isnan(claimed.value) or _differ(claimed, audited):
        return audited
    errors = [max(one.high - one.low, 1e-3) / (2 * Z_90) for one in (claimed, audited)]
    weights = np.array([1.0 / error**2 for error in errors])
    value = float(weights @ [claimed.value, audited.value] / weights.sum())
    half = Z_90 / np.sqrt(weights.sum())
    return Estimate(value, max(0.0, value - half), min(1.0, value + half))
