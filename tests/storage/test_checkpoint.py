"""Checkpoints under round trips, damage, kill -9, a full disk and hostile folders."""

from __future__ import annotations

import json
import math
import os
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import punce.storage.checkpoint as checkpoint_module
from punce.errors import InputError, PunceError
from punce.storage.checkpoint import (
    CheckpointError,
    CheckpointStore,
    CheckpointWarning,
    flatten_state,
    unflatten_state,
)
from punce.storage.tensor_folder import STORABLE
from punce.training.optim import build_optimizer
from tests.attacks.folders import Parts, write_folder

FILES = ["manifest.json", "state.json", "tensors.safetensors"]


def content(step: int, size: int = 100) -> tuple[dict[str, Tensor], dict[str, Any]]:
    return {"w": torch.full((size,), float(step)), "n": torch.tensor(step)}, {"step": step, "note": "é"}


@pytest.fixture
def store(tmp_path: Path) -> CheckpointStore:
    """Two checkpoints, of steps 1 and 2."""
    store = CheckpointStore(tmp_path / "run")
    for step in (1, 2):
        store.save(step, *content(step))
    return store


def visible(store: CheckpointStore) -> list[str]:
    return sorted(entry.name for entry in store.folder.iterdir())


def same(a: Any, b: Any) -> bool:
    """Equal in type and value, tensors and arrays to the bit and in layout, NaN equal to itself."""
    if type(a) is not type(b):
        return False
    if isinstance(a, Tensor):
        return a.dtype == b.dtype and a.stride() == b.stride() and a.shape == b.shape and _bits(a) == _bits(b)
    if isinstance(a, dict):
        return list(map(repr, a)) == list(map(repr, b)) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, float) and math.isnan(a):
        return math.isnan(b)
    return bool(a == b)


def _bits(tensor: Tensor) -> bytes:
    return tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


# Round trips


def test_an_empty_folder_has_no_checkpoint(tmp_path: Path) -> None:
    assert CheckpointStore(tmp_path / "new" / "run").load_latest() is None


def test_round_trip(store: CheckpointStore) -> None:
    latest = store.load_latest()
    assert latest is not None
    tensors, state = content(2)
    assert latest.step == 2
    assert same(latest.tensors, dict(sorted(tensors.items(), key=lambda item: list(latest.tensors).index(item[0]))))
    assert latest.state == state
    assert latest.path.name == "checkpoint-000002-step-2"


DTYPES = sorted(STORABLE, key=str)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_type_of_tensor_is_bit_exact(dtype: torch.dtype, tmp_path: Path) -> None:
    raw = torch.randint(0, 2 if dtype == torch.bool else 256, (48,), dtype=torch.uint8)
    tensors = {"full": raw.view(dtype), "scalar": raw.view(dtype)[0].clone(), "none": torch.empty(0, 3, dtype=dtype)}
    store = CheckpointStore(tmp_path)
    store.save(0, tensors, {})
    latest = store.load_latest()
    assert latest is not None
    assert all(same(latest.tensors[name], tensors[name]) for name in tensors)


