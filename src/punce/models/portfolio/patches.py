"""Images as their similarity to small whitened patches of images. Nothing is trained and no label is used.

An image is compared with 256 patches drawn from the images, at every place. Whitening takes out what neighbouring
pixels share, so that edges count and not brightness. Clear similarity and dissimilarity to a patch are averaged over
each quarter of the image; heads see the main directions of these averages.

Shapes: n images of C channels, K patches of S × S pixels, M features.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d, conv2d, pad, unfold

from punce.models.portfolio.directions import Directions

Values = npt.NDArray[np.float32]

SMALLEST = 4
"""Side of the smallest images that have patches."""
_PATCHES, _LARGEST_SIDE = 256, 6
_QUARTERS = 2  # along each side
_CLEAR = 0.5  # a similarity, in units of its spread, that counts
_NOISE = 0.1  # of the mean variance: directions of a patch with less are not blown up by whitening
_ROWS, _MOST_PATCHES = 2_000, 200_000  # from which the whitening is learned
_ROWS_FOR_DIRECTIONS = 5_000
_FULL_SIDE = 32  # larger images are compared at every second place, third place, …
_PLACES_AT_ONCE = 16 * 32 * 32  # blocks of 17 MB: the kernel clears larger ones each time, at twice the price


@dataclass(frozen=True)
class Patches:
    """Shape: (n, C, H, W) -> (n, M). kernel (K, C, S, S), bias (K,)."""

    kernel: Tensor
    bias: Tensor
    directions: Directions

    @classmethod
    def fit(cls, x: Tensor, seed: int) -> Patches:
        """Draw patches and learn whitening and directions from some of the images."""
        drawn = torch.Generator().manual_seed(seed)
        some = x[torch.randperm(len(x), generator=drawn)[:_ROWS_FOR_DIRECTIONS]]
        kernel, bias = _kernel(some[:_ROWS].float(), drawn)
        return cls(kernel, bias, Directions.fit(_similarity(some, kernel, bias), seed))

    def __call__(self, x: Tensor) -> Values:
        """Features of images."""
        return self.directions(_similarity(x, self.kernel, self.bias))


def has_patches(x: Tensor) -> bool:
    """Whether the rows are images, and large enough."""
    return x.dim() == 4 and min(x.shape[2:]) >= SMALLEST


def _kernel(x: Tensor, drawn: torch.Generator) -> tuple[Tensor, Tensor]:
    """A convolution whose channels are the similarity to drawn patches, both whitened. Shape: (K, C, S, S), (K,)."""
    side = min(_LARGEST_SIDE, min(x.shape[2:]) // 2)
    every = -(-len(x) * (x.shape[2] // side) * (x.shape[3] // side) // _MOST_PATCHES)
    patches = unfold(x[::every], side, stride=max(1, side // 2)).transpose(1, 2).flatten(0, 1).double()
    mean = patches.mean(0)
    centred = patches - mean
    variance, vectors = torch.linalg.eigh(centred.T @ centred / len(centred))
    least = _NOISE * max(float(variance.mean()), 1e-12)
    whitening = vectors / (variance.clamp_min(0) + least).sqrt() @ vectors.T
    white = centred[torch.randint(len(centred), (_PATCHES,), generator=drawn)] @ whitening
    kernel = white / white.norm(dim=1, keepdim=True).clamp_min(1e-9) @ whitening
    return kernel.float().view(-1, x.shape[1], side, side), (-kernel @ mean).float()


@torch.no_grad()
def _similarity(x: Tensor, kernel: Tensor, bias: Tensor) -> Values:
    """Clear similarity and dissimilarity, averaged over quarters. Shape: (n, C, H, W) -> (n, 8 K)."""
    height, width = x.shape[2:]
    step, edge = max(1, min(height, width) // _FULL_SIDE), (kernel.shape[2] - 1) // 2
    at_once = max(1, _PLACES_AT_ONCE * step**2 // (height * width))
    found = np.empty((len(x), 2 * len(bias) * _QUARTERS**2), dtype=np.float32)
    for start in range(0, len(x), at_once):
        part = pad(x[start : start + at_once].float(), (edge,) * 4, mode="replicate")
        similarity = conv2d(part, kernel, bias, stride=step)
        both = [adaptive_avg_pool2d((sign * similarity - _CLEAR).clamp_min_(0), _QUARTERS) for sign in (1, -1)]
        found[start : start + at_once] = torch.cat(both, dim=1).flatten(1).numpy()
    return found
