"""Training the last blocks of an encoder: what comes before keeps its bits, whatever the network."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from punce import PUClassifier
from punce.classifier import ClassifierWarning
from punce.encoders import AllConv, Encoder, Vision
from punce.encoders.blocks import frozen_names
from punce.errors import InputError
from punce.losses import build_loss
from punce.risks import NNPU
from punce.stages.finetune import FinetuneConfig, finetune
from punce.stages.pretrain import PretrainConfig, pretrain
from punce.training.run import TrainingError
from punce.views import build_view
from tests.images.conftest import SIDE, write_model

X = torch.randint(0, 256, (24, 3, SIDE, SIDE), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
LABELS = np.repeat([1, 0], [8, 16]).astype(np.int8)
LAST = {
    "vit": ("encoder.layer.1.", "layers.1."),
    "clip": ("encoder.layers.1.",),
    "convnext": ("encoder.stages.3.",),
    "mobilenet": ("layer.15.",),
}


def _is_after(name: str, kind: str) -> bool:
    """Whether a weight belongs to the last block or to what follows it."""
    later = ("projector", "online_head", "layernorm", "post_layernorm", "conv_1x1", "pooler")
    own = name.removeprefix("backbone.").removeprefix("vision_model.")
    return own.startswith((*LAST[kind], *later))


@pytest.mark.parametrize("kind", LAST)
def test_frozen_parts_keep_their_bits_in_both_stages(kind: str, tmp_path: Path) -> None:
    encoder, view = Vision(write_model(tmp_path, kind)), build_view("crop_flip_colour")
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    encoder.train_last(1)
    pretrain(encoder, view, X, LABELS, build_loss("punce", 0.3), PretrainConfig(epochs=1, batch_size=12, lr=0.01))
    config = FinetuneConfig(epochs=1, batch_size=12, lr=0.01, blocks=1, validation_share=0.0)
    finetune(encoder, view, X, LABELS, NNPU(0.3), config, prior=0.3)
    changed = {name for name, value in encoder.state_dict().items() if not torch.equal(value, before[name])}
    assert any(_is_after(name, kind) and name.startswith("backbone.") for name in changed)
    assert [name for name in changed if not _is_after(name, kind)] == []
    assert all(parameter.requires_grad for parameter in encoder.parameters())


def test_training_that_fails_leaves_no_part_frozen() -> None:
    encoder, bad = AllConv(image_size=SIDE, width=0.05), NNPU(0.3)
    config = FinetuneConfig(epochs=1, batch_size=12, lr=0.01, blocks=1, validation_share=0.0)
    bad.forward = lambda *_: torch.tensor(float("nan"), requires_grad=True)  # type: ignore[method-assign]
    with pytest.raises(TrainingError, match="the loss is nan"):
        finetune(encoder, build_view("crop_flip_colour"), X, LABELS, bad, config, prior=0.3)
    assert all(parameter.requires_grad for parameter in encoder.parameters())


def test_all_of_an_encoder_is_trained_by_default() -> None:
    encoder = AllConv(image_size=SIDE, width=0.05)
    before = {name: value.clone() for name, value in encoder.named_parameters()}
    config = FinetuneConfig(epochs=2, batch_size=12, lr=0.01, validation_share=0.0)
    finetune(encoder, build_view("crop_flip_colour"), X, LABELS, NNPU(0.3), config, prior=0.3)
    unused = ("projector", "online_head")
    same = [n for n, value in encoder.named_parameters() if torch.equal(value, before[n]) and not n.startswith(unused)]
    assert same == []


class _Plain(nn.Module):
    """No list of layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 2)


@pytest.mark.parametrize(
    ("network", "blocks", "names"),
    [
        (_Plain(), 1, ["", "first", "norm"]),
        (nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)), 1, ["", "0", "1"]),
        (nn.Sequential(nn.Sequential(nn.Linear(4, 9), nn.Linear(9, 9)), nn.ReLU()), 1, ["", "0", "0.0"]),
    ],
)
def test_blocks_of_any_network_are_found(network: nn.Module, blocks: int, names: list[str]) -> None:
    assert frozen_names(network, blocks) == names


def test_a_number_of_blocks_that_cannot_be_is_refused() -> None:
    encoder: Encoder = Vision(nn.Sequential(nn.Conv2d(3, 4, 5), nn.ReLU(), nn.Conv2d(4, 6, 5)), size=20)
    for wrong in (0, 3):
        with pytest.raises(InputError, match=f"between 1 and 2, the number of blocks of this encoder, got {wrong}"):
            encoder.train_last(wrong)
    config = FinetuneConfig(blocks=1)
    with pytest.raises(InputError, match="from scratch all of it is trained"):
        finetune(encoder, build_view("digit"), X, LABELS, NNPU(0.3), config, prior=0.3, from_scratch=True)


def test_weights_that_a_caller_froze_stay_frozen() -> None:
    encoder = Vision(nn.Sequential(nn.Conv2d(3, 4, 5), nn.ReLU(), nn.Conv2d(4, 6, 5)), size=20)
    own = next(encoder.parameters()).requires_grad_(False)
    encoder.train_last(1)
    encoder.train_last(None)
    assert not own.requires_grad


def test_the_classifier_trains_the_last_blocks_that_configs_names() -> None:
    network = nn.Sequential(nn.Conv2d(3, 6, 5, stride=5), nn.BatchNorm2d(6), nn.ReLU(), nn.Conv2d(6, 8, 2))
    asked = {"transfer": "finetune", "epochs": 1, "prior": 0.3, "configs": {"finetune": {"blocks": 1}}}
    model = PUClassifier(encoder=Vision(network, size=20), **asked)  # type: ignore[arg-type]
    rng = np.random.default_rng(0)
    pictures, labels = rng.integers(256, size=(60, 20, 20, 3), dtype=np.uint8), np.repeat([1, 0], [20, 40])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ClassifierWarning)
        model.fit(pictures, labels)
    trained = model._route._reader._encoder.backbone  # type: ignore[attr-defined]
    for part in (0, 1):
        for name, value in trained[part].state_dict().items():
            assert torch.equal(value, network[part].state_dict()[name])
    assert not torch.equal(trained[3].weight, network[3].weight)
    assert model.ran_["finetune"]["blocks"] == 1
