"""What every encoder offers: features, projections, and a linear head that only monitors the features."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, Self

import torch
from torch import Tensor, nn

from punce.encoders.blocks import frozen_names
from punce.errors import InputError

Precision = Literal["float32", "bfloat16"]


class Encoder(nn.Module):
    """g_B with its projector and online head, as in the paper's appendix.

    Sub-classes set `backbone`, `projector` and `online_head` (or override :meth:`features`).

    Shape: x (B, ...) -> features (B, D) -> projections (B, K).
    """

    backbone: nn.Module
    projector: nn.Module
    online_head: nn.Linear
    precision: Precision = "float32"
    """Of convolutions (see :mod:`punce.encoders.precision`) or of a transformer, while training."""
    _frozen: Sequence[str] = ()
    _switched_off: Sequence[nn.Parameter] = ()

    @property
    def feature_size(self) -> int:
        """D, the size of h = features(x)."""
        return self.online_head.in_features

    def features(self, x: Tensor) -> Tensor:
        """h = g_B(x): what linear probes and downstream models use. Shape: (B, ...) -> (B, D)."""
        h: Tensor = self.backbone(x)
        return h

    def project(self, h: Tensor) -> Tensor:
        """z = projector(h): what the contrastive loss sees; discarded after pretraining. Shape: (B, D) -> (B, K)."""
        z: Tensor = self.projector(h)
        return z

    def monitor(self, h: Tensor) -> Tensor:
        """Scores of the online head on *detached* features: it never changes the encoder. Shape: (B, D) -> (B,)."""
        # Detached: the head shows how separable the features are while training, and does not change them.
        score: Tensor = self.online_head(h.detach()).squeeze(1)
        return score

    def train_last(self, blocks: int | None) -> None:
        """From now on only the last `blocks` blocks are trained, and what follows them; None trains everything."""
        found = [] if blocks is None else frozen_names(self, blocks, ("projector", "online_head"))
        for parameter in self._switched_off:
            parameter.requires_grad_(True)
        own = (weight for name in found for weight in self.get_submodule(name).parameters(recurse=False))
        self._frozen, self._switched_off = found, [weight for weight in own if weight.requires_grad]
        for parameter in self._switched_off:
            parameter.requires_grad_(False)
        self.train(self.training)

    def train(self, mode: bool = True) -> Self:
        """As of any module, but frozen parts stay in eval mode: BatchNorm would change its statistics."""
        super().train(mode)
        for name in self._frozen:
            self.get_submodule(name).training = mode and not name  # the encoder itself is in the mode it was told
        return self

    def convolved(self, part: nn.Module, x: Tensor) -> Tensor:
        """part(x), in :attr:`precision` while training. float32 comes out. Shape: (B, C, H, W) -> that of `part`."""
        if self.precision == "float32" or not self.training:
            h: Tensor = part(x)
            return h
        with torch.autocast(x.device.type, torch.bfloat16):
            return part(x).float()  # type: ignore[no-any-return]

    def forward(self, x: Tensor) -> Tensor:
        """Projections of `x`."""
        return self.project(self.features(x))


@contextmanager
def eval_mode(module: nn.Module) -> Iterator[None]:
    """Inside, the module is in eval mode; afterwards each part is in the mode it had, also if rows were refused."""
    # Part by part: train() would also wake a BatchNorm that its owner has put into eval mode on its own.
    before = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, was_training in before:
            part.training = was_training


def scaled(size: int, width: float) -> int:
    """A layer size times the width factor, at least 1."""
    if not 0 < width < float("inf"):
        raise InputError(f"width must be a positive factor (1.0 is the paper's network), got {width!r}")
    # A very small width must still leave one unit.
    return max(1, round(size * width))


def projector(size_in: int, hidden: int, size_out: int, *, hidden_bias: bool = True) -> nn.Sequential:
    """Linear, BatchNorm, ReLU, Linear: the projector of every encoder in the appendix."""
    return nn.Sequential(
        nn.Linear(size_in, hidden, bias=hidden_bias),
        nn.BatchNorm1d(hidden),
        nn.ReLU(inplace=True),
        nn.Linear(hidden, size_out),
    )
