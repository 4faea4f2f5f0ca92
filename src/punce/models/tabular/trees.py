"""Fitted trees as plain arrays: saved without pickle, scored with NumPy alone.

scikit-learn offers no way to store gradient boosting or a forest except pickle. skops stores both without pickle, but
as scikit-learn's private objects, which another version of scikit-learn may not load. Plain arrays can be read by every
version and checked before use. All trees of a model lie one after another in them. Internal node k sends a row to
``left[k]`` or ``right[k]``:

- a number goes left if it is at most ``threshold[k]``;
- a category code goes left if ``left_codes[category[k], code]``; codes the node never saw go where missing values go;
- a missing value (NaN) goes left if ``missing_left[k]``.

A leaf points to itself, so that every row can take the same number of steps. Scores are added in scikit-learn's order
and equal its own to the last bit (tests/models/test_trees.py).

Shapes: T trees, N nodes in all, C categorical splits, n rows, d columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from punce.columns.stored import StoredArrays
from punce.errors import InputError
from punce.training.cpus import usable_cpus
from punce.training.parallel import in_parallel

AnyArray = npt.NDArray[Any]
Arrays = dict[str, AnyArray]
Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]
Values = npt.NDArray[np.float32]

N_CODES = 256
"""Category codes lie in 0 … 255; scikit-learn's boosting has at most 255 bins."""
_ROWS_AT_ONCE = 16_384  # bounds the memory of scoring, and lets what is gathered stay in the cache
_ROWS_A_COPY = 5_000  # worth a copy of this process, which starts in a tenth of the time it saves
_SMALL = 40  # nodes a tree, up to which all of them are evaluated for all rows


@dataclass(frozen=True)
class Trees(StoredArrays):
    """The trees of one model. `scale` multiplies the sum of leaves: 1 for boosting, 1/T for a forest."""

    roots: npt.NDArray[np.int32]
    feature: npt.NDArray[np.int32]
    threshold: Floats
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    missing_left: Flags
    category: npt.NDArray[np.int32]
    left_codes: Flags
    value: Floats
    baseline: Floats
    scale: Floats

    def score(self, values: AnyArray) -> Floats:
        """baseline + scale · Σ leaves. Shape: (n, d) -> (n,)."""
        values = np.asarray(values)
        # In a small tree this is faster than walking each row down.
        score = self._evaluated if len(self.feature) <= _SMALL * len(self.roots) else self._walked
        parts = [score(values[k : k + _ROWS_AT_ONCE]) for k in range(0, len(values), _ROWS_AT_ONCE)]
        return np.concatenate(parts) if parts else np.empty(0)

    def _evaluated(self, values: AnyArray) -> Floats:
        """Every node's value for every row, from the leaves up. Children have larger numbers than their node."""
        total = np.full(len(values), self.baseline[0])
        columns = np.ascontiguousarray(values.T)
        missing = np.isnan(columns) if np.isnan(columns).any() else None
        last = [*self.roots[1:], len(self.feature)]
        for root, end in zip(self.roots, last, strict=True):
            below: dict[int, Any] = {}
            for k in range(int(end) - 1, int(root) - 1, -1):
                if self.left[k] == k:
                    below[k] = self.value[k]
                    continue
                left = self._left_at(k, columns[self.feature[k]], None if missing is None else missing[self.feature[k]])
                below[k] = np.where(left, below.pop(int(self.left[k])), below.pop(int(self.right[k])))
            total += below[int(root)] * self.scale[0]
        return total

    def _left_at(self, k: int, x: AnyArray, missing: Flags | None) -> Flags:
        """Whether each row goes left at node k. Shape: x (n,) -> (n,)."""
        left: Flags
        if self.category[k] < 0:
            left = x <= self.threshold[k]
        else:
            inside = (x >= 0) & (x < N_CODES)  # a code out of range was never seen in training
            table = self.left_codes[self.category[k]]
            left = np.where(inside, table[np.where(inside, x, 0).astype(np.int64)], self.missing_left[k])
        return left if missing is None else np.where(missing, self.missing_left[k], left)

    def _walked(self, values: AnyArray) -> Floats:
        """Each row from the root to its leaf, tree by tree: the nodes of one tree stay in the cache."""
        has_missing = bool(np.isnan(values).any())
        flat, first = np.ascontiguousarray(values).ravel(), np.arange(len(values)) * values.shape[1]
        total = np.full(len(values), self.baseline[0])
        children = np.stack([self.right, self.left], axis=1).ravel().astype(np.intp)
        for root in self.roots:
            at = np.full(len(values), root, dtype=np.intp)
            while True:
                left = self._goes_left(at, flat.take(first + self.feature.take(at)), has_missing)
                after = children.take(2 * at + left)
                if np.array_equal(after, at):
                    break
                at = after
            total += self.value[at] * self.scale[0]
        return total

    def _goes_left(self, at: Rows, x: AnyArray, has_missing: bool) -> Flags:
        """Whether each row goes left at its node. Shape: at (n,) nodes, x (n,) values there -> (n,)."""
        left: Flags = x <= self.threshold.take(at)
        if len(self.left_codes):
            split = self.category[at]
            inside = (x >= 0) & (x < N_CODES)
            # split is −1 at a numeric node: some row of the table is read, and not used
            known = self.left_codes[split, np.where(inside, x, 0).astype(np.int64)]
            left = np.where(split >= 0, np.where(inside, known, self.missing_left[at]), left)
        return np.where(np.isnan(x), self.missing_left[at], left) if has_missing else left

    def on_columns(self, columns: Rows) -> Trees:
        """The same trees for rows of more columns, of which these have seen `columns`."""
        return replace(self, feature=columns[self.feature].astype(np.int32))

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, AnyArray]) -> Self:
        """The trees :meth:`arrays` gave; refuses arrays that do not fit together."""
        trees = super().from_arrays(arrays)
        _check(trees)
        return trees


