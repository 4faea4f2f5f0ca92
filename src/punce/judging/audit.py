"""Share, precision, recall and accuracy from rows that people judged: they hold whatever the labelling was.

The judged rows were drawn with known chances (:mod:`punce.judging.sampling`). A judged row stands for 1/chance rows of
its stratum: itself, and 1/chance − 1 rows that nobody judged. The numbers are for the unlabelled rows of the file and
the calls of one run. Nothing here rests on the labelled positives.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from punce.judging.calibration import bend
from punce.judging.metrics import Estimate
from punce.judging.sampling import QUANTITIES, Flags, Floats, Ints, Quantity, Strata

CONFIDENCE = 0.9
_DRAWS = 4000
_Z_90 = 1.645
_BEYOND = 2.5  # standard errors: four numbers are compared, and one in twenty audits may differ by chance
_PRIOR_ROWS = 1.0  # what is expected of a stratum counts like one judged row
_DOUBT = 0.1  # of what is expected: nothing is expected for certain, or a stratum without a hit would claim certainty


@dataclass(frozen=True)
class Judged:
    """Rows with a verdict. Shape: (m,) each."""

    rows: Ints
    """Their numbers among the unlabelled rows."""
    positive: Flags
    chance: Floats
    """Of having been judged, over all rounds."""


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


def audit(strata: Strata, judged: Judged, probability: Floats, seed: int = 0) -> Audit:
    """Estimates for the rows of the strata. Shape: probability (N,), what the classifier said of each row."""
    sizes, n_strata = strata.sizes, len(strata.called)
    of = strata.of_row[judged.rows]
    known = np.bincount(of, judged.positive, n_strata)
    rest = sizes - np.bincount(of, minlength=n_strata)
    stands_for = 1.0 / judged.chance - 1.0
    total, hits, squares = (
        np.bincount(of, weights, n_strata) for weights in (stands_for, stands_for * judged.positive, stands_for**2)
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        effective = np.where(squares > 0, total**2 / squares, 0.0)  # Kish: equal weights count fully
        rate = np.where(total > 0, hits / total, 0.0)
    expected = _doubted(np.bincount(strata.of_row, probability, n_strata) / np.maximum(sizes, 1))
    expected = _doubted(_recalibrated(expected, rate * effective, effective))
    draws = _draws(rate, effective, expected, rest, np.random.default_rng(seed))
    rate = np.where(effective > 0, rate, expected)
    positives: Floats = np.vstack([rate * rest, draws]) + known
    found = {name: _estimate(values) for name, values in _quantities(positives, sizes, strata.called).items()}
    if not judged.positive.any():
        found["recall"] = Estimate.impossible("no judged row is positive")
    if not strata.called.any():
        found["precision"] = Estimate.impossible("no row is called positive")
    return Audit(**found, verdicts=len(judged.rows), positives=int(judged.positive.sum()))


def _doubted(expected: Floats) -> Floats:
    return _DOUBT / 2 + (1.0 - _DOUBT) * expected


def _recalibrated(expected: Floats, hits: Floats, n: Floats) -> Floats:
    """What the classifier expects of each stratum, moved as a whole to where the judged rows are.

    A logistic curve of its log-odds, held near the identity: under biased labelling it is wrong everywhere. Expecting
    one half of every stratum instead would pull good classifiers to one half: measured, coverage fell to 50 %.
    """
    x = logit(expected)
    a, b = bend(x, hits, n)
    moved: Floats = expit(a + b * x)
    return moved


def _draws(rate: Floats, n: Floats, expected: Floats, rest: Ints, rng: np.random.Generator) -> Floats:
    """Draws of how many of the rows that nobody judged are positive. Shape: (B, H).

    Beta posteriors of each stratum's rate, then the rows themselves: a stratum that is judged to the last row has no
    uncertainty left. Each stratum gives up one row for having estimated its own spread.
    """
    counted = np.maximum(n - 1.0, n / 2)
    a, b = _PRIOR_ROWS * expected, _PRIOR_ROWS * (1.0 - expected)
    rates = rng.beta(rate * counted + a, (1.0 - rate) * counted + b, (_DRAWS, len(rate)))
    drawn: Floats = rng.binomial(np.maximum(rest, 0), rates).astype(np.float64)
    return drawn


def _quantities(positives: Floats, sizes: Ints, called: Flags) -> dict[Quantity, Floats]:
    """The four numbers from positives by stratum. Shape: positives (B, H); results (B,)."""
    n, n_called = sizes.sum(), sizes[called].sum()
    hits, total = positives[:, called].sum(axis=1), positives.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return {
            "share": total / n,
            "precision": hits / n_called,
            "recall": hits / total,
            "accuracy": (hits + (n - n_called) - (total - hits)) / n,
        }


def _estimate(values: Floats) -> Estimate:
    """values[0] is the estimate, the rest are draws; the interval always holds the estimate."""
    value, draws = float(values[0]), values[1:][np.isfinite(values[1:])]
    if not len(draws) or np.isnan(value):
        return Estimate.impossible("nothing to count")
    low, high = np.quantile(draws, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
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
    error = np.hypot(high.value - high.low, low.high - low.value) / _Z_90
    return bool(high.value - low.value > _BEYOND * error)


def agreed_share(claimed: Estimate | None, audited: Estimate) -> Estimate:
    """The share to go on with: both weighed by their certainty where they agree, the audited one where they do not.

    They rest on different rows, so the interval shrinks as that of two independent estimates.
    """
    if claimed is None or np.isnan(claimed.value) or _differ(claimed, audited):
        return audited
    errors = [max(one.high - one.low, 1e-3) / (2 * _Z_90) for one in (claimed, audited)]
    weights = np.array([1.0 / error**2 for error in errors])
    value = float(weights @ [claimed.value, audited.value] / weights.sum())
    half = _Z_90 / np.sqrt(weights.sum())
    return Estimate(value, max(0.0, value - half), min(1.0, value + half))
