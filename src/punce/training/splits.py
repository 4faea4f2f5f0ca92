"""Splits of PU labels: rows that choose the epoch, and cross-validation folds. Labelled rows stay on both sides."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from punce.errors import InputError, is_number, number_of
from punce.labels import POSITIVE, UNLABELLED, Labels, as_labels

Rows = npt.NDArray[np.int64]


def holdout_split(labels: Labels, share: float, seed: int) -> tuple[Tensor, Tensor]:
    """Row numbers of (training, held-out) parts, `share` of every label value held out, at least one row each.

    A label value with a single row stays in training. Share 0 holds nothing out.
    """
    if not (is_number(share) and 0 <= share < 1):
        raise InputError(f"the held-out share must lie in [0, 1), got {share!r}")
    generator = np.random.Generator(np.random.PCG64([seed, 77]))  # a stream of its own: batches use the seed too
    is_held_out = np.zeros(len(labels), dtype=bool)
    for value in np.unique(labels):
        members = generator.permutation(np.flatnonzero(labels == value))
        count = min(len(members) - 1, max(1, round(share * len(members)))) if share > 0 else 0
        is_held_out[members[:count]] = True
    return torch.from_numpy(np.flatnonzero(~is_held_out)), torch.from_numpy(np.flatnonzero(is_held_out))


def can_choose(labels: Labels, held_out: Tensor) -> bool:
    """Whether these rows can choose between models: every PU criterion needs both labelled and unlabelled ones."""
    values = labels[held_out.numpy()]
    return bool((values == POSITIVE).any() and (values == UNLABELLED).any())


class PUStratifiedKFold:
    """Folds with the same share of labelled rows in each; refuses more folds than labelled rows.

    Use it as ``cv=`` of scikit-learn's searches. Scores such as ROC AUC then compare labelled with unlabelled rows,
    which ranks models like the true AUC does (it is an increasing function of it).
    """

    def __init__(self, n_splits: int = 5, *, random_state: int | None = 0) -> None:
        self.n_splits = n_splits
        self.random_state = random_state

    def __repr__(self) -> str:
        """As a search that holds it shows it."""
        return f"{type(self).__name__}(n_splits={self.n_splits}, random_state={self.random_state})"

    def split(self, X: Any, y: Any, groups: Any = None) -> Iterator[tuple[Rows, Rows]]:
        """Row numbers of training and test part, once per fold."""
        from sklearn.model_selection import StratifiedKFold  # slow to import, and no stage needs it

        labels = as_labels(y)
        n_rows = len(labels) if X is None else X.shape[0] if hasattr(X, "shape") else len(X)
        if n_rows != len(labels):
            raise InputError(f"X has {n_rows} rows but y has {len(labels)} labels; give one for each row")
        n_labelled = int((labels == POSITIVE).sum())
        if n_labelled < self.n_splits:
            rows = number_of(n_labelled, "labelled row", "labelled rows")
            raise InputError(
                f"{rows} cannot be spread over {self.n_splits} folds: give a lower n_splits, or more labels"
            )
        folds = StratifiedKFold(self.n_splits, shuffle=True, random_state=self.random_state)
        yield from folds.split(np.zeros(len(labels)), labels)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """The number of folds."""
        return self.n_splits
