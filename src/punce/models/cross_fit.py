"""Scores of the training rows by heads that did not see them, so that a ranked list does not flatter the model.

A head on frozen features is cheap, so it is trained once more without each fold. The encoder is not: where the
contrastive loss used labels, it knows those of its training rows, and they are marked as seen.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from torch import Tensor

from punce.labels import POSITIVE, Labels
from punce.losses import DCL, InfoNCE
from punce.models.heads import frozen_head, pretrains
from punce.models.route import FitSettings, Floats
from punce.training.splits import PUStratifiedKFold

_FOLDS = 3
_WITHOUT_LABELS = ("infonce", "dcl")


def can_cross_fit(labels: Labels, settings: FitSettings) -> bool:
    """Whether the head is trained alone, on features that stay as they are, and by enough labelled rows for folds."""
    is_frozen = settings.loss is not None and settings.transfer == "probe" and settings.risk != "selfpu"
    return is_frozen and int((labels == POSITIVE).sum()) >= _FOLDS


def encoder_saw_labels(settings: FitSettings) -> bool:
    """Whether frozen features depend on which rows are labelled."""
    is_blind = settings.loss in _WITHOUT_LABELS or isinstance(settings.loss, InfoNCE | DCL)
    return pretrains(settings) and not is_blind


def cross_fitted_scores(
    features: Tensor, labels: Labels, reference: Tensor, wanted: Floats, settings: FitSettings
) -> Floats:
    """Each row's score by a head that did not see it, on the scale of the final head.

    Two heads agree on the order of rows but not on the scale of their scores. Rows that no head has seen set it: each
    head's scores of the `reference` rows are brought to the mean and spread of `wanted`, the final head's.

    Shape: features (n, D), labels (n,), reference (m, D), wanted (m,) -> (n,).
    """
    scores = np.zeros(len(labels))
    for rest, fold in PUStratifiedKFold(_FOLDS, random_state=settings.random_state % 2**32).split(features, labels):
        weights = None if settings.weights is None else settings.weights[rest]
        head = frozen_head(features[rest], labels[rest], replace(settings, weights=weights)).cpu()
        raw, own = (head(part).double().numpy() for part in (reference, features[fold]))
        spread = raw.std() or 1.0
        scores[fold] = (own - raw.mean()) / spread * wanted.std() + wanted.mean()
    return scores
