"""Bias and variance of the losses on fixed embeddings, where the two views of a row are independent draws of its class.

All losses share the log-partition, so against the oracle (SCL with the true labels) only the pull z_i·t_i differs.
With ρ_in and ρ_out the mean similarity within and between classes, κ = π(1−π)/(1+γ) and γ = n_P/n_U:

- treating every unlabelled row as one class is biased by 2κ(ρ_in − ρ_out);
- SCL in the PU setting is unbiased;
- puNCE's bias is about half of the naive one, κ(ρ_in − ρ_out), with a smaller variance than SCL's.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from punce.losses import SCL, PuNCE

N_P, N_U, PRIOR, DRAWS, TEMPERATURE = 20, 60, 0.4, 1500, 1.0
CENTRES = torch.tensor([[-0.6, 0.4, 0.0, 0.3], [0.7, 0.2, 0.1, 0.0]], dtype=torch.float64)  # class 0, class 1


def draw(y: Tensor, generator: torch.Generator) -> Tensor:
    noise = torch.randn(2, len(y), 4, dtype=torch.float64, generator=generator)
    return normalize(CENTRES[y] + 0.5 * noise, dim=2)


@pytest.fixture(scope="module")
def similarities() -> tuple[Tensor, Tensor]:
    """ρ_in (averaged over the classes of anchors as they occur) and ρ_out, from class means of a large sample."""
    y = torch.tensor([0, 1]).repeat_interleave(200_000)
    z = draw(y, torch.Generator().manual_seed(9))
    means = torch.stack([z[:, y == c].mean((0, 1)) for c in (0, 1)])
    inside, out = means.square().sum(1), means[0] @ means[1]
    return inside, out


@pytest.fixture(scope="module")
def losses() -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(0)
    labels = torch.tensor([1] * N_P + [0] * N_U)
    values: dict[str, list[Tensor]] = {"oracle": [], "naive": [], "scl": [], "punce": []}
    for _ in range(DRAWS):
        hidden = (torch.rand(N_U, generator=generator) < PRIOR).long()
        y = torch.cat([torch.ones(N_P, dtype=torch.long), hidden])
        z = draw(y, generator)
        values["oracle"].append(SCL(TEMPERATURE)(z, 2 * y - 1))
        values["naive"].append(SCL(TEMPERATURE)(z, 2 * labels - 1))
        values["scl"].append(SCL(TEMPERATURE)(z, labels))
        values["punce"].append(PuNCE(PRIOR, TEMPERATURE)(z, labels))
    return {name: torch.stack(value) for name, value in values.items()}


def bias(losses: dict[str, Tensor], name: str) -> tuple[float, float]:
    """Mean difference to the oracle and its Monte-Carlo standard error."""
    difference = losses[name] - losses["oracle"]
    return float(difference.mean()), float(difference.std()) / DRAWS**0.5


def gap(similarities: tuple[Tensor, Tensor], positive_share: float) -> float:
    """ρ_in − ρ_out, where ρ_in is averaged over anchors of which `positive_share` are positive."""
    inside, out = similarities
    return float((1 - positive_share) * inside[0] + positive_share * inside[1] - out)


def test_one_class_for_all_unlabelled_rows_is_biased_by_two_kappa(
    losses: dict[str, Tensor], similarities: tuple[Tensor, Tensor]
) -> None:
    kappa = PRIOR * (1 - PRIOR) / (1 + N_P / N_U)
    finite = (2 * N_U - 2) / (2 * N_U - 1)  # an anchor's own other view is always of its class
    # A positive anchor loses (1−π)(ρ_11 − ρ_out), a negative one π(ρ_00 − ρ_out): together κ times both gaps.
    expected = kappa * finite * (gap(similarities, 1.0) + gap(similarities, 0.0))
    value, error = bias(losses, "naive")
    assert abs(value - expected) < 4 * error
    assert expected > 20 * error  # the test can tell it from zero


def test_scl_is_unbiased(losses: dict[str, Tensor]) -> None:
    value, error = bias(losses, "scl")
    assert abs(value) < 4 * error


def test_punce_has_half_the_naive_bias(losses: dict[str, Tensor], similarities: tuple[Tensor, Tensor]) -> None:
    weight = PRIOR * 2 * N_P / (2 * N_P + 1)
    expected = (1 - PRIOR) * weight / (1 + N_P / N_U) * gap(similarities, 0.0)
    value, error = bias(losses, "punce")
    assert abs(value - expected) < 4 * error
    naive, _ = bias(losses, "naive")
    assert 0.4 < value / naive < 0.6


def test_punce_varies_less_than_scl(losses: dict[str, Tensor]) -> None:
    spread = {name: float((losses[name] - losses["oracle"]).var()) for name in ("scl", "punce")}
    assert spread["punce"] < 0.9 * spread["scl"]