def test_nested_state_comes_back_exactly(tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(3)
    torch.rand(5, generator=generator)
    state = {
        "generators": {
            "torch": generator.get_state(),
            "python": random.Random(1).getstate(),
        },
        "numbers": [0, -1, 2**200, True, False, None, 0.1, -0.0, 5e-324, math.inf, -math.inf, math.nan, 1e308],
        "tuple": (1, [2, ()], {}),
        1: "an int key",
        "1": "a text key that reads the same",
        (1, "a"): "a tuple as a key",
        "text": 'é "quoted" \n',
        "tensors": {1: torch.ones(2), "1": torch.zeros(2), "": torch.tensor(math.nan)},
        "channels_last": torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
        "transposed": torch.randn(3, 4).T,
    }
    store = CheckpointStore(tmp_path)
    store.save(7, *flatten_state(state))
    latest = store.load_latest()
    assert latest is not None
    assert same(unflatten_state(latest.tensors, latest.state), state)


def test_views_are_stored_by_value(tmp_path: Path) -> None:
    base = torch.arange(12.0).reshape(3, 4)
    state = {"expanded": torch.ones(1).expand(5), "column": base[:, 1], "row": base[1], "base": base, "tied": base}
    store = CheckpointStore(tmp_path)
    store.save(0, *flatten_state(state))
    latest = store.load_latest()
    assert latest is not None
    back = unflatten_state(latest.tensors, latest.state)
    assert all(torch.equal(back[name], state[name]) for name in state)


@pytest.mark.parametrize("name", ["lars", "adam", "adamw", "sgd"])
def test_training_resumed_from_disk_is_bit_identical(name: Any, tmp_path: Path) -> None:
    def fresh() -> tuple[nn.Module, torch.optim.Optimizer, torch.Generator]:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(16, 1))
        model = model.to(memory_format=torch.channels_last)
        return model, build_optimizer(model, name, lr=0.05, weight_decay=1e-3), torch.Generator().manual_seed(1)

    def train(model: nn.Module, optimizer: torch.optim.Optimizer, generator: torch.Generator, steps: int) -> None:
        for _ in range(steps):
            optimizer.zero_grad()
            model(torch.randn(8, 3, 4, 4, generator=generator)).square().mean().backward()
            optimizer.step()

    straight = fresh()
    train(*straight, steps=6)
    first = fresh()
    train(*first, steps=3)
    store = CheckpointStore(tmp_path)
    model, optimizer, generator = first
    store.save(
        3,
        *flatten_state({"m": model.state_dict(), "o": optimizer.state_dict(), "g": generator.get_state()}),
    )
    latest = store.load_latest()
    assert latest is not None
    state = unflatten_state(latest.tensors, latest.state)
    model, optimizer, generator = fresh()
    model.load_state_dict(state["m"])
    optimizer.load_state_dict(state["o"])
    generator.set_state(state["g"])
    train(model, optimizer, generator, steps=3)
    expected, got = straight[0].state_dict(), model.state_dict()
    assert all(torch.equal(expected[key], got[key]) for key in expected)


def test_only_the_last_two_are_kept_and_a_step_may_be_saved_again(store: CheckpointStore) -> None:
    for step in (3, 3, 4):
        store.save(step, *content(step))
    assert visible(store) == ["checkpoint-000004-step-3", "checkpoint-000005-step-4"]
    one = CheckpointStore(store.folder, keep=1)
    one.save(5, *content(5))
    assert visible(one) == ["checkpoint-000006-step-5"]


def test_the_million_and_first_checkpoint_is_still_the_latest(store: CheckpointStore) -> None:
    (store.folder / "checkpoint-000002-step-2").rename(store.folder / "checkpoint-999999-step-2")
    store.save(3, *content(3))
    latest = store.load_latest()
    assert latest is not None
    assert latest.path.name == "checkpoint-1000000-step-3"


# What cannot be stored


def test_state_that_json_would_change_is_refused(store: CheckpointStore) -> None:
    for state, reason in [
        ({"a": (1, 2)}, "state changes in JSON"),
        ({1: "a"}, "state changes in JSON"),
        ({"a": math.nan}, "state is not JSON"),
        ({"a": {1, 2}}, "state is not JSON"),
    ]:
        with pytest.raises(CheckpointError, match=f"{reason}.*flatten_state"):
            store.save(3, {}, state)


def test_what_a_tree_cannot_hold_is_named() -> None:
    with pytest.raises(InputError, match="state/optimizer/0 is a set"):
        flatten_state({"optimizer": [{1, 2}]})
    with pytest.raises(InputError, match="state/a is a ndarray"):
        flatten_state({"a": np.array([1.0])})


def test_tensors_that_cannot_be_stored_are_named(store: CheckpointStore) -> None:
    with pytest.raises(CheckpointError, match=r"tensor 'x' cannot be stored: torch\.complex128"):
        store.save(3, {"x": torch.zeros(2, dtype=torch.complex128)}, {})
    with pytest.raises(CheckpointError, match="tensor 'x' cannot be stored: list"):
        store.save(3, {"x": [1.0]}, {})  # type: ignore[dict-item]
    with pytest.raises(CheckpointError, match="reserved"):
        store.save(3, {"__metadata__": torch.zeros(2)}, {})
    with pytest.raises(InputError, match="keep must be at least 1"):
        CheckpointStore(store.folder, keep=0)


