"""Colour jitter and greying of every image as one 3 x 3 matrix and one offset.

Brightness, saturation, greying and a hue turn are linear maps of (r, g, b); contrast is affine around the image's
mean grey. So any order of them composes to

    y = A x + K m,        m = the image's mean colour, (3,)

where A and K (3 x 3) follow from the drawn factors alone, and the pixels are visited once. Two things differ from
torchvision and kornia, which do one operation after another on the pixels: they clamp to [0, 1] between operations
(here once, at the end), and their hue is a shift of HSV's hue (here a rotation of the chroma plane of YIQ, which keeps
the luma). Both differences are of the size of the augmentation's own randomness.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import torch
from torch import Tensor

from punce.views import counter

LUMA = (0.299, 0.587, 0.114)  # ITU-R BT.601, as in PIL, torchvision and kornia
_YIQ = (LUMA, (0.596, -0.274, -0.322), (0.211, -0.523, 0.312))
_ORDERS = list(itertools.permutations(range(4)))  # every image its own order of the four operations
_CONTRAST = 1
_STREAM = 2


@dataclass(frozen=True)
class Colour:
    """The drawn parameters of B images, each of shape (B,), `order` (B, 4)."""

    brightness: Tensor  # factors, 1 leaves the image as it is
    contrast: Tensor
    saturation: Tensor
    hue: Tensor  # share of a full turn
    order: Tensor  # 0 brightness, 1 contrast, 2 saturation, 3 hue
    jittered: Tensor  # bool: whether the four are applied at all
    grey: Tensor  # bool


def draw(keys: Tensor, *, jitter: tuple[float, float, float, float], jitter_probability: float, grey: float) -> Colour:
    """Draw the parameters of B images from their keys (B,): factors in [max(0, 1 − s), 1 + s], hue in ±s."""
    gate, order, brightness, contrast, saturation, hue, greying = counter.uniform(keys, 7, stream=_STREAM).unbind(1)
    return Colour(
        brightness=_factor(brightness, jitter[0]),
        contrast=_factor(contrast, jitter[1]),
        saturation=_factor(saturation, jitter[2]),
        hue=jitter[3] * (2 * hue - 1),
        order=torch.tensor(_ORDERS)[(order * len(_ORDERS)).long()],
        jittered=gate < jitter_probability,
        grey=greying < grey,
    )


def _factor(u: Tensor, strength: float) -> Tensor:
    low = max(0.0, 1 - strength)
    return low + (1 + strength - low) * u


def matrices(c: Colour) -> tuple[Tensor, Tensor]:
    """A and K of y = A x + K m, composed in each image's own order. Shapes (B, 3, 3), (B, 3, 3), float64."""
    luma = torch.tensor(LUMA, dtype=torch.float64)
    to_grey = luma.expand(3, 3)  # every channel becomes the luma
    eye = torch.eye(3, dtype=torch.float64)
    steps = _linear_parts(c, eye, to_grey)
    A, K = eye.expand(len(c.hue), 3, 3), torch.zeros(len(c.hue), 3, 3, dtype=torch.float64)
    for position in range(4):
        kind = c.order[:, position]
        step = steps[torch.arange(len(kind)), kind]
        # contrast pulls towards the grey of the mean colour as it is at this point of the chain: (A + K) m
        pull = torch.where(kind == _CONTRAST, 1 - c.contrast, torch.zeros_like(c.contrast))[:, None, None]
        K = step @ K + pull * (to_grey @ (A + K))
        A = step @ A
    on = c.jittered[:, None, None]
    A, K = torch.where(on, A, eye), torch.where(on, K, torch.zeros_like(K))
    last = torch.where(c.grey[:, None, None], to_grey, eye)
    return last @ A, last @ K


def _linear_parts(c: Colour, eye: Tensor, to_grey: Tensor) -> Tensor:
    """The linear part of each operation. Shape (B, 4, 3, 3)."""
    brightness, contrast, saturation = (f[:, None, None] for f in (c.brightness, c.contrast, c.saturation))
    return torch.stack(
        [
            brightness * eye,
            contrast * eye,
            saturation * eye + (1 - saturation) * to_grey,
            _hue_turn(c.hue),
        ],
        dim=1,
    )


def _hue_turn(hue: Tensor) -> Tensor:
    """Rotation of the I and Q axes by `hue` full turns, seen from (r, g, b). Shape (B,) -> (B, 3, 3)."""
    yiq = torch.tensor(_YIQ, dtype=torch.float64)
    cos, sin = torch.cos(2 * math.pi * hue), torch.sin(2 * math.pi * hue)
    zero, one = torch.zeros_like(hue), torch.ones_like(hue)
    turn = torch.stack([one, zero, zero, zero, cos, -sin, zero, sin, cos], dim=1).view(-1, 3, 3)
    inverse: Tensor = torch.linalg.inv(yiq)
    return inverse @ turn @ yiq
