"""Whether a loss with labels memorised them: labelled rows that it saw against labelled rows that it did not.

A network that knows its labelled rows by heart pulls them together and leaves new positives where they were. Both kinds
of rows are scored by the direction from the unlabelled mean to the mean of the seen labelled rows; a seen row is left
out of that mean, so that any difference comes from the features.

Shapes: n rows, M features.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from punce.judging.ranking import auc_between
from punce.labels import POSITIVE, UNLABELLED, Labels
from punce.models.portfolio.readers import Given, Learned

Values = npt.NDArray[np.float32]
Rows = npt.NDArray[np.intp]
_WIDE = 0.1  # of AUC; smaller gaps are common with few labelled rows
_MOST_ROWS = 5_000  # unlabelled ones to compare with


def seen_and_held_out(readers: Sequence[Learned], rows: Given, labels: Labels, folds: Rows) -> dict[str, float]:
    """Mean over folds of the AUC against unlabelled rows: of labelled rows that were seen, and of those that were not.

    Empty where a fold leaves fewer than two labelled rows of a kind.
    """
    unlabelled = np.flatnonzero(labels == UNLABELLED)
    unlabelled = unlabelled[:: -(-len(unlabelled) // _MOST_ROWS)]
    found = []
    for k, reader in enumerate(readers):
        seen, hidden = (np.flatnonzero((labels == POSITIVE) & here) for here in (folds != k, folds == k))
        if min(len(seen), len(hidden), len(unlabelled)) < 2:
            return {}
        features = reader(rows.of(np.concatenate([seen, hidden, unlabelled])))
        found.append(_aucs(*np.split(features, np.cumsum([len(seen), len(hidden)]))))
    seen_auc, hidden_auc = np.mean(found, axis=0)
    return {"seen": round(float(seen_auc), 4), "held_out": round(float(hidden_auc), 4)}


def _aucs(seen: Values, hidden: Values, unlabelled: Values) -> tuple[float, float]:
    centre = unlabelled.mean(axis=0)
    total, n = seen.sum(axis=0), len(seen)
    towards = total / n - centre
    without_itself = (total - seen) / (n - 1) - centre
    of_seen = np.einsum("ij,ij->i", seen, without_itself) / np.linalg.norm(without_itself, axis=1).clip(1e-12)
    length = max(float(np.linalg.norm(towards)), 1e-12)
    others = unlabelled @ towards / length
    return auc_between(of_seen, others), auc_between(hidden @ towards / length, others)


def about_memory(found: dict[str, dict[str, float]]) -> tuple[str, ...]:
    """What a person should know of features that memorised labelled rows."""
    return tuple(
        f"{loss} memorised labelled rows: it ranks those it saw above {own['seen']:.0%} of the unlabelled rows, and "
        f"held-out ones above {own['held_out']:.0%}. Held-out rows decide how much it counts; more labels would help it"
        for loss, own in found.items()
        if own and own["seen"] - own["held_out"] > _WIDE
    )


def as_history(found: dict[str, dict[str, float]]) -> list[dict[str, Any]]:
    """One line for each loss."""
    return [{"stage": f"labelled rows, {loss}", **own} for loss, own in found.items() if own]
