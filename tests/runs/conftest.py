"""What the run tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tests.faults import limits


@pytest.fixture
def one_thread() -> Iterator[None]:
    """One thread, and torch's generator as it was: these tests compare bits."""
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    torch.set_rng_state(state)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 1 MB."""
    with limits.small_disk(tmp_path / "disk", 1 << 20) as folder:
        yield folder
