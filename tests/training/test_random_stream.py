"""Whatever is drawn from a seed, the caller's own draws go on as if nothing had happened, on GPUs too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from punce import PUClassifier
from punce.stages.scorer import reinitialise
from punce.training import collectives
from punce.training.random_stream import seeded
from punce.training.run import own_dropout

CPU = torch.device("cpu")
LAYER = torch.nn.Linear(2, 2)


def draw() -> list[float]:
    return torch.rand(3).tolist()


def test_draws_inside_begin_at_the_seed_and_draws_outside_go_on() -> None:
    torch.manual_seed(5)
    expected = draw() + draw()
    torch.manual_seed(5)
    seen = draw()
    with seeded(7, CPU):
        inside = draw()
    assert seen + draw() == expected
    torch.manual_seed(7)
    assert draw() == inside


def test_the_stream_is_given_back_after_an_error() -> None:
    state = torch.get_rng_state()
    with pytest.raises(RuntimeError, match="invalid for input"), seeded(7):
        torch.rand(3).view(2)
    assert torch.equal(torch.get_rng_state(), state)


def test_dropout_differs_between_ranks_and_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    for rank in (0, 1):
        monkeypatch.setattr(collectives, "rank", lambda rank=rank: rank)
        for seed in (0, 1):
            with own_dropout(seed, CPU):
                seen.append(tuple(draw()))
    assert len(set(seen)) == 4


def fit() -> object:
    X = np.random.default_rng(0).normal(size=(90, 5)).astype(np.float32)
    X[::3] += 1.5
    return PUClassifier(prior=0.4, epochs=1, encoder="mlp").fit(X, np.tile([1, 0, 0], 30))


def write_roberta(folder: Path) -> object:
    pytest.importorskip("transformers", reason="the extra punce[text] is not installed")
    from punce.encoders.tiny_roberta import write_tiny_roberta

    return write_tiny_roberta(folder)


USERS: dict[str, Callable[[Path], object]] = {
    "reinitialise": lambda _: reinitialise(LAYER, 3),
    "classifier": lambda _: fit(),
    "tiny roberta": write_roberta,
}


@pytest.mark.parametrize("user", USERS)
def test_no_stream_of_the_caller_is_touched(user: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``torch.manual_seed`` seeds every GPU of a machine, and with the fork of the CPU alone they stay seeded."""
    state, seeded_gpus = torch.get_rng_state(), []
    monkeypatch.setattr(torch.cuda, "manual_seed_all", seeded_gpus.append)
    USERS[user](tmp_path)
    assert torch.equal(torch.get_rng_state(), state)
    assert seeded_gpus == []
