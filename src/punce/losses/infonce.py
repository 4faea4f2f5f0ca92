"""InfoNCE, the self-supervised loss every other one here extends."""

from __future__ import annotations

from torch import Tensor

from punce.losses.contrastive import Anchors, ContrastiveLoss


class InfoNCE(ContrastiveLoss):
    """Eq. nt_xent of the paper (§2.2; NT-Xent of SimCLR, arXiv:2002.05709): every anchor's target is its other view.

    Labels are checked and then ignored. Use it when no row is labelled, or as the baseline that uses no label.

    Shape: z (2, B, K), labels (B,) -> scalar.
    """

    def target(self, anchors: Anchors) -> Tensor:
        """t_i = z_{a(i)}."""
        return anchors.pair
