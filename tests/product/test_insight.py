"""What a fitted classifier says about itself: importances of columns, reasons of rows."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.metrics import roc_auc_score

from punce import PUClassifier
from punce.classifier import ClassifierWarning
from punce.data import UserData
from punce.errors import InputError
from punce.models.text import TextRoute, without_word, words_of
from punce.product.insight import (
    quickly_explained,
    reasons_column,
    reasons_of,
    shown_importances,
    telling_columns_in_words,
)
from punce.product.plan import DataOptions, ModelOptions, RunOptions

# What a fit says of its labels or its ranking is not what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore::punce.classifier.ClassifierWarning")
NAMES = ["noise", "strong", "weak", "colour"]


@pytest.fixture(scope="module")
def rows() -> tuple[pd.DataFrame, np.ndarray]:
    """Three columns that tell the classes apart (one of names), one that does not, and gaps."""
    rng = np.random.default_rng(0)
    n = 500
    is_positive = rng.random(n) < 0.4
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=NAMES[:3])
    frame["strong"] += 2.0 * is_positive
    frame["weak"] += 0.7 * is_positive
    frame["colour"] = np.where(rng.random(n) < 0.2 + 0.5 * is_positive, "red", "blue")
    frame.loc[rng.random(n) < 0.1, "strong"] = np.nan
    labels = np.zeros(n, dtype=np.int64)
    labels[rng.choice(np.flatnonzero(is_positive), 80, replace=False)] = 1
    return frame, labels


@pytest.fixture(scope="module")
def fitted(rows: tuple[pd.DataFrame, np.ndarray]) -> PUClassifier:
    return PUClassifier(prior=0.3).fit(*rows)


def test_no_column_is_said_to_matter_where_the_scores_tell_nothing(
    fitted: PUClassifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert telling_columns_in_words(fitted).startswith("strong")
    monkeypatch.setattr(fitted, "metrics_", replace(fitted.metrics_, unknown="labelled rows do not score higher"))
    assert shown_importances(fitted) is None
    assert telling_columns_in_words(fitted) == ""


def test_no_column_is_said_to_matter_where_a_share_is_given_and_the_scores_tell_nothing(
    fitted: PUClassifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the note that the classifier does not tell rows apart, two of eleven columns of noise were named."""
    by_chance = np.linspace(0.1, 0.5, 50)
    monkeypatch.setattr(fitted, "held_out_", {"positive": by_chance, "unlabelled": by_chance})
    assert shown_importances(fitted) is None
    assert telling_columns_in_words(fitted) == ""


def test_importances_name_the_columns_that_matter(fitted: PUClassifier) -> None:
    table = fitted.importances_.set_index("column")
    assert set(table.index) == set(NAMES)
    assert table.index[0] == "strong"
    assert table.loc["strong", "low"] > 0
    assert table.loc["noise", "low"] <= 0 <= table.loc["noise", "high"]
    assert (table["drop"].diff().dropna() <= 0).all()
    by_column = dict(zip(NAMES, fitted.feature_importances_, strict=True))
    assert by_column == pytest.approx(table["drop"].to_dict())


def test_rows_are_scored_by_models_that_did_not_see_them(
    fitted: PUClassifier, rows: tuple[pd.DataFrame, np.ndarray]
) -> None:
    """Unchanged, the kept rows have the members' out-of-fold scores, weighed as the final model weighs them."""
    route: Any = fitted._route
    kept = route._kept
    scores = route._scorer(kept.rows)(kept.values, np.arange(len(kept.rows)))
    model = route._model
    weighed = sum(model.weights_[name] * own for name, own in model.member_scores_.items())
    np.testing.assert_allclose(scores, weighed[kept.rows], atol=1e-6)
    np.testing.assert_array_equal(kept.labels, rows[1][kept.rows])


def test_importances_are_saved_once_they_were_asked_for(fitted: PUClassifier, tmp_path: Path) -> None:
    table = fitted.importances_
    fitted.save(tmp_path / "model")
    pd.testing.assert_frame_equal(PUClassifier.load(tmp_path / "model").importances_, table)


