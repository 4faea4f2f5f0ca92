"""The linear head is an ordinary module: it is called, moved, saved and loaded like any other."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from punce.errors import InputError
from punce.stages.probe import LinearHead

H = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def head() -> LinearHead:
    weight, mean = torch.tensor([1.0, -2.0, 0.5]), torch.tensor([1.0, 0.0, 2.0])
    return LinearHead(weight, torch.tensor(0.25), mean, torch.tensor([2.0, 1.0, 4.0]), [{"epoch": 1}])


def test_scores_are_those_of_the_formula_and_carry_no_gradient() -> None:
    scores = head()(H)
    assert scores.tolist() == [0 - 4 + 0.125 + 0.25, 1.5 - 10 + 0.5 + 0.25]
    assert not scores.requires_grad
    assert head().requires_grad_()(H).requires_grad


def test_weights_are_parameters_and_the_standardisation_is_buffers() -> None:
    assert {name for name, _ in head().named_parameters()} == {"weight", "bias"}
    assert {name for name, _ in head().named_buffers()} == {"mean", "scale"}
    assert repr(head()) == "LinearHead(3 features)"


def test_it_is_saved_and_loaded_by_its_state(tmp_path: Path) -> None:
    save_file(head().state_dict(), tmp_path / "head.safetensors")
    other = LinearHead(*(torch.zeros(3) if i != 1 else torch.tensor(0.0) for i in range(4)))
    other.load_state_dict(load_file(tmp_path / "head.safetensors"))
    assert torch.equal(other(H), head()(H))


def test_moving_it_moves_every_part_and_keeps_the_history() -> None:
    moved = head().to(torch.float64)
    assert {value.dtype for value in moved.state_dict().values()} == {torch.float64}
    assert moved.cpu().history == [{"epoch": 1}]


def test_a_layer_becomes_a_head_that_training_on_does_not_change() -> None:
    layer = torch.nn.Linear(3, 1)
    made, before = LinearHead.of(layer), layer(H).squeeze(1).detach()
    with torch.no_grad():
        layer.weight.zero_()
    torch.testing.assert_close(made(H), before)


def test_features_of_another_precision_are_scored_and_others_refused() -> None:
    """The supervised probe's head is in float64, the features of an encoder are not."""
    made, expected = head(), head().double()(H.double())
    for part in (torch.float64, torch.float32):
        torch.testing.assert_close(head().to(part)(H.double()), expected.to(part))
        torch.testing.assert_close(head().to(part)(H.float()), expected.to(part))
    with pytest.raises(InputError, match=r"the head is for features \(n, 3\), got \(5, 4\)"):
        made(torch.zeros(5, 4))
    with pytest.raises(InputError, match=r"the head is for features \(n, 3\), got \(3,\)"):
        made(torch.zeros(3))
    with pytest.raises(InputError, match="features must be a tensor, got ndarray"):
        made(H.numpy())
