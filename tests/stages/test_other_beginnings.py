"""A folder with half a run is not gone on with from another encoder, head or set of weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from punce.errors import InputError
from punce.losses import InfoNCE
from punce.risks import NNPU, PvU, Risk
from punce.risks.base import find_surrogate
from punce.stages.finetune import FinetuneConfig, finetune
from punce.stages.pretrain import PretrainConfig, pretrain
from punce.stages.probe import LinearHead, ProbeConfig, probe
from punce.stages.vpu import VPUConfig, train_vpu
from punce.views import Embedding, Plan
from tests.stages.digits import Interruption, digits, interrupted_at, small_encoder

D = digits()
SIZE = small_encoder().feature_size
WEIGHTS = torch.full((len(D.X),), 0.25)


def head(seed: int = 0, noise: float = 0.0) -> LinearHead:
    random = torch.Generator().manual_seed(seed)
    weight = torch.randn(SIZE, generator=random) * (1 + noise)
    return LinearHead(weight, torch.tensor(0.3), torch.zeros(SIZE), torch.ones(SIZE))


def tune(folder: Path, seed: int = 0, projector: float = 0.0, **options: object) -> None:
    encoder, risk = small_encoder(seed), PvU(D.prior) if "weights" in options else NNPU(D.prior)
    with torch.no_grad():
        next(encoder.projector.parameters()).add_(projector)
    arguments = {"prior": D.prior, "folder": folder, **options}
    finetune(encoder, D.view, D.X, D.labels, risk, FinetuneConfig(1, 256), **arguments)  # type: ignore[arg-type]


def stopped(folder: Path, **options: object) -> None:
    with interrupted_at(3), pytest.raises(Interruption):
        tune(folder, **options)  # type: ignore[arg-type]


def test_fine_tuning_goes_on_from_the_encoder_it_began_with(tmp_path: Path) -> None:
    stopped(tmp_path)
    with pytest.raises(InputError, match=r"first_weights: '.*' there, '.*' here"):
        tune(tmp_path, seed=1)
    tune(tmp_path, projector=1.0)  # which takes no part


def test_fine_tuning_goes_on_from_the_head_it_began_with(tmp_path: Path) -> None:
    stopped(tmp_path, head=head())
    with pytest.raises(InputError, match="began at another head"):
        tune(tmp_path, head=head(1))
    with pytest.raises(InputError, match="began at another head"):
        tune(tmp_path)
    tune(tmp_path, head=head(noise=1e-6))  # a probe made again with another number of threads


def test_fine_tuning_without_a_head_does_not_go_on_with_one(tmp_path: Path) -> None:
    stopped(tmp_path)
    with pytest.raises(InputError, match="began at another head"):
        tune(tmp_path, head=head())
    tune(tmp_path)


def test_fine_tuning_goes_on_with_the_weights_it_began_with(tmp_path: Path) -> None:
    stopped(tmp_path, weights=WEIGHTS)
    with pytest.raises(InputError, match="weights: "):
        tune(tmp_path, weights=WEIGHTS / 2)
    tune(tmp_path, weights=WEIGHTS)


def test_the_probe_goes_on_with_the_weights_it_began_with(tmp_path: Path) -> None:
    features = torch.randn(len(D.labels), 5, generator=torch.Generator().manual_seed(0))

    def run(weights: torch.Tensor) -> None:
        risk, config = PvU(D.prior), ProbeConfig(4, 256)
        probe(features, D.labels, risk, config, prior=D.prior, weights=weights, folder=tmp_path)

    with interrupted_at(3), pytest.raises(Interruption):
        run(WEIGHTS)
    with pytest.raises(InputError, match="weights: "):
        run(WEIGHTS / 2)
    run(WEIGHTS)


@pytest.mark.parametrize("from_scratch", [False, True])
def test_vpu_goes_on_from_the_encoder_it_began_with(from_scratch: bool, tmp_path: Path) -> None:
    def run(seed: int) -> None:
        config = VPUConfig(1, 256, from_scratch=from_scratch)
        train_vpu(small_encoder(seed), D.view, D.X, D.labels, config, folder=tmp_path)

    with interrupted_at(3), pytest.raises(Interruption):
        run(0)
    if not from_scratch:
        with pytest.raises(InputError, match="first_weights: "):
            run(1)
        run(0)
    else:  # whatever the encoder held is drawn anew
        run(1)


def test_pvu_with_another_cut_is_another_risk() -> None:
    assert repr(PvU(0.4, "threshold")) != repr(PvU(0.4, "threshold", target_share=0.2))
    assert "target_share" not in repr(PvU(0.4))


class Halfway(InfoNCE):
    """A loss of somebody's own, without an extra_repr."""

    def __init__(self, strength: float) -> None:
        super().__init__()
        self.strength = strength


