"""What can go wrong between two halves of a run: damaged checkpoints, a full disk, NaN, another configuration."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from punce.encoders import MLP
from punce.errors import InputError, PunceError
from punce.losses import InfoNCE
from punce.stages.pretrain import PretrainConfig, pretrain
from punce.storage.checkpoint import CheckpointStore, CheckpointWarning
from punce.training.run import Run, RunWarning, TrainingError
from punce.views import Embedding
from tests.runs import tiny

pytestmark = pytest.mark.usefixtures("one_thread")
STEPS = 45


class StoppedError(Exception):
    """Stands for a kill, in this process."""


def train(folder: Path, *arguments: str, before_step: Callable[[int], None] = lambda number: None) -> str:
    return tiny.train(tiny.arguments([str(folder), "--epochs", "3", *arguments]), before_step)


def stop_at(step: int) -> Callable[[int], None]:
    def before_step(number: int) -> None:
        if number == step:
            raise StoppedError

    return before_step


def stopped(folder: Path, step: int, *arguments: str) -> CheckpointStore:
    with pytest.raises(StoppedError):
        train(folder, *arguments, before_step=stop_at(step))
    return CheckpointStore(folder / "checkpoints")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The sha256 of an uninterrupted run."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    digest = train(tmp_path_factory.mktemp("whole"), "--save-every", "1e9")
    torch.set_num_threads(threads)
    return digest


def flip_a_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


@pytest.mark.parametrize("damage", [flip_a_byte, truncate, Path.unlink])
@pytest.mark.parametrize("file", ["tensors.safetensors", "state.json"])
@pytest.mark.faults
def test_a_damaged_checkpoint_is_passed_over_and_the_run_ends_in_the_same_bits(
    tmp_path: Path, whole: str, damage: Callable[[Path], None], file: str
) -> None:
    store = stopped(tmp_path, 21)
    last = store.folder / store.names()[-1]
    assert last.name.endswith("step-20")
    damage(last / file)
    began = []
    with pytest.warns(CheckpointWarning, match=r"step-20 is damaged and passed over"):
        assert train(tmp_path, before_step=began.append) == whole
    assert len(began) == STEPS - 19  # from the checkpoint before


def test_a_finished_run_is_not_run_again(tmp_path: Path, whole: str) -> None:
    assert train(tmp_path) == whole
    assert train(tmp_path, before_step=stop_at(1)) == whole


def test_history_is_whole_after_a_stop(tmp_path: Path) -> None:
    train(tmp_path / "whole")
    stopped(tmp_path / "run", 20)
    train(tmp_path / "run")
    histories = [(tmp_path / name / "history.jsonl").read_text() for name in ("whole", "run")]
    assert histories[0] == histories[1]
    rows = [json.loads(line) for line in histories[0].splitlines()]
    assert [row["step"] for row in rows] == [15, 30, 45]
    assert all(0 < row["loss"] < 10 and 0 <= row["monitor_risk"] < 1 for row in rows)


# A full disk


def fill(folder: Path) -> None:
    with (folder / "ballast").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass


@pytest.mark.parametrize("step", [20, 30], ids=["within an epoch", "at its end"])
@pytest.mark.faults
def test_a_full_disk_is_explained_and_the_run_goes_on_when_there_is_space(
    small_disk: Path, whole: str, step: int
) -> None:
    folder = small_disk / "run"
    with pytest.raises(PunceError, match=r"the checkpoint of step 20 .*No space left|cannot write .*No space left"):
        train(folder, before_step=lambda number: fill(small_disk) if number == step else None)
    checkpoint = CheckpointStore(folder / "checkpoints").load_latest()
    assert checkpoint is not None
    assert checkpoint.step == step - 1
    (small_disk / "ballast").unlink()
    assert train(folder) == whole


# Non-finite losses


class NanAt(InfoNCE):
    """A loss that is not a number at one step."""

    def __init__(self, step: int) -> None:
        super().__init__()
        self.countdown = step

    def forward(self, z: Tensor, labels: Tensor | None = None) -> Tensor:
        self.countdown -= 1
        value = super().forward(z, labels)
        return value * float("nan") if self.countdown < 0 else value


def embeddings(n: int = 60) -> tuple[Tensor, np.ndarray]:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(n, 12, generator=generator), np.array([1, 0, 0, 0, 0] * (n // 5), dtype=np.int8)


def small_mlp() -> MLP:
    torch.manual_seed(0)
    return MLP(12, width=0.002)


CONFIG = PretrainConfig(epochs=4, batch_size=20, warmup_epochs=0)


def test_a_nan_loss_stops_before_the_optimiser_step(tmp_path: Path) -> None:
    X, labels = embeddings()
    encoder = small_mlp()
    with pytest.raises(TrainingError, match=r"pretrain: the loss is nan; at step 5, rows \d+, .*largest input"):
        pretrain(encoder, Embedding(), X, labels, NanAt(5), CONFIG, folder=tmp_path / "nan", save_every=0.0)
    checkpoint = CheckpointStore(tmp_path / "nan" / "checkpoints").load_latest()
    assert checkpoint is not None
    assert checkpoint.step == 5
    for name, value in encoder.state_dict().items():  # weights and BatchNorm statistics of the step before
        assert value.equal(checkpoint.tensors[f"state/states/model/encoder.{name}"]), name


def test_a_row_that_overflows_is_named(tmp_path: Path) -> None:
    X, labels = embeddings()
    X[37] = 3e38
    encoder = small_mlp()
    with pytest.raises(TrainingError, match=r"at step \d, non-finite inputs in rows 37\. The weights are those of"):
        pretrain(encoder, Embedding(), X, labels, InfoNCE(), CONFIG)
    assert all(value.isfinite().all() for value in encoder.state_dict().values())


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_non_finite_data_is_refused_before_training(value: float) -> None:
    X, labels = embeddings()
    X[11, 3] = value
    with pytest.raises(InputError, match="row 11 of X"):
        pretrain(small_mlp(), Embedding(), X, labels, InfoNCE(), CONFIG)


# Another configuration, another machine


@pytest.mark.parametrize(
    ("arguments", "key"),
    [(["--lr", "0.1"], "lr: 0.001 there, 0.1 here"), (["--optimizer", "sgd"], "optimizer: 'adam' there, 'sgd' here")],
)
def test_another_configuration_in_the_same_folder_is_refused(tmp_path: Path, arguments: list[str], key: str) -> None:
    stopped(tmp_path, 5)
    with pytest.raises(InputError, match=key):
        train(tmp_path, *arguments)


def test_other_rows_labels_or_encoders_in_the_same_folder_are_refused(tmp_path: Path) -> None:
    X, labels = embeddings()
    run = {"config": CONFIG, "folder": tmp_path}
    pretrain(small_mlp(), Embedding(), X, labels, InfoNCE(), **run)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="rows: "):
        pretrain(small_mlp(), Embedding(), X + 1, labels, InfoNCE(), **run)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="rows: "):
        pretrain(small_mlp(), Embedding(), X, np.roll(labels, 1), InfoNCE(), **run)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"encoder: 'MLP, .* there, 'MLP, .* here"):
        pretrain(MLP(12, width=0.01), Embedding(), X, labels, InfoNCE(), **run)  # type: ignore[arg-type]
    torch.manual_seed(1)  # other first weights are no other run: those of the checkpoint take their place
    pretrain(MLP(12, width=0.002), Embedding(), X, labels, InfoNCE(), **run)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "changed",
    [{"config": 3}, {"config": None}, {"numbers": None}, {"numbers": {}}, {"numbers": {"kind": "plain", "value": 3}}],
    ids=str,
)
def test_a_checkpoint_of_another_form_is_refused(tmp_path: Path, changed: dict[str, object]) -> None:
    """A checkpoint may be from somebody else (SECURITY.md): one line, whatever its state holds."""
    store = stopped(tmp_path, 2)
    latest = store.load_latest()
    assert latest is not None
    store.save(latest.step, latest.tensors, {**latest.state, **changed})
    with pytest.raises(InputError, match="its state is not one that this stage writes"):
        train(tmp_path)


def test_a_checkpoint_with_weights_of_another_shape_is_refused(tmp_path: Path) -> None:
    store = stopped(tmp_path, 2)
    latest = store.load_latest()
    assert latest is not None
    store.save(latest.step, {name: tensor.new_zeros(3) for name, tensor in latest.tensors.items()}, latest.state)
    with pytest.raises(InputError, match="its state is not one that this stage writes"):
        train(tmp_path)


def test_another_number_of_threads_is_warned_of(tmp_path: Path) -> None:
    stopped(tmp_path, 5)
    with pytest.warns(RunWarning, match="threads was 1 and is 2: results will differ in the last bits"):
        stopped(tmp_path, 1, "--threads", "2")


def test_numbers_of_an_epoch_that_are_not_finite_are_kept(tmp_path: Path) -> None:
    model = torch.nn.Linear(2, 1)
    for seen in (0, 2):
        run = Run("stage", 4, {}, {"model": model}, folder=tmp_path, steps_per_epoch=2, save_every=0.0)
        assert run.step == seen
        for step in run.steps():
            run.record(held_out_risk=float("nan"))
            if step == 2 and seen == 0:
                break
    assert [row["held_out_risk"] for row in run.history] == pytest.approx([float("nan")] * 2, nan_ok=True)
