"""vPU: the prior-free variational risk of Chen, Liu, Wang, Zhao and Wu (NeurIPS 2020)."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from punce.errors import InputError, is_number
from punce.labels import POSITIVE, UNLABELLED, refuse_negatives
from punce.risks.base import Risk, checked_batch, checked_scores, group_means
from punce.training.collectives import gather_rows


class VPU(Risk):
    """L = log mean_U Φ − mean_P log Φ with Φ = σ(g), plus λ times the MixUp consistency term.

    ``vpu(scores, labels)`` is the variational loss; the training loop adds
    ``vpu.consistency(mixed_scores, unlabelled_scores, mix)`` for x̃ = γ x_u + (1−γ) x_p, γ ~ Beta(`mixup_alpha`,
    `mixup_alpha`). `mixup_weight` is λ: 0.03 served CIFAR, 0.3 Fashion-MNIST, 0.1 tables.

    Needs no prior, and for that the scale of Φ is free: L does not change when Φ is multiplied by a constant. Fix
    it after training with :func:`phi_scale` and store the number with the model; the cut is then at
    :func:`phi_decision_score`. Early stopping uses :meth:`value` on held-out rows.

    :func:`punce.stages.vpu.train_vpu` does all of this. A probe on frozen features takes the variational loss alone.
    """

    def __init__(self, mixup_weight: float = 0.1, mixup_alpha: float = 0.3) -> None:
        super().__init__()
        if not (is_number(mixup_weight) and math.isfinite(mixup_weight) and mixup_weight >= 0.0):
            raise InputError(f"mixup_weight must be a number >= 0, got {mixup_weight!r}")
        if not (is_number(mixup_alpha) and math.isfinite(mixup_alpha) and mixup_alpha > 0.0):
            raise InputError(f"mixup_alpha must be a number > 0, got {mixup_alpha!r}")
        self.mixup_weight = float(mixup_weight)
        self.mixup_alpha = float(mixup_alpha)

    def forward(self, scores: Tensor, labels: Tensor) -> Tensor:
        """log mean_U Φ − mean_P log Φ over the rows of all ranks; an empty side contributes nothing."""
        scores, labels = checked_batch(scores, labels)
        refuse_negatives(labels, "VPU")
        is_p, is_u = labels == POSITIVE, labels == UNLABELLED
        log_phi = functional.logsigmoid(scores)
        # log mean exp with the global maximum subtracted, so that exp cannot underflow to log 0.
        shift = _global_maximum(log_phi[is_u])
        # Masked before exp: a labelled row may lie far above every unlabelled one.
        shifted_phi = torch.exp(torch.where(is_u, log_phi - shift, torch.zeros_like(log_phi)))
        stats = group_means([(log_phi, is_p), (shifted_phi, is_u)])
        mean_log_p, mean_phi_u = stats.means
        has_u = stats.counts[1] > 0
        # log 1 = 0 where there is no unlabelled row; the + 1.0 keeps the gradient finite.
        log_mean_u = torch.log(torch.where(has_u, mean_phi_u, mean_phi_u + 1.0)) + shift
        return log_mean_u - mean_log_p

    def consistency(self, mixed_scores: Tensor, unlabelled_scores: Tensor, mix: float | Tensor) -> Tensor:
        """λ · mean (log t − log Φ(x̃))², t = γ Φ(x_u) + (1−γ).

        Shape: mixed_scores (m,) of x̃; unlabelled_scores (m,) of the x_u in it; mix γ in [0, 1], one number or (m,).
        """
        mixed_scores = checked_scores(mixed_scores, "mixed_scores")
        unlabelled_scores = checked_scores(unlabelled_scores, "unlabelled_scores")
        if mixed_scores.shape != unlabelled_scores.shape:
            raise InputError(
                "mixed_scores and unlabelled_scores must pair up row by row, "
                f"got {tuple(mixed_scores.shape)} and {tuple(unlabelled_scores.shape)}"
            )
        gamma = _checked_mix(mix, mixed_scores)
        # log t in log space: with Φ(x_u) near 0 and γ near 1 the sum itself underflows.
        log_t = torch.logaddexp(torch.log(gamma) + functional.logsigmoid(unlabelled_scores), torch.log1p(-gamma))
        squared = (log_t - functional.logsigmoid(mixed_scores)).square()
        return self.mixup_weight * group_means([(squared, torch.ones_like(squared))]).means[0]

    def extra_repr(self) -> str:
        """For ``repr``."""
        return f"mixup_weight={self.mixup_weight:g}, mixup_alpha={self.mixup_alpha:g}"


def phi_scale(scores: Tensor, quantile: float = 0.99) -> float:
    """The value of Φ that stands for probability 1: a high quantile over held-out rows (the maximum is one outlier)."""
    scores = checked_scores(scores).detach()
    if len(scores) == 0:
        raise InputError("phi_scale needs at least one score")
    check_quantile(quantile)
    # kthvalue of the scores, because Φ is monotone in them and torch.quantile refuses more than 16 million rows.
    k = max(1, math.ceil(quantile * len(scores)))
    return max(float(torch.sigmoid(scores.kthvalue(k).values)), torch.finfo(scores.dtype).tiny)


def check_quantile(quantile: float) -> None:
    """Refuse what is no share of the rows above 0."""
    if not (is_number(quantile) and 0.0 < quantile <= 1.0):
        raise InputError(f"quantile must lie in (0, 1], got {quantile!r}")


def phi_probability(scores: Tensor, scale: float) -> Tensor:
    """P(y=1 | x) = min(1, Φ(x) / scale)."""
    return (torch.sigmoid(checked_scores(scores)) / scale).clamp(max=1.0)


def phi_decision_score(scale: float) -> float:
    """The score at which Φ / scale is one half."""
    half = 0.5 * scale
    return math.log(half) - math.log1p(-half)


def _global_maximum(values: Tensor) -> Tensor:
    """The largest value on any rank, without gradient; 0 when no rank holds one."""
    none = values.new_full((1,), -math.inf)
    local = torch.cat([values.detach(), none]).max().reshape(1)
    # Every rank must subtract the same shift, also one without unlabelled rows.
    largest = gather_rows(local).rows.max()
    return torch.where(torch.isinf(largest), torch.zeros_like(largest), largest)


def _checked_mix(mix: float | Tensor, scores: Tensor) -> Tensor:
    gamma = torch.as_tensor(mix, dtype=scores.dtype, device=scores.device).detach()
    if gamma.dim() > 0 and gamma.shape != scores.shape:
        raise InputError(f"mix must be one number or have shape {tuple(scores.shape)}, got {tuple(gamma.shape)}")
    if not bool(((gamma >= 0) & (gamma <= 1)).all()):
        raise InputError("mix must lie in [0, 1]; draw it from Beta(mixup_alpha, mixup_alpha)")
    return gamma