def boosting_trees(model: Any, check_rows: AnyArray | None = None) -> Trees:
    """The trees of a fitted binary HistGradientBoostingClassifier.

    Its tree layout is private to scikit-learn, so the copy is compared with the model on `check_rows`.
    """
    n_columns = int(model.n_features_in_)
    is_code = getattr(model, "is_categorical_", None)
    is_code = np.zeros(n_columns, dtype=bool) if is_code is None else np.asarray(is_code)
    columns = np.concatenate([np.flatnonzero(is_code), np.flatnonzero(~is_code)])  # its own order: codes first
    known = _known_codes(model, columns[: int(is_code.sum())])
    trees = [_boosting_tree(iteration[0], columns, known) for iteration in model._predictors]
    baseline = float(np.asarray(model._baseline_prediction).ravel()[0])
    joined = _join(trees, baseline, 1.0)
    if check_rows is not None and not np.allclose(
        joined.score(check_rows), model.decision_function(check_rows), rtol=0, atol=1e-9
    ):
        raise RuntimeError("this version of scikit-learn lays out its trees in a way punce does not know")
    return joined


def forest_trees(model: Any) -> Trees:
    """The trees of a fitted forest, a regressor or a classifier of 0 and 1; the score is the mean of the leaves."""
    trees = [_forest_tree(estimator.tree_) for estimator in model.estimators_]
    return _join(trees, 0.0, 1.0 / len(trees))


