"""Pretrained encoders: trained once, the same bits from training and from the file, made again when damaged."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from punce.datasets.benchmarks import MissingFilesError
from punce.experiments import encoder_cache, job
from punce.experiments.encoder_cache import EncoderBusyError, EncoderCache
from punce.experiments.job import Job
from punce.experiments.run_cell import run_cell
from punce.experiments.store import StoreWarning
from punce.storage.checkpoint import CheckpointStore, CheckpointWarning
from punce.storage.files import locked
from punce.storage.model_file import read_model, write_model
from tests.experiments.tiny import infonce, punce


def weights(encoder: torch.nn.Module) -> Tensor:
    return torch.cat([tensor.flatten().double() for tensor in encoder.state_dict().values()])


@pytest.fixture
def trainings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A list that grows with every pretraining."""
    begun: list[str] = []
    original = job.pretrain

    def counted(*arguments: object, **options: object) -> object:
        begun.append(repr(arguments[4]))
        return original(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(job, "pretrain", counted)
    return begun


def test_an_encoder_is_trained_once_and_loaded_with_the_same_bits(tmp_path: Path, trainings: list[str]) -> None:
    cache = EncoderCache(tmp_path)
    made, first = Job(punce(), cache, None).pretrained()
    found, second = Job(punce(risk="upu"), cache, None).pretrained()
    assert len(trainings) == 1
    assert torch.equal(weights(made), weights(found))
    assert not found.training
    assert first == second
    assert first.history[0]["stage"] == "pretrain"
    assert not list(tmp_path.glob("*.run"))


def test_infonce_is_trained_once_for_all_labelled_sets(tmp_path: Path, trainings: list[str]) -> None:
    results = [run_cell(infonce(n_p), tmp_path).result for n_p in ("1k", "3k", "10k")]
    assert len(trainings) == 1
    assert len({result["held_out_pu_risk"] for result in results}) == 3


@pytest.mark.parametrize("file", ["model.safetensors", "model.json", "manifest.json"])
@pytest.mark.faults
def test_a_damaged_encoder_is_made_again_with_the_same_bits(tmp_path: Path, trainings: list[str], file: str) -> None:
    cache = EncoderCache(tmp_path)
    made, _ = Job(punce(), cache, None).pretrained()
    damaged = tmp_path / str(punce().encoder_name) / file
    damaged.write_bytes(damaged.read_bytes()[:-9])
    with pytest.warns(StoreWarning, match="made again"):
        again, _ = Job(punce(), cache, None).pretrained()
    assert len(trainings) == 2
    assert torch.equal(weights(made), weights(again))


def test_no_one_waits_for_an_encoder_that_another_process_is_making(tmp_path: Path) -> None:
    with locked(tmp_path / f"{punce().encoder_name}.lock") as ours:
        assert ours
        with pytest.raises(EncoderBusyError):
            Job(punce(), EncoderCache(tmp_path), None).pretrained()


@pytest.mark.faults
def test_a_training_that_was_cut_off_goes_on_from_its_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, _ = Job(punce(), EncoderCache(tmp_path / "whole"), None).pretrained()
    cache, original, epochs_done = EncoderCache(tmp_path / "cut"), encoder_cache.write_model, []

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(encoder_cache, "write_model", killed)  # all steps are in a checkpoint, the model is not
    with pytest.raises(KeyboardInterrupt):
        Job(punce(), cache, None).pretrained()
    assert not cache.has(str(punce().encoder_name))
    monkeypatch.setattr(encoder_cache, "write_model", original)
    monkeypatch.setattr("punce.training.loop.warmup_cosine", lambda *_: epochs_done.append(1))  # a step would call it
    resumed, _ = Job(punce(), cache, None).pretrained()
    assert not epochs_done
    assert torch.equal(weights(whole), weights(resumed))


def interrupted_before_storing(cache: EncoderCache, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretraining that is done, with its checkpoints there, and ended before the encoder is in the cache."""
    with monkeypatch.context() as patched:
        patched.setattr(encoder_cache, "write_model", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            Job(punce(), cache, None).pretrained()


def test_checkpoints_of_other_code_are_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = EncoderCache(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr("punce.stages.pretrain._architecture", lambda _: "an older network")
        interrupted_before_storing(cache, patched)
    assert list(tmp_path.glob("*.run"))
    Job(punce(), cache, None).pretrained()
    assert cache.has(str(punce().encoder_name))


def test_checkpoints_stay_where_they_are_not_at_fault(tmp_path: Path) -> None:
    """A worker to which the data are not there must not cost a long run what it has done."""

    def run() -> None:
        raise MissingFilesError("mnist: 4 of 4 files are missing")

    with pytest.raises(MissingFilesError):
        encoder_cache.from_checkpoints_or_start(tmp_path, run)
    assert tmp_path.exists()


@pytest.mark.faults
def test_a_training_whose_checkpoints_are_all_damaged_begins_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flipped bit must not fail every cell of this encoder until somebody removes a folder by hand."""
    whole, _ = Job(punce(), EncoderCache(tmp_path / "whole"), None).pretrained()
    cache = EncoderCache(tmp_path / "cut")
    interrupted_before_storing(cache, monkeypatch)
    states = list(cache.folder.glob("*.run/checkpoints/*/state.json"))
    assert states
    for state in states:
        state.write_bytes(state.read_bytes()[:-9])
    with pytest.warns(CheckpointWarning, match="is damaged and passed over"):
        again, _ = Job(punce(), cache, None).pretrained()
    assert torch.equal(weights(whole), weights(again))


def test_a_checkpoint_that_is_refused_half_way_leaves_no_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, _ = Job(punce(), EncoderCache(tmp_path / "whole"), None).pretrained()
    cache = EncoderCache(tmp_path / "cut")
    interrupted_before_storing(cache, monkeypatch)
    (folder,) = cache.folder.glob("*.run/checkpoints")
    store = CheckpointStore(folder)
    latest = store.load_latest()
    assert latest is not None
    last = [name for name in latest.tensors if "/model/" in name][-1]
    store.save(latest.step, {**latest.tensors, last: torch.zeros(3)}, latest.state)
    again, _ = Job(punce(), cache, None).pretrained()
    assert torch.equal(weights(whole), weights(again))


@pytest.mark.parametrize("missing", ["history", "projector.0.weight"])
def test_an_encoder_that_another_version_stored_is_made_again_from_the_seed(
    tmp_path: Path, trainings: list[str], missing: str
) -> None:
    """Weights that fit are loaded before the misfit shows: training must not begin at them."""
    cache = EncoderCache(tmp_path)
    made, _ = Job(punce(), cache, None).pretrained()
    folder = tmp_path / str(punce().encoder_name)
    tensors, content = read_model(folder)
    for part in (tensors, content):
        part.pop(missing, None)
    del content["format"]
    write_model(folder, tensors, content)
    with pytest.warns(StoreWarning, match="made again"):
        again, _ = Job(punce(), cache, None).pretrained()
    assert len(trainings) == 2
    assert torch.equal(weights(made), weights(again))


def test_the_number_is_the_same_with_and_without_a_cached_encoder(tmp_path: Path) -> None:
    fresh = run_cell(punce(risk="upu"), tmp_path / "a")
    run_cell(punce(), tmp_path / "b")
    cached = run_cell(punce(risk="upu"), tmp_path / "b")
    assert fresh.result == cached.result
