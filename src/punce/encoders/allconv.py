"""The all-convolutional network of PU-CIFAR."""

from __future__ import annotations

from torch import Tensor, nn

from punce.encoders.encoder import Encoder, projector, scaled
from punce.errors import InputError

_DOWNSAMPLING = 4  # two convolutions of stride 2


class AllConv(Encoder):
    """Nine convolutions and two linear layers (appendix, "All Convolution N/w"): 5,019,255 parameters.

    Args:
        in_channels: 3 for colour, 1 for grey images.
        image_size: side of the square input.
        width: factor on channels and linear layers (not on the 10 channels before flattening).

    Shape: x (B, C, S, S) -> features (B, 1000·width) -> projections (B, 1000·width).
    """

    def __init__(self, in_channels: int = 3, image_size: int = 32, width: float = 1.0) -> None:
        super().__init__()
        if image_size < _DOWNSAMPLING:
            raise InputError(f"AllConv needs images of at least {_DOWNSAMPLING} pixels a side, got {image_size}")
        self.in_channels, self.image_size, self.width = in_channels, image_size, width
        c1, c2, linear = scaled(96, width), scaled(192, width), scaled(1000, width)
        # The appendix prints these two parts under these names; checkpoints use them.
        self.backbone_cnn = nn.Sequential(
            *_conv(in_channels, c1),
            *_conv(c1, c1),
            *_conv(c1, c1, stride=2),
            *_conv(c1, c2),
            *_conv(c2, c2),
            *_conv(c2, c2, stride=2),
            *_conv(c2, c2),
            *_conv(c2, c2, kernel=1),
            *_conv(c2, 10, kernel=1),
        )
        side = -(-image_size // _DOWNSAMPLING)  # stride 2 with padding 1 rounds up
        self.backbone_lin = nn.Sequential(
            nn.Linear(10 * side * side, linear),
            nn.ReLU(inplace=True),
            nn.Linear(linear, linear),
            nn.ReLU(inplace=True),
        )
        self.projector = projector(linear, linear, linear)
        self.online_head = nn.Linear(linear, 1)

    def features(self, x: Tensor) -> Tensor:
        """h of a batch of images. Shape: (B, C, S, S) -> (B, 1000·width)."""
        h: Tensor = self.backbone_lin(self.convolved(self.backbone_cnn, x).flatten(1))
        return h


def _conv(size_in: int, size_out: int, *, kernel: int = 3, stride: int = 1) -> tuple[nn.Module, ...]:
    return (
        nn.Conv2d(size_in, size_out, kernel, stride=stride, padding=kernel // 2),
        nn.BatchNorm2d(size_out),
        nn.ReLU(inplace=True),
    )
