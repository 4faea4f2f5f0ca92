"""Where unlabelled rows thin out: the split into two groups near a first guess, and how clear the gap between them is.

Start from a guess of the positives and let a ridge regression on the columns and 200 Gaussian bumps predict it, each
row by all the others; move the cut to the middle between the two groups; repeat. The guess drifts to the nearest place
where the rows thin out. A split comes out of any rows, so its gap is compared with that of the same steps on normal
rows of the same covariance, which have none but those between the values of a column that takes few.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

_MOST_COLUMNS = 200
_BUMPS = 200
_RIDGE = 3.0
_ROUNDS = 15
_SMALLEST = 10  # rows of a group
_NEAR = 0.125  # of the distance between the groups
_FEW_VALUES = 12  # of a column: between them are places without rows, whatever the classes
_MANY_SUCH = 30  # columns of few values: together they have no such places, as a sum of many steps is nearly normal


@dataclass(frozen=True)
class Smoother:
    """Ridge regression on fixed columns: the predictions of y are A·Aᵀy. Shape: a (n, k), leverage (n,)."""

    a: Floats
    leverage: Floats

    @classmethod
    def on(cls, columns: Floats, ridge: float = _RIDGE) -> Smoother:
        """Shape: columns (n, k)."""
        centred = columns - columns.mean(axis=0)
        values, vectors = np.linalg.eigh(centred.T @ centred)
        a = centred @ vectors / np.sqrt(np.maximum(values, 0.0) + ridge)
        # Below 1, because left_out divides by 1 − leverage.
        return cls(a, np.minimum((a**2).sum(axis=1), 0.999))

    def left_out(self, y: Floats) -> Floats:
        """Each row's prediction by all the others, in closed form. Shape: (n,)."""
        deviation = y - y.mean()
        fitted = self.a @ (self.a.T @ deviation)
        left_out: Floats = y.mean() + (fitted - self.leverage * deviation) / (1.0 - self.leverage)
        return left_out


@dataclass(frozen=True)
class Split:
    """Rows in two groups. Shape: guess (n,) of 0 and 1, predicted (n,) by the other rows."""

    guess: Floats
    predicted: Floats

    def at(self, rows: Flags) -> Split:
        """The split of some of the rows."""
        return Split(self.guess[rows], self.predicted[rows])

    @property
    def valley(self) -> float:
        """Rows at the cut for one row in the middle of the emptier group."""
        low, high = (self.predicted[self.guess == side] for side in (0.0, 1.0))
        width = _NEAR * float(np.median(high) - np.median(low))
        places = (0.5 * (high.mean() + low.mean()), np.median(high), np.median(low))
        # One more row everywhere: an empty place must not divide by zero, nor count as an infinitely deep valley.
        cut, *middles = (int((np.abs(self.predicted - place) < width).sum()) + 1 for place in places)
        return cut / min(middles)

    @property
    def sharpness(self) -> float:
        """Squared correlation of guess and prediction."""
        return float(np.corrcoef(self.guess, self.predicted)[0, 1] ** 2)


def standard_columns(x: Floats, scores: Floats) -> Floats:
    """Columns of mean 0 and variance 1; of very many, those that the scores follow most. Shape: (n, d) -> (n, k)."""
    centred = x - x.mean(axis=0)
    spread = centred.std(axis=0)
    standard: Floats = centred[:, spread > 1e-6] / spread[spread > 1e-6]
    if standard.shape[1] > _MOST_COLUMNS:
        follows = np.abs(standard.T @ (scores - scores.mean()))
        standard = standard[:, np.sort(np.argsort(-follows, kind="stable")[:_MOST_COLUMNS])]
    return standard


def with_bumps(x: Floats, rng: np.random.Generator) -> Floats:
    """The columns, together about as large as one of them, beside Gaussian bumps at some rows. Shape: (n, d + 200)."""
    centres = x[rng.choice(len(x), min(_BUMPS, len(x)), replace=False)]
    distance = (x**2).sum(axis=1)[:, None] + (centres**2).sum(axis=1) - 2.0 * x @ centres.T
    scale = max(float(np.median(distance)), 1e-9)
    return np.concatenate([x / np.sqrt(x.shape[1]), np.exp(-np.maximum(distance, 0.0) / scale)], axis=1)


def split_near(smoother: Smoother, scores: Floats, is_p: Flags, share: float) -> Split | None:
    """From the `share` of unlabelled rows with the highest scores to the nearest place where rows thin out.

    Labelled rows (`is_p`) stay in their group. None where a group gets empty.
    """
    guess = np.where(is_p | (scores > np.quantile(scores[~is_p], 1.0 - share)), 1.0, 0.0)
    for _ in range(_ROUNDS):
        if not _SMALLEST <= guess[~is_p].sum() <= (~is_p).sum() - _SMALLEST:
            return None
        predicted = smoother.left_out(guess)
        cut = 0.5 * (predicted[guess == 1.0].mean() + predicted[guess == 0.0].mean())
        moved = np.where(is_p | (predicted > cut), 1.0, 0.0)
        if np.mean(moved != guess) < 0.001:
            break
        guess = moved
    is_empty = min(guess[~is_p].sum(), (1.0 - guess[~is_p]).sum()) < _SMALLEST
    return None if is_empty else Split(guess, predicted)


def split_without_gap(x: Floats, scores: Floats, share: float, rng: np.random.Generator) -> Split | None:
    """The same steps on normal rows of the same covariance, whose scores follow the columns as the real ones do."""
    centre, covariance = x.mean(axis=0), np.atleast_2d(np.cov(x.T))
    values, vectors = np.linalg.eigh(covariance)
    rows = centre + rng.standard_normal(x.shape) @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
    stepped = [k for k, real in enumerate(x.T) if len(np.unique(real)) <= _FEW_VALUES]
    for k in stepped if len(stepped) <= _MANY_SUCH else ():
        rows[np.argsort(rows[:, k]), k] = np.sort(x[:, k])
    # A ridge, because columns may repeat each other.
    centred, ridge = x - centre, 10.0 * np.eye(x.shape[1])
    slope = np.linalg.solve(centred.T @ centred + ridge, centred.T @ (scores - scores.mean()))
    no_label = np.zeros(len(rows), dtype=bool)
    return split_near(Smoother.on(with_bumps(rows, rng)), (rows - centre) @ slope, no_label, share)
