"""Networks that students teach: for which rows; that they see no label of their own fold; that a model keeps them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from punce.judging.ranking import auc_between
from punce.models.portfolio import networks as module
from punce.models.portfolio.candidates import Candidates
from punce.models.portfolio.model import Portfolio
from punce.models.portfolio.networks import NETWORK, networks
from punce.models.portfolio.readers import Given
from punce.training.loop import Settings
from tests.models.test_portfolio import SETTINGS
from tests.stages.test_taught import pictures

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_COLOUR", replace(module._COLOUR, width=0.05, fewest_rows=150))
    monkeypatch.setattr(module, "_GREY", replace(module._GREY, width=0.05, fewest_rows=150))


def candidates(x: torch.Tensor, labels: np.ndarray, **changes: Any) -> tuple[Candidates, Any]:
    """Two cheap heads on raw pixels and patches, and the settings."""
    settings = replace(SETTINGS, used={}, prior=0.4, **changes)
    return Candidates.fit(Given(x), labels, settings, CPU, heads=("logistic",), losses=()), settings


def labelled(truth: np.ndarray, n: int = 60) -> np.ndarray:
    labels = np.zeros(len(truth), dtype=np.int8)
    labels[np.flatnonzero(truth > 0)[:n]] = 1
    return labels


@pytest.mark.parametrize("is_grey", [False, True])
def test_a_network_joins_small_pictures_and_the_model_keeps_it(is_grey: bool) -> None:
    x, truth = pictures(300)
    x, new = (grey(rows) if is_grey else rows for rows in (x, pictures(50, seed=9)[0]))
    labels = labelled(truth)
    own, settings = candidates(x, labels, epochs=4)
    found = networks(own, Given(x), labels, settings, CPU)
    assert set(found.held_out) - set(own.held_out) == {f"{NETWORK}, own head"}
    assert settings.used["network"] == {"epochs": "5 x (4 + 4)"}
    assert found.apart == (f"{NETWORK}, own head",)
    own_scores = {name: found.held_out[name] for name in found.apart}
    alone = replace(found, members=found.members[-1:], held_out=own_scores, apart=())
    portfolio = Portfolio.weighed(alone, labels, settings.prior)
    again = Portfolio.from_state(*portfolio.state())
    np.testing.assert_array_equal(again.score(Given(new)), portfolio.score(Given(new)))
    assert len(portfolio.embed(Given(new))) == 50


def grey(x: torch.Tensor) -> torch.Tensor:
    """One channel, higher than wide."""
    return x[:, :1, :, :12]


def test_other_rows_have_none() -> None:
    x, truth = pictures(200)
    labels = labelled(truth)
    own, settings = candidates(x, labels)
    few = labelled(truth, 10)
    assert networks(own, Given(x), few, settings, CPU) is own
    assert networks(own, Given(x[:, :, :10]), labels, settings, CPU) is own
    assert networks(own, Given(x[:, :1, :7]), labels, settings, CPU) is own
    assert networks(own, Given(x[:, :1]), labelled(truth, 40), settings, CPU) is own
    assert networks(own, Given(x.flatten(1)), labels, settings, CPU) is own
    assert networks(own, Given(x[:100]), labels[:100], settings, CPU) is own


@pytest.mark.parametrize("channels", [1, 3])
def test_held_out_scores_rank_labelled_rows_no_better_than_chance_in_noise(channels: int) -> None:
    rng, found = np.random.default_rng(0), []
    for seed in range(4):
        x = torch.from_numpy(rng.integers(0, 256, (200, channels, 16, 16)).astype(np.uint8))
        labels = np.repeat([1, 0], [60, 140]).astype(np.int8)
        own, settings = candidates(x, labels, epochs=6, random_state=seed)
        scores = networks(own, Given(x), labels, settings, CPU).held_out[f"{NETWORK}, own head"]
        found.append(auc_between(scores[labels == 1], scores[labels == 0]))
    assert abs(np.mean(found) - 0.5) < 0.08  # a standard error of one mean is about 0.023


def test_rows_of_weight_zero_are_not_learned_from(monkeypatch: pytest.MonkeyPatch) -> None:
    x, truth = pictures(200)
    labels, seen = labelled(truth), []
    weights = np.where(np.arange(200) % 2, 2.0, 0.0)
    own, settings = candidates(x, labels, epochs=1, weights=weights)
    monkeypatch.setattr(module, "learn_from_teacher", lambda *given, **_: seen.append(given[2]) or _stop())
    with pytest.raises(_StoppedError):
        module._fold(module._Plan.of(module._COLOUR, x, 150, settings), own, Given(x), labels, settings, CPU, 0)
    counted = x[weights > 0].flatten(1).unique(dim=0)
    assert all(bool((row == counted).all(1).any()) for row in seen[0].X.flatten(1))


def test_the_largest_seed_has_a_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    x, truth = pictures(200)
    labels, seen = labelled(truth), []
    own, settings = candidates(x, labels, epochs=1, random_state=2**32 - 1)
    monkeypatch.setattr(module, "learn_from_teacher", lambda *given, **_: seen.append(given[3]) or _stop())
    with pytest.raises(_StoppedError):
        module._fold(module._Plan.of(module._COLOUR, x, 150, settings), own, Given(x), labels, settings, CPU, 1)
    Settings.of(seen[0])


def test_to_say_how_long_it_takes_leaves_torchs_stream_alone() -> None:
    x, settings = pictures(200)[0], replace(SETTINGS, used={}, progress=True)
    plan = module._Plan.of(module._COLOUR, x, 150, settings)
    torch.manual_seed(3)
    plan.announce(x, [np.arange(150)], settings)
    assert torch.equal(torch.rand(3), torch.rand(3, generator=torch.Generator().manual_seed(3)))


class _StoppedError(Exception):
    pass


def _stop() -> None:
    raise _StoppedError


def test_larger_pictures_are_reduced_and_cost_epochs() -> None:
    settings = replace(SETTINGS, epochs=None)
    large, small = (
        module._Plan.of(module._COLOUR, torch.zeros(3, 3, side, side, dtype=torch.uint8), 40_000, settings)
        for side in (128, 32)
    )
    assert (large.factor, small.factor) == (4, 1)
    assert large.in_words(3)["pixels"] == [32, 32]
    middle = module._Plan.of(module._COLOUR, torch.zeros(3, 3, 48, 48, dtype=torch.uint8), 40_000, settings)
    assert middle.config.own_epochs < small.config.own_epochs
