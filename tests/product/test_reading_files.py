"""A run on a file in one form scores the same rows in any other form alike, whatever the user's programs write."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from PIL import Image

from punce import PUClassifier
from punce.errors import InputError
from punce.product.fit import DataOptions, ModelOptions, run_fit
from punce.product.predict import run_predict
from tests.data.test_file_forms import WRITERS
from tests.in_process import exit_code


def rows(n: int = 90, seed: int = 0) -> pd.DataFrame:
    """Few labelled rows: the quick model for them serves as well here as the ensemble."""
    random = np.random.default_rng(seed)
    y = np.arange(n) % 3 == 0
    frame = pd.DataFrame(random.normal(np.where(y, 900.0, -900.0)[:, None], 700.0, (n, 2)).round(2), columns=["a", "b"])
    frame["whole"] = random.integers(1_000, 9_999, n)
    frame["town"] = np.where(y, "Köln", "Bonn")
    frame["extra"] = random.normal(size=n).round(3)
    return frame.assign(y=(y & (np.arange(n) < 6)).astype(int))


def german(frame: pd.DataFrame, path: Path) -> None:
    """1.234,50: as a German program writes, in its own encoding."""
    marks = str.maketrans(",.", ".,")
    written = frame.assign(
        a=[f"{value:,.2f} €".translate(marks) for value in frame["a"]],
        whole=[f"{value:,d}".translate(marks) for value in frame["whole"]],
    )
    written.to_csv(path, index=False, sep=";", decimal=",", encoding="cp1252")


def run_on(path: Path, run: Path, **options: Any) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("punce.product.fit.report_content", lambda *_: _NoContent())
        patch.setattr("punce.product.fit.write_report", lambda *_: None)
        run_fit(DataOptions(str(path), "y", **options), ModelOptions(prior=0.3), run, say=lambda _: None)
    return run


class _NoContent:
    """The page takes longer than the fit and is not what these tests are about."""

    def to_json(self) -> dict[str, object]:
        return {}


def scores(run: Path, path: Path | str, out: Path, **written: Any) -> list[float]:
    run_predict(run, Path(path), out, written=written)
    return pd.read_csv(out)["probability"].tolist()


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One run on a workbook and one on a German file with the same rows."""
    place = tmp_path_factory.mktemp("runs")
    rows().to_excel(place / "march.xlsx", index=False)
    german(rows(), place / "march.csv")
    return {name: run_on(place / f"march.{name}", place / f"run_{name}") for name in ("xlsx", "csv")}


@pytest.mark.parametrize("trained_on", ["xlsx", "csv"])
@pytest.mark.parametrize("name", ["t.csv.zip", "t.parquet", "t.xlsx", "t.sqlite", "german.csv"])
def test_every_form_of_the_same_rows_has_the_same_scores(
    trained_on: str, name: str, runs: dict[str, Path], tmp_path: Path
) -> None:
    new = rows(30, seed=1).drop(columns="y")
    expected = PUClassifier.load(runs["xlsx"] / "model").predict_proba(new)[:, 1]
    (german if name == "german.csv" else WRITERS[name])(new, tmp_path / name)
    assert scores(runs[trained_on], tmp_path / name, tmp_path / "out.csv") == pytest.approx(expected)


def test_new_rows_that_do_not_say_how_they_are_written(runs: dict[str, Path], tmp_path: Path) -> None:
    """Whole numbers with points between thousands look like fractions; the run knows better, --decimal best."""
    new = rows(30, seed=1).drop(columns="y").assign(a=500, b=-400, extra=0)
    new["whole"] = new["whole"].clip(lower=1_001)
    expected = PUClassifier.load(runs["xlsx"] / "model").predict_proba(new)[:, 1]
    path, out = tmp_path / "new.csv", tmp_path / "out.csv"
    new.assign(whole=[f"{value:,d}".replace(",", ".") for value in new["whole"]]).to_csv(path, index=False, sep=";")
    assert scores(runs["csv"], path, out) == pytest.approx(expected)
    assert scores(runs["xlsx"], path, out) != pytest.approx(expected)
    assert scores(runs["xlsx"], path, out, decimal=",") == pytest.approx(expected)


def test_new_rows_without_a_header_are_noticed(runs: dict[str, Path], tmp_path: Path) -> None:
    rows(30).drop(columns="y").to_csv(tmp_path / "new.csv", index=False, header=False)
    with pytest.raises(InputError, match=r"are missing.*first line looks like data .* --header no"):
        run_predict(runs["csv"], tmp_path / "new.csv", tmp_path / "out.csv")


def test_options_of_reading_reach_every_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = rows()
    frame.to_csv(tmp_path / "march.txt", index=False, header=False, sep=" ", encoding="utf-16", decimal=",")
    monkeypatch.chdir(tmp_path)

    def punce(*arguments: str) -> str:
        assert exit_code(monkeypatch, *arguments) == 0
        return " ".join(capsys.readouterr().out.split())

    how = ("--label", "column_6", "--header", "no", "--sep", "space", "--keep", "column_1", "--keep", "column_2")
    assert "'column_1' (" in punce("fit", "march.txt", *how, "--out", "run", "--prior", "0.3")
    assert "88 unlabelled rows" in punce("prior", "march.txt", *how, "--method", "bbe")
    kept = PUClassifier.load(tmp_path / "run" / "model")
    assert list(kept.feature_names_in_) == ["column_1", "column_2"]
    said = punce("predict", "run", "march.txt", "--out", "out.csv")  # separator and header as in the run
    assert "new and ignored" not in said
    assert "90 rows scored" in said
    expected = kept.predict_proba(frame[["a", "b"]].set_axis(["column_1", "column_2"], axis=1))[:, 1]
    assert pd.read_csv("out.csv")["probability"].to_numpy() == pytest.approx(expected)


