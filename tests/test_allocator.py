"""Memory is kept while convolutions train, and given back afterwards."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

import pytest
import torch

from punce.encoders.allocator import kept_memory

BLOCK = 48 * 2**20  # bytes: above what glibc keeps by itself


def faults_of(times: int) -> int:
    """Pages that the kernel had to clear for a block that is needed again and again."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(times):
        torch.zeros(BLOCK, dtype=torch.uint8).add_(1)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@pytest.mark.skipif(sys.platform != "linux", reason="about glibc")
def test_a_block_is_cleared_by_the_kernel_once_inside_and_every_time_outside() -> None:
    with kept_memory():
        faults_of(1)
        inside = min(faults_of(5) for _ in range(3))  # a kernel may take pages away from a process that waits
    outside = faults_of(5)
    assert inside < outside / 4


@pytest.mark.skipif(sys.platform != "linux", reason="about glibc")
def test_what_is_free_goes_back_afterwards() -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

    with kept_memory():
        faults_of(1)
        kept = resident()
    assert resident() < kept - BLOCK // 2
