"""p_i of puNCE's "posterior" weighting: a probability for each row, with mean π over the unlabelled rows of the batch.

No gradient flows through any of them. Shape legend: B rows of this rank, M = 2B anchors (view 0 of every row, then
view 1), K projection size.
"""

from __future__ import annotations

import torch
from torch import Tensor

from punce.errors import InputError, PunceError
from punce.losses.contrastive import Anchors, LabelledGroup
from punce.losses.log_partition import full_precision, is_batched
from punce.training import collectives

_SHARPNESS = 10.0  # of the log-odds in cosine similarity; 5 to 20 did equally well on MNIST
_EDGE = 1e-6  # probabilities of 0 and 1 have no log-odds
_REACH = 60.0  # of the shift: further than the log-odds at both edges are apart
_HALVINGS = 60  # of an interval of 120, so that the shift is exact to the last bit of float64


@torch.no_grad()
def anchor_probabilities(anchors: Anchors, prior: float, probabilities: Tensor | None = None) -> Tensor:
    """Log-odds of the rows shifted by one number, so that the unlabelled rows of all ranks have the mean `prior`.

    They are those of `probabilities`, else come from the similarity of the row to the mean of each class.

    Shape: probabilities (B,) -> (M, 1).
    """
    if is_batched(anchors.is_positive):
        raise PunceError(
            "weighting='posterior' looks at the labels, which vmap does not allow: give all batches the same labels, "
            "vmap(loss, (0, None))"
        )
    b = len(anchors.z) // 2
    with full_precision(anchors.z):
        log_odds = _from_means(anchors, b) if probabilities is None else _from_caller(probabilities, b)
    log_odds = log_odds.to(anchors.z.device, torch.float64)
    is_labelled = (anchors.is_positive | anchors.is_negative)[:b, 0]
    # Every rank gets all of them, one number a row, and finds the same shift.
    unlabelled = collectives.gather_rows(log_odds[~is_labelled]).rows
    shifted = (log_odds + _shift(unlabelled, prior)).sigmoid()
    # no_grad stops the backward pass alone; jvp, jacfwd and hessian go forward.
    return shifted.to(anchors.z.dtype).repeat(2)[:, None].detach()


def _from_means(anchors: Anchors, b: int) -> Tensor:
    """z̄_i·(mean(P) − mean(N)), z̄_i the mean of both views; the unlabelled mean stands in for a class without labels."""
    unlabelled = LabelledGroup.of(anchors.z, ~(anchors.is_positive | anchors.is_negative)).mean()
    p, n = (torch.where(group.count > 0, group.mean(), unlabelled) for group in (anchors.positives, anchors.negatives))
    return _SHARPNESS * (anchors.z[:b] + anchors.z[b:]) / 2 @ (p - n)


def _from_caller(probabilities: Tensor, b: int) -> Tensor:
    if not isinstance(probabilities, Tensor):
        raise InputError(
            f"probabilities must be a tensor, got {type(probabilities).__name__}; torch.as_tensor makes one"
        )
    if probabilities.shape != (b,):
        raise InputError(
            f"probabilities must be one per row, shape ({b},), got {tuple(probabilities.shape)}; "
            "average those of the two views"
        )
    bad = ~((probabilities >= 0) & (probabilities <= 1))  # also NaN
    if bool(bad.any()):
        row = int(bad.nonzero()[0])
        raise InputError(
            f"probabilities must lie in [0, 1], got {float(probabilities[row])!r} in row {row}; "
            "take the sigmoid of raw scores"
        )
    return probabilities.double().logit(_EDGE)


def _shift(log_odds: Tensor, prior: float) -> Tensor:
    """c with mean σ(log_odds + c) = `prior`, by halving: the mean rises with c."""
    low, high = log_odds.new_tensor(-_REACH), log_odds.new_tensor(_REACH)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        is_above = (log_odds + middle).sigmoid().mean() > prior
        # No Python "if": it would wait for the GPU at every halving.
        low, high = torch.where(is_above, low, middle), torch.where(is_above, middle, high)
    return (low + high) / 2
