"""The image views done slowly: one image, one operation and one pixel at a time, from the same drawn parameters.

Nothing here is shared with the code under test but the draws: matrices are multiplied out step by step, every pixel is
interpolated by hand, and the colour operations run one after another on the pixels, in a given order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from punce.views.colour import Colour
from punce.views.geometry import Geometry

Array = npt.NDArray[np.float64]
LUMA = np.array([0.299, 0.587, 0.114])
TO_YIQ = np.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.322], [0.211, -0.523, 0.312]])


def view_of(
    image: Array, g: Geometry, c: Colour | None, i: int, *, padding: str, order: Sequence[int] = (0, 1, 2, 3)
) -> Array:
    """The view of image (C, H, W) in [0, 1] with the i-th parameters of `g` and `c`, clamped to [0, 1]."""
    moved = resample(image, pixel_map(g, i, *image.shape[1:]), padding)
    if c is not None:
        moved = recolour(moved, c, i, order)
    return np.clip(moved, 0.0, 1.0)


def pixel_map(g: Geometry, i: int, height: int, width: int) -> Array:
    """Output pixel -> input pixel (3 x 3), as the inverse of: affine map about the centre, crop, stretch, mirror."""
    centre = (width / 2, height / 2)
    turn = math.cos(g.angle[i]), math.sin(g.angle[i])
    rotate = np.array([[turn[0], -turn[1], 0], [turn[1], turn[0], 0], [0, 0, 1]])
    slant = np.array([[1, float(g.shear[i]), 0], [0, 1, 0], [0, 0, 1]])
    zoom = np.diag([float(g.zoom[i]), float(g.zoom[i]), 1.0])
    shift = _move(float(g.shift_x[i]) * width, float(g.shift_y[i]) * height)
    affine = shift @ _move(*centre) @ zoom @ rotate @ slant @ _move(-centre[0], -centre[1])

    crop_w, crop_h = float(g.width[i]) * width, float(g.height[i]) * height
    left = (1 + float(g.centre_x[i])) / 2 * width - crop_w / 2
    top = (1 + float(g.centre_y[i])) / 2 * height - crop_h / 2
    crop = np.diag([width / crop_w, height / crop_h, 1.0]) @ _move(-left, -top)
    mirror = np.array([[-1, 0, width], [0, 1, 0], [0, 0, 1]]) if bool(g.mirrored[i]) else np.eye(3)
    return np.linalg.inv(mirror @ crop @ affine)


def _move(x: float, y: float) -> Array:
    return np.array([[1, 0, x], [0, 1, y], [0, 0, 1.0]])


def resample(image: Array, to_input: Array, padding: str) -> Array:
    """Bilinear interpolation at every output pixel's centre."""
    result = np.zeros_like(image)
    for row in range(image.shape[1]):
        for column in range(image.shape[2]):
            x, y, _ = to_input @ np.array([column + 0.5, row + 0.5, 1.0])
            result[:, row, column] = _interpolate(image, x - 0.5, y - 0.5, padding)
    return result


def _interpolate(image: Array, x: float, y: float, padding: str) -> Array:
    height, width = image.shape[1:]
    if padding == "border":
        x, y = min(max(x, 0.0), width - 1.0), min(max(y, 0.0), height - 1.0)
    left, top = math.floor(x), math.floor(y)
    value = np.zeros(len(image))
    for row, along in ((top, 1 - (y - top)), (top + 1, y - top)):
        for column, across in ((left, 1 - (x - left)), (left + 1, x - left)):
            if 0 <= row < height and 0 <= column < width:
                value += along * across * image[:, row, column]
    return value


def recolour(image: Array, c: Colour, i: int, order: Sequence[int]) -> Array:
    """Brightness 0, contrast 1, saturation 2 and hue 3 in the given order, without clamping in between."""
    for kind in order:
        grey = np.tensordot(LUMA, image, axes=1)
        if kind == 0:
            image = image * float(c.brightness[i])
        elif kind == 1:
            image = grey.mean() + (image - grey.mean()) * float(c.contrast[i])
        elif kind == 2:
            image = grey + (image - grey) * float(c.saturation[i])
        else:
            image = _turn_hue(image, 2 * math.pi * float(c.hue[i]))
    return image


def _turn_hue(image: Array, angle: float) -> Array:
    y, i, q = np.tensordot(TO_YIQ, image, axes=1)
    turned = np.stack([y, i * math.cos(angle) - q * math.sin(angle), i * math.sin(angle) + q * math.cos(angle)])
    result: Array = np.tensordot(np.linalg.inv(TO_YIQ), turned, axes=1)
    return result
