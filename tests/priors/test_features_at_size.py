"""Rows too many to be completed at once are projected part by part, nearly as the others are."""

from __future__ import annotations

import numpy as np
import pytest

from punce.priors import features
from punce.priors.features import PROJECTED, as_rows


def test_parts_give_nearly_the_same_components(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(2_000, 60)) * np.linspace(8.0, 0.5, 60)
    values = (latent @ rng.normal(size=(60, 300)) + 0.1 * rng.normal(size=(2_000, 300))).astype(np.float32)
    values[rng.random(values.shape) < 0.01] = np.nan
    at_once = as_rows(values).narrow.values
    monkeypatch.setattr(features, "_MOST_CELLS", 100_000)
    parts = as_rows(values).narrow.values
    assert parts.shape == (2_000, PROJECTED)
    # All rows are fewer than the sample that decides, so that only rounding differs.
    np.testing.assert_allclose(parts, at_once, atol=1e-3)
