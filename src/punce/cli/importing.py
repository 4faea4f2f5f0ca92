"""Imports of torch, scikit-learn and pandas take seconds; this saves half of one."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collection() -> Iterator[None]:
    """No garbage collection inside: a million objects are made and stay, and would be looked through five times."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
