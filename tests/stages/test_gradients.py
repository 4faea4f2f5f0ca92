"""A finite loss whose gradient is not: every stage stops before the optimiser step and says where."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from punce.encoders import MLP
from punce.losses import InfoNCE
from punce.risks import NNPU
from punce.stages.finetune import FinetuneConfig, finetune
from punce.stages.pretrain import PretrainConfig, pretrain
from punce.stages.probe import ProbeConfig, probe
from punce.stages.selfpu import SelfPUConfig, selfpu
from punce.stages.vpu import VPUConfig, train_vpu
from punce.training.run import Run, TrainingError
from tests.ranks import run_ranks
from tests.stages.digits import digits, small_encoder

BAD_STEP = 3
D = digits()
STAGES: dict[str, Callable[[MLP], object]] = {
    "pretrain": lambda e: pretrain(e, D.view, D.X, D.labels, InfoNCE(), PretrainConfig(1, 256)),
    "joint": lambda e: finetune(
        e, D.view, D.X, D.labels, NNPU(D.prior), FinetuneConfig(1, 256), prior=D.prior, from_scratch=True
    ),
    "finetune": lambda e: finetune(e, D.view, D.X, D.labels, NNPU(D.prior), FinetuneConfig(1, 256), prior=D.prior),
    "vpu": lambda e: train_vpu(e, D.view, D.X, D.labels, VPUConfig(1, 256)),
    "selfpu": lambda e: selfpu(e, D.view, D.X, D.labels, SelfPUConfig.in_proportion(1, batch_size=256), prior=D.prior),
}


def spoil(weight: Tensor, value: float) -> dict[str, Tensor]:
    """Make one entry of the gradient that `weight` gets in BAD_STEP `value`; returns what the weight then held."""
    held: dict[str, Tensor] = {}
    steps = count()

    def hook(gradient: Tensor) -> Tensor:
        if next(steps) != BAD_STEP:
            return gradient
        held["weight"] = weight.detach().clone()
        gradient = gradient.clone()
        gradient.flatten()[5] = value
        return gradient

    weight.register_hook(hook)
    return held


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
@pytest.mark.parametrize("stage", STAGES)
def test_a_gradient_that_is_not_finite_stops_before_the_step(stage: str, value: float) -> None:
    encoder = small_encoder()
    held = spoil(encoder.backbone[0].weight, value)
    name = r"(first\.)?encoder\.backbone\.0\.weight"
    message = rf"^{stage}: the loss is finite, but the gradient of {name} is not; at step {BAD_STEP}, rows \d+, \d+, "
    with pytest.raises(TrainingError, match=message):
        STAGES[stage](encoder)
    assert torch.equal(encoder.backbone[0].weight, held["weight"])
    assert all(value.isfinite().all() for value in encoder.state_dict().values())


class SpoiltNNPU(NNPU):
    """Finite, but the root of zero has no slope: 0 · ∞ reaches the scores."""

    def forward(self, scores: Tensor, labels: Tensor) -> Tensor:
        return super().forward(scores, labels) + (0.0 * scores).sqrt().sum()


def test_the_probe_stops_too() -> None:
    features = torch.randn(len(D.labels), 5, generator=torch.Generator().manual_seed(0))
    with pytest.raises(TrainingError, match=r"probe: .* of weight \(and of 1 more\) is not; at step 0"):
        probe(features, D.labels, SpoiltNNPU(D.prior), ProbeConfig(2, 256), prior=D.prior)


def one_rank_spoils(rank: int, world: int) -> dict[str, Tensor]:
    """1 if this rank stopped at the bad step, and whether its weights are those of before."""
    result = {}
    for stage in ("pretrain", "vpu"):
        encoder = small_encoder()
        held = spoil(encoder.backbone[0].weight, float("inf") if rank == 1 else 0.0)
        try:
            STAGES[stage](encoder)
        except TrainingError as error:
            named = f"backbone.0.weight is not; at step {BAD_STEP}, rows" in str(error)
            result[stage] = torch.tensor([named, torch.equal(encoder.backbone[0].weight, held["weight"])])
    return result


@pytest.mark.timeout(120)
def test_all_ranks_stop_where_one_has_a_bad_gradient(tmp_path: Path) -> None:
    for result in run_ranks(2, one_rank_spoils, tmp_path):
        assert {name: value.tolist() for name, value in result.items()} == {"pretrain": [1, 1], "vpu": [1, 1]}


def run_of(model: nn.Module) -> Run:
    return Run("stage", 1, {}, {"model": model})


def test_a_huge_but_finite_gradient_is_let_through() -> None:
    model = nn.Linear(2, 1)
    model.weight.grad = torch.full((1, 2), 3e38)  # its norm overflows
    run_of(model).require_finite_gradients(torch.arange(3))


def test_weights_without_a_gradient_are_passed_over() -> None:
    run_of(nn.Linear(2, 1)).require_finite_gradients(torch.arange(3))
