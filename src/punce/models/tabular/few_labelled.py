"""What stands in for the ensemble where there are too few rows to learn from, choose with and hold out.

A ridge logistic regression of labelled against unlabelled rows, both groups weighing the same: with one or two labelled
rows, little more than "how near is this row to them", which is what such data can say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from punce.columns.dense import DenseColumns
from punce.labels import POSITIVE, Labels
from punce.models.route import under
from punce.models.tabular.trees import Flags, Floats, Values
from punce.storage.json_tree import decode

_STRENGTH = 0.1  # scikit-learn's C: strong, so that one row cannot pick a single column
_FOLDS = 5  # at most: two labelled rows fill two of them
_COLUMNS = "columns."


@dataclass(frozen=True)
class FewLabelled:
    """A linear score on normal scores and one-hot codes. Shape: weight (W,), bias ()."""

    columns: DenseColumns
    weight: Floats
    bias: float

    @classmethod
    def fit(
        cls, values: Values, categorical: Flags, labels: Labels, weights: Floats | None = None
    ) -> tuple[FewLabelled, Floats, Flags]:
        """The model, every row's score by one that did not see it, and the rows for which there is none.

        A single labelled row is in every training part: its own score, and only its, is by a model that saw it.
        Shape: values (n, d), categorical (d,), labels (n,) -> scores (n,), seen (n,).
        """
        columns = DenseColumns.fit(values, categorical)
        x, is_p = columns.transform(values).astype(np.float64), labels == POSITIVE
        counts = np.ones(len(labels)) if weights is None else weights
        weight, bias = _ridge_logistic(x, is_p, counts)
        scores, seen = x @ weight + bias, np.ones(len(labels), dtype=bool)
        folds = np.full(len(labels), -1)
        for rows in (np.flatnonzero(is_p), np.flatnonzero(~is_p)):
            if len(rows) > 1:  # a single row cannot be left out
                folds[rows] = np.arange(len(rows)) % _FOLDS
        for k in range(_FOLDS):
            inside = folds == k
            if inside.any() and is_p[~inside].any() and not is_p[~inside].all():
                fold_weight, fold_bias = _ridge_logistic(x[~inside], is_p[~inside], counts[~inside])
                scores[inside], seen[inside] = x[inside] @ fold_weight + fold_bias, False
        return cls(columns, weight, bias), scores, seen

    def score(self, values: Values) -> Floats:
        """Shape: (n, d) -> (n,)."""
        scores: Floats = self.columns.transform(values).astype(np.float64) @ self.weight + self.bias
        return scores

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors for safetensors and a dictionary for JSON."""
        tensors = {f"{_COLUMNS}{name}": torch.from_numpy(array) for name, array in self.columns.arrays().items()}
        return tensors | {"weight": torch.from_numpy(self.weight)}, {"few_labelled": True, "bias": self.bias}

    @classmethod
    def from_state(cls, tensors: Mapping[str, Tensor], content: Mapping[str, Any]) -> FewLabelled:
        """Inverse of :meth:`state`."""
        columns = {name: tensor.numpy() for name, tensor in under(tensors, _COLUMNS).items()}
        return cls(DenseColumns.from_arrays(columns), tensors["weight"].numpy(), decode(float, content["bias"], "bias"))


def _ridge_logistic(x: Floats, is_p: Flags, counts: Floats) -> tuple[Floats, float]:
    from sklearn.linear_model import LogisticRegression

    solved = LogisticRegression(C=_STRENGTH, class_weight="balanced", max_iter=1000).fit(x, is_p, counts)
    return np.asarray(solved.coef_[0], dtype=np.float64), float(solved.intercept_[0])
