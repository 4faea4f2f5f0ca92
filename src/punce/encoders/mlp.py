"""The multi-layer perceptron of PU-MNIST, also used for tables and embeddings."""

from __future__ import annotations

from torch import Tensor, nn

from punce.encoders.encoder import Encoder, projector, scaled


class MLP(Encoder):
    """784–5000–5000–50 with BatchNorm and ReLU (appendix, "MNIST Multi Layer Perceptron"): 29,231,151 parameters.

    Args:
        in_features: size of a flattened input row.
        width: factor on the two hidden layers of 5000; 0.2 is the CPU-sized version. The 50 features and the
            projector keep their size.

    Shape: x (B, in_features) or (B, C, H, W) -> features (B, 50) -> projections (B, 50).
    """

    def __init__(self, in_features: int = 784, width: float = 1.0) -> None:
        super().__init__()
        hidden = scaled(5000, width)
        self.in_features, self.width = in_features, width
        self.backbone = nn.Sequential(*_layer(in_features, hidden), *_layer(hidden, hidden), *_layer(hidden, 50))
        # Not scaled by width: the appendix's bottleneck of 50 features is part of the method.
        self.projector = projector(50, 300, 50)
        self.online_head = nn.Linear(50, 1)

    def features(self, x: Tensor) -> Tensor:
        """h of flattened inputs. Shape: (B, ...) -> (B, 50)."""
        return super().features(x.flatten(1))


def _layer(size_in: int, size_out: int) -> tuple[nn.Module, ...]:
    return nn.Linear(size_in, size_out), nn.BatchNorm1d(size_out), nn.ReLU(inplace=True)
