from __future__ import annotations

import pytest
import torch

from punce.errors import InputError
from punce.views import Embedding


def rows(n: int, d: int) -> torch.Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(0)).abs() + 0.5


def test_noise_is_measured_against_the_row() -> None:
    X = rows(200, 400) * torch.logspace(-3, 3, 200)[:, None]
    two = Embedding(noise=0.25, dropout=0.0).plan(200, 0, 0).apply(X, torch.arange(200))
    relative = (two - X) / X.square().mean(dim=1, keepdim=True).sqrt()
    assert relative.std() == pytest.approx(0.25, rel=0.01)
    assert relative.mean().abs() < 0.005
    assert relative.std(dim=2).sub(0.25).abs().max() < 0.05  # in every row, whatever its size
    first, second = relative
    assert torch.corrcoef(torch.stack([first.flatten(), second.flatten()]))[0, 1].abs() < 0.01


def test_dropout_drops_its_share_and_keeps_the_mean() -> None:
    X = rows(300, 200)
    two = Embedding(noise=0.0, dropout=0.3).plan(300, 0, 0).apply(X, torch.arange(300))
    dropped = two == 0
    assert dropped.double().mean() == pytest.approx(0.3, abs=0.01)
    assert dropped.double().mean(dim=(0, 1)).sub(0.3).abs().max() < 0.1
    assert torch.allclose(two[~dropped], (X / 0.7).expand(2, -1, -1)[~dropped], rtol=1e-5)
    assert two.mean() == pytest.approx(float(X.mean()), rel=0.01)


def test_no_noise_and_no_dropout_is_the_row() -> None:
    X = rows(20, 9)
    two = Embedding(noise=0.0, dropout=0.0).plan(20, 0, 0).apply(X, torch.arange(20))
    assert torch.equal(two, X.expand(2, -1, -1))
    assert torch.equal(Embedding().clean(X.double()), X)


@pytest.mark.parametrize("setting", [{"noise": -0.1}, {"dropout": 1.0}, {"noise": float("inf")}])
def test_impossible_settings_are_refused(setting: dict[str, float]) -> None:
    with pytest.raises(InputError, match=f"{next(iter(setting))} must be within"):
        Embedding(**setting)