def test_a_loaded_classifier_says_what_it_lacks(
    fitted: PUClassifier, rows: tuple[pd.DataFrame, np.ndarray], tmp_path: Path
) -> None:
    silent = PUClassifier(prior=0.3)
    vars(silent).update({name: value for name, value in vars(fitted).items() if name != "_measured"})
    silent.save(tmp_path / "model")
    loaded = PUClassifier.load(tmp_path / "model")
    assert not hasattr(loaded, "feature_importances_")
    with pytest.raises(InputError, match="background="):
        loaded.explain(rows[0].iloc[:2])
    reasons = loaded.explain(rows[0].iloc[:2], background=rows[0].iloc[100:300])
    assert set(reasons["row"]) == {0, 1}


def test_reasons_of_a_row(fitted: PUClassifier, rows: tuple[pd.DataFrame, np.ndarray]) -> None:
    frame, labels = rows
    unlabelled = np.flatnonzero(labels == 0)
    best = unlabelled[np.argsort(-fitted.decision_scores_[unlabelled])[:10]]
    reasons = fitted.explain(frame.iloc[best], most=2, training_rows=best)
    assert list(reasons.columns) == ["row", "feature", "value", "effect", "probability", "without"]
    assert reasons["row"].tolist() == [row for row in range(10) for _ in range(2)]
    assert reasons.groupby("row")["effect"].apply(lambda effects: effects.abs().is_monotonic_decreasing).all()
    first = reasons.groupby("row").first()
    assert (first["feature"] == "strong").mean() > 0.5
    assert (first["effect"] > 0).all()
    assert (first["probability"] >= first["without"]).all()
    # Of training rows the probability is about that of scores_, from models that did not see them.
    np.testing.assert_allclose(first["probability"], fitted.scores_[best], atol=0.03)
    for wrong, message in (
        (best[:3], r"10 of them, got int64 \(3,\)"),
        (labels == 1, "bool"),
        (best + 500, "0 to 499, got"),
    ):
        with pytest.raises(InputError, match=message):
            fitted.explain(frame.iloc[best], training_rows=wrong)
    strong = reasons[reasons["feature"] == "strong"]
    assert strong["value"].tolist() == frame["strong"].iloc[best[strong["row"]]].tolist()


def test_without_training_rows_the_final_model_is_explained(
    fitted: PUClassifier, rows: tuple[pd.DataFrame, np.ndarray]
) -> None:
    frame = rows[0].iloc[:5]
    reasons = fitted.explain(frame, most=1)
    np.testing.assert_allclose(reasons["probability"], fitted.predict_proba(frame)[:, 1], atol=1e-6)


def test_a_network_is_measured_on_its_held_out_rows_and_a_new_fit_forgets_it(
    rows: tuple[pd.DataFrame, np.ndarray],
) -> None:
    quick = {"encoder": "identity", "prior": 0.3, "configs": {"probe": {"epochs": 10}}}
    model = PUClassifier(**quick).fit(*rows)
    assert model.feature_importances_.shape == (4,)
    assert not model.seen_in_training_[model._route._kept.rows].any()  # type: ignore[attr-defined]
    model._forget()
    assert not hasattr(model, "_measured")


@pytest.mark.parametrize("kind", ["numbered columns", "matrix", "sparse"])
def test_columns_without_names_of_their_own(rows: tuple[pd.DataFrame, np.ndarray], kind: str) -> None:
    frame = rows[0][["strong", "weak"]].fillna(0.0).set_axis([7, 3], axis=1)
    X: Any = {"numbered columns": frame, "matrix": frame.to_numpy(), "sparse": csr_array(frame.to_numpy())}[kind]
    model = PUClassifier(prior=0.3, encoder="identity", configs={"probe": {"epochs": 2}}).fit(X, rows[1])
    assert model.feature_importances_.shape == (2,)
    reasons = model.explain(X[:3], most=2)
    assert set(reasons["feature"]) == ({"7", "3"} if kind == "numbered columns" else {"x0", "x1"})
    strong = reasons[reasons["feature"].isin(["7", "x0"])].sort_values("row")
    np.testing.assert_allclose(strong["value"].astype(float), frame[7].iloc[:3], rtol=1e-6)


def test_two_labelled_rows_have_no_importances_but_reasons(rows: tuple[pd.DataFrame, np.ndarray]) -> None:
    frame, labels = rows[0].iloc[:60], np.repeat([1, 0], [2, 58])
    model = PUClassifier(prior=0.3).fit(frame, labels)
    assert not hasattr(model, "feature_importances_")
    reasons = model.explain(frame.iloc[:3], most=1, background=frame)
    assert len(reasons) == 3


