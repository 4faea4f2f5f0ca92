"""Two views of an image: one resampling (crop, flip, affine) and one colour map, each done once per pixel.

Images are (b, C, H, W), uint8 in [0, 255] or floating point in [0, 1], with one or three channels; grey images skip
the colour part. Values are clamped to [0, 1] and then normalised, (value − mean) / std, as the very last step and in
the same pass; :meth:`Image.clean` normalises the same way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, Self, get_args

import torch
from torch import Tensor
from torch.nn.functional import grid_sample

from punce.errors import InputError
from punce.views import colour, geometry
from punce.views.plan import Draws, check_range, keep_plain

Padding = Literal["border", "zeros"]
_CACHED_VALUES = 1 << 19  # 2 MB of float32: larger temporaries are handed back to the system and faulted in again
_STATISTICS_CHUNK = 4096  # images converted to float64 at a time by fit


@dataclass(frozen=True)
class Image:
    """The image recipe, with two settings, `crop_flip_colour` and `digit`; defaults of SimCLR for CIFAR-10 (its B.9).

    Geometry: `crop_scale` is the crop's area as a share of the image, `crop_ratio` its width / height; `flip` the
    probability of a mirror image; `degrees` and `shear` the largest turn and slant in degrees, `shift` the largest
    move as a share of the image, `zoom` the range of enlargement. `padding` is what lies outside the image: its edge
    ("border") or black ("zeros").

    Colour: `jitter` holds the strengths of (brightness, contrast, saturation, hue), applied with
    `jitter_probability`; `grey` is the probability of losing colour.

    `mean` and `std` normalise the result, one number for all channels or one each; (0,) and (1,) leave [0, 1].
    """

    crop_scale: tuple[float, float] = (0.08, 1.0)
    crop_ratio: tuple[float, float] = (3 / 4, 4 / 3)
    flip: float = 0.5
    degrees: float = 0.0
    shift: float = 0.0
    zoom: tuple[float, float] = (1.0, 1.0)
    shear: float = 0.0
    padding: Padding = "border"
    jitter: tuple[float, float, float, float] = (0.4, 0.4, 0.4, 0.1)
    jitter_probability: float = 0.8
    grey: float = 0.2
    mean: tuple[float, ...] = (0.5,)
    std: tuple[float, ...] = (0.5,)

    def __post_init__(self) -> None:
        keep_plain(self)
        # The dataclass is frozen, so this is the only place where a wrong value can be refused.
        _check_hyper_parameters(self)

    def fit(self, X: Tensor) -> Self:
        """The same view, normalising by the channel means and deviations of X (n, C, H, W)."""
        mean, std = _channel_statistics(X)
        return replace(self, mean=mean, std=std)

    def plan(self, n_rows: int, seed: int, epoch: int, X: Tensor | None = None) -> ImagePlan:
        """The views of one epoch; `X` is not needed."""
        return ImagePlan(self, Draws(n_rows, seed, epoch))

    def clean(self, x: Tensor) -> Tensor:
        """The images as they are, normalised. (b, C, H, W) -> (b, C, H, W) float32."""
        check_images(x, "x")
        scaling = _scaling(self, x)
        return x.to(torch.float32) * scaling.step + scaling.low

    def moved(self, x: Tensor, keys: Tensor) -> Tensor:
        """One crop, flip and affine map of each image, normalised, with the colours that it has.

        Shape: x (b, C, H, W), keys (b,) as :func:`punce.views.counter.row_keys` makes them -> (b, C, H, W) float32.
        """
        scaling, (height, width) = _scaling(self, x), x.shape[2:]
        places = geometry.matrices(geometry.draw(keys.cpu(), height, width, self), height, width).to(x.device)
        grid = geometry.sampling_grid(places, geometry.pixel_centres(height, width, x.device))
        pixels = grid_sample(x.to(torch.float32), grid, padding_mode=self.padding, align_corners=False)
        out = pixels.mul_(scaling.step).add_(scaling.low)
        _clamp(out, scaling.bounds)
        return out


@dataclass(frozen=True)
class ImagePlan:
    """The image views of one epoch."""

    view: Image
    draws: Draws

    def apply(self, x: Tensor, rows: Tensor) -> Tensor:
        """Both views of a batch. Shape: x (b, C, H, W), rows (b,) -> (2, b, C, H, W), float32 on x's device."""
        check_images(x, "x")
        # First views, then second views, (2b,). On the CPU, so that every device draws the same.
        scaling, keys = _scaling(self.view, x), torch.cat(self.draws.keys(rows, len(x), "cpu"))
        places = _places(self.view, keys, x)
        colours = _colours(self.view, keys, x, scaling) if x.shape[1] == 3 else None
        centres = geometry.pixel_centres(x.shape[2], x.shape[3], x.device)
        result = torch.empty((2, *x.shape), device=x.device)
        for part in _parts(x):
            # Converted once for both views; uint8 is a quarter of the memory until here.
            pixels = x[part].to(torch.float32)
            for which in range(2):
                out = result[which, part]
                # One bilinear resampling for crop, flip and affine map.
                grid = geometry.sampling_grid(places[which, part], centres)
                moved = grid_sample(pixels, grid, padding_mode=self.view.padding, align_corners=False)
                # Grey images have no colour to jitter: normalise and clamp only.
                if colours is None:
                    torch.add(scaling.low, moved.mul_(scaling.step), out=out)
                else:
                    _recolour(moved, colours[0][which, part], colours[1][which, part], scaling, out)
                _clamp(out, scaling.bounds)
        return result


