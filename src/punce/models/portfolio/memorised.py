"""Whether a loss with labels memorised them: labelled rows that it saw against labelled rows that it did not.

A network that has memorised its labelled rows pulls them together and leaves new positives where they were. Both kinds
of rows are scored by the direction from the unlabelled mean to the mean of the seen labelled rows; a seen row is left
out of that mean, so that any difference comes from the features.

Training with labels stops there, in effect: of the encoder's weights after every epoch those are kept after which
held-out labelled rows ranked best. Each fold's epoch is chosen by the other folds, so that no row has a say in the
encoder that scores it.

Shapes: n rows, M features.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from punce.encoders import Encoder
from punce.judging.ranking import auc_between
from punce.labels import POSITIVE, UNLABELLED, Labels
from punce.models.portfolio.readers import Given, Learned
from punce.stages.probe import extract_features
from punce.views import View

Values = npt.NDArray[np.float32]
Rows = npt.NDArray[np.intp]
_WIDE = 0.1  # of AUC; smaller gaps are common with few labelled rows
_BETTER = 0.01  # of AUC, by which an earlier epoch must be better than the last
_MOST_ROWS = 5_000  # unlabelled ones to compare with


def seen_and_held_out(readers: Sequence[Learned], rows: Given, labels: Labels, folds: Rows) -> dict[str, float]:
    """Mean over folds of the AUC against unlabelled rows: of labelled rows that were seen, and of those that were not.

    Empty where a fold leaves fewer than two labelled rows of a kind.
    """
    found = []
    for k, reader in enumerate(readers):
        if (groups := _groups(labels, folds == k)) is None:
            return {}
        found.append(_aucs(*_parted(reader(rows.of(np.concatenate(groups))), groups)))
    seen_auc, hidden_auc = np.mean(found, axis=0)
    return {"seen": round(float(seen_auc), 4), "held_out": round(float(hidden_auc), 4)}


def _groups(labels: Labels, is_hidden: npt.NDArray[np.bool_]) -> tuple[Rows, Rows, Rows] | None:
    """Labelled rows that are seen, those that are hidden, and unlabelled ones; None where two of each are not there."""
    unlabelled = np.flatnonzero(labels == UNLABELLED)
    unlabelled = unlabelled[:: max(1, -(-len(unlabelled) // _MOST_ROWS))]
    seen, hidden = (np.flatnonzero((labels == POSITIVE) & here) for here in (~is_hidden, is_hidden))
    return None if min(len(seen), len(hidden), len(unlabelled)) < 2 else (seen, hidden, unlabelled)


def _parted(features: Values, groups: tuple[Rows, Rows, Rows]) -> list[Values]:
    return np.split(features, np.cumsum([len(group) for group in groups[:2]]))


class EpochWatch:
    """An encoder's weights after every epoch of one fold, and how labelled rows ranked: those it saw, and hidden ones.

    Shape: x (n, ...) as the encoder is trained on it, labels (n,), is_hidden (n,).
    """

    def __init__(self, view: View, x: Tensor, labels: Labels, is_hidden: npt.NDArray[np.bool_]) -> None:
        self._view, self._groups = view, _groups(labels, is_hidden)
        self._x = x[torch.from_numpy(np.concatenate(self._groups))] if self._groups is not None else x[:0]
        self.weights: list[dict[str, Tensor]] = []
        self.held_out: list[float] = []

    def epoch(self, encoder: Encoder) -> dict[str, float]:
        """The numbers of an epoch; none where there are too few labelled rows to compare."""
        self.weights.append({name: value.detach().cpu().clone() for name, value in encoder.state_dict().items()})
        if self._groups is None:
            return {}
        features = extract_features(encoder, self._view, self._x).cpu().numpy()
        seen, held_out = _aucs(*_parted(features, self._groups))
        self.held_out.append(held_out)
        return {"seen": round(seen, 4), "held_out": round(held_out, 4)}

    def state_dict(self) -> dict[str, Any]:
        """For a checkpoint."""
        return {"weights": self.weights, "held_out": self.held_out}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """From a checkpoint."""
        self.weights, self.held_out = list(state["weights"]), list(state["held_out"])


def best_epochs(held_out: Sequence[Sequence[float]], last: int) -> list[int]:
    """For each fold the epoch whose weights are kept, 0 being before the first: the `last`, or one clearly better.

    Shape: one curve over epochs 0 … last for each fold, empty where nothing could be compared.
    """
    if len(held_out) < 2 or any(len(curve) <= last for curve in held_out):
        return [last] * len(held_out)
    curves = np.array(held_out)
    others = (curves.sum(axis=0) - curves) / (len(curves) - 1)
    is_better = others.max(axis=1) - others[:, last] > _BETTER
    return [int(epoch) for epoch in np.where(is_better, others.argmax(axis=1), last)]


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
        f"the features learned with {loss} have memorised labelled rows: rows whose label they saw rank above "
        f"{own['seen']:.0%} of the unlabelled rows, held-out ones above {own['held_out']:.0%}. Held-out rows decide "
        "how much these features count; more labels would help them"
        for loss, own in found.items()
        if own and own["seen"] - own["held_out"] > _WIDE
    )


def as_history(found: dict[str, dict[str, float]]) -> list[dict[str, Any]]:
    """One line for each loss."""
    return [{"stage": f"labelled rows, {loss}", **own} for loss, own in found.items() if own]
