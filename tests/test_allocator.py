"""Memory is kept while convolutions train, and given back afterwards.

Each test runs in a process of its own: what an earlier test left free in this one would serve every block asked for.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="about glibc")

PREFACE = """
import resource
from pathlib import Path

import torch

from punce.encoders.allocator import kept_memory

BLOCK = 48 * 2**20  # bytes: above what glibc keeps by itself


def faults_of(times):  # pages that the kernel had to clear for a block that is needed again and again
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(times):
        torch.zeros(BLOCK, dtype=torch.uint8).add_(1)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
"""


def printed_by(script: str) -> list[int]:
    """The numbers that a script prints in a fresh process."""
    done = subprocess.run([sys.executable, "-c", PREFACE + script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return [int(word) for word in done.stdout.split()]


def test_a_block_is_cleared_by_the_kernel_once_inside_and_every_time_outside() -> None:
    inside, outside = printed_by("""
with kept_memory():
    faults_of(1)
    inside = min(faults_of(5) for _ in range(3))  # a kernel may take pages away from a process that waits
print(inside, faults_of(5))
""")
    assert inside < outside / 4


def test_what_is_free_goes_back_afterwards() -> None:
    kept, afterwards = printed_by("""
with kept_memory():
    faults_of(1)
    kept = resident()
print(kept, resident())
""")
    assert afterwards < kept - 24 * 2**20
