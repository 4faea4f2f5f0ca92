"""Encoders: h = features(x), z = project(h), score = online_head(h).

CONTRIBUTING.md says how to add an encoder.
"""

from __future__ import annotations

from math import prod
from typing import Any

from punce.catalogue import build_entry
from punce.encoders.allconv import AllConv
from punce.encoders.encoder import Encoder
from punce.encoders.identity import Identity
from punce.encoders.linear import Linear
from punce.encoders.mlp import MLP
from punce.encoders.resnet18 import ResNet18
from punce.encoders.transformer import Transformer
from punce.encoders.vision import Vision
from punce.errors import InputError

ENCODERS: dict[str, type[Encoder]] = {
    "mlp": MLP,
    "allconv": AllConv,
    "resnet18": ResNet18,
    "identity": Identity,
    "linear": Linear,
    "transformer": Transformer,
}


def build_encoder(encoder: str | Encoder, **options: Any) -> Encoder:
    """The encoder of that name, or `encoder` itself if it is one."""
    return build_entry("encoder", ENCODERS, Encoder, encoder, options)


def row_options(name: str, row_shape: tuple[int, ...]) -> dict[str, int]:
    """The options of an encoder that follow from the shape of a row: (d,), or (C, H, W) for images."""
    if name in ("mlp", "identity", "linear"):
        return {"in_features": prod(row_shape)}
    if len(row_shape) != 3:
        raise InputError(f"encoder {name!r} reads images, but a row has the shape {row_shape}; use 'mlp' or 'auto'")
    channels, height, width = row_shape
    if name != "allconv":
        return {"in_channels": channels}
    if height != width:
        raise InputError(f"AllConv reads square images, got {(height, width)}; use encoder='resnet18'")
    return {"in_channels": channels, "image_size": height}


__all__ = ["ENCODERS", "MLP", "AllConv", "Encoder", "Identity", "Linear", "ResNet18", "Transformer", "Vision"]
__all__ += ["build_encoder", "row_options"]
