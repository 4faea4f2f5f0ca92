"""The default on rows nobody generated. The full grid is benchmarks/priors.py."""

from __future__ import annotations

import os

import numpy as np
import pytest

from punce.data import MissingFilesError, Part, load
from punce.priors import estimate_prior

pytestmark = pytest.mark.filterwarnings("ignore::punce.priors.PriorWarning")


def part(name: str) -> Part:
    if "PUNCE_DATA" not in os.environ:
        pytest.skip("PUNCE_DATA does not name a data directory")
    try:
        return load(name, split="train", download=False)
    except MissingFilesError:
        pytest.skip(f"{name} is not in PUNCE_DATA")


@pytest.mark.parametrize(("name", "share"), [("banknote", 0.3), ("mushroom", 0.7)])
def test_default_on_a_separable_table(name: str, share: float) -> None:
    rows = part(name)
    rng = np.random.default_rng(0)
    positive, negative = (rng.permutation(np.flatnonzero(rows.y_true == y)) for y in (1, 0))
    hidden = 300
    chosen = np.r_[positive[: 100 + hidden], negative[: round(hidden * (1 - share) / share)]]
    labels = (np.arange(len(chosen)) < 100).astype(int)
    truth = hidden / (len(chosen) - 100)
    found = estimate_prior(rows.X.iloc[chosen], labels)
    assert found.value == pytest.approx(truth, abs=0.1)
    assert found.low <= truth <= found.high
