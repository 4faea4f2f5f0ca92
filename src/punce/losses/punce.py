"""puNCE: every unlabelled row is a positive with weight π, or with a probability of its own, and else a negative."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args

import torch
from torch import Tensor

from punce.errors import InputError, is_number
from punce.labels import refuse_negatives
from punce.losses.contrastive import Anchors, ContrastiveLoss, labelled_or_pair_target, two_view_anchors
from punce.losses.log_partition import is_batched
from punce.losses.posterior import anchor_probabilities
from punce.scenario import check_prior

Weighting = Literal["paper", "released", "posterior"]
OwnView = float | Literal["confidence", "paper"] | None

_OWN_VIEW = 0.5  # where there are labels of both classes


class PuNCE(ContrastiveLoss):
    """Eqs. puNCE.P_risk, puNCE.U_risk and puNCE of the paper (§3), and the PNU form that contains them.

    A labelled anchor is pulled to the other labelled views of its class, as in SCL. An unlabelled anchor counts as
    a positive with probability π and as a negative with probability 1 − π:

        t_i = π·mean(P ∪ a(i)) + (1 − π)·mean(N ∪ a(i))
            = (1 − w_P − w_N)·z_{a(i)} + w_P·mean(P) + w_N·mean(N),   w_P = π|P|/(|P|+1), w_N = (1−π)|N|/(|N|+1)

    where |P| and |N| count views. With N empty this is the PU loss, without any label it is InfoNCE, with π = 0 and
    N empty or with no unlabelled row it is SCL.

    With many labels of both classes next to nothing is left for the own view, and every unlabelled row is pulled to the
    same point. ``weighting="posterior"`` (not in the paper) gives each row a probability p_i of its own, whose mean
    over the unlabelled rows of the batch is π, and the own view a fixed weight α:

        t_i = α·z_{a(i)} + (1 − α)·[p_i·mean(P) + (1 − p_i)·mean(N)]

    The part of an empty class stays with the own view. p_i carries no gradient. It comes from the similarity of the
    row to mean(P) and mean(N) (:mod:`punce.losses.posterior`), or from the caller.

    Args:
        prior: π = P(y=1 | unlabelled), the share of positives among the unlabelled rows (not P(y=1)).
        temperature: τ; the paper uses 0.5.
        weighting: "paper" as above; "released" uses w_P = π/(1+π), as the authors' later code does (PU only);
            "posterior" as above.
        own_view: α of "posterior", in [0, 1]. Unless given, 0.5 with labels of both classes and 0 with those of one
            class, where the own view has the part of the other class already. "confidence" gives a row its own
            α_i = 1 − (1 − α)·(2p_i − 1)², α as without it: rows that may be of either class keep their own view.
            "paper" takes the paper's weights 1/(|P|+1) and 1/(|N|+1): with p_i = π this is the paper's loss.

    Shape: z (2, B, K), labels (B,) of {1, 0, −1}, probabilities (B,) -> scalar.
    """

    def __init__(
        self,
        prior: float,
        temperature: float = 0.5,
        *,
        weighting: Weighting = "paper",
        own_view: OwnView = None,
    ) -> None:
        super().__init__(temperature)
        if weighting not in get_args(Weighting):
            raise InputError(f"weighting must be one of {list(get_args(Weighting))}, got {weighting!r}")
        self.prior = check_prior(prior)
        self.weighting = weighting
        self.own_view = _checked_own_view(own_view, weighting)

    def forward(self, z: Tensor, labels: Tensor | None = None, probabilities: Tensor | None = None) -> Tensor:
        """Mean loss of the anchors; `labels` None means that every row is unlabelled.

        `probabilities` replace those that "posterior" would find: P(y=1 | x) of the rows, such as the sigmoid of a
        classifier's scores. Their log-odds are shifted to the mean π; labelled rows' are ignored.
        """
        anchors = two_view_anchors(z, labels)
        if self.weighting == "posterior":
            posterior = anchor_probabilities(anchors, self.prior, probabilities)
            # Other anchors, because sums over classes that were made without gradient must not reach the target.
            return self.mean(replace(anchors, posterior=posterior))
        if probabilities is not None:
            raise InputError(f"probabilities are for weighting='posterior'; weighting={self.weighting!r} ignores them")
        # The released code has no PNU form.
        if self.weighting == "released" and labels is not None and not is_batched(labels):
            refuse_negatives(labels, "PuNCE(weighting='released')")
        return self.mean(anchors)

    def target(self, anchors: Anchors) -> Tensor:
        """The SCL target for labelled anchors, the mixture of both classes for unlabelled ones."""
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
        p = self.prior if anchors.posterior is None else anchors.posterior
        if self.own_view == "paper":
            # mean(P ∪ a(i)) gives each of its |P| + 1 views the same weight; an empty group gets weight 0.
            return p * n_p / (n_p + 1.0), (1.0 - p) * n_n / (n_n + 1.0)
        has_p, has_n = n_p.clamp_max(1.0), n_n.clamp_max(1.0)
        pull = 1.0 - (self.own_view if isinstance(self.own_view, int | float) else _OWN_VIEW * has_p * has_n)
        if self.own_view == "confidence":
            pull = pull * (2.0 * p - 1.0) ** 2
        return p * pull * has_p, (1.0 - p) * pull * has_n

    def extra_repr(self) -> str:
        """Shown by print(loss)."""
        own_view = f", own_view={self.own_view!r}" if self.weighting == "posterior" else ""
        return f"prior={self.prior}, {super().extra_repr()}, weighting={self.weighting!r}{own_view}"


def _checked_own_view(own_view: OwnView, weighting: Weighting) -> OwnView:
    if weighting != "posterior":
        if own_view is not None:
            raise InputError(f"own_view is for weighting='posterior'; weighting={weighting!r} has its own weights")
        return "paper"
    if own_view is None or own_view in ("paper", "confidence"):
        return own_view
    if is_number(own_view) and 0.0 <= own_view <= 1.0:
        return float(own_view)
    raise InputError(f"own_view must lie in [0, 1] or be 'confidence' or 'paper', got {own_view!r}")
