"""The default models of tables: scores of encoded rows, each member as its ``scores`` has them.

Everything after the bins is in double precision, so that a file differs from punce only by what punce itself rounds.

Shapes: n rows, d encoded columns, W dense columns, K folds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from punce.columns.dense import DenseColumns
from punce.models.exported.graph import AnyArray, Graph
from punce.models.exported.probability import segments
from punce.models.exported.trees import bins, places_between, tree_scores
from punce.models.tabular.few_labelled import FewLabelled
from punce.models.tabular.kernel import Basis, Kernel, Linear
from punce.models.tabular.model import TabularPU
from punce.models.tabular.network import Networks
from punce.models.tabular.tree_members import MARGIN, Boosting, Forest, PUTrees


def ensemble_scores(graph: Graph, model: TabularPU, encoded: str) -> str:
    """What ``TabularPU.score`` gives. Shape: (n, d) -> (n, 1)."""
    rows = _BinnedRows(graph, bins(graph, model.bins_, encoded), model.n_columns_)
    parts = []
    for name, member in model.fitted_.items():
        if model.weights_[name] > 0:
            centre, spread = model.scales_[name]
            score = graph.add("Sub", _MEMBERS[type(member)](rows, member), centre)
            parts.append(graph.add("Mul", score, model.weights_[name] / spread))
    return _sum(graph, parts)


def few_labelled_scores(graph: Graph, model: FewLabelled, encoded: str) -> str:
    """What ``FewLabelled.score`` gives. Shape: (n, d) -> (n, 1)."""
    dense = _dense(graph, model.columns, encoded)
    return graph.add("Add", graph.add("MatMul", dense, model.weight[:, None]), model.bias)


class _BinnedRows:
    """Rows in bins, and the dense columns that several members read, made once. Shape: `binned` (n, width)."""

    def __init__(self, graph: Graph, binned: str, width: int) -> None:
        self.graph, self.binned, self.width = graph, binned, width
        self._dense: list[tuple[DenseColumns, str]] = []

    def dense(self, columns: DenseColumns) -> str:
        """What ``DenseColumns.transform_bins`` gives, in double precision. Shape: (n, W)."""
        for known, name in self._dense:  # a loaded model has a copy for each member
            if all(np.array_equal(array, known.arrays()[key]) for key, array in columns.arrays().items()):
                return name
        self._dense.append((columns, _dense_of_bins(self.graph, columns, self.binned)))
        return self._dense[-1][1]


# Members ---------------------------------------------------------------------------------------------------------


def _boosting(rows: _BinnedRows, member: Boosting) -> str:
    return _mean_of_folds(rows.graph, tree_scores(rows.graph, member.students, rows.binned, rows.width))


def _forest(rows: _BinnedRows, member: Forest) -> str:
    graph, one_hot = rows.graph, member.one_hot
    x = _with_codes(graph, graph.columns(rows.binned, one_hot.numeric), rows.binned, one_hot.codes, np.float32)
    width = len(one_hot.numeric) + len(one_hot.codes)
    chance = graph.add("Clip", tree_scores(graph, member.students, x, width), 0.0, 1.0)
    against = graph.add("Sub", 1.0, chance)
    logs = (graph.add("Log", graph.add("Add", each, MARGIN)) for each in (chance, against))
    return _mean_of_folds(graph, graph.add("Sub", *logs))


def _networks(rows: _BinnedRows, member: Networks) -> str:
    graph, x = rows.graph, rows.dense(member.columns)
    for k in range(len(member.weights) // 2):
        weight, bias = (member.weights[f"{name}.{k}"].double().numpy() for name in ("weight", "bias"))
        x = graph.add("Add", graph.add("MatMul", graph.add("Relu", x) if k else x, weight), bias)
    return graph.add("ReduceMean", x, axes=[0], keepdims=0)  # (K, n, 1)


def _kernel(rows: _BinnedRows, member: Kernel) -> str:
    graph, x = rows.graph, rows.dense(member.columns)
    total = _sum(graph, [_basis(graph, basis, graph.columns(x, basis.used)) for basis in member.bases])
    return graph.add("Mul", total, 1.0 / len(member.bases))


def _basis(graph: Graph, basis: Basis, x: str) -> str:
    """Shape: (n, U) -> (n, 1)."""
    if len(basis.centres):
        centres = basis.centres.astype(np.float64)
        own = graph.add("MatMul", graph.add("Mul", x, x), np.ones((centres.shape[1], 1)))
        apart = graph.add(
            "Sub", graph.add("Add", own, (centres**2).sum(axis=1)), graph.add("MatMul", x, 2.0 * centres.T)
        )
        squared = graph.add("Max", apart, 0.0)
        x = graph.add("Exp", graph.add("Div", squared, -basis.scale))
    return graph.add("Add", graph.add("MatMul", x, basis.weight[:, None]), basis.bias)


_MEMBERS: dict[type[Any], Callable[[_BinnedRows, Any], str]] = {
    Boosting: _boosting,
    Forest: _forest,
    PUTrees: _forest,
    Networks: _networks,
    Kernel: _kernel,
    Linear: _kernel,
}
"""How each member of ``punce.models.tabular.model.MEMBERS`` scores rows in bins, averaged over folds: (n, 1)."""


# Columns ---------------------------------------------------------------------------------------------------------


def _dense_of_bins(graph: Graph, columns: DenseColumns, binned: str) -> str:
    table = columns.score_of_bin.astype(np.float64)
    numbers = _looked_up(graph, table, graph.add("Add", graph.columns(binned, columns.numeric), np.ones(1, np.float32)))
    return _with_codes(graph, numbers, binned, columns.codes, np.float64)


def _dense(graph: Graph, columns: DenseColumns, encoded: str) -> str:
    """What ``DenseColumns.transform`` gives: normal scores by interpolation. Shape: (n, d) -> (n, W)."""
    x = graph.columns(encoded, columns.numeric)
    # A number in single precision exceeds a knot where it exceeds the next lower such number.
    place = places_between(graph, x, [_rounded_down(knots[1:-1]) for knots in columns.knots.T])
    each = [segments(*pair) for pair in zip(columns.knots.T, columns.scores.T, strict=True)]
    start, base, slope = (_looked_up(graph, np.array(own).T, place) for own in zip(*each, strict=True))
    low, high = columns.knots[0], columns.knots[-1]
    inside = graph.add("Min", graph.add("Max", graph.cast(x, np.float64), low), high)
    scores = graph.add("Add", base, graph.add("Mul", slope, graph.add("Sub", inside, start)))
    return _with_codes(graph, scores, encoded, columns.codes, np.float64)


def _looked_up(graph: Graph, table: AnyArray, place: str) -> str:
    """Column j of row i of `place` is the line of column j of the table. Shape: (q, m), (n, m) -> (n, m)."""
    width = table.shape[1]
    lines = graph.add("Mul", graph.cast(place, np.int64), np.array([width]))
    return graph.add("Gather", table.ravel(), graph.add("Add", lines, np.arange(width)))


def _with_codes(graph: Graph, numbers: str, coded: str, pairs: AnyArray, kind: type) -> str:
    """The numbers, then a 0/1 column for each pair of column and code."""
    if not len(pairs):
        return numbers
    found = graph.add("Equal", graph.columns(coded, pairs[:, 0]), pairs[:, 1].astype(np.float32))
    return graph.add("Concat", numbers, graph.cast(found, kind), axis=1)


def _rounded_down(values: AnyArray) -> AnyArray:
    """The largest numbers of single precision that are not above these."""
    near = values.astype(np.float32)
    return np.where(near > values, np.nextafter(near, np.float32(-np.inf)), near)


def _mean_of_folds(graph: Graph, scores: str) -> str:
    """Shape: (n, K) -> (n, 1)."""
    return graph.add("ReduceMean", scores, axes=[1], keepdims=1)


def _sum(graph: Graph, parts: list[str]) -> str:
    return graph.add("Sum", *parts)
