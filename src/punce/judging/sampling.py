"""Which unlabelled rows people should judge: strata of the score, more rows where they narrow the interval most.

Every unlabelled row has a known chance of being drawn, so that estimates from the judged rows hold whatever the
labelling was. The probabilities of the classifier only decide how many rows come from where: if they are wrong, the
intervals get wider and stay right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.intp]
Quantity = Literal["share", "precision", "recall", "accuracy"]
QUANTITIES: tuple[Quantity, ...] = get_args(Quantity)

_DOUBT = 0.1  # the probabilities may be wrong: this share of each is replaced by one half
_ROWS_PER_STRATUM = 8
_USUAL_STRATA, _MOST_STRATA = 5, 12
_LEAST = 2  # rows of every stratum: one row says nothing about how much rows differ


@dataclass(frozen=True)
class Strata:
    """A division of N unlabelled rows by their score. Shape: of_row (N,), called (H,)."""

    of_row: Ints
    called: Flags
    """Whether the rows of a stratum are called positive: no stratum holds both."""

    @property
    def sizes(self) -> Ints:
        """Rows in each stratum. Shape: (H,)."""
        return np.bincount(self.of_row, minlength=len(self.called))


def stratify(probability: Floats, score: Floats, called: Flags, quantity: Quantity, n_rows: int) -> Strata:
    """Strata for a draw of `n_rows`, cut where equal parts of the uncertainty of the quantity lie between two cuts.

    Shape: probability, score and called (N,), of the unlabelled rows.
    """
    # Five strata even for few rows: in three, rows of a stratum differ too much for its two or three judged ones.
    n_strata = max(2, min(n_rows // 4, max(_USUAL_STRATA, n_rows // _ROWS_PER_STRATUM), _MOST_STRATA))
    weight = influence(probability, called, quantity) * _spread(probability)
    of_row, sides, start = np.zeros(len(score), dtype=np.intp), [], 0
    for side in (False, True):
        rows = np.flatnonzero(called == side)
        if not len(rows):
            continue
        share = weight[rows].sum() / weight.sum()
        parts = int(np.clip(round(n_strata * share), 1, max(1, min(n_strata - 1, len(rows) // _LEAST))))
        rows = rows[np.argsort(score[rows], kind="stable")]
        of_row[rows] = start + _equal_parts(weight[rows], parts)
        start += parts
        sides += [side] * parts
    return Strata(of_row, np.array(sides))


def influence(probability: Floats, called: Flags, quantity: Quantity) -> Floats:
    """How much the class of each row moves the quantity, up to a factor. Shape: (N,)."""
    if quantity == "precision" and called.any():
        return called.astype(np.float64)
    if quantity == "recall" and called.any() and not called.all():
        # hits / (hits + missed): a hit moves it by what is missed, a missed row by what is hit.
        believed = doubted(probability)
        moved: Floats = np.where(called, believed[~called].sum(), believed[called].sum()) / believed.sum()
        return moved
    return np.ones(len(called))


def doubted(probability: Floats) -> Floats:
    """Probabilities that a classifier may have wrong: none is certain, or rows without a hit would prove something."""
    return (1.0 - _DOUBT) * probability + _DOUBT / 2


def _spread(probability: Floats) -> Floats:
    believed = doubted(probability)
    return np.sqrt(believed * (1.0 - believed))


def _equal_parts(weight: Floats, parts: int) -> Ints:
    """For each row, in order, the number of the part with an equal sum of weights that it falls into."""
    if parts == 1 or weight.sum() == 0.0:
        return np.zeros(len(weight), dtype=np.intp)
    middle = np.cumsum(weight) - weight / 2
    numbers: Ints = np.minimum((middle / weight.sum() * parts).astype(np.intp), parts - 1)
    return numbers


def allocate(free: Ints, judged: Ints, weight: Floats, spread: Floats, n_rows: int) -> Ints:
    """How many rows to draw from each stratum: the next row always goes where the variance shrinks most.

    This is Neyman's allocation in whole rows. `free` rows can be drawn, `judged` ones are known already, `weight` is
    the summed influence of the stratum, `spread` the standard deviation of a row in it. Shape: (H,) each.
    """
    drawn = np.minimum(free, np.maximum(0, _LEAST - judged))
    while drawn.sum() > n_rows:  # too few for every stratum: those that matter least go without
        drawn[np.argmin(np.where(drawn > 0, weight * spread, np.inf))] -= 1
    for _ in range(n_rows - int(drawn.sum())):
        n = np.maximum(judged + drawn, 1)
        gain = np.where(drawn < free, (weight * spread) ** 2 / (n * (n + 1.0)), -1.0)
        best = int(np.argmax(gain))
        if gain[best] < 0.0:
            break  # every row is drawn
        drawn[best] += 1
    return drawn


def draw(
    strata: Strata, probability: Floats, taken: Flags, judged: Ints, quantity: Quantity, n_rows: int, seed: int
) -> Ints:
    """Numbers of `n_rows` rows to judge, in random order; none that is `taken`.

    In random order, so that whoever stops in the middle has judged a random part of every stratum. `judged` counts
    the rows of each stratum that are judged already.
    """
    rng = np.random.default_rng(seed)
    n_strata = len(strata.called)
    called = strata.called[strata.of_row]
    weight: Floats = np.bincount(strata.of_row, influence(probability, called, quantity), n_strata).astype(np.float64)
    spread = np.bincount(strata.of_row, _spread(probability) ** 2, n_strata) / np.maximum(strata.sizes, 1)
    free = np.bincount(strata.of_row[~taken], minlength=n_strata)
    drawn = allocate(free, judged, weight, np.sqrt(spread), n_rows)
    chosen = [
        rng.choice(np.flatnonzero((strata.of_row == h) & ~taken), size=drawn[h], replace=False) for h in range(n_strata)
    ]
    return rng.permutation(np.concatenate(chosen))
