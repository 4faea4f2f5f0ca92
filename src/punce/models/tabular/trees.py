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
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from punce.columns.stored import StoredArrays
from punce.errors import InputError

Floats = npt.NDArray[np.float64]
Arrays = dict[str, npt.NDArray[Any]]

N_CODES = 256
"""Category codes lie in 0 … 255; scikit-learn's boosting has at most 255 bins."""
_CELLS = 2_000_000  # rows × trees at once: bounds the memory of scoring
_SMALL = 40  # nodes a tree


@dataclass(frozen=True)
class Trees(StoredArrays):
    """The trees of one model. `scale` multiplies the sum of leaves: 1 for boosting, 1/T for a forest."""

    roots: npt.NDArray[np.int32]
    feature: npt.NDArray[np.int32]
    threshold: Floats
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    missing_left: npt.NDArray[np.bool_]
    category: npt.NDArray[np.int32]
    left_codes: npt.NDArray[np.bool_]
    value: Floats
    baseline: Floats
    scale: Floats

    def score(self, values: npt.NDArray[Any]) -> Floats:
        """baseline + scale · Σ leaves. Shape: (n, d) -> (n,)."""
        values = np.asarray(values)
        size = max(1, _CELLS // max(1, len(self.roots)))
        # A tree of a few nodes is evaluated faster as a whole, for all rows, than by walking each row down.
        score = self._evaluated if len(self.feature) <= _SMALL * len(self.roots) else self._walked
        parts = [score(values[k : k + size]) for k in range(0, len(values), size)]
        return np.concatenate(parts) if parts else np.empty(0)

    def _evaluated(self, values: npt.NDArray[Any]) -> Floats:
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

    def _left_at(self, k: int, x: npt.NDArray[Any], missing: npt.NDArray[np.bool_] | None) -> npt.NDArray[np.bool_]:
        """Whether each row goes left at node k. Shape: x (n,) -> (n,)."""
        left: npt.NDArray[np.bool_]
        if self.category[k] < 0:
            left = x <= self.threshold[k]
        else:
            inside = (x >= 0) & (x < N_CODES)  # a code out of range was never seen in training
            table = self.left_codes[self.category[k]]
            left = np.where(inside, table[np.where(inside, x, 0).astype(np.int64)], self.missing_left[k])
        return left if missing is None else np.where(missing, self.missing_left[k], left)

    def _walked(self, values: npt.NDArray[Any]) -> Floats:
        at = np.repeat(self.roots[:, None], len(values), axis=1)
        has_missing = bool(np.isnan(values).any())
        flat, first = np.ascontiguousarray(values).ravel(), np.arange(len(values)) * values.shape[1]
        while True:
            left = self._goes_left(at, flat[first + self.feature[at]], has_missing)
            after = np.where(left, self.left[at], self.right[at])
            if np.array_equal(after, at):
                break
            at = after
        total = np.full(len(values), self.baseline[0])
        for leaves in self.value[at] * self.scale[0]:  # one tree after another: the order decides the last bit
            total += leaves
        return total

    def _goes_left(self, at: npt.NDArray[np.int32], x: npt.NDArray[Any], has_missing: bool) -> npt.NDArray[np.bool_]:
        """Whether each row goes left at its node. Shape: at (T, n) nodes, x (T, n) values there -> (T, n)."""
        left = x <= self.threshold[at]
        if len(self.left_codes):
            split = self.category[at]
            inside = (x >= 0) & (x < N_CODES)
            known = self.left_codes[split, np.where(inside, x, 0).astype(np.int64)]
            left = np.where(split >= 0, np.where(inside, known, self.missing_left[at]), left)
        return np.where(np.isnan(x), self.missing_left[at], left) if has_missing else left

    def on_columns(self, columns: npt.NDArray[np.intp]) -> Trees:
        """The same trees for rows of more columns, of which these have seen `columns`."""
        return replace(self, feature=columns[self.feature].astype(np.int32))

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """The trees :meth:`arrays` gave; refuses arrays that do not fit together."""
        trees = super().from_arrays(arrays)
        _check(trees)
        return trees


def boosting_trees(model: Any, check_rows: npt.NDArray[Any] | None = None) -> Trees:
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
    """The trees of a fitted single-output forest regressor; the score is the mean of the leaves."""
    trees = [_forest_tree(estimator.tree_) for estimator in model.estimators_]
    return _join(trees, 0.0, 1.0 / len(trees))


def held_out(models: Sequence[Trees], values: npt.NDArray[Any], folds: npt.NDArray[np.intp]) -> Floats:
    """Each row's score by the model of its own fold. Shape: (n, d), (n,) -> (n,)."""
    scores = np.empty(len(values))
    for k, trees in enumerate(models):
        scores[folds == k] = trees.score(values[folds == k])
    return scores


def trees_arrays(models: Sequence[Trees]) -> Arrays:
    """The arrays of several models, named by their number."""
    return {f"{k}.{name}": array for k, trees in enumerate(models) for name, array in trees.arrays().items()}


def stored_trees(arrays: Mapping[str, npt.NDArray[Any]]) -> tuple[Trees, ...]:
    """The models :func:`trees_arrays` named."""
    models: dict[int, Arrays] = {}
    for name, array in arrays.items():
        number, _, field = name.partition(".")
        if not number.isdecimal():
            raise InputError(f"not stored trees: unexpected array {name!r}")
        models.setdefault(int(number), {})[field] = array
    return tuple(Trees.from_arrays(models[k]) for k in sorted(models))


def _known_codes(model: Any, code_columns: npt.NDArray[np.intp]) -> dict[int, npt.NDArray[Any]]:
    """Column -> the codes seen in training, in the order of scikit-learn's own numbering."""
    if len(code_columns) == 0:
        return {}
    seen = model._preprocessor.named_transformers_["encoder"].categories_
    return {int(column): codes[~np.isnan(codes)] for column, codes in zip(code_columns, seen, strict=True)}


@dataclass(frozen=True)
class _Tree:
    arrays: Arrays
    left_codes: npt.NDArray[np.bool_]


def _boosting_tree(predictor: Any, columns: npt.NDArray[np.intp], known: Mapping[int, npt.NDArray[Any]]) -> _Tree:
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
    arrays: Arrays = {
        "feature": feature,
        "threshold": np.where(inner, nodes["num_threshold"], 0.0),
        "left": np.where(inner, nodes["left"], itself),
        "right": np.where(inner, nodes["right"], itself),
        "missing_left": missing_left,
        "category": np.where(is_code, np.cumsum(is_code) - 1, -1),
        "value": nodes["value"],
    }
    return _Tree(arrays, np.array(tables, dtype=bool).reshape(-1, N_CODES))


def _forest_tree(tree: Any) -> _Tree:
    inner = tree.children_left >= 0
    itself = np.arange(tree.node_count)
    arrays: Arrays = {
        "feature": np.where(inner, tree.feature, 0),
        "threshold": np.where(inner, tree.threshold, 0.0),
        "left": np.where(inner, tree.children_left, itself),
        "right": np.where(inner, tree.children_right, itself),
        "missing_left": np.zeros(tree.node_count, dtype=bool),
        "category": np.full(tree.node_count, -1),
        "value": tree.value[:, 0, 0],
    }
    return _Tree(arrays, np.empty((0, N_CODES), dtype=bool))


def _code_table(bitset: npt.NDArray[np.uint32], codes: npt.NDArray[Any], missing_left: bool) -> npt.NDArray[np.bool_]:
    """Whether each code 0 … 255 goes left. Bit k of the bitset speaks of the k-th code seen in training."""
    table = np.full(N_CODES, bool(missing_left))
    bits = np.unpackbits(np.ascontiguousarray(bitset, dtype="<u4").view(np.uint8), bitorder="little")
    table[codes.astype(np.int64)] = bits[: len(codes)] == 1
    return table


def _join(trees: list[_Tree], baseline: float, scale: float) -> Trees:
    sizes = np.array([len(tree.arrays["feature"]) for tree in trees], dtype=np.int64)
    splits = np.array([len(tree.left_codes) for tree in trees], dtype=np.int64)
    first_node = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int32)[: len(trees)]
    first_split = np.concatenate([[0], np.cumsum(splits)[:-1]])[: len(trees)]

    def stacked(name: str, dtype: Any, shift: npt.NDArray[Any] | None = None) -> npt.NDArray[Any]:
        parts = [tree.arrays[name] + (0 if shift is None else shift[k]) for k, tree in enumerate(trees)]
        return np.concatenate(parts).astype(dtype) if parts else np.empty(0, dtype)

    in_own_tree = stacked("category", np.int32)
    category = np.where(in_own_tree >= 0, stacked("category", np.int32, first_split), -1).astype(np.int32)
    tables = [tree.left_codes for tree in trees]
    return Trees(
        roots=first_node,
        feature=stacked("feature", np.int32),
        threshold=stacked("threshold", np.float64),
        left=stacked("left", np.int32, first_node),
        right=stacked("right", np.int32, first_node),
        missing_left=np.concatenate([t.arrays["missing_left"] for t in trees]) if trees else np.empty(0, bool),
        category=category,
        left_codes=np.concatenate(tables) if tables else np.empty((0, N_CODES), bool),
        value=stacked("value", np.float64),
        baseline=np.array([baseline]),
        scale=np.array([scale]),
    )


def _check(trees: Trees) -> None:
    """A damaged file must not cause an endless loop or an out-of-bounds read."""
    n = len(trees.feature)
    same = ("threshold", "left", "right", "missing_left", "category", "value")
    wrong = [name for name in same if getattr(trees, name).shape != (n,)]
    if trees.left_codes.ndim != 2 or trees.left_codes.shape[1] != N_CODES:
        wrong.append("left_codes")
    if wrong:
        raise InputError(f"not stored trees: {wrong} have the wrong shape")
    nodes = np.arange(n)
    leaf = (trees.left == nodes) & (trees.right == nodes)
    forward = (trees.left > nodes) & (trees.right > nodes) & (trees.left < n) & (trees.right < n)
    if not (leaf | forward).all() or ((trees.roots < 0) | (trees.roots >= n)).any():
        raise InputError("not stored trees: a node leads back or out of its tree")
    if (trees.category >= len(trees.left_codes)).any() or (trees.feature < 0).any():
        raise InputError("not stored trees: a split names a column or code table that does not exist")
