"""The embedded digits with 200 labelled odd ones, a small network, and a way to interrupt a stage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from punce.data import load, simulate_pu
from punce.encoders import MLP
from punce.labels import Labels
from punce.stages.probe import extract_features
from punce.training.run import Run
from punce.views import View, digit

Head = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Digits:
    X: Tensor
    labels: Labels
    prior: float
    X_test: Tensor
    is_odd: Tensor
    view: View

    def accuracy(self, encoder: MLP, head: Head, cut: float = 0.0) -> float:
        scores = head(extract_features(encoder, self.view, self.X_test))
        return float(((scores > cut) == self.is_odd).float().mean())


@cache
def digits(n_labelled: int = 200) -> Digits:
    data = load("digits")
    sample = simulate_pu(data.train.y_true, n_labelled)
    X = torch.from_numpy(data.train.X)
    is_odd = torch.from_numpy(data.test.y_true == 1)
    return Digits(X, sample.labels, sample.prior, torch.from_numpy(data.test.X), is_odd, digit().fit(X))


def small_encoder(seed: int = 0) -> MLP:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return MLP(64, width=0.02)


class Interruption(Exception):  # noqa: N818  nothing went wrong
    pass


@contextmanager
def interrupted_at(step: int) -> Iterator[None]:
    """Every stage saves at each step and is thrown out of `step`, after its loss and before its optimiser step."""
    original, constructor = Run.require_finite, Run.__init__

    def throwing(self: Run, *args: Tensor) -> None:
        if self.step == step:
            raise Interruption
        original(self, *args)

    def saving(self: Run, *args: Any, **kwargs: Any) -> None:
        constructor(self, *args, **{**kwargs, "save_every": 0.0})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "require_finite", throwing)
        patch.setattr(Run, "__init__", saving)
        yield


Trainer = Callable[[MLP, Path | None], Any]


def weights_after(train: Trainer, folder: Path | None = None, seed: int = 0) -> dict[str, Tensor]:
    """Every weight and buffer of the encoder, and the head's, after training."""
    encoder = small_encoder(seed)
    head = train(encoder, folder)
    linear = getattr(head, "linear", head)
    state = {name: value.clone() for name, value in encoder.state_dict().items()}
    return state | {"head.weight": linear.weight, "head.bias": linear.bias}


def assert_same_bits(one: dict[str, Tensor], other: dict[str, Tensor]) -> None:
    assert one.keys() == other.keys()
    different = [name for name in one if not torch.equal(one[name], other[name])]
    assert different == []


def assert_resumes_exactly(train: Trainer, folder: Path, step: int) -> None:
    """Uninterrupted and interrupted runs end in the same bits, though the second process starts elsewhere."""
    whole = weights_after(train)
    with interrupted_at(step), pytest.raises(Interruption):
        weights_after(train, folder)
    assert (folder / "checkpoints").is_dir()
    assert_same_bits(whole, weights_after(train, folder, seed=9))