def test_a_run_is_named_after_the_file_and_not_after_its_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with closing(sqlite3.connect("shop.db")) as shop:
        rows().to_sql("2026.May", shop, index=False)
    assert exit_code(monkeypatch, "fit", "shop.db::2026.May", "--label", "y", "--dry-run") == 0
    assert "write runs/shop;" in capsys.readouterr().out


# --- images that cannot be read -------------------------------------------------------------------------------------


def pictures(folder: Path, n: int) -> Path:
    folder.mkdir(parents=True)
    for k in range(n):
        pixels = np.random.default_rng(k).integers(0, 256, (8, 8), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{k:02d}.png")
    return folder


def test_pictures_that_cannot_be_read_are_left_out_and_listed(tmp_path: Path) -> None:
    pictures(tmp_path / "in" / "labelled", 12)
    new = pictures(tmp_path / "in" / "unlabelled", 24)
    for name in ("labelled/03.png", "unlabelled/07.png"):
        (tmp_path / "in" / name).write_bytes(b"no picture")
    source = DataOptions(str(tmp_path / "in"), None, skip_unreadable=True)
    data = source.read()
    assert len(data) == 34
    assert data.labels is not None
    assert data.labels.tolist() == [int(name.startswith("labelled")) for name in data.ids]
    assert "2 images cannot be read and are left out: labelled/03.png (" in data.notes[0]
    run = tmp_path / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("punce.product.fit.report_content", lambda *_: _NoContent())
        patch.setattr("punce.product.fit.write_report", lambda *_: None)
        run_fit(source, ModelOptions(prior=0.4, encoder="identity"), run, say=lambda _: None)
    listed = pd.read_csv(run / "unreadable.csv")
    assert listed["file"].tolist() == ["labelled/03.png", "unlabelled/07.png"]
    assert listed["reason"][0] == "cannot identify image file"  # without an address in memory
    done = run_predict(run, new, tmp_path / "out.csv", written={"skip_unreadable": True})
    assert done.rows == 23
    assert "1 image cannot be read" in done.notes[0]
    assert "07.png" not in pd.read_csv(tmp_path / "out.csv")["id"].tolist()


# --- frames of another library ----------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::punce.classifier.ClassifierWarning")
def test_polars_frames_are_read_as_pandas_ones() -> None:
    frame = rows().drop(columns="y")
    labels = rows()["y"]
    ours = PUClassifier(prior=0.3).fit(frame, labels)
    theirs = PUClassifier(prior=0.3).fit(pl.from_pandas(frame), pl.Series("y", labels.tolist()))
    assert theirs.feature_names_in_.tolist() == list(frame.columns)
    np.testing.assert_array_equal(theirs.scores_, ours.scores_)
    np.testing.assert_array_equal(theirs.predict_proba(pl.from_pandas(frame)), ours.predict_proba(frame))
    np.testing.assert_array_equal(ours.predict(pl.from_pandas(frame).lazy()), ours.predict(frame))
    words = pl.Series("y", ["yes" if one else None for one in labels])
    np.testing.assert_array_equal(PUClassifier(prior=0.3).fit(pl.from_pandas(frame), words).scores_, ours.scores_)


@pytest.mark.filterwarnings("ignore::punce.classifier.ClassifierWarning")
def test_what_a_masked_array_hides_is_missing() -> None:
    X, labels = rows()[["a", "b"]].to_numpy(), rows()["y"].to_numpy()
    hidden = np.arange(X.size).reshape(X.shape) % 7 == 0
    masked = np.ma.MaskedArray(np.where(hidden, 999.0, X), hidden)
    plain = PUClassifier(prior=0.3).fit(np.where(hidden, np.nan, X), labels)
    found = PUClassifier(prior=0.3).fit(masked, np.ma.MaskedArray(np.ones_like(labels), labels == 0))
    np.testing.assert_array_equal(found.scores_, plain.scores_)
    np.testing.assert_array_equal(found.predict_proba(masked), plain.predict_proba(np.where(hidden, np.nan, X)))


@pytest.mark.parametrize("X", ["rows.csv", 5, None, {"a": [1, 2]}])
def test_what_holds_no_rows_is_refused(X: Any) -> None:
    with pytest.raises(InputError, match="X must hold rows"):
        PUClassifier().fit(X, [1, 0])


def test_a_list_of_dictionaries_is_refused_with_what_makes_a_table_of_it() -> None:
    with pytest.raises(InputError, match=r"pandas.DataFrame\(X\) makes a table"):
        PUClassifier().fit([{"a": 1}, {"a": 2}], [1, 0])


def test_a_column_of_vectors_is_refused_with_what_makes_a_matrix_of_it() -> None:
    """The advice was to give kind='embedding', which had been given."""
    with pytest.raises(InputError, match=r"np.stack\(X\) makes a matrix"):
        PUClassifier(kind="embedding").fit(pd.Series([np.zeros(2), np.ones(2)]), [1, 0])


def test_rows_of_different_lengths_are_refused_in_words_of_rows() -> None:
    with pytest.raises(InputError, match="must all have the same length"):
        PUClassifier(kind="embedding").fit([[1.0, 2.0], [1.0]], [1, 0])
