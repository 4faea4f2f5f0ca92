"""Whitened patches: shapes, the same numbers for the same seed, and a stored portfolio that scores the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from punce.judging.ranking import auc_between
from punce.models.portfolio.candidates import PATCHES, Candidates
from punce.models.portfolio.directions import Directions
from punce.models.portfolio.model import Portfolio
from punce.models.portfolio.patches import Patches, has_patches
from punce.models.portfolio.readers import Given, Patched, reader_from_state
from tests.models.test_portfolio import SETTINGS


def _stripes(n: int, shape: tuple[int, int, int], seed: int = 0) -> tuple[torch.Tensor, np.ndarray]:
    """Noise with stripes at a random phase: across in the positives, down in the others. No pixel tells them apart."""
    rng = np.random.default_rng(seed)
    is_positive, (channels, height, width) = rng.random(n) < 0.5, shape
    across, down = np.arange(height)[:, None], np.arange(width)[None, :]
    place = np.where(is_positive[:, None, None], across, down) + rng.integers(4, size=(n, 1, 1))
    grey = 128 + 60 * np.sign(np.sin(place * np.pi / 2 + 0.1)) + rng.normal(0, 20, (n, height, width))
    pictures = np.repeat(grey[:, None], channels, axis=1).clip(0, 255).astype(np.uint8)
    return torch.from_numpy(pictures), is_positive


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 32, 32), (3, 20, 70), (1, 4, 5)])
def test_pictures_of_any_shape_become_at_most_256_finite_numbers(shape: tuple[int, int, int]) -> None:
    x, _ = _stripes(30, shape)
    features = Patches.fit(x, seed=0)(x)
    assert features.shape[0] == 30
    assert 1 <= features.shape[1] <= 256
    assert np.isfinite(features).all()


def test_one_seed_gives_one_result_and_another_seed_another() -> None:
    x, _ = _stripes(40, (1, 12, 12))
    first, again, other = (Patches.fit(x, seed)(x) for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_some_pictures_have_the_features_they_have_among_all() -> None:
    x, _ = _stripes(70, (1, 33, 33))
    patches = Patches.fit(x, seed=0)
    np.testing.assert_allclose(patches(x[65:68]), patches(x)[65:68], atol=1e-4)


def test_pictures_without_any_contrast_have_features() -> None:
    x = torch.full((20, 1, 8, 8), 7, dtype=torch.uint8)
    assert np.isfinite(Patches.fit(x, seed=0)(x)).all()


def test_embeddings_and_tiny_pictures_have_no_patches() -> None:
    assert not has_patches(torch.zeros(5, 40))
    assert not has_patches(torch.zeros(5, 1, 3, 9))
    assert has_patches(torch.zeros(5, 1, 4, 4))


def test_a_stored_reader_gives_the_same_features() -> None:
    x, _ = _stripes(30, (1, 8, 8))
    reader = Patched(Patches.fit(x, seed=0))
    assert np.array_equal(reader_from_state(*reader.state())(Given(x)), reader(Given(x)))


def test_patches_see_what_pixels_do_not_and_a_stored_portfolio_scores_the_same() -> None:
    x, is_positive = _stripes(150, (1, 10, 10))  # too few to train an encoder on
    labels = np.zeros(150, dtype=np.int8)
    labels[np.flatnonzero(is_positive)[:30]] = 1
    rows, settings = Given(x), replace(SETTINGS, used={})
    portfolio, fitted = Portfolio.fit(rows, labels, settings, torch.device("cpu"))
    unlabelled = labels == 0
    assert auc_between(fitted.scores[unlabelled & is_positive], fitted.scores[unlabelled & ~is_positive]) > 0.95
    assert max(settings.used["teachers"], key=settings.used["teachers"].get).startswith(PATCHES)
    np.testing.assert_allclose(Portfolio.from_state(*portfolio.state()).score(rows), portfolio.score(rows))


def test_candidates_of_embeddings_have_no_patches() -> None:
    x = torch.randn(60, 5, generator=torch.Generator().manual_seed(0))
    labels = np.repeat([1, 0], [20, 40]).astype(np.int8)
    found = Candidates.fit(Given(x), labels, replace(SETTINGS, used={}), torch.device("cpu"), heads=("logistic",))
    assert PATCHES not in found.readers


def test_directions_of_more_numbers_than_rows_are_those_of_the_covariance() -> None:
    x = np.random.default_rng(0).normal(size=(30, 80)).astype(np.float32) * np.linspace(0.1, 3, 80, dtype=np.float32)
    wide = Directions.fit(x, 0)(x)
    narrow = Directions.fit(np.concatenate([x - x.mean(0)] * 4), 0)
    own = narrow(x - x.mean(0))[:, : wide.shape[1]]
    # Directions have no sign: the products of rows are what heads see.
    np.testing.assert_allclose(wide @ wide.T / np.trace(wide @ wide.T), own @ own.T / np.trace(own @ own.T), atol=1e-5)
