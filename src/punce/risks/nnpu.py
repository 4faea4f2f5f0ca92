"""nnPU: the non-negative risk of Kiryo, Niu, du Plessis and Sugiyama (2017)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from punce.errors import InputError, is_number
from punce.labels import NEGATIVE, POSITIVE, UNLABELLED, refuse_negatives
from punce.risks.base import Risk, checked_batch, find_surrogate, group_means
from punce.scenario import check_prior


class NNPU(Risk):
    """With r = E_U ℓ(−g) − π E_P ℓ(−g): step on π E_P ℓ(g) + r while r ≥ −β, else on −γ·r alone (their Algorithm 1).

    In the second branch the step undoes over-fitting: it *raises* r again and leaves the positive part out.
    The returned scalar is what to step on; :meth:`value` is the estimate π E_P ℓ(g) + max(0, r) for a log.
    `prior` is the share of positives among the unlabelled rows. A batch without labelled rows steps on
    E_U ℓ(−g); one without unlabelled rows on π E_P ℓ(g), because r cannot be estimated from it.

    With `known_share` η above 0, rows may be labelled negative (-1; Sakai et al. 2017): (1−η)·r + η(1−π) E_N ℓ(−g)
    takes the place of r in the first branch. A batch without such rows is one of the PU setting.

    The branch is chosen on r over all ranks. A risk per rank takes different branches on different ranks and its
    average points elsewhere.
    """

    def __init__(
        self,
        prior: float,
        surrogate: str = "sigmoid",
        beta: float = 0.0,
        gamma: float = 1.0,
        known_share: float = 0.0,
    ) -> None:
        super().__init__()
        self.prior = check_prior(prior, open_interval=True)
        self.surrogate = find_surrogate(surrogate)
        if not (is_number(beta) and math.isfinite(beta) and beta >= 0.0):
            raise InputError(f"beta must be a number >= 0, got {beta!r}")
        if not (is_number(gamma) and 0.0 <= gamma <= 1.0):
            raise InputError(f"gamma must lie in [0, 1], got {gamma!r}")
        self.known_share = check_prior(known_share, "known_share")
        self.beta = float(beta)
        self.gamma = float(gamma)

    def forward(self, scores: Tensor, labels: Tensor) -> Tensor:
        """What to step on: π E_P ℓ(g) + r, or −γ·r where r < −β."""
        positive_part, r, negative_part = self._parts(scores, labels)
        # torch.where keeps both branches on the graph: no device sync, and every rank runs the same collectives.
        return torch.where(r >= -self.beta, positive_part + negative_part, -self.gamma * r)

    def value(self, scores: Tensor, labels: Tensor) -> Tensor:
        """The non-negative estimate π E_P ℓ(g) + max(0, r), without gradient."""
        with torch.no_grad():
            positive_part, _, negative_part = self._parts(scores, labels)
            return positive_part + negative_part.clamp(min=0.0)

    def _parts(self, scores: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """π E_P ℓ(g), r, and what takes the place of r where negatives are known."""
        scores, labels = checked_batch(scores, labels)
        if self.known_share == 0.0:
            refuse_negatives(labels, "NNPU without known_share")
        is_p, is_u = labels == POSITIVE, labels == UNLABELLED
        as_positive, as_negative = self.surrogate(scores), self.surrogate(-scores)
        stats = group_means([(as_positive, is_p), (as_negative, is_p), (as_negative, is_u)])
        # Global means: every rank then takes the same branch below.
        p_plus, p_minus, u_minus = stats.means
        # Without unlabelled rows r is unknown; 0 leaves the step on the positive part.
        has_u = stats.counts[2] > 0
        r = (u_minus - self.prior * p_minus) * has_u
        return self.prior * p_plus, r, r if self.known_share == 0.0 else self._mixed(r, as_negative, labels)

    def _mixed(self, r: Tensor, as_negative: Tensor, labels: Tensor) -> Tensor:
        known = group_means([(as_negative, labels == NEGATIVE)])
        mixed = (1.0 - self.known_share) * r + self.known_share * (1.0 - self.prior) * known.means[0]
        return torch.where(known.counts[0] > 0, mixed, r)

    def extra_repr(self) -> str:
        """For ``repr``."""
        known = f", known_share={self.known_share:g}" if self.known_share else ""
        own = f"prior={self.prior:g}, surrogate={self.surrogate.name!r}, beta={self.beta:g}, gamma={self.gamma:g}"
        return own + known