class Scaled(Risk):
    """The same for a risk."""

    def __init__(self, scale: float, surrogate: str = "sigmoid") -> None:
        super().__init__()
        self.scale, self.surrogate = scale, find_surrogate(surrogate)

    def forward(self, scores: Tensor, labels: Tensor) -> Tensor:
        return self.surrogate(scores).mean() * self.scale


def test_a_run_does_not_go_on_with_another_setting_of_a_loss_or_risk_of_ones_own(tmp_path: Path) -> None:
    def pretrained(strength: float) -> None:
        config = PretrainConfig(epochs=1, batch_size=256)
        pretrain(small_encoder(), D.view, D.X, D.labels, Halfway(strength), config, folder=tmp_path / "loss")

    def probed(*settings: Any) -> None:
        features = D.X.flatten(1).float()
        probe(features, D.labels, Scaled(*settings), ProbeConfig(epochs=1), prior=D.prior, folder=tmp_path / "risk")

    for _ in range(2):  # the same settings go on
        pretrained(0.5)
        probed(1.0)
    with pytest.raises(InputError, match=r"'strength': 0\.5.* there, .*'strength': 0\.7.* here"):
        pretrained(0.7)
    for other in ((2.0,), (1.0, "logistic")):
        with pytest.raises(InputError, match=r"'scale': 1\.0, 'surrogate': 'sigmoid'.* there"):
            probed(*other)


class Weighed(InfoNCE):
    """A loss of somebody's own, with settings that are a list and a tensor."""

    def __init__(self, scales: list[float], weight: float) -> None:
        super().__init__()
        self.scales = scales
        self.register_buffer("weight", torch.tensor([weight]))


def test_a_run_does_not_go_on_with_another_list_or_tensor_of_a_loss_of_ones_own(tmp_path: Path) -> None:
    def pretrained(scales: list[float], weight: float) -> None:
        config = PretrainConfig(epochs=1, batch_size=256)
        pretrain(small_encoder(), D.view, D.X, D.labels, Weighed(scales, weight), config, folder=tmp_path)

    for _ in range(2):
        pretrained([1.0, 2.0], 0.5)
    for scales, weight in (([1.0, 3.0], 0.5), ([1.0, 2.0], 0.7)):
        with pytest.raises(InputError, match=r"of another configuration \(loss: "):
            pretrained(scales, weight)


class Noisy:
    """A view of somebody's own, which shows no more than Python does of any object."""

    def __init__(self, noise: float) -> None:
        self.noise, self.steps = noise, [lambda x: x.flatten(1)]

    def clean(self, x: Tensor) -> Tensor:
        return Embedding().clean(self.steps[0](x))

    def plan(self, n_rows: int, seed: int, epoch: int, X: Tensor | None = None) -> Plan:
        return Embedding(self.noise).plan(n_rows, seed, epoch)

    def fit(self, X: Tensor) -> Noisy:
        return self


def test_a_run_goes_on_with_a_view_of_ones_own_unless_its_setting_is_another(tmp_path: Path) -> None:
    """Its address, which is another in every process, was compared."""
    X, histories = D.X.flatten(1).float() / 255, []
    config = PretrainConfig(epochs=1, batch_size=256)
    for view in (Noisy(0.1), Noisy(0.1)):
        histories.append(pretrain(small_encoder(), view, X, D.labels, InfoNCE(), config, folder=tmp_path))
    assert histories[0] == histories[1]
    with pytest.raises(InputError, match=r"view: \"Noisy \{'noise': 0\.1\}\" there, .*'noise': 0\.2"):
        pretrain(small_encoder(), Noisy(0.2), X, D.labels, InfoNCE(), config, folder=tmp_path)
