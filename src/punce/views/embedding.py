"""Two views of an embedding: noise and feature dropout.

For vectors that some other model made (text, graphs, users), where nothing is known about what leaves the meaning
alone. The noise is measured against the row's own size, so the same setting suits unit vectors and raw activations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from punce.views import counter
from punce.views.plan import Draws, as_features, check_range

_NOISE, _DROP = 1, 2  # streams: the two kinds of draws of a row must not share random numbers


@dataclass(frozen=True)
class Embedding:
    """`noise`: deviation of the noise on a feature, as a share of the row's root mean square.

    `dropout`: probability of a feature being set to zero; the others are divided by 1 − dropout, so that the expected
    view is the row itself and :meth:`clean` is on the same scale.
    """

    noise: float = 0.1
    dropout: float = 0.2

    def __post_init__(self) -> None:
        check_range("noise", self.noise, 0, 10)
        check_range("dropout", self.dropout, 0, 0.99)

    def fit(self, X: Tensor) -> Self:
        """Nothing is learned."""
        return self

    def plan(self, n_rows: int, seed: int, epoch: int, X: Tensor | None = None) -> EmbeddingPlan:
        """The views of one epoch; `X` is not needed."""
        return EmbeddingPlan(self, Draws(n_rows, seed, epoch))

    def clean(self, x: Tensor) -> Tensor:
        """The rows as they are, in float32. (b, d) -> (b, d)."""
        return as_features(x)


@dataclass(frozen=True)
class EmbeddingPlan:
    """The embedding views of one epoch."""

    view: Embedding
    draws: Draws

    def apply(self, x: Tensor, rows: Tensor) -> Tensor:
        """Both views of a batch. Shape: x (b, d), rows (b,) -> (2, b, d), float32 on x's device."""
        x = as_features(x)
        return torch.stack([self._one(x, keys) for keys in self.draws.keys(rows, len(x), x.device)])

    def _one(self, x: Tensor, keys: Tensor) -> Tensor:
        # A float32 sum depends on how threads share it, and so on the batch; a float64 sum rounded to float32 does not.
        size = x.square().mean(dim=1, keepdim=True, dtype=torch.float64).sqrt().to(torch.float32)
        noisy = x + self.view.noise * size * counter.bell(counter.bits(keys, x.shape[1], stream=_NOISE))
        # Noise first, then dropout: a dropped feature is exactly zero.
        kept = counter.unit_interval(counter.bits(keys, x.shape[1], stream=_DROP)) >= self.view.dropout
        return noisy * kept / (1 - self.view.dropout)
