"""With dropout a stage is still a function of its seed, also when it is interrupted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from punce.encoders import Encoder
from punce.encoders.encoder import projector
from punce.losses import InfoNCE
from punce.risks import NNPU
from punce.stages.finetune import FinetuneConfig, finetune
from punce.stages.pretrain import PretrainConfig, pretrain
from punce.stages.selfpu import SelfPUConfig, selfpu
from punce.stages.vpu import VPUConfig, train_vpu
from tests.stages.digits import Interruption, assert_same_bits, digits, interrupted_at

D = digits()
INTERRUPTED = 3  # of four steps


class Dropping(Encoder):
    """Dropout between two layers, as in a transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Flatten(), nn.Linear(64, 20), nn.BatchNorm1d(20), nn.ReLU(), nn.Dropout(0.3), nn.Linear(20, 10)
        )
        self.projector = projector(10, 12, 8)
        self.online_head = nn.Linear(10, 1)


Stage = Callable[[Encoder, int, Path | None], object]


def pretraining(encoder: Encoder, seed: int, folder: Path | None) -> object:
    config = PretrainConfig(epochs=1, batch_size=360, seed=seed)
    return pretrain(encoder, D.view, D.X, D.labels, InfoNCE(), config, folder=folder)


def fine_tuning(encoder: Encoder, seed: int, folder: Path | None) -> object:
    config = FinetuneConfig(epochs=1, batch_size=288, seed=seed)
    return finetune(encoder, D.view, D.X, D.labels, NNPU(D.prior), config, prior=D.prior, folder=folder)


def joint(encoder: Encoder, seed: int, folder: Path | None) -> object:
    config = FinetuneConfig(epochs=1, batch_size=288, seed=seed)
    return finetune(
        encoder, D.view, D.X, D.labels, NNPU(D.prior), config, prior=D.prior, from_scratch=True, folder=folder
    )


def variational(encoder: Encoder, seed: int, folder: Path | None) -> object:
    config = VPUConfig(epochs=1, batch_size=450, seed=seed, from_scratch=False)
    return train_vpu(encoder, D.view, D.X, D.labels, config, folder=folder)


def self_pu(encoder: Encoder, seed: int, folder: Path | None) -> object:
    config = SelfPUConfig.in_proportion(1, batch_size=330, seed=seed)
    return selfpu(encoder, D.view, D.X, D.labels, config, prior=D.prior, folder=folder)


STAGES: dict[str, Stage] = {
    "pretrain": pretraining,
    "finetune": fine_tuning,
    "joint": joint,
    "vpu": variational,
    "selfpu": self_pu,
}


def weights_after(stage: str, standing_at: int, folder: Path | None = None) -> dict[str, Tensor]:
    """The encoder's state after a stage that began with the same weights and elsewhere in the global stream."""
    torch.manual_seed(0)
    encoder = Dropping()
    torch.manual_seed(standing_at)
    STAGES[stage](encoder, 0, folder)
    return {name: value.clone() for name, value in encoder.state_dict().items()}


@pytest.mark.parametrize("stage", STAGES)
def test_the_seed_alone_decides_and_an_interruption_changes_nothing(stage: str, tmp_path: Path) -> None:
    with torch.random.fork_rng():
        whole = weights_after(stage, standing_at=1)
        assert_same_bits(whole, weights_after(stage, standing_at=2))
        with interrupted_at(INTERRUPTED), pytest.raises(Interruption):
            weights_after(stage, 3, tmp_path)
        assert_same_bits(whole, weights_after(stage, 4, tmp_path))


def test_pretraining_leaves_the_global_stream_where_it_was(tmp_path: Path) -> None:
    encoder = Dropping()
    state = torch.get_rng_state()
    pretraining(encoder, 0, None)
    assert torch.equal(torch.get_rng_state(), state)
