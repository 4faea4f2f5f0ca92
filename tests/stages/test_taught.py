"""A network that goes beyond its teacher: it learns, uses what is known, and resumes in the same bits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from punce.encoders import AllConv
from punce.errors import InputError
from punce.judging.ranking import auc_between
from punce.stages.taught import Lesson, TaughtConfig, learn_from_teacher
from punce.views.taught import TaughtView
from tests.stages.digits import Interruption, assert_same_bits, interrupted_at

BRIEF = TaughtConfig(epochs=2, own_epochs=2, batch_size=64)


def pictures(n: int, seed: int = 0) -> tuple[torch.Tensor, np.ndarray]:
    """Stripes that lie down (positive) or stand, in any colour, under noise."""
    rng = np.random.default_rng(seed)
    truth = np.where(rng.random(n) < 0.5, 1, -1)
    wave = np.sin(np.arange(16) * 2 + rng.uniform(0, 6, (n, 1)))
    lying = np.repeat(wave[:, :, None], 16, axis=2)
    stripes = np.where((truth > 0)[:, None, None], lying, lying.transpose(0, 2, 1))
    colour = rng.uniform(0.2, 1, (n, 3, 1, 1))
    x = 128 + 60 * colour * stripes[:, None] + rng.normal(0, 30, (n, 3, 16, 16))
    return torch.from_numpy(x.clip(0, 255).astype(np.uint8)), truth


def lesson(truth: np.ndarray, x: torch.Tensor, *, right: float = 0.75, known: int = 0) -> Lesson:
    """A teacher that is right about as many rows; 30 positives are labelled, the class of some others is known."""
    rng, n = np.random.default_rng(1), len(x)
    labels = np.zeros(n, dtype=np.int8)
    labels[np.flatnonzero(truth > 0)[:30]] = 1
    says = np.where(rng.random(n) < right, truth, -truth)
    taught = np.where(labels == 1, 1.0, 0.5 + 0.4 * says).astype(np.float32)
    truths = np.where((labels == 0) & (np.arange(n) >= n - known), truth, 0)
    prior = float((truth[labels == 0] > 0).mean())
    return Lesson(x, labels, torch.from_numpy(taught), torch.from_numpy(truths), prior)


def trained(
    given: Lesson, config: TaughtConfig, folder: Path | None = None, seed: int = 0
) -> tuple[AllConv, TaughtView, torch.nn.Module]:
    view = TaughtView.fit(given.X, is_mirrored=True)
    torch.manual_seed(seed)
    encoder = AllConv(in_channels=12, image_size=16, width=0.1)
    return encoder, view, learn_from_teacher(encoder, view, given, config, folder=folder)


@torch.no_grad()
def auc(encoder: AllConv, view: TaughtView, head: torch.nn.Module) -> float:
    x, truth = pictures(400, seed=5)
    scores = head(encoder.eval().features(view.clean(x))).numpy()
    return auc_between(scores[truth > 0], scores[truth < 0])


def test_it_goes_beyond_a_teacher_that_is_right_three_times_in_four() -> None:
    x, truth = pictures(400)
    encoder, view, head = trained(lesson(truth, x), TaughtConfig(epochs=6, own_epochs=25, batch_size=64))
    assert auc(encoder, view, head) > 0.95
    assert [row["stage"] for row in head.history] == ["taught"] * 6 + ["consistent"] * 25
    assert head.history[-1]["sure"] > 0.3


def test_what_is_known_outweighs_a_teacher_who_is_wrong() -> None:
    x, truth = pictures(400)
    config = TaughtConfig(epochs=1, own_epochs=8, batch_size=64)
    told = trained(lesson(truth, x, right=0.4, known=300), config)
    untold = trained(lesson(truth, x, right=0.4), config)
    assert auc(*told) > auc(*untold) + 0.1


def test_a_network_that_is_sure_of_its_errors_is_pulled_back_by_the_labelled_rows() -> None:
    """On 60,000 rows of MNIST one of six networks called most of its own labelled rows negative in the end."""
    x, truth = pictures(400)
    nothing_is_positive = replace(lesson(truth, x), taught=torch.zeros(400))
    encoder, view, head = trained(nothing_is_positive, TaughtConfig(epochs=3, own_epochs=30, batch_size=64))
    assert auc(encoder, view, head) > 0.95
    with torch.no_grad():
        labelled = x[torch.from_numpy(nothing_is_positive.labels == 1)]
        assert (head(encoder.features(view.clean(labelled))) > 0).float().mean() > 0.9


@pytest.mark.parametrize("step", [3, 7])  # of the first stage; the second, as the first has six steps
def test_an_interrupted_run_ends_in_the_same_bits(step: int, tmp_path: Path) -> None:
    x, truth = pictures(200)
    given = lesson(truth, x)
    whole, _, whole_head = trained(given, BRIEF)
    with interrupted_at(step), pytest.raises(Interruption):
        trained(given, BRIEF, tmp_path)
    again, _, head = trained(given, BRIEF, tmp_path)
    assert_same_bits(dict(whole.state_dict()), dict(again.state_dict()))
    assert_same_bits({"w": whole_head.weight, "b": whole_head.bias}, {"w": head.weight, "b": head.bias})


@pytest.mark.parametrize("step", [3, 7, None])
def test_a_run_of_another_teacher_other_truths_or_weights_is_not_resumed(step: int | None, tmp_path: Path) -> None:
    x, truth = pictures(200)
    given = lesson(truth, x, known=20)
    if step is None:  # a finished one is not given back for another lesson either
        trained(given, BRIEF, tmp_path)
    else:
        with interrupted_at(step), pytest.raises(Interruption):
            trained(given, BRIEF, tmp_path)
    with pytest.raises(InputError, match="network of another teacher"):
        trained(replace(given, taught=1 - given.taught), BRIEF, tmp_path)
    with pytest.raises(InputError, match="truths: "):
        trained(replace(given, truths=-given.truths), BRIEF, tmp_path)
    with pytest.raises(InputError, match="first_weights: "):
        trained(given, BRIEF, tmp_path, seed=1)
    trained(replace(given, taught=given.taught * (1 + 3e-7)), BRIEF, tmp_path)  # as other threads make them


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"prior": 30.0}, r"prior must lie in \(0, 1\), got 30"),
        ({"taught": torch.full((40,), 0.5)}, r"taught must hold one number for each of 120 rows, got shape \(40,\)"),
        ({"taught": torch.full((120,), 1.5)}, r"taught must lie in \[0, 1\], got 1.5 in row 0"),
        ({"taught": np.full(120, 0.5)}, "taught must be a tensor, got ndarray"),
        ({"truths": torch.full((120, 1), 0)}, r"truths must hold one number .*, got shape \(120, 1\)"),
        ({"truths": torch.full((120,), 2)}, r"truths must be 1 .*values \[2\]"),
    ],
)
def test_a_lesson_that_cannot_be_learned_is_refused_before_the_first_step(changes: dict[str, Any], said: str) -> None:
    """A wrong prior was noticed after the whole first stage."""
    x, truth = pictures(120)
    view, encoder = TaughtView.fit(x, is_mirrored=True), AllConv(in_channels=12, image_size=16, width=0.1)
    before = [weight.clone() for weight in encoder.parameters()]
    with pytest.raises(InputError, match=said):
        learn_from_teacher(encoder, view, replace(lesson(truth, x), **changes), BRIEF)
    assert all(map(torch.equal, before, encoder.parameters()))
