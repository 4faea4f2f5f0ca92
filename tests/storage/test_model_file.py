from __future__ import annotations

import errno
import os
import pickle
from pathlib import Path

import pytest
import torch

from punce.errors import InputError
from punce.storage import model_file, tensor_folder
from punce.storage.model_file import ModelFileError, read_model, write_model

TENSORS = {"w": torch.arange(6.0).view(2, 3), "n": torch.tensor([3])}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    write_model(tmp_path / "model", TENSORS, {"kind": "table"})
    return tmp_path / "model"


def test_round_trip(saved: Path) -> None:
    tensors, content = read_model(saved)
    assert content["kind"] == "table"
    assert all(torch.equal(tensors[name], value) for name, value in TENSORS.items())
    assert sorted(p.name for p in saved.parent.iterdir()) == ["model"]


def test_whoever_can_read_one_file_of_a_model_can_read_all(saved: Path) -> None:
    assert len({file.stat().st_mode for file in saved.iterdir()}) == 1


def test_a_model_is_replaced_whole(saved: Path) -> None:
    write_model(saved, {"w": torch.zeros(1)}, {"kind": "text"})
    assert read_model(saved)[1]["kind"] == "text"
    assert sorted(p.name for p in saved.parent.iterdir()) == ["model"]


@pytest.mark.parametrize("name", ["model.safetensors", "model.json"])
@pytest.mark.faults
def test_one_flipped_bit_is_noticed(saved: Path, name: str) -> None:
    data = bytearray((saved / name).read_bytes())
    data[len(data) // 2] ^= 1
    (saved / name).write_bytes(data)
    with pytest.raises(ModelFileError, match=f"{name} does not match its manifest"):
        read_model(saved)


@pytest.mark.parametrize("name", ["model.safetensors", "model.json", "manifest.json"])
@pytest.mark.faults
def test_missing_and_truncated_files(saved: Path, name: str) -> None:
    whole = (saved / name).read_bytes()
    (saved / name).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ModelFileError):
        read_model(saved)
    (saved / name).unlink()
    with pytest.raises(ModelFileError, match=name):
        read_model(saved)


def test_a_run_folder_or_a_file_of_a_model_says_where_the_model_is(saved: Path) -> None:
    for given in (saved.parent, saved / "model.safetensors"):
        with pytest.raises(ModelFileError, match=f"{given} is not a saved model: there is one in {saved}$"):
            read_model(given)


def test_what_is_no_model_is_named_with_what_was_found(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "model.joblib").write_text("x")
    found = {
        "nowhere": "there is no such folder",
        "empty": "the folder is empty",
        "model.joblib": r"it is a file; save\(\) writes a folder",
        ".": r"the folder holds empty, model.joblib, but no manifest.json",
    }
    for name, what in found.items():
        with pytest.raises(ModelFileError, match=f"{tmp_path / name} is not a saved model: {what}$"):
            read_model(tmp_path / name)


def test_a_pickle_in_place_of_the_tensors_never_runs(saved: Path, tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return Path.touch, (tmp_path / "exploded",)  # type: ignore[return-value]

    (saved / "model.safetensors").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(ModelFileError):
        read_model(saved)
    assert not (tmp_path / "exploded").exists()


def test_a_newer_format_is_refused(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_file, "FORMAT", 2)
    with pytest.raises(ModelFileError, match="has model format 1; this punce reads format 2"):
        read_model(saved)


@pytest.mark.faults
def test_a_full_disk_leaves_the_old_model(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tensor_folder, "sync", full)
    with pytest.raises(ModelFileError, match=r"cannot write the model \(0.0 MB\).*No space left"):
        write_model(saved, TENSORS, {"kind": "new"})
    assert read_model(saved)[1]["kind"] == "table"
    assert sorted(p.name for p in saved.parent.iterdir()) == ["model"]


@pytest.mark.parametrize("extra", ["chapter.txt", "config.json"])
def test_a_folder_that_holds_anything_else_is_kept(saved: Path, extra: str) -> None:
    thesis = saved.parent / "thesis"
    thesis.mkdir()
    for folder in (thesis, saved):
        (folder / extra).write_text("years of work")
        with pytest.raises(InputError, match=f"{folder.name} holds .*{extra}.*name another folder"):
            write_model(folder, TENSORS, {"kind": "new"})
        assert (folder / extra).read_text() == "years of work"
    assert read_model(saved)[1]["kind"] == "table"
    assert sorted(p.name for p in saved.parent.iterdir()) == ["model", "thesis"]


def test_files_of_the_same_names_that_are_not_a_punce_model_are_kept(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "model.safetensors").write_bytes(b"someone else's")
    (other / "manifest.json").write_text('{"version": 3}')
    with pytest.raises(InputError, match=r"other holds .*model\.safetensors"):
        write_model(other, TENSORS, {})
    assert (other / "model.safetensors").read_bytes() == b"someone else's"


def test_a_file_is_kept_and_an_empty_folder_taken(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="file is a file; name a folder"):
        write_model(tmp_path / "file", TENSORS, {})
    assert (tmp_path / "file").read_text() == "mine"
    (tmp_path / "empty").mkdir()
    write_model(tmp_path / "empty", TENSORS, {"kind": "table"})
    assert read_model(tmp_path / "empty")[1]["kind"] == "table"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["empty", "file"]


def test_a_link_to_a_model_stays_a_link(saved: Path) -> None:
    link = saved.parent / "latest"
    link.symlink_to(saved, target_is_directory=True)
    write_model(link, TENSORS, {"kind": "new"})
    assert link.is_symlink()
    assert read_model(saved)[1]["kind"] == "new"
    assert sorted(p.name for p in saved.parent.iterdir()) == ["latest", "model"]


@pytest.mark.faults
def test_what_a_killed_process_of_the_same_number_left_is_no_obstacle(saved: Path) -> None:
    for ending in ("tmp", "old"):
        left = saved.with_name(f".model.{os.getpid()}.{ending}")
        left.mkdir()
        (left / "model.json").write_text("{")
    write_model(saved, TENSORS, {"kind": "new"})
    assert read_model(saved)[1]["kind"] == "new"


@pytest.mark.faults
def test_the_old_model_comes_back_if_the_new_one_cannot_take_its_place(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = Path.rename

    def fail(self: Path, target: Path) -> Path:
        if self.name.endswith(".punce-tmp") and target.name == "model" and ".earlier." not in self.name:
            raise OSError(errno.EACCES, "Permission denied")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(ModelFileError, match="Permission denied"):
        write_model(saved, TENSORS, {"kind": "new"})
    assert read_model(saved)[1]["kind"] == "table"
    assert sorted(p.name for p in saved.parent.iterdir()) == ["model"]
