"""A folder with half a run of some rows is not gone on with for others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from punce.errors import InputError
from punce.labels import Labels
from punce.risks import NNPU
from punce.stages.finetune import FinetuneConfig, finetune
from punce.stages.probe import ProbeConfig, probe
from punce.stages.selfpu import SelfPUConfig, selfpu
from punce.stages.vpu import VPUConfig, train_vpu
from tests.stages.digits import Interruption, digits, interrupted_at, small_encoder

D = digits()
FEATURES = torch.randn(len(D.labels), 7, generator=torch.Generator().manual_seed(0)) * 3 + 40
Stage = Callable[[Tensor, Labels, Path], object]


def run_probe(features: Tensor, labels: Labels, folder: Path) -> object:
    return probe(features, labels, NNPU(D.prior), ProbeConfig(4, 256), prior=D.prior, folder=folder)


def joint(X: Tensor, labels: Labels, folder: Path) -> object:
    risk, config = NNPU(D.prior), FinetuneConfig(1, 256)
    return finetune(small_encoder(), D.view, X, labels, risk, config, prior=D.prior, from_scratch=True, folder=folder)


def vpu(X: Tensor, labels: Labels, folder: Path) -> object:
    return train_vpu(small_encoder(), D.view, X, labels, VPUConfig(1, 256), folder=folder)


def self_pu(X: Tensor, labels: Labels, folder: Path) -> object:
    config = SelfPUConfig.in_proportion(1, batch_size=256)
    return selfpu(small_encoder(), D.view, X, labels, config, prior=D.prior, folder=folder)


STAGES: list[tuple[Stage, Tensor]] = [(run_probe, FEATURES), (joint, D.X), (vpu, D.X), (self_pu, D.X)]


@pytest.mark.parametrize(("stage", "X"), STAGES, ids=["probe", "joint", "vpu", "selfpu"])
def test_other_rows_or_labels_are_refused_and_the_same_go_on(stage: Stage, X: Tensor, tmp_path: Path) -> None:
    with interrupted_at(3), pytest.raises(Interruption):
        stage(X, D.labels, tmp_path)
    one_row_is_other = X.clone()
    one_row_is_other[11] = X[12]
    with pytest.raises(InputError, match=r"holds a .*(rows: '|rows with other features)"):
        stage(one_row_is_other, D.labels, tmp_path)
    with pytest.raises(InputError, match=r"holds a .*(rows|labels): '"):
        stage(X, np.roll(D.labels, 1), tmp_path)
    stage(X, D.labels, tmp_path)


def test_the_probe_goes_on_with_features_that_differ_in_the_last_bits(tmp_path: Path) -> None:
    """As another number of threads makes them; the mean here is far from zero, where rounding shows most."""
    with interrupted_at(3), pytest.raises(Interruption):
        run_probe(FEATURES, D.labels, tmp_path)
    noise = torch.randn(FEATURES.shape, generator=torch.Generator().manual_seed(1))
    run_probe(FEATURES * (1 + 3e-7 * noise), D.labels, tmp_path)


def test_one_other_row_among_many_is_noticed(tmp_path: Path) -> None:
    features = torch.randn(60_000, 4, generator=torch.Generator().manual_seed(0))
    labels = np.zeros(60_000, dtype=np.int8)
    labels[:500] = 1
    with interrupted_at(1), pytest.raises(Interruption):
        run_probe(features, labels, tmp_path)
    features[59_000] = features[58_000]
    with pytest.raises(InputError, match="rows with other features"):
        run_probe(features, labels, tmp_path)
