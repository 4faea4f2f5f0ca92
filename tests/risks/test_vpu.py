"""vPU: scale freedom, the MixUp term, and fixing the scale after training."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from punce.errors import InputError
from punce.risks import VPU
from punce.risks.vpu import phi_decision_score, phi_probability, phi_scale
from tests.risks import reference
from tests.risks.cases import batch


def test_loss_ignores_the_scale_of_phi() -> None:
    scores, labels = batch(10, 40)
    phi = 0.2 * torch.sigmoid(scores)
    assert VPU()(torch.logit(phi), labels).item() == pytest.approx(VPU()(scores, labels).item(), abs=1e-12)


def test_best_phi_is_proportional_to_the_posterior() -> None:
    # Two cells of x: p_P = (0.8, 0.2); p_U = 0.5·(0.8, 0.2) + 0.5·(0, 1), so P(y=1|x) = (1, 1/6).
    labels = torch.tensor([1] * 5 + [0] * 5)
    cell = torch.tensor([0, 0, 0, 0, 1, 0, 0, 1, 1, 1])
    weights = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([weights], max_iter=200, tolerance_grad=1e-12)

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        loss = VPU()(weights[cell], labels) + 1e-3 * (weights[0] - 3.0) ** 2  # pins the free scale
        loss.backward()
        return loss

    optimiser.step(closure)
    phi = torch.sigmoid(weights.detach())
    assert float(phi[1] / phi[0]) == pytest.approx(1 / 6, abs=1e-3)


def test_consistency_equals_its_formula() -> None:
    g = torch.Generator().manual_seed(0)
    mixed, unlabelled = torch.randn(2, 12, generator=g, dtype=torch.float64)
    mix = torch.rand(12, generator=g, dtype=torch.float64)
    expected = reference.vpu_consistency(mixed.tolist(), unlabelled.tolist(), mix.tolist(), 0.3)
    assert abs(VPU(0.3).consistency(mixed, unlabelled, mix).item() - expected) < 1e-12
    one = reference.vpu_consistency(mixed.tolist(), unlabelled.tolist(), [0.7] * 12, 0.3)
    assert abs(VPU(0.3).consistency(mixed, unlabelled, 0.7).item() - one) < 1e-12
    inputs = (mixed.requires_grad_(), unlabelled.requires_grad_())
    assert torch.autograd.gradcheck(lambda m, u: VPU(0.3).consistency(m, u, mix), inputs)


@pytest.mark.parametrize("mix", [0.0, 1.0, 0.5])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_consistency_is_finite_at_the_ends(mix: float, dtype: torch.dtype) -> None:
    mixed = torch.tensor([1e4, -1e4, 0.0], dtype=dtype, requires_grad=True)
    unlabelled = torch.tensor([-1e4, 1e4, 0.0], dtype=dtype, requires_grad=True)
    loss = VPU().consistency(mixed, unlabelled, mix)
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(unlabelled.grad).all()
    assert torch.isfinite(mixed.grad.float()).all() or dtype == torch.float16


def test_consistency_of_no_rows_is_zero() -> None:
    empty = torch.zeros(0, requires_grad=True)
    loss = VPU().consistency(empty, empty, 0.5)
    loss.backward()
    assert loss.item() == 0.0
    assert empty.grad is not None


def test_consistency_refuses_what_does_not_pair_up() -> None:
    with pytest.raises(InputError, match="pair up row by row"):
        VPU().consistency(torch.zeros(3), torch.zeros(4), 0.5)
    with pytest.raises(InputError, match=r"mix must lie in \[0, 1\]"):
        VPU().consistency(torch.zeros(3), torch.zeros(3), 1.5)
    with pytest.raises(InputError, match=r"mix must be one number or have shape \(3,\)"):
        VPU().consistency(torch.zeros(3), torch.zeros(3), torch.zeros(2))


@pytest.mark.parametrize(
    "options",
    [
        {"mixup_weight": -1.0},
        {"mixup_alpha": 0.0},
        {"mixup_weight": math.inf},
        {"mixup_weight": "a"},
        {"mixup_alpha": None},
    ],
)
def test_impossible_settings_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="mixup_"):
        VPU(**options)


def test_scale_is_a_high_quantile_and_probabilities_stay_in_the_unit_interval() -> None:
    scores = torch.logit(torch.linspace(0.001, 0.2, 1000, dtype=torch.float64))
    scores[-1] = 30.0  # one outlier that a maximum would follow
    scale = phi_scale(scores)
    assert scale == pytest.approx(0.198, abs=1e-3)
    probability = phi_probability(scores, scale)
    assert float(probability.min()) >= 0.0
    assert float(probability.max()) == 1.0
    cut = phi_decision_score(scale)
    assert torch.equal(scores > cut, probability > 0.5)
    assert 0.0 < phi_scale(torch.full((3,), -1e4)) < 1e-30


def test_scale_refuses_nothing_to_measure() -> None:
    with pytest.raises(InputError, match="at least one score"):
        phi_scale(torch.zeros(0))
    with pytest.raises(InputError, match="quantile"):
        phi_scale(torch.zeros(3), quantile=0.0)
    with pytest.raises(InputError, match="quantile"):
        phi_scale(torch.zeros(3), quantile="0.9")  # type: ignore[arg-type]
