"""Crop, flip and affine map of every image as one matrix, so that pixels are resampled once.

Coordinates are grid_sample's: x and y run from -1 to 1 over the image's outer edges (``align_corners=False``). A
matrix maps a place in the *output* to the place in the *input* it shows.

Shapes: B images, T attempts at a crop. All parameters are float64 until the matrices are done.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from punce.views import counter

if TYPE_CHECKING:
    from punce.views.image import Image

ATTEMPTS = 10  # torchvision's and kornia's number; a CIFAR crop fails ten times once in 10¹⁰
_STREAM = 1


@dataclass(frozen=True)
class Geometry:
    """The drawn parameters of B images, each of shape (B,): what the matrices are made from, and what tests look at."""

    width: Tensor  # of the crop, as a share of the image
    height: Tensor
    centre_x: Tensor  # of the crop, in [-1, 1]
    centre_y: Tensor
    mirrored: Tensor  # bool
    angle: Tensor  # radians
    shift_x: Tensor  # shares of the image
    shift_y: Tensor
    zoom: Tensor  # above 1 enlarges
    shear: Tensor  # tangent


def draw(keys: Tensor, height: int, width: int, view: Image) -> Geometry:
    """Draw the parameters of B images from their keys (B,). Symmetric ranges are given by their half width."""
    u = counter.uniform(keys, 2 * ATTEMPTS + 8, stream=_STREAM)
    areas, ratios = u[:ATTEMPTS], u[ATTEMPTS : 2 * ATTEMPTS]
    crop_w, crop_h = _crop_size(areas, ratios, height / width, view.crop_scale, view.crop_ratio)
    place_x, place_y, mirror, turn, right, down, enlarge, slant = u[2 * ATTEMPTS :].unbind()
    return Geometry(
        width=crop_w,
        height=crop_h,
        centre_x=(1 - crop_w) * (2 * place_x - 1),
        centre_y=(1 - crop_h) * (2 * place_y - 1),
        mirrored=mirror < view.flip,
        angle=math.radians(view.degrees) * (2 * turn - 1),
        shift_x=view.shift * (2 * right - 1),
        shift_y=view.shift * (2 * down - 1),
        zoom=view.zoom[0] + (view.zoom[1] - view.zoom[0]) * enlarge,
        shear=torch.tan(math.radians(view.shear) * (2 * slant - 1)),
    )


def _crop_size(
    u_area: Tensor, u_ratio: Tensor, aspect: float, scale: tuple[float, float], ratio: tuple[float, float]
) -> tuple[Tensor, Tensor]:
    """Width and height of the crop as shares of the image: uniform area, log-uniform ratio, first attempt that fits.

    Shape: u_area, u_ratio (T, B) -> (B,), (B,). `aspect` is the image's height / width. Where no attempt fits (long
    images, areas near the whole), it is the largest crop whose ratio is allowed.
    """
    area = scale[0] + (scale[1] - scale[0]) * u_area
    log_low, log_high = math.log(ratio[0]), math.log(ratio[1])
    shape = torch.exp(log_low + (log_high - log_low) * u_ratio) * aspect
    width2, height2 = area * shape, area / shape  # squares of the two shares
    # All attempts at once: argmax of the fits is the first success, without a loop or a branch per image.
    fits = (width2 <= 1) & (height2 <= 1)
    first = fits.to(torch.uint8).argmax(dim=0, keepdim=True)
    found = fits.gather(0, first)[0]
    # Fallback of torchvision: the whole image, cut to the nearest allowed ratio.
    nearest = min(max(1 / aspect, ratio[0]), ratio[1]) * aspect
    return (
        torch.where(found, width2.gather(0, first)[0].sqrt(), min(1.0, nearest)),
        torch.where(found, height2.gather(0, first)[0].sqrt(), min(1.0, 1 / nearest)),
    )


def matrices(g: Geometry, height: int, width: int) -> Tensor:
    """Output place -> input place: undo the affine map of the place the crop shows. Shape (B, 2, 3), float32.

    The affine map turns, slants and enlarges about the image's centre in *pixels*, then shifts:
    p' = zoom · R(angle) · [[1, shear], [0, 1]] · p + shift. Its inverse, written in normalised coordinates, is
    composed with the crop n' = (±width · x + centre_x, height · y + centre_y).
    """
    cos, sin = torch.cos(g.angle) / g.zoom, torch.sin(g.angle) / g.zoom
    ratio = height / width  # a pixel is 2/width wide and 2/height high
    # inverse of R·shear·zoom = [[1, -shear], [0, 1]] · Rᵀ / zoom
    xx, xy = cos + g.shear * sin, (sin - g.shear * cos) * ratio
    yx, yy = -sin / ratio, cos
    # A negative width mirrors the crop about its own centre.
    across = torch.where(g.mirrored, -g.width, g.width)
    x0, y0 = g.centre_x - 2 * g.shift_x, g.centre_y - 2 * g.shift_y
    rows = [
        torch.stack([xx * across, xy * g.height, xx * x0 + xy * y0], dim=1),
        torch.stack([yx * across, yy * g.height, yx * x0 + yy * y0], dim=1),
    ]
    return torch.stack(rows, dim=1).to(torch.float32)


def pixel_centres(height: int, width: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Where the pixels of an image lie: (W,) from left to right and (H,) from top to bottom, within [-1, 1]."""
    along, down = ((torch.arange(n, device=device) * 2 + 1) / n - 1 for n in (width, height))
    return along, down


def sampling_grid(theta: Tensor, centres: tuple[Tensor, Tensor]) -> Tensor:
    """The input places of every output pixel. Shape (B, 2, 3) -> (B, H, W, 2).

    Two outer sums instead of affine_grid's product with a (H·W, 3) matrix: fifty times faster on CPU. Stored plane by
    plane and handed over as a permuted view, which grid_sample reads equally fast.
    """
    x, y = centres
    along = torch.addcmul(theta[:, :, 2, None], theta[:, :, 0, None], x)  # (B, 2, W)
    down = theta[:, :, 1, None] * y  # (B, 2, H)
    return (along[:, :, None, :] + down[:, :, :, None]).permute(0, 2, 3, 1)
