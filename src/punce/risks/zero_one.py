"""The PU estimate of the classification error, for choosing epochs and hyper-parameters without negatives."""

from __future__ import annotations

from torch import Tensor

from punce.labels import POSITIVE, UNLABELLED


def zero_one_risk(scores: Tensor, labels: Tensor, prior: float, cut: float = 0.0) -> float:
    """π·FNR_P + max(0, PPR_U − π·TPR_P): the error under the unlabelled mix, from held-out P and U alone.

    TPR is the share of labelled rows above the cut, PPR_U that of unlabelled rows. It is nnPU's estimate with the
    zero-one loss. Ties at the cut count as negative. Shape: scores (n,), labels (n,) of {1, 0}.
    """
    above = scores > cut
    tpr = float(above[labels == POSITIVE].float().mean())
    share_of_u = float(above[labels == UNLABELLED].float().mean())
    return prior * (1.0 - tpr) + max(0.0, share_of_u - prior * tpr)
