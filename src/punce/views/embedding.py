"""Two views of an embedding: noise and feature dropout.

For vectors that some other model made (text, graphs, users), where nothing is known about what leaves the meaning
alone. The noise is measured against the row's own size, so the same setting suits unit vectors and raw activations.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from punce.views import counter
from punce.views.plan import RowWise, as_features, check_range, keep_plain

_NOISE, _DROP = 1, 2  # streams: the two kinds of draws of a row must not share random numbers


@dataclass(frozen=True)
class Embedding(RowWise):
    """`noise`: deviation of the noise on a feature, as a share of the row's root mean square.

    `dropout`: probability of a feature being set to zero; the others are divided by 1 − dropout, so that the expected
    view is the row itself and :meth:`clean` is on the same scale.
    """

    noise: float = 0.1
    dropout: float = 0.2

    def __post_init__(self) -> None:
        keep_plain(self)
        check_range("noise", self.noise, 0, 10)
        check_range("dropout", self.dropout, 0, 0.99)

    def clean(self, x: Tensor) -> Tensor:
        """The rows as they are, in float32. (b, d) -> (b, d)."""
        return as_features(x)

    def one(self, x: Tensor, keys: Tensor) -> Tensor:
        """Noise, then dropout. (b, d) -> (b, d)."""
        # A float32 sum depends on how threads share it, and so on the batch; a float64 sum rounded to float32 does not.
        size = x.square().mean(dim=1, keepdim=True, dtype=torch.float64).sqrt().to(torch.float32)
        noisy = x + self.noise * size * counter.bell(counter.bits(keys, x.shape[1], stream=_NOISE))
        # Noise first, then dropout: a dropped feature is exactly zero.
        kept = counter.unit_interval(counter.bits(keys, x.shape[1], stream=_DROP)) >= self.dropout
        return noisy * kept / (1 - self.dropout)
