"""Few-shot fine-tuning on two ranks ends where one process does at the same global batch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from punce.encoders import Linear
from punce.losses import PuNCE
from punce.stages.fewshot import FewshotConfig, fewshot
from punce.views import Embedding
from tests.ranks import run_ranks


def train_all(rank: int = 0, world: int = 1) -> dict[str, Tensor]:
    """Encoder and head after a few steps with CE alone and with puNCE; SGD, because Adam turns 1e-16 into 1e-3."""
    random = np.random.default_rng(0)
    y = random.integers(0, 2, 90)
    X = torch.from_numpy(random.normal(y[:, None], 1.0, (90, 6)).astype(np.float32))
    signs = np.where(y == 1, 1, -1).astype(np.int8)
    labels = np.where(np.arange(90) < 20, signs, 0).astype(np.int8)
    config = FewshotConfig(steps=4, batch_size=15, optimizer="sgd", lr=0.05, head_lr=0.05, evaluate_every=4)
    result = {}
    for name, loss in (("ce", None), ("ce+punce", PuNCE(0.5, 0.3))):
        torch.manual_seed(0)
        encoder = Linear(6, 4)
        fitted = fewshot(encoder, Embedding(), X, labels, loss, config, validation=(X[60:], signs[60:]))
        result[name] = torch.cat([encoder.backbone.weight.detach().flatten(), fitted.head.weight])
    return result


@pytest.mark.timeout(120)
def test_two_ranks_train_like_one(tmp_path: Path) -> None:
    alone = train_all()
    together = run_ranks(2, train_all, tmp_path)
    for name, expected in alone.items():
        for result in together:
            torch.testing.assert_close(result[name], expected, rtol=1e-5, atol=1e-6, msg=f"{name} differs")
