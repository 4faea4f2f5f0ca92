from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch
from torch import Tensor

from punce.encoders import ENCODERS, MLP, AllConv, Encoder, Identity, Linear, ResNet18, Transformer
from punce.encoders.tiny_roberta import write_tiny_roberta
from punce.errors import InputError
from punce.models.network import encoder_for

PAPER_PARAMETERS = {MLP: 29_231_151, AllConv: 5_019_255, ResNet18: 11_333_825}


def n_parameters(encoder: Encoder) -> int:
    return sum(p.numel() for p in encoder.parameters())


@pytest.mark.parametrize("encoder", PAPER_PARAMETERS, ids=lambda e: e.__name__)
def test_parameter_counts_are_those_the_appendix_prints(encoder: type[Encoder]) -> None:
    with torch.device("meta"):
        assert n_parameters(encoder()) == PAPER_PARAMETERS[encoder]


def tiny_transformer() -> tuple[Encoder, Tensor]:
    with TemporaryDirectory() as folder:
        return Transformer(write_tiny_roberta(Path(folder))), torch.randint(5, 50, (4, 9))


SMALL: dict[str, tuple[Encoder, Tensor]] = {
    "mlp": (MLP(64, width=0.01), torch.rand(4, 1, 8, 8)),
    "allconv": (AllConv(width=0.05), torch.rand(4, 3, 32, 32)),
    "allconv odd size": (AllConv(in_channels=1, image_size=30, width=0.05), torch.rand(4, 1, 30, 30)),
    "resnet18": (ResNet18(width=0.05), torch.rand(4, 3, 32, 32)),
    "resnet18 grey": (ResNet18(in_channels=1, width=0.05), torch.rand(4, 1, 28, 28)),
    "identity": (Identity(12), torch.rand(4, 12)),
    "linear": (Linear(12, 5), torch.rand(4, 12)),
    "linear on images": (Linear(12, 5), torch.rand(4, 3, 2, 2)),
    "transformer": tiny_transformer(),
}


def test_every_encoder_of_the_catalogue_is_tried() -> None:
    assert {type(encoder) for encoder, _ in SMALL.values()} == set(ENCODERS.values())


@pytest.mark.parametrize(("encoder", "x"), SMALL.values(), ids=SMALL.keys())
def test_features_projections_and_monitor_fit_together(encoder: Encoder, x: Tensor) -> None:
    h = encoder.features(x)
    assert h.shape == (4, encoder.feature_size)
    assert encoder.project(h).shape[0] == 4
    torch.testing.assert_close(encoder(x), encoder.project(encoder.features(x)))
    assert encoder.monitor(h).shape == (4,)


@pytest.mark.parametrize(("encoder", "x"), SMALL.values(), ids=SMALL.keys())
def test_the_online_head_never_steers_the_backbone(encoder: Encoder, x: Tensor) -> None:
    encoder.zero_grad()
    encoder.monitor(encoder.features(x)).sum().backward()
    touched = {name.split(".")[0] for name, p in encoder.named_parameters() if p.grad is not None}
    assert touched == {"online_head"}


def test_width_scales_hidden_layers_only() -> None:
    assert MLP(width=0.2).backbone[0].out_features == 1000  # type: ignore[index]
    assert MLP(width=0.2).feature_size == 50
    assert AllConv(width=0.25).feature_size == 250
    assert ResNet18(width=0.25).feature_size == 128


def test_a_senseless_width_or_size_is_refused() -> None:
    with pytest.raises(InputError, match="width must be a positive factor"):
        MLP(width=0)
    with pytest.raises(InputError, match="at least 4 pixels"):
        AllConv(image_size=2)


def test_an_encoder_of_the_catalogue_need_not_have_a_width(monkeypatch: pytest.MonkeyPatch) -> None:
    class Pooled(Encoder):
        def __init__(self, in_channels: int) -> None:
            super().__init__()

    monkeypatch.setitem(ENCODERS, "pooled", Pooled)
    assert encoder_for(torch.zeros(2, 3, 8, 8), "pooled") == {"name": "pooled", "options": {"in_channels": 3}}
    assert encoder_for(torch.zeros(2, 3, 8, 8), "resnet18")["options"] == {"in_channels": 3, "width": 0.25}
    assert encoder_for(torch.zeros(2, 5), "linear")["options"] == {"in_features": 5}
    assert encoder_for(torch.zeros(2, 5), "mlp")["options"] == {"in_features": 5, "width": 0.2}
