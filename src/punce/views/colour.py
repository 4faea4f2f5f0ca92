"""Colour jitter and greying of every image as one 3 x 3 matrix and one grey offset.

Brightness b scales (r, g, b); saturation s and a hue turn θ act on the chroma and leave the luma L·x alone; contrast c
pulls towards the grey of the image's mean colour m. Written like this the four **commute** (each leaves the grey axis
and the luma to the others), so a random order of them would change nothing, and the whole jitter is

    y = A x + a,    A = b c [ 1Lᵀ + s (cos θ · P + sin θ · Q) ],    a = b (1 − c) (L·m) 1,

with P = I − 1Lᵀ the projection on the chroma plane and Q the quarter turn in it. Greying is s = 0. The pixels are
visited once. Two things differ from torchvision and kornia, which do one operation after another on the pixels: they
clamp to [0, 1] between operations (here once, at the end), which is where their order matters; and their hue is a shift
of HSV's hue (here a rotation in the chroma plane of YIQ, as in analogue television, which keeps the luma).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from punce.views import counter

if TYPE_CHECKING:
    from punce.views.image import Image

LUMA = (0.299, 0.587, 0.114)  # ITU-R BT.601, as in PIL, torchvision and kornia
_YIQ = (LUMA, (0.596, -0.274, -0.322), (0.211, -0.523, 0.312))
_STREAM = 2


@dataclass(frozen=True)
class Colour:
    """The drawn parameters of B images, each of shape (B,), float64. (1, 1, 1, 0) leaves an image as it is."""

    brightness: Tensor  # factors
    contrast: Tensor
    saturation: Tensor  # 0 is grey
    hue: Tensor  # share of a full turn


def draw(keys: Tensor, view: Image) -> Colour:
    """Draw the parameters of B images from their keys (B,): factors in [max(0, 1 − s), 1 + s], hue in ±s."""
    gate, greying, brightness, contrast, saturation, hue = counter.uniform(keys, 6, stream=_STREAM).unbind()
    jitter, on = view.jitter, gate < view.jitter_probability
    saturation = torch.where(on, _factor(saturation, jitter[2]), 1.0)
    return Colour(
        brightness=torch.where(on, _factor(brightness, jitter[0]), 1.0),
        contrast=torch.where(on, _factor(contrast, jitter[1]), 1.0),
        saturation=torch.where(greying < view.grey, 0.0, saturation),
        hue=torch.where(on, jitter[3] * (2 * hue - 1), 0.0),
    )


def _factor(u: Tensor, strength: float) -> Tensor:
    low = max(0.0, 1 - strength)
    return low + (1 + strength - low) * u


def matrices(c: Colour) -> tuple[Tensor, Tensor]:
    """A (B, 3, 3), and what a takes from the mean colour: a = pull · m in every channel, pull (B, 1, 3). Float64."""
    luma, parts = _axes()
    # Shares of 1Lᵀ (grey axis), P and Q (chroma plane): the bracket of A in the header.
    scale, turn = c.brightness * c.contrast, 2 * math.pi * c.hue
    kept = scale * c.saturation
    shares = torch.stack([scale, kept * torch.cos(turn), kept * torch.sin(turn)], dim=1)  # (B, 3)
    linear = (shares[:, :, None, None] * parts).sum(dim=1)
    return linear, (c.brightness * (1 - c.contrast))[:, None, None] * luma


@cache
def _axes() -> tuple[Tensor, Tensor]:
    """The luma weights L (3,), and 1Lᵀ, P and Q as (3, 3, 3)."""
    yiq = torch.tensor(_YIQ, dtype=torch.float64)
    turn = torch.zeros(3, 3, dtype=torch.float64)
    turn[1, 2], turn[2, 1] = -1.0, 1.0
    luma = yiq[0].expand(3, 3)
    # Turn I and Q by 90° in YIQ coordinates, and express that in RGB.
    quarter: Tensor = torch.linalg.inv(yiq) @ turn @ yiq
    return yiq[0], torch.stack([luma, torch.eye(3, dtype=torch.float64) - luma, quarter])
