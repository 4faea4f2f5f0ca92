"""DCL: InfoNCE with a denominator corrected for false negatives."""

from __future__ import annotations

import math
from typing import SupportsFloat

import torch
from torch import Tensor

from punce.errors import InputError
from punce.losses.contrastive import Anchors, ContrastiveLoss
from punce.losses.log_partition import log_partition


class DCL(ContrastiveLoss):
    """Debiased contrastive loss (Chuang et al. 2020, arXiv:2007.00224, eq. 8), a baseline of the paper's Table 1.

    With pos_i = exp(z_i·z_{a(i)}/τ), neg_i the sum over the other M_n = 2B − 2 views and τ⁺ the chance that one of
    them is of the anchor's class:

        Ng_i = max( (neg_i − τ⁺·M_n·pos_i) / (1 − τ⁺),  M_n·e^{−1/τ} ),    ℓ⁽ⁱ⁾ = −log( pos_i / (pos_i + Ng_i) )

    Labels are checked and then ignored. ``tau_plus`` near the true share of a class over-corrects on two classes;
    0.1 is the value that worked for its authors.

    Shape: z (2, B, K), labels (B,) -> scalar.
    """

    def __init__(self, temperature: float = 0.5, tau_plus: float = 0.1) -> None:
        super().__init__(temperature)
        if not (isinstance(tau_plus, SupportsFloat) and 0.0 <= float(tau_plus) < 1.0):
            raise InputError(f"tau_plus must lie in [0, 1), got {tau_plus!r}")
        self.tau_plus = float(tau_plus)

    def target(self, anchors: Anchors) -> Tensor:
        """The pair term is InfoNCE's."""
        # DCL differs from InfoNCE in the denominator only.
        return anchors.pair

    def per_anchor(self, anchors: Anchors) -> Tensor:
        """ℓ⁽ⁱ⁾ = log(1 + Ng_i/pos_i), in logarithms so that no temperature overflows. Shape: (M,)."""
        lse = log_partition(anchors.z, self.temperature)
        log_pos = (anchors.z * self.target(anchors)).sum(1) / self.temperature
        log_ratio = self._log_negatives_over_pair(lse - log_pos, log_pos, anchors.n_others)
        return torch.logaddexp(log_ratio, torch.zeros_like(log_ratio))

    def _log_negatives_over_pair(self, x: Tensor, log_pos: Tensor, n_others: int) -> Tensor:
        """log(Ng_i / pos_i), where x_i = log((pos_i + neg_i)/pos_i) ≥ 0, so that neg_i/pos_i = e^x − 1."""
        # (e^x − 1 − τ⁺M)/(1 − τ⁺) = e^x (1 − share)/(1 − τ⁺); only its logarithm cannot overflow.
        share = (1.0 + self.tau_plus * n_others) * (-x).exp()
        # Chuang's lower bound M_n·e^{−1/τ}, divided by pos_i. A batch of one row has no others and no bound.
        floor = math.log(n_others) - 1 / self.temperature - log_pos if n_others else torch.full_like(x, -math.inf)
        # The correction can be negative; then the bound counts. The inner where keeps log1p away from −1, where its
        # gradient is infinite even if the branch is not taken.
        above_zero = share < 1.0
        corrected = x + torch.log1p(-torch.where(above_zero, share, 0.0)) - math.log1p(-self.tau_plus)
        return torch.where(above_zero, torch.maximum(corrected, floor), floor)

    def extra_repr(self) -> str:
        """Shown by print(loss)."""
        return f"{super().extra_repr()}, tau_plus={self.tau_plus}"
