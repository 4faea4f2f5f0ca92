"""ResNet18 with a 3×3 stem for small images."""

from __future__ import annotations

from torch import Tensor, nn

from punce.encoders.encoder import Encoder, projector, scaled


class ResNet18(Encoder):
    """Four stages of two basic blocks (appendix, "ResNet18"; arXiv:1512.03385): 11,333,825 parameters.

    The stem is a 3×3 convolution without pooling, for 32×32 images; any larger size works as well.

    Args:
        in_channels: 3 for colour, 1 for grey images.
        width: factor on all channels and on the projector.

    Shape: x (B, C, H, W) -> features (B, 512·width) -> projections (B, 128·width).
    """

    def __init__(self, in_channels: int = 3, width: float = 1.0) -> None:
        super().__init__()
        self.in_channels, self.width = in_channels, width
        c = [scaled(channels, width) for channels in (64, 128, 256, 512)]
        self.backbone = nn.Sequential(
            # A 3×3 stem of stride 1 and no max-pooling: a 7×7 stem would leave little of a 32×32 image.
            nn.Conv2d(in_channels, c[0], 3, padding=1, bias=False),
            nn.BatchNorm2d(c[0]),
            nn.ReLU(inplace=True),
            _stage(c[0], c[0], stride=1),
            _stage(c[0], c[1], stride=2),
            _stage(c[1], c[2], stride=2),
            _stage(c[2], c[3], stride=2),
            nn.AdaptiveAvgPool2d(1),
        )
        # The appendix counts no bias in the hidden layer; BatchNorm would cancel it.
        self.projector = projector(c[3], scaled(256, width), scaled(128, width), hidden_bias=False)
        self.online_head = nn.Linear(c[3], 1)

    def features(self, x: Tensor) -> Tensor:
        """h of a batch of images. Shape: (B, C, H, W) -> (B, 512·width)."""
        return self.convolved(self.backbone, x).flatten(1)


class BasicBlock(nn.Module):
    """Two 3×3 convolutions with a shortcut. Shape: (B, C_in, H, W) -> (B, C_out, H/stride, W/stride)."""

    def __init__(self, size_in: int, size_out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(size_in, size_out, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(size_out)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(size_out, size_out, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(size_out)
        self.downsample: nn.Module | None = None
        # A 1×1 convolution where the shortcut changes shape, otherwise the identity.
        if stride != 1 or size_in != size_out:
            self.downsample = nn.Sequential(
                nn.Conv2d(size_in, size_out, 1, stride=stride, bias=False), nn.BatchNorm2d(size_out)
            )

    def forward(self, x: Tensor) -> Tensor:
        """relu(bn2(conv2(relu(bn1(conv1(x))))) + shortcut(x))."""
        shortcut = x if self.downsample is None else self.downsample(x)
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        out += shortcut
        result: Tensor = self.relu(out)
        return result


def _stage(size_in: int, size_out: int, stride: int) -> nn.Sequential:
    return nn.Sequential(BasicBlock(size_in, size_out, stride), BasicBlock(size_out, size_out, 1))
