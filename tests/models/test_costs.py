"""Large images and long training are cut down by what they cost; what is reduced is reduced again when scoring."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from punce.models.auto import AutoRoute
from punce.models.portfolio import costs
from punce.models.portfolio.contrastive import Recipe
from punce.models.portfolio.costs import affordable_epochs, expected, first_reduction, reduced
from tests.models.test_portfolio import SETTINGS


def test_reduced_pictures_are_means_in_their_own_type() -> None:
    x = torch.tensor([[0, 4, 8, 8], [4, 8, 8, 8]], dtype=torch.uint8).view(1, 1, 2, 4)
    assert reduced(x, 2).tolist() == [[[[4, 8]]]]
    assert reduced(x, 2).dtype == torch.uint8
    assert reduced(x, 1) is x


@pytest.mark.parametrize(
    ("shape", "factor"), [((3, 128, 128), 1), ((3, 129, 60), 2), ((1, 480, 640), 5), ((1, 8, 8), 1)]
)
def test_pictures_beyond_128_pixels_are_reduced_first(shape: tuple[int, int, int], factor: int) -> None:
    assert first_reduction(shape) == factor


def test_six_hundred_photographs_are_trained_on_within_the_budget() -> None:
    for side, channels in ((64, 3), (128, 3)):
        x = torch.zeros(1, channels, side, side, dtype=torch.uint8).expand(600, -1, -1, -1)
        recipe, factor, epochs = Recipe.affordable(x)
        shape = (channels, side // factor, side // factor)
        assert 16 <= epochs <= affordable_epochs(600, recipe.encoder, shape)


def test_pictures_that_are_not_square_have_a_network_too() -> None:
    assert Recipe.affordable(torch.zeros(300, 3, 40, 64))[0].encoder["name"] == "resnet18"


def test_short_work_is_not_announced_and_long_work_is() -> None:
    encoder = costs.build_encoder("mlp", in_features=10, width=0.05)
    assert expected(encoder, torch.zeros(20, 10), 10, steps=1) == ""
    assert expected(encoder, torch.zeros(20, 10), 10, steps=10**8).startswith("about ")


def test_a_stored_model_of_reduced_pictures_scores_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Images are reduced twice: before anything sees them, and once more for the encoder."""
    for name, value in {"_SMALLEST_SIDE": 8, "_MOST_FLOPS": 1e9, "_LARGEST_SIDE": 16}.items():
        monkeypatch.setattr(costs, name, value)
    rng, settings = np.random.default_rng(0), replace(SETTINGS, used={})
    x, labels = rng.integers(256, size=(200, 32, 32, 3), dtype=np.uint8), np.zeros(200, dtype=np.int8)
    x[:80, :12] //= 4
    labels[:30] = 1
    route = AutoRoute()
    fitted = route.fit(x, labels, settings)
    assert "reduced to 16 × 16 pixels" in fitted.notes[0]
    assert settings.used["pretrained"]["pixels"] == [8, 8]
    np.testing.assert_allclose(AutoRoute.from_state(*route.state()).score(x), route.score(x))


@pytest.mark.parametrize("loss", ["auto", "punce"])
def test_the_first_prior_sees_the_same_columns_wherever_the_channels_stand(loss: str) -> None:
    images = np.random.default_rng(0).integers(0, 256, (20, 3, 8, 8), dtype=np.uint8)
    settings = replace(SETTINGS, loss=loss)
    first, last = (AutoRoute().prepare(x, settings) for x in (images, images.transpose(0, 2, 3, 1)))
    assert np.array_equal(first, last)


def test_the_prior_of_very_many_pictures_is_estimated_on_directions(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).integers(256, size=(40, 3, 20, 20), dtype=np.uint8)
    assert AutoRoute().prepare(x, SETTINGS).shape == x.shape
    monkeypatch.setattr("punce.models.auto._MOST_CELLS", 1_000)
    assert AutoRoute().prepare(x, SETTINGS).shape == (40, 39)
