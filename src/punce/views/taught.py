"""Small images as a network that a teacher teaches sees them: changed a little or a lot.

Colour images are whitened, which takes out what neighbouring pixels share, so that a network trains in fewer steps.
Little: shifted by up to two pixels and, where mirror images mean the same, mirrored. A lot: also recoloured, with a
grey square somewhere.

Grey images are standardised. They are mostly writing and drawings: little is a small turn, slant and enlargement, a
lot a larger one, and nothing is mirrored. On one labelled set of MNIST a grey square made networks worse.

A change is a function of the seed, the epoch and the row alone, as those of all views are.

Shapes: b images of C channels (1 or 3), H × W pixels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import conv2d, pad, unfold

from punce.storage.json_tree import decode
from punce.views import counter
from punce.views.image import Image, digit

_SIDE = 2  # of the patches that are whitened, in pixels
_ROWS, _LEAST = 2000, 1e-3  # images that the whitening is learned from, and what is added to every variance
_SHIFT = 2  # pixels
_CONTRAST, _SHADE = 0.4, 0.2
_HOLE = 4  # the square covers up to half a side: a quarter of it to each side of its centre
_STREAM = 3
_SMALL_MOVES: dict[str, Any] = {"crop_scale": (0.7, 1.0), "degrees": 10.0, "zoom": (0.9, 1.1), "shear": 5.0}
_MIRRORED, _MEAN, _STD = "mirrored", "mean", "std"  # keys of a saved view


@dataclass(frozen=True, eq=False)
class TaughtView:
    """Shape: (b, C, H, W), uint8 or in [0, 1] -> (b, 4 C, H, W). kernel (4 C, C, 2, 2), bias (4 C,)."""

    kernel: Tensor
    bias: Tensor
    is_mirrored: bool

    @classmethod
    def fit(cls, x: Tensor, *, is_mirrored: bool) -> TaughtView:
        """Learn the whitening from some of the images; labels are not looked at."""
        some = unfold(_unit(x[:_ROWS]), _SIDE, stride=_SIDE).transpose(1, 2).flatten(0, 1).double()
        mean = some.mean(0)
        values, vectors = torch.linalg.eigh((some - mean).T @ (some - mean) / len(some))
        matrix = vectors / (values.clamp_min(0) + _LEAST).sqrt() @ vectors.T
        kernel = matrix.float().view(-1, x.shape[1], _SIDE, _SIDE)
        return cls(kernel, -(matrix @ mean).float(), is_mirrored)

    def clean(self, x: Tensor) -> Tensor:
        """The images as they are, whitened."""
        return self._white(_unit(x))

    def mirrored(self, x: Tensor) -> Tensor:
        """Their mirror images, whitened."""
        return self._white(_unit(x).flip(3))

    def moved(self, x: Tensor, keys: Tensor) -> Tensor:
        """Changed a little. Shape: keys (b,), as :func:`punce.views.counter.row_keys` makes them."""
        return self._white(self._moved(_unit(x), _drawn(keys, x)))

    def changed(self, x: Tensor, keys: Tensor) -> Tensor:
        """Changed a lot."""
        drawn = _drawn(keys, x)
        return self._white(_holed(*_recoloured(self._moved(_unit(x), drawn), drawn), drawn))

    def _moved(self, x: Tensor, drawn: Tensor) -> Tensor:
        wide, (height, width) = pad(x, (_SHIFT,) * 4, mode="reflect"), x.shape[2:]
        places = (drawn[:2] * (2 * _SHIFT + 1)).long()
        out = torch.empty_like(x)
        for down in range(2 * _SHIFT + 1):  # 25 blocks are copied, which takes less time than indexing every pixel
            for right in range(2 * _SHIFT + 1):
                rows = ((places[0] == down) & (places[1] == right)).nonzero().squeeze(1)
                out[rows] = wide[rows, :, down : down + height, right : right + width]
        return torch.where(drawn[2].view(-1, 1, 1, 1) < 0.5, out.flip(3), out) if self.is_mirrored else out

    def _white(self, x: Tensor) -> Tensor:
        kernel, bias = self.kernel.to(x.device), self.bias.to(x.device)
        return conv2d(pad(x, (0, _SIDE - 1, 0, _SIDE - 1), mode="replicate"), kernel, bias)

    def __repr__(self) -> str:
        return f"TaughtView(is_mirrored={self.is_mirrored})"

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """What was learned, as tensors and as JSON."""
        return {"kernel": self.kernel, "bias": self.bias}, {_MIRRORED: self.is_mirrored}


@dataclass(frozen=True)
class WritingView:
    """Grey images, by the mean and deviation of their pixels. Shape: (b, 1, H, W) -> (b, 1, H, W)."""

    mean: float
    std: float
    is_mirrored: ClassVar[bool] = False

    @classmethod
    def fit(cls, x: Tensor) -> WritingView:
        """Learn mean and deviation; labels are not looked at."""
        fitted = digit().fit(x)
        return cls(fitted.mean[0], fitted.std[0])

    def clean(self, x: Tensor) -> Tensor:
        """The images as they are, standardised."""
        return self._view().clean(x)

    mirrored = clean  # writing has no mirror image that means the same

    def moved(self, x: Tensor, keys: Tensor) -> Tensor:
        """Changed a little. Shape: keys (b,), as :func:`punce.views.counter.row_keys` makes them."""
        return self._view(**_SMALL_MOVES).moved(x, keys)

    def changed(self, x: Tensor, keys: Tensor) -> Tensor:
        """Changed a lot."""
        return self._view().moved(x, keys)

    def _view(self, **options: Any) -> Image:
        return digit(mean=(self.mean,), std=(self.std,), **options)

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """What was learned, as tensors and as JSON."""
        return {}, {_MEAN: self.mean, _STD: self.std}


SmallImageView = TaughtView | WritingView


def view_from_state(tensors: Mapping[str, Tensor], content: Mapping[str, Any]) -> SmallImageView:
    """Inverse of the views' `state`."""
    if _MEAN in content:
        view: WritingView = decode(WritingView, content, "view")
        return view
    return TaughtView(tensors["kernel"], tensors["bias"], decode(bool, content[_MIRRORED], _MIRRORED))


