"""SCL: supervised contrast on the labelled rows, InfoNCE on the rest."""

from __future__ import annotations

from torch import Tensor

from punce.losses.contrastive import Anchors, ContrastiveLoss, labelled_or_pair_target


class SCL(ContrastiveLoss):
    """Eq. supcon of the paper (§5; SupCon's L_out, arXiv:2004.11362, carried to PU and PNU).

    A labelled anchor is pulled to the mean of the other labelled views of its class, an unlabelled one to its other
    view. (The paper prints the unlabelled term with the wrong sign.) Later literature calls the PU form puCL. It
    needs no prior; the labels reach only the labelled anchors, unlike :class:`~punce.losses.PuNCE`.

    Shape: z (2, B, K), labels (B,) of {1, 0, −1} -> scalar.
    """

    def target(self, anchors: Anchors) -> Tensor:
        """t_i = mean of P\\i or N\\i for labelled anchors, z_{a(i)} for unlabelled ones."""
        # The unlabelled term is the plain InfoNCE one: the labels do not reach unlabelled anchors.
        return labelled_or_pair_target(anchors)