def _places(view: Image, keys: Tensor, x: Tensor) -> Tensor:
    """Crop, flip and affine map as one matrix for each view of each image. (2b,) -> (2, b, 2, 3) on x's device."""
    height, width = x.shape[2:]
    drawn = geometry.draw(keys, height, width, view)
    return geometry.matrices(drawn, height, width).view(2, len(x), 2, 3).to(x.device)


def _colours(view: Image, keys: Tensor, x: Tensor, scaling: _Scaling) -> tuple[Tensor, Tensor]:
    """The matrices of `colour`, taking raw pixel values to normalised ones.

    Shapes: (2b,) -> (2, b, 3, 3) and (2, b, 3, 3) on x's device.
    """
    drawn = colour.matrices(colour.draw(keys, view))
    linear, pull = (scaling.step.view(-1, 1) * part.to(device=x.device, dtype=torch.float32) for part in drawn)
    return linear.view(2, len(x), 3, 3), pull.expand(-1, 3, 3).view(2, len(x), 3, 3)


def _recolour(moved: Tensor, linear: Tensor, pull: Tensor, scaling: _Scaling, out: Tensor) -> None:
    """out = A x + pull · m + low for every image, as one batched product of (3, 3) with (3, H·W).

    The mean colour m is that of the resampled image, as in a chain that crops first.
    """
    x = moved.flatten(2)
    # a = b(1 − c)(L·m) in every channel, plus the normalisation's offset.
    offset = pull @ x.mean(dim=2, keepdim=True) + scaling.low.view(-1, 1)
    torch.baddbmm(offset, linear, x, out=out.flatten(2))


def _clamp(x: Tensor, bounds: list[tuple[float, float]]) -> None:
    """Clamp to what [0, 1] becomes under normalisation, in place. Scalar bounds are eight times faster than tensors."""
    if len(bounds) == 1:
        x.clamp_(*bounds[0])
        return
    for channel, (low, high) in enumerate(bounds):
        x[:, channel].clamp_(low, high)


