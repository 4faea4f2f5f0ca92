"""A classifier that was saved and loaded is the one that was saved, here or on another machine."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from punce import PUClassifier
from punce.errors import InputError
from punce.storage.model_file import ModelFileError
from tests.product.clouds import FAST, clouds

pytestmark = pytest.mark.usefixtures("quick_tables")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[PUClassifier, Path]:
    X, labels = clouds()
    path = tmp_path_factory.mktemp("saved") / "model"
    model = PUClassifier(**FAST).fit(X, labels)
    model.save(path)
    return model, path


def test_a_loaded_classifier_is_saved_as_it_was(saved: tuple[PUClassifier, Path], tmp_path: Path) -> None:
    PUClassifier.load(saved[1]).save(tmp_path / "again")
    for name in ("model.json", "model.safetensors"):
        assert (tmp_path / "again" / name).read_bytes() == (saved[1] / name).read_bytes()


def rewritten(path: Path, target: Path, without: tuple[str, ...] = (), **changes: Any) -> Path:
    """A copy of the model with other entries in its JSON, and hashes that match."""
    content = json.loads((path / "model.json").read_text())
    content = {key: value for key, value in {**content, **changes}.items() if key not in without}
    target.mkdir()
    (target / "model.safetensors").write_bytes((path / "model.safetensors").read_bytes())
    (target / "model.json").write_text(json.dumps(content))
    files = {name: (target / name).read_bytes() for name in ("model.safetensors", "model.json")}
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    (target / "manifest.json").write_text(json.dumps({"sha256": digests}))
    return target


def test_what_is_not_saved_says_so(saved: tuple[PUClassifier, Path]) -> None:
    model, path = saved
    again = PUClassifier.load(path)
    absent = [name for name in vars(model) if name.endswith("_") and not hasattr(again, name)]
    assert "scores_" in absent
    for name in absent:
        with pytest.raises(AttributeError, match=rf"a loaded model has no {name}: it is of the fit"):
            getattr(again, name)
    with pytest.raises(AttributeError, match="'PUClassifier' object has no attribute 'scores_'"):
        _ = PUClassifier().scores_
    assert (again.fit(*clouds()).scores_ == model.scores_).all()


def test_the_prior_comes_back(saved: tuple[PUClassifier, Path]) -> None:
    model, path = saved
    again = PUClassifier.load(path)
    assert again.prior_ == model.prior_
    assert 0.4 < again.prior_.population_prior < 1.0
    X, _ = clouds()
    shifted = [m.predict_proba(X, deploy_prior=m.prior_.population_prior) for m in (model, again)]
    assert (shifted[0] == shifted[1]).all()


def test_the_metrics_come_back_with_numbers_that_cannot_be_estimated(
    saved: tuple[PUClassifier, Path], tmp_path: Path
) -> None:
    model, path = saved
    again = PUClassifier.load(path)
    assert repr(again.metrics_) == repr(model.metrics_)  # NaN is not equal to itself
    content = model.metrics_.to_json()
    content["auc"] |= {"value": None, "low": None, "high": None, "reason": "no gap"}
    changed = PUClassifier.load(rewritten(path, tmp_path / "changed", metrics=content))
    assert changed.metrics_.auc.in_words() == "cannot be estimated: no gap"
    older = PUClassifier.load(rewritten(path, tmp_path / "older", without=("metrics",)))
    assert not hasattr(older, "metrics_")
    with pytest.raises(ModelFileError, match="is not a model that this version"):
        PUClassifier.load(rewritten(path, tmp_path / "spoilt", metrics={"recall": 3}))


def test_the_width_comes_back(saved: tuple[PUClassifier, Path]) -> None:
    again = PUClassifier.load(saved[1])
    assert again.n_features_in_ == 4
    with pytest.raises(InputError, match="X has 3 features, but PUClassifier is expecting 4"):
        again.predict(clouds()[0][:, :3])


def test_the_names_come_back(tmp_path: Path) -> None:
    X, labels = clouds()
    for names in (list("abcd"), [0, 1, 2, 3]):
        model = PUClassifier(**FAST).fit(pd.DataFrame(X, columns=names), labels)
        model.save(tmp_path / "model")
        again = PUClassifier.load(tmp_path / "model")
        assert again.n_features_in_ == 4
        assert hasattr(again, "feature_names_in_") == hasattr(model, "feature_names_in_") == (names[0] == "a")
        turned = pd.DataFrame(X, columns=names)[names[::-1]]
        assert (again.predict_proba(turned) == model.predict_proba(pd.DataFrame(X, columns=names))).all()


def test_numpy_numbers_among_the_parameters_come_back(tmp_path: Path) -> None:
    X, labels = clouds()
    model = PUClassifier(**{**FAST, "prior": np.float32(0.25), "epochs": np.int64(3)}, random_state=np.int64(3))  # type: ignore[arg-type]
    model.fit(X, labels).save(tmp_path / "model")
    again = PUClassifier.load(tmp_path / "model")
    assert (again.random_state, again.prior, again.epochs) == (3, 0.25, 3)


def test_a_model_of_another_machines_device_is_loaded(saved: tuple[PUClassifier, Path], tmp_path: Path) -> None:
    model, path = saved
    parameters = {**model.get_params(), "device": "cuda:7"}
    again = PUClassifier.load(rewritten(path, tmp_path / "model", parameters=parameters))
    assert again.device == "auto"
    X, _ = clouds()
    assert (again.predict_proba(X) == model.predict_proba(X)).all()
    with pytest.raises(ModelFileError):
        PUClassifier.load(rewritten(path, tmp_path / "odd", parameters={**parameters, "device": []}))


def test_a_file_from_before_these_entries_is_loaded(saved: tuple[PUClassifier, Path], tmp_path: Path) -> None:
    model, path = saved
    prior = {"value": 0.4, "low": 0.4, "high": 0.4}
    without = ("n_features", "feature_names")
    again = PUClassifier.load(rewritten(path, tmp_path / "model", without, prior=prior))
    X, _ = clouds()
    assert (again.predict_proba(X) == model.predict_proba(X)).all()
    assert not hasattr(again, "prior_")


def test_saving_does_not_take_the_place_of_other_files(saved: tuple[PUClassifier, Path], tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"notes\.txt"):
        saved[0].save(tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"
