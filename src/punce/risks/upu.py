"""uPU: the unbiased risk of du Plessis, Niu and Sugiyama (2014, 2015)."""

from __future__ import annotations

import warnings

from torch import Tensor

from punce.labels import POSITIVE, UNLABELLED, refuse_negatives
from punce.risks.base import Risk, RiskWarning, checked_batch, find_surrogate, group_means
from punce.scenario import check_prior


class UPU(Risk):
    """R = π E_P ℓ(g) + E_U ℓ(−g) − π E_P ℓ(−g), unbiased for π E_P ℓ(g) + (1−π) E_N ℓ(−g).

    `prior` is the share of positives among the unlabelled rows. The last term has a minus sign: with an unbounded
    surrogate (logistic, double_hinge) R has no lower bound and a flexible model over-fits without end, so those are
    for linear models and come with a warning. A batch without unlabelled rows contributes π E_P [ℓ(g) − ℓ(−g)], one
    without labelled rows E_U ℓ(−g): R is linear in its parts, so batches still add up to an unbiased gradient.
    """

    def __init__(self, prior: float, surrogate: str = "sigmoid") -> None:
        super().__init__()
        self.prior = check_prior(prior, open_interval=True)
        self.surrogate = find_surrogate(surrogate)
        if not self.surrogate.bounded:
            warnings.warn(
                f"uPU with the {self.surrogate.name} surrogate is unbounded below and collapses with flexible models; "
                "use surrogate='sigmoid', or NNPU, which stays non-negative",
                RiskWarning,
                stacklevel=2,
            )

    def forward(self, scores: Tensor, labels: Tensor) -> Tensor:
        """R on the rows of all ranks."""
        scores, labels = checked_batch(scores, labels)
        refuse_negatives(labels, "UPU")
        is_p, is_u = labels == POSITIVE, labels == UNLABELLED
        as_positive, as_negative = self.surrogate(scores), self.surrogate(-scores)
        p_plus, p_minus, u_minus = group_means([(as_positive, is_p), (as_negative, is_p), (as_negative, is_u)]).means
        # E_U ℓ(−g) counts the hidden positives as negatives; −π E_P ℓ(−g) takes that part out again.
        return self.prior * p_plus + u_minus - self.prior * p_minus

    def extra_repr(self) -> str:
        """For ``repr``."""
        return f"prior={self.prior:g}, surrogate={self.surrogate.name!r}"
