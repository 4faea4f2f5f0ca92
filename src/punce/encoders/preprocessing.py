"""How an image becomes what a pretrained network saw in its own training: size, crop, mean and deviation.

Read from the ``preprocessor_config.json`` that Hugging Face models come with, and done by Pillow (files) or in batches
by torch (arrays), never by torchvision.

Shapes: images uint8 (3, H, W); batches (b, 3, H, W).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image
from torch import Tensor
from torch.nn.functional import interpolate, pad

from punce.errors import InputError

SETTINGS = "preprocessor_config.json"
_MOST_PIXELS = 4096  # of a side; a wrong setting would otherwise fill all memory
_LONGEST = 16  # times the part that is kept: what lies further out is cut before an image is scaled, not after
_MODES = {Image.Resampling.NEAREST: "nearest-exact", Image.Resampling.BILINEAR: "bilinear"}  # else bicubic
_STRETCHED = 384  # ConvNeXt's: from this size on nothing is cropped
_SHORTER_SIDE = ("CLIP", "ChineseCLIP", "ConvNext", "Bit", "MobileNet", "PoolFormer")
"""Beginnings of the processors for which a size of one number is the shorter side; for the others it is a square."""


@dataclass(frozen=True)
class Preprocessing:
    """Scale to `resize`, cut `size` out of the middle, then (value · scale − mean) / std.

    `size` is (height, width) as the network sees it; `resize` is (height, width) to stretch to, or the length that the
    shorter side gets. `resample` is the number of Pillow's filter: 0 nearest, 2 bilinear, 3 bicubic.
    """

    size: tuple[int, int]
    resize: tuple[int, int] | int
    mean: tuple[float, ...] = (0.5, 0.5, 0.5)
    std: tuple[float, ...] = (0.5, 0.5, 0.5)
    scale: float = 1 / 255
    resample: int = int(Image.Resampling.BICUBIC)

    def __post_init__(self) -> None:
        for name in ("size", "resize", "mean", "std"):  # JSON has lists where this has tuples
            if isinstance(value := getattr(self, name), list):
                object.__setattr__(self, name, tuple(value))
        _check(self)

    @classmethod
    def square(cls, side: int, mean: Any = 0.5, std: Any = 0.5, **more: Any) -> Preprocessing:
        """The whole image stretched to a square; mean and deviation of values in [0, 1], one or one a channel."""
        return cls((side, side), (side, side), _three(mean, "mean"), _three(std, "std"), **more)

    def with_size(self, side: int) -> Preprocessing:
        """This preprocessing for a square of another side: resize and crop keep their proportion."""
        factor = side / min(self.size)
        resize = self.resize
        if isinstance(resize, int):
            return replace(self, size=(side, side), resize=max(side, round(resize * factor)))
        return replace(self, size=(side, side), resize=(round(resize[0] * factor), round(resize[1] * factor)))

    # One image of a file ---------------------------------------------------------------------------------------

    def enough(self) -> int:
        """A side from which an image may be decoded at a reduced size: twice what is needed keeps it sharp."""
        return 2 * (self.resize if isinstance(self.resize, int) else max(self.resize))

    def apply(self, image: Image.Image) -> npt.NDArray[np.uint8]:
        """A decoded image of any mode and size. Shape: (3, H, W), channels last in memory."""
        top, left, height, width = self._middle(image.height, image.width)
        if (width, height) != image.size:
            image = image.crop((left, top, left + width, top + height))
        to_height, to_width = self._target(height, width)
        scaled = image.convert("RGB").resize((to_width, to_height), Image.Resampling(self.resample))
        # A box beyond the image gives black, as transformers' centre crop does.
        top, left = (to_height - self.size[0]) // 2, (to_width - self.size[1]) // 2
        is_whole = (to_height, to_width) == self.size
        cut = scaled if is_whole else scaled.crop((left, top, left + self.size[1], top + self.size[0]))
        return np.asarray(cut, dtype=np.uint8).transpose(2, 0, 1)

    def _middle(self, height: int, width: int) -> tuple[int, int, int, int]:
        """Top, left, height and width of the part of an image that is scaled.

        One of 20,000 × 40 pixels would be scaled to 112,000 × 224, only for all but a square of it to be cut off.
        """
        if not isinstance(self.resize, int):
            return 0, 0, height, width
        longest = int(min(height, width) * _LONGEST * max(1.0, max(self.size) / self.resize))
        kept_height, kept_width = min(height, longest), min(width, longest)
        return (height - kept_height) // 2, (width - kept_width) // 2, kept_height, kept_width

    def _target(self, height: int, width: int) -> tuple[int, int]:
        if not isinstance(self.resize, int):
            return self.resize
        short, long = sorted((height, width))
        longer = max(1, int(self.resize * long / short))
        return (self.resize, longer) if height <= width else (longer, self.resize)

    # Many images of an array -----------------------------------------------------------------------------------

    def batch(self, x: Tensor) -> Tensor:
        """Images of one size, uint8 in [0, 255] or floats in [0, 1], grey or coloured, as uint8 (b, 3, *size)."""
        top, left, height, width = self._middle(*x.shape[2:])
        x = x[:, :, top : top + height, left : left + width]
        values = x.float() if x.dtype == torch.uint8 else x.float() * 255.0
        target = self._target(*x.shape[2:])
        if target != tuple(x.shape[2:]):
            mode = _MODES.get(Image.Resampling(self.resample), "bicubic")
            # Antialiased as Pillow does it: without, a reduced image is a sample of its pixels.
            more: dict[str, Any] = {} if mode == "nearest-exact" else {"antialias": True, "align_corners": False}
            values = interpolate(values, target, mode=mode, **more)
        pixels = values.round_().clamp_(0, 255).to(torch.uint8)
        top, left = (target[0] - self.size[0]) // 2, (target[1] - self.size[1]) // 2
        bottom, right = self.size[0] - target[0] + top, self.size[1] - target[1] + left
        # Negative numbers cut, positive ones add black.
        return pad(pixels, (-left, right, -top, bottom)).expand(-1, 3, -1, -1)

    def normalise(self, pixels: Tensor) -> Tensor:
        """What the network is given. Shape: uint8 (b, 3, H, W) -> float32 (b, 3, H, W), channels last in memory."""
        mean, std = (torch.tensor(v, device=pixels.device).view(-1, 1, 1) for v in (self.mean, self.std))
        values = pixels.contiguous(memory_format=torch.channels_last).float()
        return values.mul_(self.scale / std).sub_(mean / std)

    def to_json(self) -> dict[str, Any]:
        """What :class:`Preprocessing` takes."""
        return asdict(self)


def read_preprocessing(folder: Path) -> Preprocessing:
    """The settings in the folder of an encoder; refuses settings that cannot be meant."""
    file = folder / SETTINGS
    try:
        given = json.loads(file.read_bytes())
    except FileNotFoundError as error:
        raise InputError(
            f"{folder} holds no {SETTINGS}, so how its images were scaled is not known; add it, or give the network "
            "as punce.encoders.Vision(module, size=…, mean=…, std=…)"
        ) from error
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{file} cannot be read: {error}") from error
    try:
        return _from_settings(given)
    except (InputError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
        raise InputError(f"{file}: these settings cannot be used: {error}") from error


def _from_settings(given: Mapping[str, Any]) -> Preprocessing:
    """Hugging Face's names, with the defaults of its oldest files where one is absent."""
    resize = _edge(given["size"], is_side=_is_shorter_side(given)) if given.get("do_resize", True) else None
    crop = _edge(given.get("crop_size", 224)) if given.get("do_center_crop", False) else None
    if isinstance(resize, int) and "crop_pct" in given:  # ConvNeXt's way to say both
        crop, is_stretched = resize, resize >= _STRETCHED
        resize = (resize, resize) if is_stretched else int(resize / float(given["crop_pct"]))
    size = resize if crop is None else crop
    if size is None:
        raise InputError("neither do_resize nor do_center_crop is on: images of different sizes make no batch")
    both = (size, size) if isinstance(size, int) else size
    normal = bool(given.get("do_normalize", True))
    mean, std = (_three(given[f"image_{name}"] if normal else default, name) for name, default in _AS_IT_IS.items())
    scale = float(given.get("rescale_factor", 1 / 255)) if given.get("do_rescale", True) else 1.0
    if given.get("rescale_offset"):  # value · scale − 1
        mean = tuple(value + 1.0 for value in mean)
    if given.get("include_top"):  # EfficientNet's: divided by the deviation once more
        std = tuple(value**2 for value in std)
    resample = given.get("resample")
    resample = int(Image.Resampling.BILINEAR if resample is None else resample)
    return Preprocessing(both, both if resize is None else resize, mean, std, scale, resample)


