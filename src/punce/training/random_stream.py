"""torch's global random streams with a seed of our own for a while; afterwards they are as the caller left them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


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
