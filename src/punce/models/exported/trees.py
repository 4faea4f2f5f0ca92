"""Trees, and bins, as ONNX's TreeEnsembleRegressor.

Bins and codes are whole numbers, so that thresholds lose nothing when they are rounded down to one. The operator adds
up leaves in single precision. Each tree is therefore an output of its own, and the sums follow in double precision.

Shapes: n rows, d columns, K models, T trees of all models.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from punce.columns.bins import LAST_CODE, Bins
from punce.models.exported.graph import ML, AnyArray, Graph
from punce.models.tabular.trees import N_CODES, Arrays, Trees

_BEYOND = 2.0 * N_CODES  # no bin or code is as large; the threshold of a split that sends all rows left is infinite


def tree_scores(graph: Graph, models: Sequence[Trees], x: str, width: int) -> str:
    """What ``Trees.score`` of each model gives, in double precision. Shape: (n, width) of bins and codes -> (n, K)."""
    sets = _code_sets(models)
    if len(sets):
        x = graph.add("Concat", x, _outside(graph, x, sets), axis=1)
    n_trees = [len(trees.roots) for trees in models]
    nodes = [_nodes(trees, sets, width, first) for trees, first in zip(models, _starts(n_trees), strict=True)]
    leaves = graph.cast(_ensemble(graph, x, nodes, sum(n_trees)), np.float64)
    scale = np.zeros((sum(n_trees), len(models)))
    for k, (first, trees) in enumerate(zip(_starts(n_trees), models, strict=True)):
        scale[first : first + n_trees[k], k] = trees.scale[0]
    baseline = np.array([trees.baseline[0] for trees in models])
    return graph.add("Add", graph.add("MatMul", leaves, scale), baseline)


def places_between(graph: Graph, x: str, edges: Sequence[AnyArray]) -> str:
    """How many of the edges of its column each number exceeds; each column is searched by a tree.

    Shape: (n, d) float32, d times sorted float32 edges -> (n, d) float32.
    """
    nodes = [_search(own, column) for column, own in enumerate(edges) if len(own)]
    if not nodes:
        return graph.add("Mul", x, np.zeros(1, np.float32))
    return _ensemble(graph, x, nodes, len(edges))


def bins(graph: Graph, fitted: Bins, encoded: str) -> str:
    """What ``Bins.transform`` gives of rows without NaN. Shape: (n, d) -> (n, d), both float32."""
    # A column of codes has no finite edge.
    own = [column[np.isfinite(column)] for column in fitted.edges.T.astype(np.float32)]
    binned = places_between(graph, encoded, own)
    if not fitted.categorical.any():
        return binned
    codes = graph.add("Min", encoded, np.array([LAST_CODE], np.float32))
    return graph.add("Where", fitted.categorical, codes, binned)


def _ensemble(graph: Graph, x: str, parts: Sequence[Arrays], n_targets: int) -> str:
    """One node of all trees; a leaf of tree t is added to output t. Shape: (n, d) -> (n, n_targets)."""
    nodes = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    leaf = nodes["is_leaf"]
    attributes = {
        "nodes_treeids": nodes["tree"],
        "nodes_nodeids": nodes["node"],
        "nodes_featureids": np.where(leaf, 0, nodes["feature"]),
        "nodes_values": np.where(leaf, 0.0, nodes["threshold"]),
        "nodes_modes": np.where(leaf, "LEAF", "BRANCH_LEQ"),
        "nodes_truenodeids": np.where(leaf, 0, nodes["left"]),
        "nodes_falsenodeids": np.where(leaf, 0, nodes["right"]),
        "target_treeids": nodes["tree"][leaf],
        "target_nodeids": nodes["node"][leaf],
        "target_ids": nodes["tree"][leaf],
        "target_weights": nodes["value"][leaf],
    }
    lists = {name: array.tolist() for name, array in attributes.items()}
    return graph.add(
        "TreeEnsembleRegressor",
        x,
        domain=ML,
        aggregate_function="SUM",
        post_transform="NONE",
        n_targets=n_targets,
        **lists,
    )


def _nodes(trees: Trees, sets: AnyArray, width: int, first: int) -> Arrays:
    """The trees of one model, numbered from `first`, nodes within each tree. No value is NaN, so none goes astray."""
    tree = np.searchsorted(trees.roots, np.arange(len(trees.feature)), side="right") - 1
    root = trees.roots[tree]
    is_code = trees.category >= 0
    threshold = np.clip(np.floor(trees.threshold), -_BEYOND, _BEYOND)
    feature = trees.feature.astype(np.int64)
    feature[is_code] = width + _places(sets, _sets_of(trees))
    return {
        "tree": tree + first,
        "node": np.arange(len(tree)) - root,
        "feature": feature,
        "threshold": np.where(is_code, 0.0, threshold),  # a code goes left where it is not outside its set
        "left": trees.left - root,
        "right": trees.right - root,
        "is_leaf": trees.left == np.arange(len(tree)),
        "value": trees.value,
    }


# Splits by category ----------------------------------------------------------------------------------------------


def _sets_of(trees: Trees) -> AnyArray:
    """Column and codes that go left, of each split by category. Shape: (splits, 1 + N_CODES)."""
    nodes = np.flatnonzero(trees.category >= 0)
    codes = trees.left_codes[trees.category[nodes]]
    return np.concatenate([trees.feature[nodes, None].astype(np.int64), codes.astype(np.int64)], axis=1)


def _code_sets(models: Sequence[Trees]) -> AnyArray:
    """The distinct ones of all models, in their order as tuples."""
    return np.unique(np.concatenate([_sets_of(trees) for trees in models]), axis=0)


def _places(sets: AnyArray, own: AnyArray) -> AnyArray:
    place = {line.tobytes(): k for k, line in enumerate(sets)}
    return np.array([place[line.tobytes()] for line in np.ascontiguousarray(own)], dtype=np.int64)


def _outside(graph: Graph, x: str, sets: AnyArray) -> str:
    """1 where a row's code is not in the set, else 0, for each set: looked up, because the operator has no such split.

    Shape: (n, d) -> (n, sets).
    """
    codes = graph.cast(graph.columns(x, sets[:, 0]), np.int64)
    places = graph.add("Add", codes, N_CODES * np.arange(len(sets)))
    return graph.add("Gather", (1 - sets[:, 1:]).astype(np.float32).ravel(), places)


# Search ------------------------------------------------------------------------------------------------------------


def _search(edges: AnyArray, column: int) -> Arrays:
    """A balanced tree that finds the place of a number of this column."""
    edge, left, right, place = _halving(len(edges))
    return {
        "tree": np.full(len(edge), column),
        "node": np.arange(len(edge)),
        "feature": np.full(len(edge), column),
        "threshold": edges[edge].astype(np.float64),
        "left": left,
        "right": right,
        "is_leaf": place >= 0,
        "value": place.astype(np.float64),
    }


@lru_cache(maxsize=128)  # most columns have the same number of edges
def _halving(n_edges: int) -> tuple[AnyArray, AnyArray, AnyArray, AnyArray]:
    """Nodes of the search among 0 … n_edges places: edge to compare with, nodes to go to, and at a leaf the place."""
    lines: list[list[int]] = []

    def grown(low: int, high: int) -> int:
        own, middle = len(lines), (low + high) // 2
        lines.append([0, 0, 0, low] if low == high else [middle, 0, 0, -1])
        if low < high:
            lines[own][1:3] = grown(low, middle), grown(middle + 1, high)
        return own

    grown(0, n_edges)
    edge, left, right, place = np.array(lines, dtype=np.int64).T
    return edge, left, right, place


def _starts(lengths: Sequence[int]) -> list[int]:
    return [sum(lengths[:k]) for k in range(len(lengths))]
