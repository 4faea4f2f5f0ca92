"""PUClassifier as a scikit-learn user meets it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from punce import PUClassifier
from punce.classifier import ClassifierWarning
from punce.data import load, simulate_pu
from punce.encoders import MLP
from punce.errors import InputError
from punce.losses import PuNCE
from punce.models.kinds import about_matrix
from punce.risks import NNPU
from punce.training.splits import PUStratifiedKFold
from tests.product import clouds

pytestmark = pytest.mark.usefixtures("quick_tables")

FAST: dict[str, Any] = {"epochs": 3, "prior": 0.4}


def blobs(n: int = 400, n_labelled: int = 60, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    y = (random.random(n) < 0.5).astype(int)
    values = random.normal(1.5 * (2 * y[:, None] - 1), 1.0, (n, 4))
    frame = pd.DataFrame(values, columns=list("abcd"))
    frame["colour"] = np.where(random.random(n) < 0.8, np.where(y, "red", "blue"), "green")
    frame.loc[::17, "a"] = np.nan
    labels = np.zeros(n, int)
    labels[random.permutation(np.flatnonzero(y))[:n_labelled]] = 1
    return frame, labels, y


@pytest.fixture(scope="module")
def on_table() -> tuple[PUClassifier, pd.DataFrame, np.ndarray]:
    frame, labels, y = blobs()
    return PUClassifier(prior=0.4).fit(frame, labels), *blobs(seed=1)[::2]


@pytest.fixture(scope="module")
def digits() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    data = load("digits")
    sample = simulate_pu(data.train.y_true, 200, seed=0)
    return data.train.X, sample.labels, data.test.X, data.test.y_true


def test_a_table_with_categories_and_gaps(on_table: tuple[PUClassifier, pd.DataFrame, np.ndarray]) -> None:
    classifier, frame, y = on_table
    probability = classifier.predict_proba(frame)
    assert probability.shape == (len(frame), 2)
    assert probability.sum(1) == pytest.approx(1)
    assert roc_auc_score(y, probability[:, 1]) > 0.95
    assert (classifier.predict(frame) == (probability[:, 1] >= classifier.threshold_)).all()
    assert classifier.kind_ == "table"
    assert len(classifier.scores_) == 400
    assert classifier.metrics_.unlabelled.accuracy.value == pytest.approx(0.95, abs=0.08)


@pytest.mark.parametrize("loss", ["scl", None])
def test_a_table_through_a_network(loss: str | None, tmp_path: Path) -> None:
    frame, labels, _ = blobs()
    new, _, y = blobs(seed=1)
    classifier = PUClassifier(encoder="mlp", loss=loss, **FAST).fit(frame, labels)
    probability = classifier.predict_proba(new)[:, 1]
    assert roc_auc_score(y, probability) > 0.9
    assert {row["stage"] for row in classifier.history_} == ({"pretrain", "probe"} if loss else {"joint"})
    classifier.save(tmp_path / "model")
    assert (PUClassifier.load(tmp_path / "model").predict_proba(new)[:, 1] == probability).all()


def test_columns_are_checked_at_predict(on_table: tuple[PUClassifier, pd.DataFrame, np.ndarray]) -> None:
    classifier, frame, _ = on_table
    with pytest.raises(InputError, match="missing: 'b'"):
        classifier.predict(frame.drop(columns="b"))
    with pytest.raises(InputError, match="give a DataFrame"):
        classifier.predict(frame.to_numpy())
    shuffled = frame[["colour", "d", "c", "b", "a"]]
    assert (classifier.predict(shuffled) == classifier.predict(frame)).all()


def test_a_column_that_the_fit_set_aside_may_be_missing_later() -> None:
    X, labels = clouds.clouds()
    frame = pd.DataFrame(X, columns=list("abcd")).assign(empty=np.nan, same=1)
    labels = np.where(np.cumsum(labels == 1) <= 2, labels, 0)  # two labelled rows: a quick fit
    with pytest.warns(ClassifierWarning):
        model = PUClassifier().fit(frame, labels)
    assert (model.predict(frame.drop(columns=["same", "empty"])) == model.predict(frame)).all()
    with pytest.raises(InputError, match="missing: 'b'"):
        model.predict(frame.drop(columns=["b", "empty"]))


def test_embeddings_in_a_table_go_by_their_names() -> None:
    X, labels = clouds.clouds()
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = PUClassifier(**clouds.FAST).fit(frame, labels)
    scores, features = model.decision_function(frame), model.embed(frame)
    for other in (frame[list("dbca")], frame.assign(e=1.0)[list("eabcd")]):
        assert (model.decision_function(other) == scores).all()
        assert (model.embed(other) == features).all()
    with pytest.raises(InputError, match=r"occur twice: \['a'\]"):
        model.predict(pd.concat([frame[["a"]], frame], axis=1))
    with pytest.raises(InputError, match="missing: 'b'"):
        model.embed(frame.drop(columns="b"))


@pytest.mark.parametrize(("loss", "transfer"), [("punce", "probe"), ("punce", "finetune"), (None, "probe")])
def test_images_with_every_way_of_training(
    digits: tuple[np.ndarray, ...], loss: str | None, transfer: str, tmp_path: Path
) -> None:
    X, labels, X_test, y_test = digits
    classifier = PUClassifier(loss=loss, transfer=transfer, **FAST).fit(X, labels)
    probability = classifier.predict_proba(X_test)[:, 1]
    assert roc_auc_score(y_test, probability) > 0.7
    assert classifier.history_
    classifier.save(tmp_path / "model")
    again = PUClassifier.load(tmp_path / "model")
    assert (again.predict_proba(X_test)[:, 1] == probability).all()


@pytest.mark.parametrize(("risk", "loss"), [("pupl", "punce"), ("selfpu", None), ("vpu", None), ("upu", "scl")])
def test_other_heads(digits: tuple[np.ndarray, ...], risk: str, loss: str | None) -> None:
    X, labels, X_test, y_test = digits
    classifier = PUClassifier(loss=loss, risk=risk, **FAST).fit(X, labels)
    assert roc_auc_score(y_test, classifier.decision_function(X_test)) > 0.6


def test_embeddings(digits: tuple[np.ndarray, ...]) -> None:
    X, labels, X_test, y_test = digits
    flat = X[:600].reshape(600, -1).astype(np.float32) / 16
    classifier = PUClassifier(kind="embedding", **FAST).fit(flat, labels[:600])
    assert roc_auc_score(y_test, classifier.decision_function(X_test.reshape(len(X_test), -1) / 16.0)) > 0.7


def test_who_fits_a_wide_matrix_hears_that_it_is_read_as_a_table() -> None:
    X = np.random.default_rng(0).normal(size=(60, 256))
    labels = np.where(np.arange(60) < 2, 1, 0)  # two labelled rows: a quick fit
    with pytest.warns(ClassifierWarning) as told:
        PUClassifier().fit(X, labels)
    assert any("256 columns of numbers and is learned as a table" in str(each.message) for each in told)
    assert about_matrix(X[:, :255]) == "" == about_matrix(pd.DataFrame(X)) == about_matrix(np.ones((60, 256), int))


def test_images_with_channels_last_give_the_same_numbers(digits: tuple[np.ndarray, ...]) -> None:
    X, labels, X_test, _ = digits
    first, last = PUClassifier(**FAST).fit(X[:300], labels[:300]), PUClassifier(**FAST)
    last.fit(np.moveaxis(X[:300], 1, 3), labels[:300])
    assert (first.scores_ == last.scores_).all()  # the same seed, so to the last bit
    assert (first.predict_proba(X_test) == last.predict_proba(np.moveaxis(X_test, 1, 3))).all()


def test_texts() -> None:
    random = np.random.default_rng(0)
    words = {0: ["cold", "rain", "grey", "mud"], 1: ["sun", "warm", "beach", "sea"]}
    y = (random.random(300) < 0.5).astype(int)
    texts = [" ".join(random.choice([*words[c], "the", "a", "day"], 8)) for c in y]
    labels = np.zeros(300, int)
    labels[np.flatnonzero(y)[:50]] = 1
    classifier = PUClassifier(epochs=5, prior=0.4).fit(texts, labels)
    assert classifier.kind_ == "text"
    assert roc_auc_score(y, classifier.decision_function(texts)) > 0.9


def test_the_prior_is_estimated_and_kept_with_its_interval() -> None:
    frame, labels, y = blobs(1200, 200)
    classifier = PUClassifier().fit(frame, labels)
    truth = (y.sum() - 200) / 1000
    assert classifier.prior_.low <= classifier.prior_.value <= classifier.prior_.high
    assert classifier.prior_.value == pytest.approx(truth, abs=0.1)
    assert classifier.second_prior_ is not None
    first, second = classifier.first_prior_.value, classifier.second_prior_.value
    assert min(first, second) <= classifier.prior_.value <= max(first, second)  # the ensemble ranks better: it joins


def test_a_given_prior_is_kept() -> None:
    frame, labels, _ = blobs(300, 60)
    classifier = PUClassifier(prior=0.35).fit(frame, labels)
    assert (classifier.prior_.value, classifier.second_prior_) == (0.35, None)


def test_pipeline_and_clone() -> None:
    frame, labels, y = blobs()
    numbers = frame[list("abcd")].fillna(0.0).to_numpy()
    pipeline = make_pipeline(StandardScaler(), PUClassifier(prior=0.4))
    assert (clone(pipeline).fit(numbers, labels).predict(numbers) == y).mean() > 0.9


def test_folds_keep_labelled_rows() -> None:
    labels = np.array([1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0])
    for train, test in PUStratifiedKFold(3, random_state=0).split(np.zeros(12), labels):
        assert labels[train].sum() == 2
        assert labels[test].sum() == 1
        assert not set(train) & set(test)
    with pytest.raises(InputError, match="3 labelled rows cannot be spread over 4 folds"):
        list(PUStratifiedKFold(4).split(np.zeros(12), labels))
    for rows in (np.zeros(5), ["a text"] * 13):
        with pytest.raises(InputError, match=rf"X has {len(rows)} rows but y has 12 labels"):
            list(PUStratifiedKFold(3).split(rows, labels))
    assert repr(PUStratifiedKFold(4)) == "PUStratifiedKFold(n_splits=4, random_state=0)"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loss": "cross"}, "loss must be one of"),
        ({"risk": "cross"}, "risk must be one of"),
        ({"transfer": "both"}, "transfer must be"),
        ({"prior": 1.5}, r"prior must lie in \(0, 1\)"),
        ({"prior": "guess"}, "prior must be a number"),
        ({"scenario": "other"}, "scenario must be one of"),
        ({"kind": "sound"}, "kind must be"),
        ({"encoder": "vgg", "kind": "embedding"}, "encoder must be"),
        ({"threshold": "best"}, "threshold must be"),
    ],
)
def test_wrong_arguments(change: dict[str, Any], message: str) -> None:
    frame, labels, _ = blobs(100, 30)
    numbers = frame[list("abcd")].fillna(0.0).to_numpy()
    with pytest.raises(InputError, match=message):
        PUClassifier(**{**FAST, **change}).fit(numbers, labels)


@pytest.mark.parametrize("change", [{"loss": PuNCE}, {"loss": 3}, {"risk": NNPU}, {"risk": None}], ids=str)
def test_what_is_no_loss_or_risk_is_refused_before_anything_is_read(change: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=rf"{next(iter(change))} must be one of .* object"):
        PUClassifier(**change).check_arguments()


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.zeros(100), "no labelled positive"),
        (np.ones(100), "no unlabelled row"),
        (np.arange(100), "must be 1 .labelled positive."),
        (np.r_[1, np.zeros(98)], "X has 100 rows but y has 99"),
    ],
)
def test_wrong_labels(y: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        PUClassifier(**FAST).fit(np.random.default_rng(0).normal(size=(100, 3)), y)


def test_the_saved_model_is_json_and_safetensors(
    on_table: tuple[PUClassifier, pd.DataFrame, np.ndarray], tmp_path: Path
) -> None:
    classifier, frame, _ = on_table
    classifier.save(tmp_path / "model")
    assert sorted(p.name for p in (tmp_path / "model").iterdir()) == [
        "manifest.json",
        "model.json",
        "model.safetensors",
    ]
    assert json.loads((tmp_path / "model" / "model.json").read_text())["kind"] == "table"
    again = PUClassifier.load(tmp_path / "model")
    assert again.predict_proba(frame) == pytest.approx(classifier.predict_proba(frame), abs=1e-12)


@pytest.mark.filterwarnings("ignore::punce.classifier.ClassifierWarning")  # two of them call all rows the same
@pytest.mark.parametrize("threshold", [0.001, 0.5, 0.9999])
def test_the_sign_of_the_decision_is_what_is_predicted(threshold: float) -> None:
    """Also for rows further out than any held-out one, where a threshold is never or always reached."""
    X, labels = clouds.clouds()
    model = PUClassifier(threshold=threshold, **clouds.FAST).fit(X, labels)
    far = np.concatenate([X, 1e3 * X])
    decision = model.decision_function(far)
    assert ((decision >= 0) == (model.predict(far) == 1)).all()
    assert len(np.unique(decision)) > 0.9 * len(far)


def test_the_callers_encoder_is_not_trained() -> None:
    X, labels = clouds.clouds()
    encoder = MLP(4, width=0.05)
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    model = PUClassifier(encoder=encoder, **clouds.FAST).fit(X, labels)
    assert model.encoder is encoder
    assert all(torch.equal(before[name], value) for name, value in encoder.state_dict().items())
    assert (
        model.predict_proba(X) == PUClassifier(encoder=encoder, **clouds.FAST).fit(X, labels).predict_proba(X)
    ).all()
