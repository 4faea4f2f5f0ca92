"""Two ranks train like one process at the same global batch."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from punce.risks import NNPU
from punce.stages.finetune import FinetuneConfig, finetune
from punce.stages.selfpu import SelfPUConfig, selfpu
from punce.stages.vpu import VPUConfig, train_vpu
from tests.ranks import run_ranks
from tests.stages.digits import digits, small_encoder


def train_all(rank: int = 0, world: int = 1) -> dict[str, Tensor]:
    """Scores of the test rows after a few steps of every stage. SGD and float64, because Adam turns 1e-16 into 1e-3."""
    d, result = digits(), {}
    X = d.X.double() / 255
    rows = DoubleView()
    joint, variational, pair = (small_encoder().double() for _ in range(3))
    config = FinetuneConfig(epochs=2, batch_size=512, optimizer="sgd", lr=0.05)
    head = finetune(joint, rows, X, d.labels, NNPU(d.prior), config, prior=d.prior, from_scratch=True)
    result["joint"] = torch.cat([joint.backbone[0].weight.flatten(), head.weight])
    v_config = VPUConfig(epochs=1, batch_size=512)
    v_head = train_vpu(variational, rows, X, d.labels, v_config)
    result["vpu"] = torch.cat([variational.backbone[0].weight.flatten(), v_head.linear.weight])
    s_config = SelfPUConfig(epochs=2, batch_size=512, optimizer="sgd", lr=0.05, select_from=1, select_until=1)
    s_head = selfpu(pair, rows, X, d.labels, s_config, prior=d.prior)
    result["selfpu"] = torch.cat([pair.backbone[0].weight.flatten(), s_head.weight])
    return result


class DoubleView:
    """Rows as they are, in float64."""

    def __repr__(self) -> str:
        return "DoubleView()"

    def clean(self, x: Tensor) -> Tensor:
        return x.flatten(1)


@pytest.mark.timeout(120)
def test_two_ranks_train_like_one(tmp_path: Path) -> None:
    alone = train_all()
    together = run_ranks(2, train_all, tmp_path)
    for name, expected in alone.items():
        assert expected.abs().max() > 0
        for result in together:
            torch.testing.assert_close(result[name], expected, rtol=1e-6, atol=1e-6, msg=f"{name} differs")
