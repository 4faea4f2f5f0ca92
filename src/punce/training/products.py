"""Products of float32 matrices with all the vector units of this CPU, at the precision of float32.

torch multiplies matrices with Intel's MKL, which leaves the AVX-512 units of AMD's CPUs unused. oneDNN, the other
library inside torch, uses them: on two cores of an EPYC of family 26 a product of 1,024 × 128 by 128 × 1,024 ran at 467
instead of 211 GFLOP/s. torch has no setting that chooses between the two. It does take oneDNN once products may be
rounded to bfloat16, and oneDNN rounds only on CPUs with AMX. So the permission is given where there is no AMX, and only
after a product has shown that nothing is rounded.

Products with one output column, as in the probe, are slower in oneDNN: one of 4,096 × 50 took 40 instead of 20 µs. That
does not matter: of a whole probe (20,000 × 256) they are so little that runs differed by more from one to the next.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

_LARGEST_ERROR = 1e-5  # relative; float32 is off by 1e-7 here, bfloat16 by 2e-3
_Precisions = tuple[str, str]  # of oneDNN's products and of CUDA's
_ONEDNN: Any = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]  # torch makes it where mypy cannot see it
_CUDA = torch.backends.cuda.matmul
_inside: list[_Precisions] = []  # what was set before, once for every context that is open, in whichever thread


@contextmanager
def fast_products() -> Iterator[None]:
    """Inside, float32 products on an AMD CPU with AVX-512 are oneDNN's; elsewhere, nothing changes.

    A precision that the caller has set is left alone, and one that is set afterwards is not hidden.
    """
    before = None if torch.compiler.is_compiling() else next(iter(_inside), None) or _unset()
    if before is None or not onednn_is_faster():
        yield
        return
    # No lock: append and pop are atomic, and of two threads at most one multiplies with the slower library.
    _inside.append(before)
    torch.set_float32_matmul_precision("medium")
    try:
        yield
    finally:
        _inside.pop()
        if not _inside:
            _restore(before)


def _unset() -> _Precisions | None:
    """The settings, if they are float32's own; None where the caller has chosen another precision."""
    before = (_ONEDNN.fp32_precision, _CUDA.fp32_precision)
    try:
        is_highest = torch.get_float32_matmul_precision() == "highest"
    except RuntimeError:  # set through torch's newer interface, which this one cannot read
        return None
    # Read before the question: another thread may have given the permission in between.
    return before if is_highest and before[0] in ("none", "ieee") else None


def _restore(before: _Precisions) -> None:
    torch.set_float32_matmul_precision("highest")
    # That wrote "ieee" for both libraries, and what the caller sets later for all of torch would not reach them.
    _ONEDNN.fp32_precision, _CUDA.fp32_precision = before


@lru_cache(maxsize=1)
def onednn_is_faster() -> bool:
    """Whether this CPU is AMD's with AVX-512 and oneDNN keeps float32 on it. False beside a GPU of CUDA.

    The permission would also let CUDA round.
    """
    is_affected = torch.backends.cpu.get_cpu_capability() == "AVX512" and _is_amd()
    return is_affected and not torch.cuda.is_available() and _keeps_float32()


def _is_amd() -> bool:
    cpus = Path("/proc/cpuinfo")
    return "AuthenticAMD" in (cpus.read_text() if cpus.exists() else platform.processor())


def _keeps_float32() -> bool:
    drawn = torch.Generator().manual_seed(0)
    a, b = (torch.randn(64, 256, generator=drawn) for _ in range(2))
    exact = a.double() @ b.double().T
    before = _unset()
    if before is None:
        return False
    torch.set_float32_matmul_precision("medium")
    try:
        error = (a @ b.T - exact).norm() / exact.norm()
    finally:
        _restore(before)
    return bool(error < _LARGEST_ERROR)
