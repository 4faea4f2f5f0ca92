"""A linear map of ready-made embeddings: contrastive features that cannot memorise the labelled rows."""

from __future__ import annotations

from torch import Tensor, nn

from punce.encoders.encoder import Encoder, projector


class Linear(Encoder):
    """h = W·x, with the projector of the other encoders behind it.

    For good embeddings with few labels: an MLP of a thousand units fits 500 labelled rows exactly, and its features
    then flatter them (docs/text.md).

    Shape: x (B, in_features) or (B, C, H, W) -> features (B, size) -> projections (B, size).
    """

    def __init__(self, in_features: int, size: int = 64) -> None:
        super().__init__()
        self.in_features, self.size = in_features, size
        self.backbone = nn.Linear(in_features, size, bias=False)
        self.projector = projector(size, size, size)
        self.online_head = nn.Linear(size, 1)

    def features(self, x: Tensor) -> Tensor:
        """h of flattened inputs. Shape: (B, ...) -> (B, size)."""
        return super().features(x.flatten(1))
