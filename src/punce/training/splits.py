"""Cross-validation folds for PU labels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import StratifiedKFold

from punce.errors import InputError
from punce.labels import POSITIVE, as_labels

Rows = npt.NDArray[np.int64]


class PUStratifiedKFold:
    """Folds with the same share of labelled rows in each; refuses more folds than labelled rows.

    Use it as ``cv=`` of scikit-learn's searches. Scores such as ROC AUC then compare labelled with unlabelled rows,
    which ranks models like the true AUC does (it is an increasing function of it).
    """

    def __init__(self, n_splits: int = 5, *, random_state: int | None = 0) -> None:
        self.n_splits = n_splits
        self.random_state = random_state

    def split(self, X: Any, y: Any, groups: Any = None) -> Iterator[tuple[Rows, Rows]]:
        """Row numbers of training and test part, once per fold."""
        labels = as_labels(y)
        n_labelled = int((labels == POSITIVE).sum())
        if n_labelled < self.n_splits:
            raise InputError(f"{n_labelled} labelled rows cannot be spread over {self.n_splits} folds")
        folds = StratifiedKFold(self.n_splits, shuffle=True, random_state=self.random_state)
        yield from folds.split(np.zeros(len(labels)), labels)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """The number of folds."""
        return self.n_splits
