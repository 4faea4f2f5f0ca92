"""Convolutions trained channels last and in bfloat16: close to float32, and without a trace in what scores."""

from __future__ import annotations

import copy

import pytest
import torch

from punce import PUClassifier
from punce.encoders import MLP, AllConv, Encoder, ResNet18
from punce.encoders.precision import (
    VARIABLE,
    channels_last,
    chosen_precision,
    fast_convolutions,
    has_bfloat16,
    has_safe_layout,
)
from punce.errors import InputError
from punce.experiments.sources import generated_shapes
from punce.losses import PuNCE

FEATURES_OFF, LEAST_COSINE = 0.03, 0.9


def networks() -> list[Encoder]:
    torch.manual_seed(0)
    return [AllConv(image_size=12, width=0.25), ResNet18(width=0.125)]


def step(encoder: Encoder, x: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Features and gradient of one training step."""
    h = encoder.features(x)
    PuNCE(0.4)(encoder.project(h).view(2, len(labels), -1), labels).backward()
    grads = [p.grad.flatten() for p in encoder.parameters() if p.grad is not None]
    return h.detach(), torch.cat(grads)


@pytest.mark.parametrize("encoder", networks(), ids=["allconv", "resnet18"])
def test_a_bfloat16_step_is_within_the_stated_tolerance(encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randn(64, 3, 12, 12, generator=torch.Generator().manual_seed(1))
    labels = torch.tensor([1] * 8 + [0] * 24)
    h, gradient = step(copy.deepcopy(encoder).train(), x, labels)
    monkeypatch.setenv(VARIABLE, "bfloat16")
    with fast_convolutions(encoder.train()) as precision:
        close, near = step(encoder, x, labels)
    assert precision == "bfloat16"
    assert close.dtype == torch.float32
    assert not torch.equal(close, h)  # it did run in bfloat16
    assert (close - h).norm() < FEATURES_OFF * h.norm()
    assert torch.cosine_similarity(gradient, near, dim=0) > LEAST_COSINE


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_afterwards_an_encoder_is_as_it_was(precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, precision)
    for encoder in networks():
        x = torch.randn(4, 3, 12, 12)
        before = encoder.eval().features(x)
        with fast_convolutions(encoder):
            weight = next(m.weight for m in encoder.modules() if isinstance(m, torch.nn.Conv2d))
            assert weight.is_contiguous(memory_format=torch.channels_last)
        assert torch.equal(encoder.features(x), before)
        assert encoder.precision == "float32"
        assert all(p.is_contiguous() for p in encoder.parameters())


def test_scores_are_float32_even_while_training_in_bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "bfloat16")
    encoder, x = networks()[0].eval(), torch.randn(4, 3, 12, 12)
    expected = encoder.features(x)
    with fast_convolutions(encoder):
        assert torch.allclose(encoder.features(x), expected, atol=1e-5)


def test_what_has_no_convolution_or_a_precision_of_its_own_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "bfloat16")
    with fast_convolutions(MLP(4, width=0.01)) as precision:
        assert precision == "float32"
    own = networks()[0]
    own.precision = "bfloat16"
    monkeypatch.setenv(VARIABLE, "float32")
    with fast_convolutions(own) as precision:
        assert precision == "bfloat16"
    assert own.precision == "bfloat16"


def test_a_narrow_strided_convolution_keeps_its_layout() -> None:
    """torch 2.13 corrupts memory there: a ResNet18 below an eighth of its width."""
    narrow, wide = ResNet18(width=0.0625), ResNet18(width=0.125)
    assert not has_safe_layout(narrow)
    assert has_safe_layout(wide)
    assert all(p.is_contiguous() for p in channels_last(narrow).parameters())


def test_the_variable_decides_and_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert chosen_precision() == ("bfloat16" if has_bfloat16() else "float32")
    monkeypatch.setenv(VARIABLE, "float32")
    assert chosen_precision() == "float32"
    monkeypatch.setenv(VARIABLE, "half")
    with pytest.raises(InputError, match="PUNCE_PRECISION must be 'auto', 'float32' or 'bfloat16', got 'half'"):
        chosen_precision()


@pytest.mark.filterwarnings("ignore::punce.classifier.ClassifierWarning")
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_classifier_says_in_which_precision_it_was_trained(precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, precision)
    rows = generated_shapes().train
    labels = rows.y_true[:120] * (torch.arange(120).numpy() % 2 == 0)
    model = PUClassifier(loss="infonce", risk="nnpu", encoder="allconv", prior=0.3, epochs=1, random_state=0)
    ran = model.fit(rows.X[:120], labels).ran_
    assert ("precision" in ran) == (precision == "bfloat16")
