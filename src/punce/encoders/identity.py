"""The identity: ready-made embeddings are already features."""

from __future__ import annotations

from torch import nn

from punce.encoders.encoder import Encoder, projector


class Identity(Encoder):
    """features(x) = x, for probing embeddings that another model made.

    There is nothing to pretrain except the projector, which is discarded; to *adapt* embeddings, train an
    :class:`~punce.encoders.MLP` on them instead.

    Shape: x (B, in_features) -> features (B, in_features) -> projections (B, projection_size).
    """

    def __init__(self, in_features: int, projection_size: int = 128) -> None:
        super().__init__()
        self.in_features, self.projection_size = in_features, projection_size
        self.backbone = nn.Flatten(1)  # nothing to train
        self.projector = projector(in_features, in_features, projection_size)
        self.online_head = nn.Linear(in_features, 1)
