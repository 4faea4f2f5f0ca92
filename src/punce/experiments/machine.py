"""Where a result was made, by which code, and the limits under which it was made."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import torch
from threadpoolctl import threadpool_limits

import punce

ROOMS = (
    *("columns", "data", "datasets", "encoders", "experiments", "judging", "losses", "models"),
    *("priors", "risks", "stages", "training", "views"),
)
"""Packages whose modules can change a number of a cell. Presentation is not one of them."""


def device() -> torch.device:
    """The graphics card if there is one."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


@cache
def facts() -> dict[str, Any]:
    """What to write beside a number."""
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "processor": _processor(),
        "cores": os.cpu_count(),
        "cuda": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")  # platform.processor() is empty on most Linux systems
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


@cache
def code_hashes() -> dict[str, str]:
    """The first 16 hex digits of the sha256 of each package's modules; the order of files does not count."""
    root = Path(punce.__file__).parent
    return {room: _hash(root / room) for room in ROOMS}


def _hash(room: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(room.rglob("*.py")):
        name = path.relative_to(room).as_posix()
        if not name.startswith("present/"):
            digest.update(f"{name}\0{path.read_text(encoding='utf-8')}\0".encode())
    return digest.hexdigest()[:16]


@contextmanager
def reproducible(threads: int) -> Iterator[None]:
    """So many threads in torch and in numerical libraries, and deterministic kernels on a graphics card."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read when the card is first used
    # Both are global to the process: restored, because tests and notebooks run other things after a cell.
    before, was_strict = torch.get_num_threads(), torch.backends.cudnn.deterministic
    torch.set_num_threads(threads)
    torch.backends.cudnn.deterministic = True
    try:
        with threadpool_limits(threads):
            yield
    finally:
        torch.set_num_threads(before)
        torch.backends.cudnn.deterministic = was_strict
