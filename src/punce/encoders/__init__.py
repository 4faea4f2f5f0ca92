"""Encoders: h = features(x), z = project(h), score = online_head(h).

Add an encoder: one file with a subclass of :class:`~punce.encoders.encoder.Encoder`, one line in :data:`ENCODERS`,
and its parameter count in ``tests/test_encoders.py``.
"""

from punce.encoders.allconv import AllConv
from punce.encoders.encoder import Encoder
from punce.encoders.identity import Identity
from punce.encoders.linear import Linear
from punce.encoders.mlp import MLP
from punce.encoders.resnet18 import ResNet18
from punce.encoders.transformer import Transformer

ENCODERS: dict[str, type[Encoder]] = {
    "mlp": MLP,
    "allconv": AllConv,
    "resnet18": ResNet18,
    "identity": Identity,
    "linear": Linear,
    "transformer": Transformer,
}

__all__ = ["ENCODERS", "MLP", "AllConv", "Encoder", "Identity", "Linear", "ResNet18", "Transformer"]
