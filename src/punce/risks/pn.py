"""PN: the naive risk that counts every unlabelled row as a negative."""

from __future__ import annotations

import torch
from torch import Tensor

from punce.labels import POSITIVE
from punce.risks.base import Risk, checked_batch, find_surrogate, group_means


class PN(Risk):
    """Mean of ℓ(g) over rows labelled 1 and ℓ(−g) over all others; cross-entropy unless told otherwise.

    On labels {1, 0} this is the biased baseline of the paper's tables; on {1, −1} it is ordinary supervised
    learning, so labelled negatives are accepted as what they are.
    """

    def __init__(self, surrogate: str = "logistic") -> None:
        super().__init__()
        self.surrogate = find_surrogate(surrogate)

    def forward(self, scores: Tensor, labels: Tensor) -> Tensor:
        """Mean of ℓ(±g) over all rows of all ranks."""
        scores, labels = checked_batch(scores, labels)
        # Everything that is not labelled 1, unlabelled rows included, counts as negative: that is the bias.
        margin = torch.where(labels == POSITIVE, scores, -scores)
        return group_means([(self.surrogate(margin), torch.ones_like(scores))]).means[0]

    def extra_repr(self) -> str:
        """For ``repr``."""
        return f"surrogate={self.surrogate.name!r}"
