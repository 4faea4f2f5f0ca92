"""Several ranks train as one process with the same global batch would, BatchNorm statistics and errors included."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from punce.encoders import MLP
from punce.errors import InputError
from punce.losses import InfoNCE
from punce.stages.pretrain import PretrainConfig, pretrain
from punce.training import collectives
from punce.training.run import Run, TrainingError
from punce.views import Embedding
from tests.ranks import run_ranks
from tests.runs import tiny

pytestmark = pytest.mark.usefixtures("one_thread")

# No dropout: its masks are each rank's own. Adam divides small gradients by their size, so float32 is shown with SGD.
RUNS = {
    "adam": ["--double", "--optimizer", "adam"],
    "lars": ["--double", "--optimizer", "lars", "--lr", "1.0"],
    "float32": ["--optimizer", "sgd", "--lr", "0.05"],
}


def trained(name: str) -> dict[str, Tensor]:
    """The final state of one of the runs, by name; the first rank's if there are several."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "weights.safetensors"
        arguments = [f"{folder}/run", "--epochs", "1", "--dropout", "0", "--save-every", "1e9", "--out", str(out)]
        tiny.train(tiny.arguments([*arguments, *RUNS[name]]), lambda number: None)
        return {f"{name}/{key}": value for key, value in load_file(out).items()} if out.exists() else {}


def every_run(rank: int, world: int) -> dict[str, Tensor]:
    result = {key: value for name in RUNS for key, value in trained(name).items()}
    return result | {"refused": refused_row(), "disagreement": disagreement(rank)}


def refused_row() -> Tensor:
    """1 if a row that overflows on one rank stops this rank, too, by its own error."""
    X, labels = torch.ones(40, 6), np.array([1, 0, 0, 0] * 10, dtype=np.int8)
    X[7] = 3e38
    try:
        pretrain(MLP(6, width=0.002), Embedding(), X, labels, InfoNCE(), PretrainConfig(1, 40))
    except TrainingError:
        return torch.ones(())
    return torch.zeros(())


def disagreement(rank: int) -> Tensor:
    """1 if ranks that find different checkpoints (a folder that is not shared) refuse to go on."""
    model = torch.nn.Linear(1, 1)
    with tempfile.TemporaryDirectory() as folder:
        for _ in Run("stage", 2, {}, {"model": model}, folder=Path(folder), save_every=0.0).steps():
            pass
        try:  # the first rank wrote there, the second has a folder of its own
            Run("stage", 2, {}, {"model": model}, folder=Path(folder))
        except TrainingError as error:
            return torch.tensor(float("different steps [2, 0]" in str(error)))
    return torch.zeros(())


@pytest.fixture(scope="module")
def two_ranks(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Tensor]]:
    return run_ranks(2, every_run, tmp_path_factory.mktemp("ranks"), timeout=200)


@pytest.mark.parametrize(("name", "tolerance"), [("adam", 1e-9), ("lars", 1e-9), ("float32", 2e-5)])
def test_two_ranks_train_as_one_process(two_ranks: list[dict[str, Tensor]], name: str, tolerance: float) -> None:
    one = trained(name)
    assert any("running_var" in key for key in one)
    for key, value in one.items():
        torch.testing.assert_close(
            two_ranks[0][key], value, rtol=tolerance, atol=tolerance, msg=lambda m, k=key: f"{k}: {m}"
        )


def test_a_row_that_overflows_on_one_rank_stops_all(two_ranks: list[dict[str, Tensor]]) -> None:
    assert [float(result["refused"]) for result in two_ranks] == [1, 1]


def test_ranks_that_do_not_share_their_folder_are_told(two_ranks: list[dict[str, Tensor]]) -> None:
    assert [float(result["disagreement"]) for result in two_ranks] == [1, 1]


def test_without_torchrun_nothing_is_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    collectives.init_from_environment()
    monkeypatch.setenv("WORLD_SIZE", "1")
    collectives.init_from_environment()
    assert collectives.world_size() == 1


@pytest.mark.parametrize("given", ["two", "", "0", "-1", "2.0"])
def test_a_number_of_ranks_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("WORLD_SIZE", given)
    with pytest.raises(InputError, match=rf"WORLD_SIZE is '{given}', which is no number of ranks; .*unset WORLD_SIZE"):
        collectives.init_from_environment()


def test_half_an_environment_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InputError, match=r"MASTER_ADDR, MASTER_PORT is not set; start several ranks with torchrun"):
        collectives.init_from_environment()
