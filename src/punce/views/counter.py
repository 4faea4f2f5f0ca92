"""Random numbers that are a function of (seed, epoch, row, view, position) alone.

A stream of random numbers depends on everything drawn before it, so batch order, ranks and workers change it. A
*counter-based* generator has no state: number i of row r is a hash of (seed, epoch, r, view, i). Nothing is stored for
the rows of an epoch, any row can be drawn at any time, on any rank, and a resumed run needs no generator state.

Integer arithmetic wraps the same way on every device, so the draws agree bit for bit between CPU and GPU.

The 64-bit mixing function is SplitMix64's (Steele, Lea & Flood 2014), the 32-bit one is MurmurHash3's finaliser
(Appleby). Neither is cryptographic; both pass the usual tests of randomness on counters.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15  # 2⁶⁴ / golden ratio: successive counters land far apart
_MIX = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
_GOLDEN32 = 0x9E3779B1
_MIX32 = (0x85EBCA6B, 0xC2B2AE35)


def row_keys(rows: Tensor, *, seed: int, epoch: int, view: int) -> Tensor:
    """One 64-bit key for each row: the start of everything drawn for it. Shape (b,) -> (b,), int64."""
    # Nested, and each part plus 1: (seed 0, epoch 1) and (seed 1, epoch 0) must not meet.
    run = _mix_int(_mix_int(_mix_int(seed + 1) + epoch + 1) + view + 1)
    return _mix(rows * _signed(_GOLDEN, 64) + _signed(run, 64))


def uniform(keys: Tensor, n: int, *, stream: int = 0) -> Tensor:
    """`n` draws from [0, 1) for each key. Shape (b,) -> (n, b), float64.

    For the few parameters of a view. float64 keeps what follows (sines, roots) free of last-bit differences between
    vectorised and scalar code after the result is rounded to float32.
    """
    counters = torch.arange(1, n + 1, device=keys.device) + (stream << 32)
    hashed = _mix(keys + counters[:, None] * _signed(_GOLDEN, 64))
    # 53 bits fill a float64's mantissa exactly, so 1.0 itself cannot come out.
    return _shift_right(hashed, 11, 64).to(torch.float64) * 2.0**-53


def bits(keys: Tensor, n: int, *, stream: int = 0) -> Tensor:
    """`n` hashes of 32 bits for each key. Shape (b,) -> (b, n), int32 (as two's complement).

    For one draw per feature, where half the memory traffic matters. Within a row the hashes are all different: the
    map from position to hash is a bijection, so ranking them selects exactly as many features as asked for.
    """
    keys = _mix(keys + _signed(_mix_int(stream + 1), 64))
    low, high = keys.to(torch.int32)[:, None], (keys >> 32).to(torch.int32)[:, None]
    # Multiplied as int64 and then cut to int32, because the constant does not fit into int32.
    steps = torch.arange(n, device=keys.device) * _GOLDEN32
    x = low + steps.to(torch.int32)
    x.bitwise_xor_(_shift_right(x, 16, 32)).mul_(_signed(_MIX32[0], 32))
    x.add_(high)  # the second half of the key: two rows that share the first half still differ
    x.bitwise_xor_(_shift_right(x, 13, 32)).mul_(_signed(_MIX32[1], 32))
    return x.bitwise_xor_(_shift_right(x, 16, 32))


def below(hashes: Tensor, n: int) -> Tensor:
    """32-bit hashes to integers in [0, n), by multiply and shift. Shape kept, int64."""
    # (hash · n) >> 32 is a scaled hash; a remainder would favour small numbers and costs a division.
    unsigned = hashes.to(torch.int64).bitwise_and_(0xFFFFFFFF)
    return torch.bitwise_right_shift(unsigned.mul_(n), 32)


def unit_interval(hashes: Tensor) -> Tensor:
    """32-bit hashes to float32 in [0, 1), from their 24 highest bits. Shape kept."""
    return _shift_right(hashes, 8, 32).to(torch.float32) * 2.0**-24


def bell(hashes: Tensor) -> Tensor:
    """32-bit hashes to bell-shaped float32 of mean 0 and variance 1, bounded by ±3.46. Shape kept.

    The sum of a hash's four bytes (an Irwin-Hall variable, close to normal): integer work only, hence the same bits
    everywhere, and several times cheaper than an inverse error function.
    """
    pairs = (hashes & 0x00FF00FF) + (_shift_right(hashes, 8, 32) & 0x00FF00FF)
    total = (pairs & 0xFFFF) + _shift_right(pairs, 16, 32)
    # A byte has variance (256² − 1)/12 and mean 127.5; there are four of them.
    deviation = math.sqrt(4 * (256**2 - 1) / 12)
    return (total.to(torch.float32) - 510.0) / deviation


def _mix(x: Tensor) -> Tensor:
    for shift, factor in _MIX:
        x = (x ^ _shift_right(x, shift, 64)) * _signed(factor, 64)
    return x ^ _shift_right(x, 31, 64)


def _mix_int(x: int) -> int:
    """:func:`_mix` of one Python integer, for the part of the key that all rows share."""
    x = (x * _GOLDEN) & _MASK
    for shift, factor in _MIX:
        x = ((x ^ (x >> shift)) * factor) & _MASK
    return x ^ (x >> 31)


def _shift_right(x: Tensor, by: int, width: int) -> Tensor:
    """Logical shift: torch shifts signed integers arithmetically, so the copies of the sign are masked off."""
    return (x >> by) & ((1 << (width - by)) - 1)


def _signed(x: int, width: int) -> int:
    """The two's complement reading of an unsigned constant, which is what torch's signed tensors take."""
    return x - (1 << width) if x >> (width - 1) else x
