"""`punce predict` on files that differ from what the model learned from."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from punce import PUClassifier
from punce.cli import app
from punce.errors import InputError
from punce.judging.new_rows import NOTHING_KEPT
from punce.product.predict import PredictOutcome, run_predict
from punce.product.score_file import beside, source_name
from tests.models.stored.write import HERE

pytestmark = pytest.mark.usefixtures("quick_tables")


def table(rng: np.random.Generator, n: int, share: float) -> tuple[pd.DataFrame, np.ndarray]:
    y = rng.random(n) < share
    numbers = rng.normal(size=(n, 4)) + 1.5 * y[:, None] * np.array([1, 1, 0, 0])
    return pd.DataFrame(numbers, columns=list("abcd")), y


def texts(rng: np.random.Generator, n: int, share: float) -> tuple[list[str], np.ndarray]:
    words = np.array([f"word{i}" for i in range(60)])
    y = rng.random(n) < share
    return [" ".join(words[rng.integers(0, 60, 8) // (6 if one else 1)]) for one in y], y


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    X = pd.concat([table(rng, 150, 1.0)[0], table(rng, 600, 0.3)[0]], ignore_index=True)
    folder = tmp_path_factory.mktemp("model") / "m"
    PUClassifier(prior=0.3, scenario="case_control").fit(X, np.arange(750) < 150).save(folder)
    return folder


def predicted(model: Path, rows: pd.DataFrame, folder: Path, **options) -> tuple[PredictOutcome, pd.DataFrame]:
    rows.to_csv(folder / "new.csv", index=False)
    done = run_predict(model, folder / "new.csv", folder / "scores.csv", **options)
    return done, pd.read_csv(folder / "scores.csv")


def test_a_file_like_the_training_rows_gives_no_note(model: Path, tmp_path: Path):
    done, scored = predicted(model, table(np.random.default_rng(1), 600, 0.3)[0], tmp_path)
    assert done.notes == ()
    assert done.share.low < 0.3 < done.share.high
    assert done.assumed == pytest.approx(0.3)
    assert set(scored["status"]) == {"usual"}


def test_another_share_is_found_and_said_and_shifted_to_on_request(model: Path, tmp_path: Path):
    new, y = table(np.random.default_rng(1), 600, 0.8)
    done, scored = predicted(model, new, tmp_path, batch_rows=100)
    (note,) = done.notes
    assert "seems to be" in note
    assert "--share auto" in note
    assert done.share.low < y.mean() < done.share.high
    np.testing.assert_allclose(PUClassifier.load(model).estimate_share(new).value, done.share.value)
    shifted, again = predicted(model, new, tmp_path, share="auto", batch_rows=100)
    assert shifted.assumed == pytest.approx(done.share.value)
    assert shifted.notes == ()
    assert abs(again["probability"].mean() - y.mean()) < abs(scored["probability"].mean() - y.mean())


def test_the_command_says_what_the_probabilities_assume(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    new, _ = table(np.random.default_rng(1), 300, 0.3)
    new.to_csv(tmp_path / "new.csv", index=False)
    for options, said in ([], "assume 0.300 (the model's own; not shifted)"), (["--share", "0.1"], "assume 0.100 (to"):
        app(args=["predict", str(model), str(tmp_path / "new.csv"), *options], standalone_mode=False)
        shown = capsys.readouterr().out
        assert "share of positives in these rows: 0." in shown
        assert said in shown


def test_scores_of_one_file_are_not_replaced_by_those_of_another_unless_asked(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    new, _ = table(np.random.default_rng(1), 40, 0.3)
    new.to_csv("new.csv", index=False)
    new[:30].to_json("new.jsonl", orient="records", lines=True)
    with closing(sqlite3.connect("shop.db")) as shop:
        for name in ("2026.May", "june"):
            new[:20].to_sql(name, shop, index=False)

    def predict(*arguments: str) -> None:
        app(args=["predict", str(model), *arguments], standalone_mode=False)

    for _ in range(2):  # made again
        predict("new.csv")
    with pytest.raises(InputError, match=r"new.scores.parquet holds the scores of new.csv, not of new.jsonl; .* --out"):
        predict("new.jsonl")
    assert len(pd.read_parquet("new.scores.parquet")) == 40
    predict("new.jsonl", "--out", "new.scores.parquet")  # who names it means it
    predict("new.jsonl")
    predict("shop.db::2026.May")
    with pytest.raises(InputError, match=r"scores of shop.db::2026.May, not of shop.db::june; name another"):
        predict("shop.db", "--table", "june")
    predict("shop.db", "--table", "2026.May")


def test_what_a_result_says_it_is_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "parts").mkdir()
    monkeypatch.chdir(tmp_path / "parts")
    (tmp_path / "parts" / "2026-1.parquet").touch()
    for data, expected in {
        "../new.csv": "new.csv",
        "~/new.csv": "new.csv",
        ".": "parts",
        "~/parts/2026-*.parquet": "parts/2026-*.parquet",
        "book.xlsx::2026.May": "book.xlsx::2026.May",
    }.items():
        assert source_name(Path(data)) == expected
    assert source_name(Path("book.xlsx"), "May") == "book.xlsx::May"
    assert beside(Path("~/book.xlsx::2026.May"), ".scores.parquet") == tmp_path / "book.scores.parquet"


def test_an_option_without_effect_is_refused_beside_those_that_the_command_has(model: Path, tmp_path: Path):
    table(np.random.default_rng(1), 60, 0.3)[0].to_csv(tmp_path / "new.csv", index=False)
    others = "to which --decimal, --sep, --encoding, --header apply"
    with pytest.raises(InputError, match=f"--table has no effect on a CSV file, {others}"):
        app(args=["predict", str(model), str(tmp_path / "new.csv"), "--table", "x"], standalone_mode=False)


def test_rows_outside_and_columns_that_moved(model: Path, tmp_path: Path):
    new, _ = table(np.random.default_rng(1), 600, 0.3)
    new["d"] = new["d"] + 1.0
    new.loc[5, "c"] = 1e4
    done, scored = predicted(model, new, tmp_path)
    assert any("far outside" in note and "'c' (1)" in note for note in done.notes)
    assert any("distributed otherwise" in note and "'d'" in note and "'a'" not in note for note in done.notes)
    assert scored["status"].tolist() == ["outside" if row == 5 else "usual" for row in range(600)]


def test_rows_of_empty_cells_are_unknown_and_have_the_prior(model: Path, tmp_path: Path):
    new, _ = table(np.random.default_rng(1), 60, 0.3)
    new.loc[[4, 9]] = np.nan
    new.loc[11, "a"] = np.nan  # one gap leaves much to go by
    new["name"] = [f"row {i}" for i in range(60)]  # a column that the model does not use
    done, scored = predicted(model, new, tmp_path)
    assert scored.loc[scored["status"] == "unknown", "row"].tolist() == [4, 9]
    np.testing.assert_allclose(scored["probability"][[4, 9]], 0.3, atol=1e-9)
    assert done.unknown == 2
    assert any("2 of 60 rows hold nothing but empty cells" in note for note in done.notes)
    fitted = PUClassifier.load(model)
    assert fitted.predict_proba(new[list("abcd")])[4, 1] == pytest.approx(0.3)


def test_a_file_in_which_nothing_is_known_has_no_share_and_says_why(model: Path, tmp_path: Path):
    new, _ = table(np.random.default_rng(1), 8, 0.3)
    new["name"] = "row"
    new[list("abcd")] = np.nan
    done, scored = predicted(model, new, tmp_path)
    assert set(scored["status"]) == {"unknown"}
    assert "no row in which anything is known" in done.share.reason
    assert "earlier version" not in done.share.reason


def test_the_model_folder_keeps_counts_and_no_rows(model: Path):
    content = json.loads((model / "model.json").read_text())
    assert sum(content["seen"]["scores"]["unlabelled"]) < 900
    assert content["seen"]["columns"] == list("abcd")


def test_a_model_of_an_earlier_version_is_used_without_the_checks(tmp_path: Path):
    shutil.copytree(HERE / "words", tmp_path / "model")
    done, scored = predicted(tmp_path / "model", pd.DataFrame({"text": ["pay invoice", "qqq"]}), tmp_path)
    assert any(NOTHING_KEPT in note for note in done.notes)
    assert np.isnan(done.share.value)
    assert scored["status"].tolist() == ["usual", "unknown"]


@pytest.fixture(scope="module")
def text_model(tmp_path_factory: pytest.TempPathFactory) -> PUClassifier:
    X, y = texts(np.random.default_rng(0), 600, 0.4)
    return PUClassifier(prior=0.3, encoder="tfidf", loss=None, epochs=20).fit(X, y & (np.arange(600) < 300))


def test_texts_without_a_known_word_have_the_prior_and_are_not_called(text_model: PUClassifier, tmp_path: Path):
    new, _ = texts(np.random.default_rng(1), 50, 0.4)
    new[3], new[7] = "", "zzz qqq"
    probability = text_model.predict_proba(new)[:, 1]
    prior = text_model._calibrator.prior
    np.testing.assert_allclose(probability[[3, 7]], prior, atol=1e-9)
    assert not text_model.predict(new)[[3, 7]].any()
    assert (text_model.decision_function(new)[[3, 7]] < 0).all()
    assert text_model.predict_proba(new, deploy_prior=0.01)[3, 1] == pytest.approx(0.01)
    known = [text for text in new if text not in ("", "zzz qqq")]
    assert text_model.estimate_share(new) == text_model.estimate_share(known)
    text_model.save(tmp_path / "m")
    done, scored = predicted(tmp_path / "m", pd.DataFrame({"text": new}), tmp_path)
    assert done.unknown == 2
    assert any("no word that the model knows" in note for note in done.notes)
    assert scored.loc[scored["status"] == "unknown", "row"].tolist() == [3, 7]
