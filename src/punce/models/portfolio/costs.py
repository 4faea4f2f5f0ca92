"""What training an encoder costs, and what is made smaller so that a fit takes minutes: images, then epochs.

Shapes: n images (n, C, H, W).
"""

from __future__ import annotations

import copy
import time
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d

from punce.encoders import Encoder, build_encoder
from punce.encoders.precision import fast_convolutions
from punce.training.progress import LONG_RUN, duration

_MOST_FLOPS = 4e12  # of one pretraining: about two minutes of one core
_FEWEST_EPOCHS = 16  # images are halved until so many are affordable
_SMALLEST_SIDE = 32  # that images are halved to
_LARGEST_SIDE = 128  # of images that anything here sees
_ROWS_AT_ONCE = 256


def affordable_epochs(n_rows: int, spec: dict[str, Any], shape: tuple[int, ...]) -> float:
    """Epochs of an encoder within the budget of operations. Shape: of a row."""
    with torch.random.fork_rng(devices=[]):  # its weights are thrown away: the caller's random stream stays where it is
        encoder = build_encoder(spec["name"], **spec["options"])
    return _MOST_FLOPS / (n_rows * _flops(encoder, shape))


def can_be_halved(shape: tuple[int, ...], n_epochs: float) -> bool:
    """Whether images are made smaller for the encoder, as only so few epochs are affordable. Shape: of a row."""
    return len(shape) == 3 and min(shape[1:]) // 2 >= _SMALLEST_SIDE and n_epochs < _FEWEST_EPOCHS


def first_reduction(shape: tuple[int, ...]) -> int:
    """By how much images of more than 128 pixels are reduced before anything looks at them. Shape: (C, H, W)."""
    return -(-max(shape[1:]) // _LARGEST_SIDE)


def reduced(x: Tensor, factor: int) -> Tensor:
    """Means of squares of `factor` × `factor` pixels, in the type that the images have. Shape: (n, C, H, W)."""
    if factor == 1:
        return x
    parts = (avg_pool2d(part.float(), factor, ceil_mode=True) for part in torch.split(x, _ROWS_AT_ONCE))
    is_whole = not x.is_floating_point()
    return torch.cat([(part.round() if is_whole else part).to(x.dtype) for part in parts])


def expected(encoder: Encoder, x: Tensor, batch_size: int, steps: int) -> str:
    """How long so many steps take, by one that is tried: "about 70 s"; empty where it is seconds."""
    model, rows = copy.deepcopy(encoder), x[:batch_size].float()
    with fast_convolutions(model):
        _step(model, rows)  # the first one allocates and warms caches
        began = time.perf_counter()
        _step(model, rows)
        seconds = 2 * (time.perf_counter() - began) * steps  # a row has two views
    return f"about {duration(seconds)}" if seconds >= LONG_RUN else ""


def _step(model: Encoder, rows: Tensor) -> None:
    model.project(model.features(rows)).square().mean().backward()  # type: ignore[no-untyped-call]


def _flops(encoder: Encoder, shape: tuple[int, ...]) -> float:
    """Of one row's two views, forward and backward: six operations for each weight, as often as it is used."""
    uses = 0.0

    def count(module: nn.Module, _: Any, output: Tensor) -> None:
        nonlocal uses
        weight = getattr(module, "weight", None)
        if weight is not None and weight.dim() > 1:
            uses += weight.numel() * (output[0, 0].numel() if output.dim() == 4 else 1)

    hooks = [module.register_forward_hook(count) for module in encoder.modules()]
    with torch.no_grad():
        encoder.eval().features(torch.zeros(1, *shape))
    for hook in hooks:
        hook.remove()
    return 12.0 * uses
