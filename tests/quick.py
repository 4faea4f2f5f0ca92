"""The ensemble for tables in a fifth of its time: for tests of what is around it, not of how well it learns."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from punce.models.tabular import model, network, teachers


@pytest.fixture(scope="module")
def quick_tables() -> Iterator[None]:
    """Two folds instead of five, fewer bags and steps, for all tests of a module from the first that asks for it."""
    with pytest.MonkeyPatch.context() as patch:
        make_quick(patch)
        yield


def make_quick(patch: pytest.MonkeyPatch) -> None:
    """The same for a process that is not a test."""
    patch.setattr(model, "_FOLDS", 2)
    patch.setattr(teachers, "_BAGS", 3)
    patch.setattr(network, "_STEPS", 60)
