"""How much each candidate counts, by what held-out labelled rows say. No true label is used."""

from __future__ import annotations

from collections.abc import Mapping

from punce.judging.ranking import auc_between
from punce.labels import POSITIVE, UNLABELLED, Labels
from punce.models.tabular.trees import Floats, Rows
from punce.models.tabular.weighing import cross_fitted as _cross_fitted
from punce.models.tabular.weighing import member_weights


def candidate_weights(held_out: Mapping[str, Floats], labels: Labels) -> dict[str, float]:
    """Weights that sum to 1. Shape: scores (n,) on one common scale, labels (n,)."""
    return member_weights(held_out, labels)


def cross_fitted(held_out: Mapping[str, Floats], labels: Labels, folds: Rows) -> Floats:
    """The weighted sum, every fold's weights chosen by the other folds."""
    return _cross_fitted(held_out, labels, folds)


def ranks(held_out: Mapping[str, Floats], labels: Labels) -> dict[str, float]:
    """Each candidate's AUC of labelled against unlabelled rows, all of them held out: why it counts as it does."""
    is_p, is_u = labels == POSITIVE, labels == UNLABELLED
    return {name: round(auc_between(scores[is_p], scores[is_u]), 4) for name, scores in held_out.items()}
