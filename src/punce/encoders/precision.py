"""Convolutions in the layout and the precision in which this CPU computes them fastest, while a network is trained.

Layout: channels last, everywhere. Precision: bfloat16 where the CPU multiplies in it (AVX512-BF16, AMX), otherwise
float32; emulated bfloat16 takes twice as long. Only the convolutions of a training step run in bfloat16: weights,
optimiser, linear layers, loss, and every score are float32, so that a model scores alike on all machines. A
text encoder trains in bfloat16 only where its caller sets ``encoder.precision``.

Tolerance (tests/test_precision.py): features of a training step within 3 % (root mean square) of those of float32, the
gradient of puNCE at random weights at a cosine above 0.9. ``PUNCE_PRECISION=float32`` keeps float32.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from punce.encoders.allocator import kept_memory
from punce.encoders.encoder import Encoder, Precision
from punce.errors import InputError

VARIABLE = "PUNCE_PRECISION"
_FEWEST_CHANNELS = 8  # below, see has_safe_layout


@contextmanager
def fast_convolutions(encoder: Encoder) -> Iterator[Precision]:
    """Inside, `encoder` trains in the fast layout and precision; afterwards it is as it was. Gives the precision.

    A network without convolutions, on a GPU, or in a precision that the caller chose, stays as it is.
    """
    convolutions = [module for module in encoder.modules() if isinstance(module, nn.Conv2d)]
    if not convolutions or convolutions[0].weight.device.type != "cpu" or encoder.precision != "float32":
        yield encoder.precision
        return
    encoder.precision = chosen_precision()
    channels_last(encoder)
    try:
        with kept_memory():
            yield encoder.precision
    finally:
        encoder.precision = "float32"
        encoder.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]


def chosen_precision() -> Precision:
    """What PUNCE_PRECISION says; else bfloat16 where the CPU has it."""
    asked = os.environ.get(VARIABLE, "").strip() or "auto"
    if asked not in ("auto", "float32", "bfloat16"):
        raise InputError(f"{VARIABLE} must be 'auto', 'float32' or 'bfloat16', got {asked!r}")
    return "bfloat16" if asked == "bfloat16" or (asked == "auto" and has_bfloat16()) else "float32"


def has_bfloat16() -> bool:
    """Whether the CPU has instructions for products in bfloat16."""
    # Private names of torch, which has no public ones. A version without them means: not known, so float32.
    tests = (getattr(torch.cpu, f"_is_{name}_supported", None) for name in ("avx512_bf16", "amx_tile"))
    return any(test is not None and test() for test in tests)


def channels_last(encoder: Encoder) -> Encoder:
    """The encoder with its convolutions' weights in channels-last order, in place, where that is safe."""
    if has_safe_layout(encoder):
        encoder.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return encoder


def has_safe_layout(encoder: nn.Module) -> bool:
    """False for 1×1 convolutions with a stride over few channels.

    torch 2.13 writes past the end of one of stride 2 over 4 channels-last channels.
    """
    strided = (m for m in encoder.modules() if isinstance(m, nn.Conv2d) and m.kernel_size == (1, 1))
    return not any(max(m.stride) > 1 and m.in_channels < _FEWEST_CHANNELS for m in strided)
