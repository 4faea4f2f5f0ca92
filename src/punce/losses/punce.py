"""puNCE: every unlabelled row is a positive with weight π and a negative with weight 1 − π."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

from punce.errors import InputError
from punce.labels import refuse_negatives
from punce.losses.contrastive import Anchors, ContrastiveLoss, labelled_or_pair_target
from punce.scenario import check_prior

Weighting = Literal["paper", "released"]


class PuNCE(ContrastiveLoss):
    """Eqs. puNCE.P_risk, puNCE.U_risk and puNCE of the paper (§3), and the PNU form that contains them.

    A labelled anchor is pulled to the other labelled views of its class, as in SCL. An unlabelled anchor counts as
    a positive with probability π and as a negative with probability 1 − π:

        t_i = π·mean(P ∪ a(i)) + (1 − π)·mean(N ∪ a(i))
            = (1 − w_P − w_N)·z_{a(i)} + w_P·mean(P) + w_N·mean(N),   w_P = π|P|/(|P|+1), w_N = (1−π)|N|/(|N|+1)

    where |P| and |N| count views. With N empty this is the PU loss, without any label it is InfoNCE, with π = 0 and
    N empty or with no unlabelled row it is SCL.

    Args:
        prior: π = P(y=1 | unlabelled), the share of positives among the unlabelled rows (not P(y=1)).
        temperature: τ; the paper uses 0.5.
        weighting: "paper" as above; "released" uses w_P = π/(1+π), as the authors' later code does (PU only).

    Shape: z (2, B, K), labels (B,) of {1, 0, −1} -> scalar.
    """

    def __init__(self, prior: float, temperature: float = 0.5, *, weighting: Weighting = "paper") -> None:
        super().__init__(temperature)
        if weighting not in get_args(Weighting):
            raise InputError(f"weighting must be one of {list(get_args(Weighting))}, got {weighting!r}")
        self.prior = check_prior(prior)
        self.weighting = weighting

    def forward(self, z: Tensor, labels: Tensor | None = None) -> Tensor:
        """Mean loss of the anchors; `labels` None means that every row is unlabelled."""
        # The released code has no PNU form.
        if self.weighting == "released" and labels is not None:
            refuse_negatives(labels, "PuNCE(weighting='released')")
        return super().forward(z, labels)

    def target(self, anchors: Anchors) -> Tensor:
        """The SCL target for labelled anchors, the π-weighted mixture for unlabelled ones."""
        # What remains, 1 − w_P − w_N, stays with the anchor's own second view.
        w_p, w_n = self._weights(anchors)
        mixed = (1.0 - w_p - w_n) * anchors.pair
        mixed = mixed + w_p * anchors.positives.mean() + w_n * anchors.negatives.mean()
        is_labelled = anchors.is_positive | anchors.is_negative
        return torch.where(is_labelled, labelled_or_pair_target(anchors), mixed)

    def _weights(self, anchors: Anchors) -> tuple[Tensor, Tensor]:
        n_p, n_n = anchors.positives.count, anchors.negatives.count
        if self.weighting == "released":
            return (n_p > 0).to(n_p.dtype) * (self.prior / (1.0 + self.prior)), torch.zeros_like(n_n)
        # mean(P ∪ a(i)) gives each of its |P| + 1 views the same weight; an empty group gets weight 0.
        return self.prior * n_p / (n_p + 1.0), (1.0 - self.prior) * n_n / (n_n + 1.0)

    def extra_repr(self) -> str:
        """Shown by print(loss)."""
        return f"prior={self.prior}, {super().extra_repr()}, weighting={self.weighting!r}"
