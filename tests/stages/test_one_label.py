"""A single labelled positive cannot be held out, so no epoch can be chosen: the last one counts, not the first."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from punce.risks import NNPU
from punce.stages.finetune import FinetuneConfig, finetune
from punce.stages.probe import ProbeConfig, probe
from punce.stages.selfpu import SelfPUConfig, selfpu
from punce.stages.vpu import VPUConfig, train_vpu
from punce.training.splits import can_choose, holdout_split
from tests.stages.digits import Digits, digits, small_encoder


@pytest.fixture
def one() -> Digits:
    return digits(1)


def test_one_labelled_row_stays_in_training(one: Digits) -> None:
    train, held_out = holdout_split(one.labels, 0.2, 0)
    assert (one.labels[train.numpy()] == 1).sum() == 1
    assert not can_choose(one.labels, held_out)
    assert can_choose(one.labels, torch.arange(len(one.labels)))
    assert not can_choose(np.ones(3, dtype=np.int8), torch.arange(3))
    assert not can_choose(one.labels, torch.arange(0))


def test_the_probe_is_trained(one: Digits) -> None:
    features = one.view.clean(one.X).flatten(1)
    head = probe(features, one.labels, NNPU(one.prior), ProbeConfig(epochs=3), prior=one.prior)
    again = probe(features, one.labels, NNPU(one.prior), ProbeConfig(epochs=3), prior=one.prior)
    assert torch.equal(head.weight, again.weight)
    assert float(head(features[torch.from_numpy(one.labels == 1)])) > float(head(features).mean())


def test_every_stage_is_trained(one: Digits) -> None:
    X, labels, prior = one.X, one.labels, one.prior
    config = FinetuneConfig(epochs=2, batch_size=256)
    heads = [
        finetune(small_encoder(), one.view, X, labels, NNPU(prior), config, prior=prior, from_scratch=True),
        train_vpu(small_encoder(), one.view, X, labels, VPUConfig(epochs=2, batch_size=256)).linear,
        selfpu(small_encoder(), one.view, X, labels, SelfPUConfig.in_proportion(2, batch_size=256), prior=prior),
    ]
    for head in heads:
        assert head.weight.abs().max() > 0  # it starts at zero
        assert "held_out_risk" not in head.history[-1]
        assert "held_out_variational" not in head.history[-1]