# Damage


def flip(path: Path, position: int) -> None:
    raw = bytearray(path.read_bytes())
    raw[position] ^= 0x10
    path.write_bytes(raw)


def positions(path: Path) -> list[int]:
    size = path.stat().st_size
    return list(range(size)) if size < 600 else [0, 7, 8, 50, size // 2, size - 2, size - 1]


@pytest.mark.parametrize("file", FILES)
@pytest.mark.faults
def test_a_flipped_byte_anywhere_is_found_and_the_previous_checkpoint_used(store: CheckpointStore, file: str) -> None:
    path = store.folder / store.names()[-1] / file
    for position in positions(path):
        flip(path, position)
        with pytest.warns(CheckpointWarning, match=rf"checkpoint-000002-step-2 is damaged.*{file}"):
            latest = store.load_latest()
        assert latest is not None
        assert latest.step == 1
        flip(path, position)
    latest = store.load_latest()
    assert latest is not None
    assert latest.step == 2


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("left", [0, 1, -1])
@pytest.mark.faults
def test_a_truncated_file_is_found(store: CheckpointStore, file: str, left: int) -> None:
    path = store.folder / store.names()[-1] / file
    path.write_bytes(path.read_bytes()[:left])
    with pytest.warns(CheckpointWarning, match=file):
        latest = store.load_latest()
    assert latest is not None
    assert latest.step == 1


@pytest.mark.faults
def test_a_longer_file_is_found(store: CheckpointStore) -> None:
    path = store.folder / store.names()[-1] / "state.json"
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.warns(CheckpointWarning, match=r"state\.json has \d+ bytes instead of"):
        assert store.load_latest().step == 1  # type: ignore[union-attr]


@pytest.mark.parametrize("file", FILES)
@pytest.mark.faults
def test_a_missing_file_is_found(store: CheckpointStore, file: str) -> None:
    (store.folder / store.names()[-1] / file).unlink()
    with pytest.warns(CheckpointWarning, match=f"{file} is missing"):
        assert store.load_latest().step == 1  # type: ignore[union-attr]


@pytest.mark.faults
def test_a_damaged_checkpoint_does_not_push_out_a_good_one(store: CheckpointStore) -> None:
    flip(store.folder / store.names()[-1] / "state.json", 3)
    with pytest.warns(CheckpointWarning):
        assert store.load_latest().step == 1  # type: ignore[union-attr]
    store.save(2, *content(2))
    assert visible(store) == ["checkpoint-000001-step-1", "checkpoint-000003-step-2"]


@pytest.mark.faults
def test_a_folder_with_only_damaged_checkpoints_is_refused_rather_than_restarted(store: CheckpointStore) -> None:
    for name in store.names():
        flip(store.folder / name / "state.json", 3)
    with pytest.warns(CheckpointWarning), pytest.raises(PunceError, match=r"no checkpoint in .* is intact"):
        store.load_latest()


def test_a_newer_format_is_passed_over(store: CheckpointStore) -> None:
    path = store.folder / store.names()[-1] / "manifest.json"
    manifest = json.loads(path.read_bytes())
    del manifest["sha256"]
    path.write_bytes(checkpoint_module._sealed({**manifest, "format": 2}))
    with pytest.warns(CheckpointWarning, match="format 2, this version reads 1"):
        assert store.load_latest().step == 1  # type: ignore[union-attr]


@pytest.mark.faults
def test_a_checkpoint_removed_while_reading_is_no_damage(
    store: CheckpointStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader lists two checkpoints; the owner saves two more and removes both before the reader opens one."""
    listed, owner = store.names(), CheckpointStore(store.folder)
    for step in (3, 4):
        owner.save(step, *content(step))
    real, answers = CheckpointStore.names, [listed]
    monkeypatch.setattr(CheckpointStore, "names", lambda self: answers.pop() if answers else real(self))
    latest = store.load_latest()
    assert latest is not None
    assert latest.step == 4


# Hostile and foreign content


def test_other_files_and_links_are_left_alone(store: CheckpointStore, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(store.folder / store.names()[0], elsewhere)
    (store.folder / "checkpoint-000009-step-9").symlink_to(elsewhere)
    (store.folder / "checkpoint-000010-step-10").write_text("a file")
    (store.folder / "checkpoint-latest.pkl").write_bytes(b"cos\nsystem\n(S'false'\ntR.")
    (store.folder / store.names()[-1] / "state.pkl").write_bytes(b"\x80\x04.")
    assert store.load_latest().step == 2  # type: ignore[union-attr]
    store.save(3, *content(3))
    assert store.load_latest().step == 3  # type: ignore[union-attr]
    assert (elsewhere / "manifest.json").exists()
    assert (store.folder / "checkpoint-latest.pkl").exists()


@pytest.mark.parametrize("file", FILES)
def test_a_link_inside_a_checkpoint_is_refused(store: CheckpointStore, file: str, tmp_path: Path) -> None:
    path = store.folder / store.names()[-1] / file
    path.rename(tmp_path / "moved")
    path.symlink_to(tmp_path / "moved")
    with pytest.warns(CheckpointWarning, match=f"{file} is not a regular file"):
        assert store.load_latest().step == 1  # type: ignore[union-attr]


def test_a_pipe_inside_a_checkpoint_does_not_hang(store: CheckpointStore) -> None:
    path = store.folder / store.names()[-1] / "state.json"
    path.unlink()
    os.mkfifo(path)
    with pytest.warns(CheckpointWarning, match=r"state\.json is not a regular file"):
        assert store.load_latest().step == 1  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "changed",
    [
        {"files": None},
        {"files": []},
        {"files": {"state.json": {"bytes": 1, "sha256": ""}}},
        {"files": {name: {"bytes": "1", "sha256": ""} for name in ("state.json", "tensors.safetensors")}},
        {"step": "2"},
        {"step": -1},
        {"format": None},
    ],
    ids=str,
)
def test_a_sealed_manifest_of_another_form_is_passed_over(store: CheckpointStore, changed: dict[str, Any]) -> None:
    """Its checksum is right: whoever makes a checkpoint can seal it."""
    path = store.folder / store.names()[-1] / "manifest.json"
    manifest = {key: value for key, value in json.loads(path.read_bytes()).items() if key != "sha256"}
    path.write_bytes(checkpoint_module._sealed({**manifest, **changed}))
    with pytest.warns(CheckpointWarning, match=r"punce did not write it|has format None"):
        assert store.load_latest().step == 1  # type: ignore[union-attr]


def test_a_manifest_nested_too_deeply_is_passed_over(store: CheckpointStore) -> None:
    (store.folder / store.names()[-1] / "manifest.json").write_bytes(b"[" * 100_000)
    with pytest.warns(CheckpointWarning, match="does not agree with its own checksum"):
        assert store.load_latest().step == 1  # type: ignore[union-attr]


@pytest.mark.parametrize("text", [b"[]", b"3", b"[" * 100_000 + b"]" * 100_000], ids=["list", "number", "nested"])
def test_a_sealed_state_of_another_form_is_passed_over(store: CheckpointStore, text: bytes) -> None:
    tensors = (store.folder / store.names()[-1] / "tensors.safetensors").read_bytes()
    folder, names = store.folder / "checkpoint-000003-step-3", ("tensors.safetensors", "state.json")
    write_folder(folder, Parts(text, tensors), names=names, is_checkpoint=True)
    with pytest.warns(CheckpointWarning, match="step-3 is damaged"):
        assert store.load_latest().step == 2  # type: ignore[union-attr]


def test_nothing_is_ever_unpickled(store: CheckpointStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("pickle was used")

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(f"pickle.{name}", refuse)
    monkeypatch.setattr(torch, "load", refuse)
    store.save(3, *flatten_state({"a": torch.ones(2), "b": [1.0]}))
    latest = store.load_latest()
    assert latest is not None
    found = unflatten_state(latest.tensors, latest.state)
    assert found["b"] == [1.0]
    assert torch.equal(found["a"], torch.ones(2))
