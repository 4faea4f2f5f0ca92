"""Which columns matter, and which moved a single row: by changing a column and scoring again.

Both treat the model as a function of rows. A column is all that was made of it (a date's parts, an indicator of missing
values), which changes together. What they say is about the model, not about causes: of two columns that say the same,
either may get all the credit.

Shapes: n rows, d encoded columns, G columns of the user's table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain, islice

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from punce.columns.bins import quantile_bins
from punce.judging.estimates import CONFIDENCE
from punce.judging.ranking import share_below
from punce.labels import POSITIVE, Labels

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]
Values = npt.NDArray[np.float32]
Score = Callable[[Values, Rows], Floats]
"""Scores of changed rows; the second argument says of which row each is a copy, and so which model may score it."""

MOST_COLUMNS = 200
"""Of tables with more columns only some are measured."""
_MEASURED, _FEWEST_MEASURED = 100, 20  # of such tables: scoring a row takes the longer, the more columns it has
_CELLS = 100_000
_SCORED = 60_000  # rows: about a second
_REPEATS = 2  # the rows matter more than the repeats: each adds a row's value, not another row
_AT_ONCE = 20_000  # rows: trees are walked node by node, so that many short calls would be mostly overhead
_CELLS_AT_ONCE = 4_000_000  # 16 MB
_SCREEN_BINS = 16
_DRAWS = 12  # values that stand in for a row's own; at equal steps of their order, few are enough


@dataclass(frozen=True)
class Importance:
    """How much the AUC of labelled against unlabelled rows drops when the column's values are shuffled.

    The interval (90 %) is NaN for a column that was not measured. With a share π of positives among the unlabelled rows
    the drop is 1 − π times that of the true AUC, so that columns have the same order.
    """

    name: str
    drop: float
    low: float
    high: float


def column_importances(
    score: Score, values: Values, labels: Labels, columns: Mapping[str, Rows], *, seed: int = 0
) -> tuple[Importance, ...]:
    """The drop of every column, in the order of `columns`, on rows that `score` has held out. values (n, d).

    The interval is DeLong's for the paired difference of two AUCs: it covers the choice of rows, not that of fits.
    """
    is_p, n, rng = labels == POSITIVE, len(values), np.random.default_rng(seed)
    own = score(values, np.arange(n))
    measured = telling_columns(values, own, columns)
    repeats = max(1, min(_REPEATS, _SCORED // max(1, n * len(measured))))

    def shuffled() -> Iterable[Values]:
        for name in measured:
            for _ in range(repeats):
                yield _replaced(values, columns[name], values[rng.permutation(n)])

    ranks = np.stack([_shares(scores, is_p) for scores in _scored(score, shuffled(), np.arange(n))])
    lost = _shares(own, is_p) - ranks.reshape(len(measured), repeats, n).mean(axis=1)
    found = {name: _importance(name, difference, is_p) for name, difference in zip(measured, lost, strict=True)}
    return tuple(found.get(name, Importance(name, 0.0, np.nan, np.nan)) for name in columns)


def rows_to_measure(labels: Labels, n_columns: int, seed: int = 0) -> Rows:
    """Which held-out rows to keep for :func:`column_importances`: as many as the time allows, in order.

    At most 375 labelled and 525 unlabelled; of a wide table fewer, but at least 300.
    """
    most = max(300, min(900, _SCORED // max(1, min(n_columns, MOST_COLUMNS))))
    rng, is_p = np.random.default_rng(seed), labels == POSITIVE
    labelled, others = (rng.permutation(np.flatnonzero(side)) for side in (is_p, ~is_p))
    n_labelled = min(len(labelled), most * 5 // 12)
    return np.sort(np.concatenate([labelled[:n_labelled], others[: most - n_labelled]]))


def telling_columns(
    values: Values, scores: Floats, columns: Mapping[str, Rows], most: int = MOST_COLUMNS
) -> tuple[str, ...]:
    """All columns, or of more than `most` those whose values explain most of the variance of the scores.

    A column that matters only together with others can be missed.
    """
    if len(columns) <= most:
        return tuple(columns)
    most = min(most, max(_FEWEST_MEASURED, min(_MEASURED, _CELLS // values.shape[1])))
    explained = {name: max(_explained(values[:, j], scores) for j in own) for name, own in columns.items()}
    return tuple(sorted(columns, key=lambda name: -explained[name])[:most])


def row_effects(
    score: Score, values: Values, rows: Rows, columns: Mapping[str, Rows], background: Values
) -> tuple[Floats, Floats]:
    """Each row's score, and its mean when the values of `background` rows replace those of each column.

    `rows` says which row each one is, for `score`. Shape: values (n, d), background (m, d) -> (n,), (n, G).
    """
    copies = np.repeat(rows, _DRAWS)

    def replaced() -> Iterable[Values]:
        for own in columns.values():
            order = np.argsort(background[:, own[0]], kind="stable")
            drawn = order[((np.arange(_DRAWS) + 0.5) / _DRAWS * len(order)).astype(np.intp)]
            others = np.tile(background[drawn], (len(values), 1))
            yield _replaced(np.repeat(values, _DRAWS, axis=0), own, others)

    without = [scores.reshape(len(values), _DRAWS).mean(axis=1) for scores in _scored(score, replaced(), copies)]
    return score(values, rows), np.stack(without, axis=1)


def _replaced(values: Values, columns: Rows, others: Values) -> Values:
    changed = values.copy()
    changed[:, columns] = others[:, columns]
    return changed


def _scored(score: Score, tables: Iterable[Values], rows: Rows) -> Iterable[Floats]:
    """The scores of each table of the same rows, several tables in one call."""
    tables = iter(tables)
    first = next(tables)
    size = max(1, min(_AT_ONCE // max(1, len(rows)), _CELLS_AT_ONCE // max(1, first.size)))
    tables = chain([first], tables)
    while together := tuple(islice(tables, size)):
        yield from np.split(score(np.concatenate(together), np.tile(rows, len(together))), len(together))


def _shares(scores: Floats, is_p: npt.NDArray[np.bool_]) -> Floats:
    """Of a labelled row the share of unlabelled ones below it, of an unlabelled row the share of labelled ones above.

    Their mean over either side is the AUC, and their spread gives its error. Shape: (n,) -> (n,).
    """
    shares = np.empty(len(scores))
    shares[is_p] = share_below(scores[is_p], scores[~is_p])
    shares[~is_p] = 1.0 - share_below(scores[~is_p], scores[is_p])
    return shares


def _importance(name: str, lost: Floats, is_p: npt.NDArray[np.bool_]) -> Importance:
    sides = (lost[is_p], lost[~is_p])
    drop = float(sides[0].mean())
    variance = sum(float(side.var(ddof=1)) / len(side) for side in sides if len(side) > 1)
    # Student's t by the rarer side, on which the error mostly rests
    reach = float(stdtrit(max(1, min(map(len, sides)) - 1), (1 + CONFIDENCE) / 2)) * variance**0.5
    return Importance(name, drop, drop - reach, drop + reach)


def _explained(column: npt.NDArray[np.float32], scores: Floats) -> float:
    """Share of the scores' variance between bins of the column."""
    bins = quantile_bins(column, _SCREEN_BINS)
    counts = np.bincount(bins)
    means = np.bincount(bins, scores - scores.mean()) / np.maximum(counts, 1)
    return float((counts * means**2).sum() / max(len(scores) * scores.var(), 1e-300))
