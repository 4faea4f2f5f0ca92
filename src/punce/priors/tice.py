"""TIcE: tree induction for label frequency estimation (Bekker & Davis, 2018, "Estimating the Class Prior in Positive
and Unlabeled Data through Decision Tree Induction").

In any part of feature space the share of labelled rows L/T is at most the label frequency c, and equals it where all
rows are positive. A tree grown on one part of the data looks for such places; the other part judges them, by the share
itself or by its lower bound L/T − √(c(1−c)(1−δ)/(δT)) (their Sect. 4). π = (n_P/n_U)(1 − c)/c.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from punce.columns.bins import quantile_bins
from punce.priors.features import Rows
from punce.priors.result import Z_90, RawEstimate, require_at_least, require_one_of, share_of_label_frequency
from punce.priors.sample import PriorEstimator, Sample
from punce.priors.score_counts import wilson

_BINS = 16  # few, so that a tree cannot isolate single labelled rows
_SMOOTHING = 5.0
"""k of max-bepp, the biased estimate L/(T + k) by which the tree picks splits: it discounts tiny nodes."""
_LEAST = 10
"""Rows a node needs before it may judge c."""
_LEAST_GROWING, _GROWING_SHARE = 2, 8
"""In a small growing part fewer rows are enough: an eighth of the part, at least two. A fifth of 100 rows hardly has a
node of ten. Without such nodes only the root is left, whose c = n_P/n means that every unlabelled row is positive."""

_RULES = ("held_out", "bound")

Codes = npt.NDArray[np.uint8]
Indices = npt.NDArray[np.intp]
Counts = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class Node(NamedTuple):
    """Rows of one node in the growing and in the judging part."""

    grow: Indices
    judge: Indices


class Fold(NamedTuple):
    """A fold's answer for c, and the node that gave it: T judging rows, L of them labelled."""

    c: float
    total: int
    labelled: int