def all_scores(models: Sequence[Trees], values: AnyArray) -> Floats:
    """Every model's scores; parts of many rows side by side, which changes no score. Shape: (n, d) -> (K, n)."""
    size = max(_ROWS_A_COPY, -(-len(values) // usable_cpus()))
    parts = [values[k : k + size] for k in range(0, max(1, len(values)), size)]
    return np.concatenate(list(in_parallel([partial(_stacked, models, part) for part in parts])), axis=1)


def _stacked(models: Sequence[Trees], values: AnyArray) -> Floats:
    return np.stack([trees.score(values) for trees in models])


def held_out(models: Sequence[Trees], values: AnyArray, folds: Rows) -> Floats:
    """Each row's score by the model of its own fold. Shape: (n, d), (n,) -> (n,)."""
    rows = [np.flatnonzero(folds == k) for k in range(len(models))]
    tasks = [partial(trees.score, values[own]) for trees, own in zip(models, rows, strict=True)]
    scores = np.empty(len(values))
    done = in_parallel(tasks) if len(values) >= _ROWS_A_COPY else (task() for task in tasks)
    for own, found in zip(rows, done, strict=True):
        scores[own] = found
    return scores


def trees_arrays(models: Sequence[Trees]) -> Arrays:
    """The arrays of several models, named by their number."""
    return {f"{k}.{name}": array for k, trees in enumerate(models) for name, array in trees.arrays().items()}


def stored_trees(arrays: Mapping[str, AnyArray]) -> tuple[Trees, ...]:
    """The models :func:`trees_arrays` named."""
    models: dict[int, Arrays] = {}
    for name, array in arrays.items():
        number, _, field = name.partition(".")
        if not number.isdecimal():
            raise InputError(f"not stored trees: unexpected array {name!r}")
        models.setdefault(int(number), {})[field] = array
    return tuple(Trees.from_arrays(models[k]) for k in sorted(models))


def _known_codes(model: Any, code_columns: Rows) -> dict[int, AnyArray]:
    """Column -> the codes seen in training, in the order of scikit-learn's own numbering."""
    if len(code_columns) == 0:
        return {}
    seen = model._preprocessor.named_transformers_["encoder"].categories_
    return {int(column): codes[~np.isnan(codes)] for column, codes in zip(code_columns, seen, strict=True)}


def _boosting_tree(predictor: Any, columns: Rows, known: Mapping[int, AnyArray]) -> Arrays:
    nodes = predictor.nodes
    inner = nodes["is_leaf"] == 0
    itself = np.arange(len(nodes))
    is_code = inner & (nodes["is_categorical"] == 1)
    feature = np.where(inner, columns[np.where(inner, nodes["feature_idx"], 0)], 0)
    missing_left = nodes["missing_go_to_left"] == 1
    tables = [
        _code_table(predictor.raw_left_cat_bitsets[nodes["bitset_idx"][k]], known[int(feature[k])], missing_left[k])
        for k in np.flatnonzero(is_code)
    ]
    return {
        "feature": feature,
        "threshold": np.where(inner, nodes["num_threshold"], 0.0),
        "left": np.where(inner, nodes["left"], itself),
        "right": np.where(inner, nodes["right"], itself),
        "missing_left": missing_left,
        "category": np.where(is_code, np.cumsum(is_code) - 1, -1),
        "left_codes": np.array(tables, dtype=bool).reshape(-1, N_CODES),
        "value": nodes["value"],
    }


def _forest_tree(tree: Any) -> Arrays:
    inner = tree.children_left >= 0
    itself = np.arange(tree.node_count)
    return {
        "feature": np.where(inner, tree.feature, 0),
        "threshold": np.where(inner, tree.threshold, 0.0),
        "left": np.where(inner, tree.children_left, itself),
        "right": np.where(inner, tree.children_right, itself),
        "missing_left": np.zeros(tree.node_count, dtype=bool),
        "category": np.full(tree.node_count, -1),
        "left_codes": np.empty((0, N_CODES), dtype=bool),
        "value": tree.value[:, 0, 0] if tree.value.shape[2] == 1 else _share_of_ones(tree.value[:, 0, :]),
    }


def _share_of_ones(shares: Floats) -> Floats:
    """Of a classifier's leaf; rows of negative weight can take it out of [0, 1]. Shape: (N, 2) -> (N,)."""
    return np.clip(np.nan_to_num(shares[:, 1]), 0.0, 1.0)


def _code_table(bitset: npt.NDArray[np.uint32], codes: AnyArray, missing_left: bool) -> Flags:
    """Whether each code 0 … 255 goes left. Bit k of the bitset speaks of the k-th code seen in training."""
    table = np.full(N_CODES, bool(missing_left))
    bits = np.unpackbits(np.ascontiguousarray(bitset, dtype="<u4").view(np.uint8), bitorder="little")
    table[codes.astype(np.int64)] = bits[: len(codes)] == 1
    return table


def _join(trees: list[Arrays], baseline: float, scale: float) -> Trees:
    """All trees in one set of arrays, in which nodes and code tables are numbered throughout."""
    nodes, tables = (np.cumsum([0, *(len(tree[name]) for tree in trees)])[:-1] for name in ("feature", "left_codes"))
    for tree, node, table in zip(trees, nodes, tables, strict=True):
        tree["left"], tree["right"] = tree["left"] + node, tree["right"] + node
        tree["category"] = np.where(tree["category"] >= 0, tree["category"] + table, -1)
    joined = {name: np.concatenate([tree[name] for tree in trees]) for name in trees[0]}
    joined = {name: array.astype(np.int32) if array.dtype.kind in "iu" else array for name, array in joined.items()}
    return Trees(roots=nodes.astype(np.int32), baseline=np.array([baseline]), scale=np.array([scale]), **joined)


def _check(trees: Trees) -> None:
    """A damaged file must not cause an endless loop or an out-of-bounds read."""
    n = len(trees.feature)
    same = ("threshold", "left", "right", "missing_left", "category", "value")
    wrong = [name for name in same if getattr(trees, name).shape != (n,)]
    if trees.left_codes.ndim != 2 or trees.left_codes.shape[1] != N_CODES:
        wrong.append("left_codes")
    if trees.roots.ndim != 1 or (np.diff(trees.roots) <= 0).any():
        wrong.append("roots")
    wrong += [name for name in ("baseline", "scale") if getattr(trees, name).shape != (1,)]
    if wrong:
        raise InputError(f"not stored trees: {wrong} have the wrong shape")
    nodes = np.arange(n)
    leaf = (trees.left == nodes) & (trees.right == nodes)
    forward = (trees.left > nodes) & (trees.right > nodes) & (trees.left < n) & (trees.right < n)
    if not (leaf | forward).all() or ((trees.roots < 0) | (trees.roots >= n)).any():
        raise InputError("not stored trees: a node leads back or out of its tree")
    beyond = (trees.category < -1) | (trees.category >= len(trees.left_codes))
    if beyond.any() or (trees.feature < 0).any():
        raise InputError("not stored trees: a split names a column or code table that does not exist")