def _parts(x: Tensor) -> list[slice]:
    """Equal pieces of the batch whose intermediate tensors stay in the cache; on a GPU the whole batch."""
    n = 1 if x.is_cuda else max(1, round(x.numel() / _CACHED_VALUES))
    size = max(1, -(-len(x) // n))
    return [slice(start, start + size) for start in range(0, len(x), size)]


@dataclass(frozen=True)
class _Scaling:
    """Raw pixel value v -> step · v + low = (v in [0, 1] − mean) / std. Shapes (1 or C, 1, 1)."""

    low: Tensor
    step: Tensor
    bounds: list[tuple[float, float]]  # what 0 and 1 become, for one or each of C channels


def _scaling(view: Image, x: Tensor) -> _Scaling:
    if not {len(view.mean), len(view.std)} <= {1, x.shape[1]}:
        raise InputError(
            f"mean {view.mean} and std {view.std} must have one number for all or one for each of the {x.shape[1]} "
            "channels; fit the view to the data: view.fit(X)"
        )
    # One number serves all channels.
    n = max(len(view.mean), len(view.std))
    mean, std = (v * n if len(v) == 1 else v for v in (view.mean, view.std))
    low, high = ([(value - m) / s for m, s in zip(mean, std, strict=True)] for value in (0.0, 1.0))
    step = [_unit(x) / s for s in std]
    return _Scaling(
        low=torch.tensor(low, device=x.device).view(-1, 1, 1),
        step=torch.tensor(step, device=x.device).view(-1, 1, 1),
        bounds=list(zip(low, high, strict=True)),
    )


def _unit(x: Tensor) -> float:
    return 1 / 255 if x.dtype == torch.uint8 else 1.0


def _channel_statistics(X: Tensor) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and deviation of each channel in [0, 1] units; a constant channel gets deviation 1."""
    check_images(X, "X")
    if len(X) == 0:
        raise InputError("X holds no image to take channel means from")
    # In float64, because float32 sums over millions of pixels lose digits; in chunks, to save memory.
    total = torch.zeros(2, X.shape[1], dtype=torch.float64)
    for start in range(0, len(X), _STATISTICS_CHUNK):
        values = X[start : start + _STATISTICS_CHUNK].to(torch.float64) * _unit(X)
        total += torch.stack([values.sum((0, 2, 3)), values.square().sum((0, 2, 3))]).cpu()
    mean, square = total * X.shape[1] / X.numel()
    std = (square - mean.square()).clamp(min=0).sqrt()
    # A constant channel carries no information; dividing by its deviation would give NaN.
    std[std < 1e-6] = 1.0
    return tuple(mean.tolist()), tuple(std.tolist())


def check_images(x: Tensor, name: str) -> None:
    """Refuse what are no images, and values outside the range of their type."""
    if not isinstance(x, Tensor):
        raise InputError(f"{name} must be a torch tensor, got {type(x).__name__}")
    if x.ndim != 4 or x.shape[1] not in (1, 3) or 0 in x.shape[2:]:
        hint = "; its channels stand last: use x.permute(0, 3, 1, 2)" if x.ndim == 4 and x.shape[3] in (1, 3) else ""
        raise InputError(f"{name} must be images (b, 1 or 3 channels, height, width), got {tuple(x.shape)}{hint}")
    if x.dtype == torch.uint8:
        return
    if not x.is_floating_point():
        raise InputError(f"{name} must be uint8 in [0, 255] or floating point in [0, 1], got dtype {x.dtype}")
    if x.numel() == 0:
        return
    low, high = (float(v) for v in x.aminmax())
    if not (low >= 0 and high <= 1):  # also catches NaN
        raise InputError(
            f"{name} of dtype {x.dtype} must lie in [0, 1] without NaN, but spans {low:g} to {high:g}; "
            "divide by 255 or convert to uint8"
        )


def _check_hyper_parameters(view: Image) -> None:
    check_range("crop_scale", view.crop_scale, 0, 1, ordered=True, open_below=True)
    check_range("crop_ratio", view.crop_ratio, 0, 100, ordered=True, open_below=True)
    check_range("zoom", view.zoom, 0, 100, ordered=True, open_below=True)
    for name in ("flip", "jitter_probability", "grey", "shift"):
        check_range(name, getattr(view, name), 0, 1)
    check_range("degrees", view.degrees, 0, 180)
    check_range("shear", view.shear, 0, 80)
    check_range("jitter (brightness, contrast, saturation, hue)", view.jitter, 0, 10)
    if not isinstance(view.jitter, tuple) or len(view.jitter) != 4:
        raise InputError(f"jitter must be (brightness, contrast, saturation, hue), got {view.jitter!r}")
    for name in ("mean", "std"):
        if not isinstance(value := getattr(view, name), tuple):
            raise InputError(f"{name} must be a tuple, one number for all channels or one each, got {value!r}")
    check_range("mean", view.mean, -100, 100)
    check_range("std", view.std, 0, 100, open_below=True)
    if view.padding not in get_args(Padding):
        raise InputError(f"padding must be one of {list(get_args(Padding))}, got {view.padding!r}")


crop_flip_colour = Image
"""Photographs: strong crops, mirror images, colour jitter, no blur."""

cifar = crop_flip_colour
"""Its name in stored models and results."""

digit = partial(
    Image,
    crop_scale=(0.5, 1.0),
    crop_ratio=(0.85, 1.15),
    flip=0.0,
    degrees=15.0,
    shift=0.05,
    zoom=(0.85, 1.15),
    shear=10.0,
    padding="zeros",
    jitter=(0.0, 0.0, 0.0, 0.0),
    jitter_probability=0.0,
    grey=0.0,
)
"""Digits and letters: small affine maps and crops; never mirrored or turned over (6 and 9, 2 and 5)."""