@dataclass(frozen=True)
class TIcE(PriorEstimator):
    """Features in at most 16 quantile bins; missing values are a bin of their own, categories split off one by one.

    `folds` parts of the data take turns to grow the tree while the others judge. `rule` says what is read off:

    - ``"held_out"``: the node with the best lower bound *on the growing part*, and its plain L/T on the judging part,
      which the choice of the node cannot have flattered;
    - ``"bound"``: the largest lower bound of any node on the judging part, as published. The largest of hundreds of
      noisy bounds is too large when labelled rows are few (c too large, π too small), and the slack makes it too
      small when they are many; its error was nearly twice as large in trials on the sets of benchmarks/priors.py.
      With fewer than about 200 rows it is the better one: a fifth of so few rows chooses nodes badly, and
      ``"held_out"`` gives too large a share.

    The interval is the Wilson interval of L/T in the chosen nodes, and the spread of the folds.
    """

    has_classifier = False

    rule: Literal["held_out", "bound"] = "held_out"
    folds: int = 5
    splits: int = 200
    most_rows: int = 50_000

    def __post_init__(self) -> None:
        require_one_of("rule", self.rule, _RULES)
        require_at_least(self, folds=2, splits=1, most_rows=2)

    def estimate(self, sample: Sample, rng: np.random.Generator) -> RawEstimate:
        """The share of positives among the unlabelled rows of `sample`."""
        p_rows, u_rows, notes = sample.subsample(rng, self.most_rows)
        columns, is_category = _binned(sample.rows.for_splits, np.concatenate([p_rows, u_rows]))
        is_p = np.arange(len(columns)) < len(p_rows)
        # One random partition, whose parts take turns.
        part = rng.permutation(len(columns)) % self.folds
        nodes = [self._node_counts(columns, is_category, is_p, part == k) for k in range(self.folds)]
        folds = _judged(nodes, self.rule, len(columns) * (self.folds - 1) // self.folds)
        return _raw_estimate(folds, len(p_rows), len(u_rows), (*sample.rows.for_splits.notes, *notes))

    def _node_counts(self, columns: Codes, is_category: Mask, is_p: Mask, grows: Any) -> Counts:
        """(T, L) in the growing and in the judging part for every node of the best-first tree. Shape (nodes, 4)."""
        root = Node(np.flatnonzero(grows), np.flatnonzero(~grows))
        counts = [_counts(root, is_p)]
        queue: list[tuple[float, int, Node]] = [(0.0, 0, root)]
        for _ in range(self.splits):
            if not queue:
                break
            _, _, node = heapq.heappop(queue)  # the number in the middle breaks ties: nodes cannot be compared
            for child, promise in _split(node, columns, is_category, is_p):
                counts.append(_counts(child, is_p))
                if len(child.judge) >= 2 * _LEAST and len(child.grow) > 1:
                    heapq.heappush(queue, (-promise, len(counts), child))
        return np.array(counts, dtype=np.int64)


def _binned(rows: Rows, chosen: Indices) -> tuple[Codes, Mask]:
    """Every column as codes below 16; bin 0 is "missing". Shape (n, d)."""
    values = np.asarray(rows.values)[chosen]
    codes = np.zeros(values.shape, dtype=np.uint8)
    for k, column in enumerate(values.T):
        there = ~np.isnan(column)
        seen = column[there]
        if rows.categorical[k]:
            levels, frequency = np.unique(seen, return_counts=True)
            order = np.empty(len(levels), dtype=np.intp)
            order[np.argsort(-frequency, kind="stable")] = np.arange(len(levels))
            codes[there, k] = np.minimum(order[np.searchsorted(levels, seen)] + 1, _BINS - 1)
        elif len(seen):
            codes[there, k] = quantile_bins(seen, _BINS - 1, "linear") + 1
    return codes, rows.categorical


def _split(node: Node, columns: Codes, is_category: Mask, is_p: Mask) -> list[tuple[Node, float]]:
    """The split whose better half looks most labelled, as (child, promise) pairs; none if nothing splits."""
    total, labelled = (_histogram(columns, rows) for rows in (node.grow, node.grow[is_p[node.grow]]))
    # A numeric column is cut below a bin, a categorical one loses a single level.
    inside_t, inside_l = (
        np.where(is_category[:, None], cells, np.cumsum(cells, axis=1)) for cells in (total, labelled)
    )
    outside_t, outside_l = len(node.grow) - inside_t, int(is_p[node.grow].sum()) - inside_l
    promise = np.maximum(inside_l / (inside_t + _SMOOTHING), outside_l / (outside_t + _SMOOTHING))
    promise = np.where((inside_t > 0) & (outside_t > 0), promise, -1.0)
    column, cell = np.unravel_index(int(promise.argmax()), promise.shape)
    if promise[column, cell] < 0:
        return []
    children = _children(node, columns[:, column], int(cell), bool(is_category[column]))
    pairs = ((inside_t, inside_l), (outside_t, outside_l))
    return [
        (child, float(hit[column, cell] / (all_[column, cell] + _SMOOTHING)))
        for child, (all_, hit) in zip(children, pairs, strict=True)
    ]


def _children(node: Node, column: Codes, cell: int, is_category: bool) -> tuple[Node, Node]:
    def inside(rows: Indices) -> Mask:
        return np.asarray(column[rows] == cell if is_category else column[rows] <= cell)

    in_grow, in_judge = inside(node.grow), inside(node.judge)
    return (
        Node(node.grow[in_grow], node.judge[in_judge]),
        Node(node.grow[~in_grow], node.judge[~in_judge]),
    )


def _histogram(columns: Codes, rows: Indices) -> Counts:
    """Rows per column and bin. Shape (d, 16)."""
    d = columns.shape[1]
    flat = columns[rows].astype(np.intp) + np.arange(d) * _BINS
    return np.bincount(flat.ravel(), minlength=d * _BINS).reshape(d, _BINS)


def _counts(node: Node, is_p: Mask) -> tuple[int, int, int, int]:
    return len(node.grow), int(is_p[node.grow].sum()), len(node.judge), int(is_p[node.judge].sum())


def _judged(nodes: list[Counts], rule: str, rows: int) -> list[Fold]:
    """Every fold's answer. The bound needs c itself: start at 0.5 and repeat with the first answer."""
    delta = max(0.025, 1.0 / (1.0 + 0.004 * rows))  # as published
    c, folds = 0.5, [Fold(0.0, 1, 0)]
    for _ in range(2):
        slack = math.sqrt(c * (1.0 - c) * (1.0 - delta) / delta)
        folds = [_held_out(counts, slack) if rule == "held_out" else _largest(counts, slack) for counts in nodes]
        c = float(np.clip(np.mean([fold.c for fold in folds]), 0.0, 1.0))
    return folds


def _held_out(counts: Counts, slack: float) -> Fold:
    least = min(_LEAST, max(_LEAST_GROWING, int(counts[0, 0]) // _GROWING_SHARE))
    bound = _lower_bound(counts[:, 0], counts[:, 1], slack, least)
    bound[counts[:, 2] < _LEAST] = -np.inf
    k = int(bound.argmax())
    total, labelled = int(counts[k, 2]), int(counts[k, 3])
    # No node can have less than the whole: there are no more positives than rows, so c >= n_P / n.
    return Fold(max(labelled / total, counts[0, 3] / counts[0, 2]), total, labelled)


def _largest(counts: Counts, slack: float) -> Fold:
    bound = _lower_bound(counts[:, 2], counts[:, 3], slack)
    bound[0] = counts[0, 3] / counts[0, 2]  # of the whole, c >= n_P / n holds without slack
    k = int(bound.argmax())
    return Fold(float(bound[k]), int(counts[k, 2]), int(counts[k, 3]))


def _lower_bound(total: Counts, labelled: Counts, slack: float, least: int = _LEAST) -> npt.NDArray[np.float64]:
    enough = np.maximum(total, 1)
    return np.where(total >= least, labelled / enough - slack / np.sqrt(enough), -np.inf)


def _raw_estimate(folds: list[Fold], n_p: int, n_u: int, notes: tuple[str, ...]) -> RawEstimate:
    c = float(np.mean([fold.c for fold in folds]))
    c_low, c_high = (
        float(np.mean([wilson(np.array([f.labelled]), f.total, Z_90, side)[0] for f in folds])) for side in (-1, 1)
    )
    # Folds share most rows, so their spread understates the noise; it is not divided by √folds.
    spread = Z_90 * float(np.std([fold.c for fold in folds]))
    c_low, c_high = min(c_low, c - spread), max(c_high, c + spread)
    value, bound = share_of_label_frequency(c, n_p, n_u)
    # The share falls as c grows, so the ends change places.
    low, high = (share_of_label_frequency(end, n_p, n_u)[0] for end in (c_high, c_low))
    diagnostics = {
        "label_frequencies": [fold.c for fold in folds],
        "rows_in_best_nodes": [fold.total for fold in folds],
    }
    return RawEstimate(value, low, high, diagnostics, bound, notes)