def test_other_kinds_have_no_columns(rows: tuple[pd.DataFrame, np.ndarray]) -> None:
    x = rows[0][["strong", "weak"]].fillna(0.0).to_numpy(np.float32)
    model = PUClassifier(kind="embedding", encoder="identity", prior=0.3).fit(x, rows[1])
    assert not hasattr(model, "feature_importances_")
    with pytest.raises(InputError, match="embeddings have neither"):
        model.explain(x[:2])


def test_a_leak_is_noted(rows: tuple[pd.DataFrame, np.ndarray]) -> None:
    frame, labels = rows
    given_away = frame.assign(reviewed=np.where(labels == 1, 1.0, np.nan))
    with pytest.warns(ClassifierWarning, match="give the label away") as warned:
        model = PUClassifier(prior=0.3).fit(given_away, labels)
    note = next(note for note in model.notes_ if "give the label away" in note)
    assert str(warned[0].message) == note  # word for word: a command says each thing once
    assert warned[0].filename == __file__
    assert "'reviewed'" in note
    assert "--drop reviewed" in note
    assert roc_auc_score(labels, model.decision_scores_) > 0.99


def test_what_the_page_and_the_ranked_list_say(
    fitted: PUClassifier, rows: tuple[pd.DataFrame, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    frame, labels = rows
    shown = shown_importances(fitted)
    assert shown is not None
    assert (shown.columns[0].name, shown.of) == ("strong", 4)
    assert telling_columns_in_words(fitted).startswith("strong")
    assert "noise" not in telling_columns_in_words(fitted)
    gap = int(np.flatnonzero(frame["strong"].isna() & (labels == 0))[0])
    reasons = reasons_of(fitted, frame, np.array([gap]), most=4)[0]
    assert {"strong = missing", f"colour = {frame['colour'][gap]}"} <= {reason.text for reason in reasons}
    monkeypatch.setattr("punce.product.insight.MOST_WITH_REASONS", 2)
    column = reasons_column(fitted, frame, np.flatnonzero(labels == 0)[:5])
    assert [bool(text) for text in column] == [True, True, False, False, False]
    assert re.fullmatch(r"\w+ = [^;]+ \([+-]\d\.\d\d\)(; \w+ = [^;]+ \([+-]\d\.\d\d\)){2}", column[0])


def test_the_page_looks_at_fewer_rows_of_a_wide_table(fitted: PUClassifier) -> None:
    rows = np.arange(100)
    looked_at = {d: len(quickly_explained(fitted, np.empty((1, d)), rows)) for d in (4, 12, 50, 1000, 10_000)}
    assert looked_at == {4: 100, 12: 50, 50: 12, 1000: 12, 10_000: 10}


def test_reasons_are_refused_before_training_where_there_are_none() -> None:
    pictures, labels = np.zeros((4, 1, 8, 8), np.uint8), np.array([1, 0, 0, 0], np.int8)
    data = UserData("image", pictures, labels, pd.RangeIndex(4), "pictures")
    asked = DataOptions("pictures", None), ModelOptions(), data, None
    assert "reasons" not in RunOptions().config(*asked)
    with pytest.raises(InputError, match="images have neither"):
        RunOptions(reasons=True).config(*asked)


class _Counts:
    """Stands in for a text model: the score is the number of good words less that of bad ones."""

    how = "words"

    def score(self, texts: list[str]) -> np.ndarray:
        return np.array([text.lower().count("good") - 2.0 * text.count("bad") for text in texts])


def test_words_that_move_a_text() -> None:
    route = TextRoute()
    route._reader = _Counts()  # type: ignore[assignment]
    found = route.reasons(["Good good day", "", "a bad one"])
    effects = [{reason.feature: (reason.effect, reason.score) for reason in reasons} for reasons in found]
    assert effects[0] == {"good": (2.0, 0.0), "day": (0.0, 2.0)}
    assert effects[1] == {}
    assert effects[2]["bad"] == (-2.0, 0.0)
    with pytest.raises(InputError, match="background has no effect"):
        route.reasons(["a"], background=["b"])


def test_a_text_without_spaces_is_taken_apart_by_letters() -> None:
    assert words_of("好好的天") == ["好", "的", "天"]
    assert words_of("Refund refund!") == ["refund"]
    assert without_word("好好的天", "好") == "的天"
    assert without_word("I am, I", "i") == " am, "
    assert len(words_of(" ".join(f"w{i}" for i in range(100)))) == 40