def _unit(x: Tensor) -> Tensor:
    """Pixels as float32 in [0, 1]."""
    return x.float() if x.is_floating_point() else x.float() / 255


def _drawn(keys: Tensor, x: Tensor) -> Tensor:
    """Nine numbers of [0, 1) for each image, on its device. Shape: (b,) -> (9, b)."""
    drawn = counter.uniform(keys.cpu(), 9, stream=_STREAM).to(x.device, torch.float32)
    return drawn.clamp_max_(1 - 2**-24)  # the largest below 1: the last float64 ones are rounded up to it


def _recoloured(x: Tensor, drawn: Tensor) -> tuple[Tensor, Tensor]:
    """Another contrast and another shade in each channel; and each image's mean grey before that, (b, 1, 1, 1)."""
    mean = x.mean((1, 2, 3), keepdim=True)
    contrast, shade = (2 * part.T.view(len(x), -1, 1, 1) - 1 for part in (drawn[3:4], drawn[4 : 4 + x.shape[1]]))
    return ((x - mean) * (1 + _CONTRAST * contrast) + mean + _SHADE * shade).clamp(0, 1), mean


def _holed(x: Tensor, grey: Tensor, drawn: Tensor) -> Tensor:
    """A grey square around a place, cut off at the edges."""
    near = []
    for side, share in zip(x.shape[2:], drawn[7:9], strict=True):
        place = torch.arange(side, device=x.device)
        near.append((place - (share[:, None] * side).long()).abs() < side / _HOLE)
    return torch.where((near[0][:, :, None] & near[1][:, None, :])[:, None], grey, x)
