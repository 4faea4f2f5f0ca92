"""Features of frozen encoders as rows of a cell: checked, whitened, kept, and named wherever their numbers stand."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from punce.data import load
from punce.errors import InputError
from punce.experiments.features import VARIABLE, base_of, is_features, load_features, upstream
from punce.experiments.frozen import SOURCE
from punce.experiments.plan import require_data
from punce.experiments.run_cell import run_cell
from punce.experiments.scales import SCALES
from punce.experiments.sources import load_rows

DIGITS = "digits@one+two"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two encoders of digits, which tell the classes apart."""
    data, random = load("digits"), np.random.default_rng(0)
    for name in ("one", "two"):
        files, mix = {}, random.normal(size=(12, 12)).astype(np.float32)
        for part, rows in (("train", data.train), ("test", data.test)):
            x = random.normal(size=(len(rows), 12)).astype(np.float32)
            x[:, :3] += 3 * rows.y_true[:, None]
            np.save(path := tmp_path / f"{name}_{part}.npy", x @ mix)
            files[path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
        (tmp_path / f"{name}.json").write_text(json.dumps({"files": files, "pixels": 8, "weights_sha256": name}))
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    return tmp_path


def test_rows_are_whitened_by_training_rows_and_kept(folder: Path) -> None:
    data, digits = load_features(DIGITS), load("digits")
    assert data.train.X.shape == (len(digits.train), 24)
    np.testing.assert_array_equal(data.test.y_true, digits.test.y_true)
    np.testing.assert_allclose(np.cov(data.train.X.T), np.eye(24), atol=0.02)
    (kept,) = folder.glob(f"{DIGITS}-*.npy")
    before = kept.stat().st_mtime_ns
    np.testing.assert_array_equal(load_features(DIGITS).train.X, data.train.X)
    assert kept.stat().st_mtime_ns == before


@pytest.mark.parametrize("left", [0, 5, 1000])
@pytest.mark.faults
def test_kept_rows_that_are_cut_off_are_computed_again(folder: Path, left: int) -> None:
    whole = load_features(DIGITS).train.X
    (kept,) = folder.glob(f"{DIGITS}-*.npy")
    content = kept.read_bytes()
    kept.write_bytes(content[:left])
    np.testing.assert_array_equal(load_features(DIGITS).train.X, whole)
    assert kept.read_bytes() == content


def test_files_that_changed_are_refused(folder: Path) -> None:
    np.save(folder / "two_test.npy", np.zeros((359, 12), dtype=np.float32))
    with pytest.raises(InputError, match=r"^\S+two_test.npy has the sha256 .* its JSON says .* make it again"):
        load_features(DIGITS)
    (folder / "one.json").write_text("[]")
    with pytest.raises(InputError, match=r"one.json does not describe features"):
        load_features(DIGITS)


def test_features_of_other_rows_are_refused(folder: Path) -> None:
    about = json.loads((folder / "one.json").read_text())
    np.save(path := folder / "one_test.npy", np.ones((3, 12), dtype=np.float32))
    about["files"]["one_test.npy"] = hashlib.sha256(path.read_bytes()).hexdigest()
    (folder / "one.json").write_text(json.dumps(about))
    with pytest.raises(InputError, match="rows instead of 1797"):
        load_features("digits@one")


def test_missing_files_say_how_to_make_them(folder: Path) -> None:
    cell = SCALES["frozen"].contrastive("cifar10", "resnet18", "scl", "1k")
    with pytest.raises(InputError, match=rf"lite0.json .* {VARIABLE} .* benchmarks/frozen_features.py"):
        require_data([cell])


def test_numbers_of_frozen_features_name_the_labels_behind_them() -> None:
    assert is_features(SOURCE)
    assert base_of(SOURCE) == "cifar10"
    assert upstream("cifar10") is None
    assert upstream(SOURCE) == "frozen EfficientNet-Lite0 and MobileNetV2 features (ImageNet labels)"


@pytest.mark.parametrize(("method", "least"), [("scl", 0.8), ("nnpu", 0.8), ("vpu", 0.3), ("selfpu", 0.3)])
def test_a_cell_on_features(method: str, least: float, folder: Path) -> None:
    """That those two learn in so few steps is not asked for."""
    scale = SCALES["frozen"]
    make = scale.contrastive if method == "scl" else scale.joint
    cell = make("cifar10", "resnet18", method, "100")
    cell = replace(cell, data=replace(cell.data, source=DIGITS), encoder=replace(cell.encoder, width=0.02))
    load_rows.cache_clear()
    outcome = run_cell(cell, folder / "encoders")
    load_rows.cache_clear()
    assert outcome.result["auc"] > least