_AS_IT_IS = {"mean": 0.0, "std": 1.0}


def _is_shorter_side(given: Mapping[str, Any]) -> bool:
    """What files of old versions mean by a size of one number depends on the processor that they name."""
    named = given.get("image_processor_type") or given.get("feature_extractor_type") or ""
    return str(named).startswith(_SHORTER_SIDE) or "crop_pct" in given


def _edge(given: Any, *, is_side: bool = False) -> tuple[int, int] | int:
    """{"height": 224, "width": 224}, {"shortest_edge": 224} or 224: a square, or the shorter side."""
    if isinstance(given, Mapping):
        if "shortest_edge" in given:
            return int(given["shortest_edge"])
        return int(given["height"]), int(given["width"])
    return int(given) if is_side else (int(given), int(given))


def _three(given: Any, name: str) -> tuple[float, ...]:
    """One number for all channels, or one each."""
    values = tuple(float(v) for v in given) if isinstance(given, list | tuple) else (float(given),) * 3
    if len(values) != 3:
        raise InputError(f"{name} must be one number or three, got {given!r}")
    return values


def _check(settings: Preprocessing) -> None:
    sides = [*settings.size, *((settings.resize,) if isinstance(settings.resize, int) else settings.resize)]
    if any(not isinstance(side, int) or not 1 <= side <= _MOST_PIXELS for side in sides):
        raise InputError(f"sizes must be whole numbers from 1 to {_MOST_PIXELS}, got {sides}")
    numbers = (*settings.mean, *settings.std, settings.scale)
    if not all(map(isfinite, numbers)) or min(settings.std) <= 0 or settings.scale <= 0:
        raise InputError(f"mean {settings.mean} must be finite, std {settings.std} and scale {settings.scale} above 0")
    if settings.resample not in list(Image.Resampling):
        raise InputError(f"resample must be one of Pillow's filters (0 to 5), got {settings.resample}")
