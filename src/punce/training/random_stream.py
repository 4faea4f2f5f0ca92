"""Seeds, and torch's global random streams with one for a while; afterwards they are as the caller left them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from punce.errors import InputError


@contextmanager
def seeded(seed: int, device: torch.device | None = None) -> Iterator[None]:
    """Inside, the streams of the CPU and of `device` begin at `seed`; afterwards they are where they were.

    Only these are touched: ``torch.manual_seed`` would seed every GPU of the machine, also those that nobody forks.
    """
    is_gpu = device is not None and device.type == "cuda"
    with torch.random.fork_rng(devices=[device] if is_gpu else [], device_type="cuda"):
        torch.default_generator.manual_seed(int(seed))
        if device is not None and device.type not in ("cpu", "meta"):
            _seed_accelerator(seed, device)
        yield


def _seed_accelerator(seed: int, device: torch.device) -> None:
    """The device's own stream; of accelerators other than GPUs it stays seeded, because torch cannot fork it."""
    if device.type == "cuda":
        with torch.cuda.device(device):
            torch.cuda.manual_seed(seed)
    else:
        torch.get_device_module(device).manual_seed(seed)


def check_random_state(random_state: Any) -> None:
    """Refuse what is no seed and can draw none."""
    if random_state is None or isinstance(random_state, np.random.RandomState):
        return
    if not isinstance(random_state, int | np.integer) or not 0 <= random_state < 2**32:
        raise InputError(
            f"random_state must be None, a whole number from 0 to 2³² − 1 or a RandomState, got {random_state!r}"
        )


def drawn_seed(random_state: int | np.random.RandomState | None) -> int:
    """None and a RandomState draw a seed, which is kept so that the fit can be repeated."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))  # randint's default type has 32 bits on some systems
    return int(random_state)
