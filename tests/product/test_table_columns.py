"""Every model of a table, the first prior's too, reads its columns in one way, in training and next week."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from punce import PUClassifier
from punce.data import UserData
from punce.errors import InputError
from punce.models.columns import Columns
from punce.models.table import TableRoute, TableWarning
from punce.priors import estimate_prior
from punce.priors.features import Rows, as_rows
from punce.product.predict import _Notes, run_predict
from tests.in_process import exit_code

pytestmark = pytest.mark.usefixtures("quick_tables")
ROWS = 200


def problem() -> tuple[pd.DataFrame, npt.NDArray[np.int8]]:
    """Floats and plain categories; half of the unlabelled rows are positive, and labelled rows come first."""
    random = np.random.default_rng(0)
    labels = (np.arange(ROWS) < 60).astype(np.int8)
    y = (labels == 1) | (np.arange(ROWS) % 2 == 0)
    frame = pd.DataFrame(random.normal(2.0 * y[:, None], 1.0, (ROWS, 2)), columns=["a", "b"])
    frame["town"] = np.where(y, random.choice(["Ulm", "Bonn"], ROWS), random.choice(["Bonn", "Kiel"], ROWS))
    return frame, labels


def prepared(X: Any) -> Any:
    """What the first prior is estimated on."""
    classifier = PUClassifier()
    classifier.seed_, classifier.kind_, classifier.encoder_ = 0, "table", "auto"
    return TableRoute().prepare(X, classifier._settings(None))


def same(one: Rows, other: Rows) -> bool:
    return bool(np.array_equal(one.values, other.values, equal_nan=True)) and bool(
        (one.categorical == other.categorical).all()
    )


def clean_tables() -> dict[str, Any]:
    frame, _ = problem()
    gaps = frame.mask(np.random.default_rng(1).random(frame.shape) < 0.1)
    more = frame.assign(
        count=np.arange(ROWS) % 7, flag=frame["a"] > 0, small=frame["b"].astype(np.float32), constant=1.0
    )
    return {
        "floats and categories": frame,
        "gaps": gaps,
        "other numbers": more,
        "categories by type": frame.astype({"town": "category"}),
        "many levels": frame.assign(street=[f"street {k % 150}" for k in range(ROWS)]),
        "shuffled index": frame.sample(frac=1.0, random_state=0),
        "matrix": frame[["a", "b"]].to_numpy(),
        "matrix of integers": np.random.default_rng(2).integers(0, 300, (ROWS, 300)),
    }


@pytest.mark.parametrize("name", list(clean_tables()))
def test_a_clean_table_gives_the_prior_the_same_bits_as_the_table_itself(name: str) -> None:
    table = clean_tables()[name]
    assert same(as_rows(prepared(table)), as_rows(table))


def test_a_clean_table_has_the_prior_of_the_table_itself() -> None:
    frame, labels = problem()
    direct, through = (estimate_prior(X, labels, random_state=0) for X in (frame, prepared(frame)))
    assert (direct.value, direct.low, direct.high) == (through.value, through.low, through.high)


def test_row_numbers_do_not_reach_the_prior() -> None:
    frame, labels = problem()
    numbered = frame.assign(**{"Unnamed: 0": np.arange(ROWS)})  # saved with its index, labelled rows first
    assert same(as_rows(prepared(numbered)), as_rows(frame))
    assert PUClassifier().fit(numbered, labels).first_prior_.value == pytest.approx(0.5, abs=0.2)


def test_the_prior_reads_numbers_and_dates_as_the_model_does() -> None:
    frame, _ = problem()
    days = pd.Series(pd.date_range("2024-01-01", periods=ROWS, freq="37h"))
    dirty = frame.assign(
        a=frame["a"].astype(object).where(frame.index % 50 != 3, "?"),
        b=frame["b"].where(frame.index != 5, np.inf),
        day=days.dt.strftime("%Y-%m-%d %H:%M:%S"),
    )
    read = prepared(dirty)
    assert read.names == ("a", "b", "town", "day:days", "day:weekday", "day:month", "day:hour")
    assert as_rows(read).categorical.tolist() == [False, False, True, False, False, False, False]
    a, b, weekday = read.values[:, 0], read.values[:, 1], read.values[:, 4]
    assert np.flatnonzero(np.isnan(a)).tolist() == [3, 53, 103, 153]
    assert a[~np.isnan(a)] == pytest.approx(frame["a"].to_numpy()[~np.isnan(a)])
    assert np.flatnonzero(np.isnan(b)).tolist() == [5]
    assert weekday.tolist() == days.dt.day_of_week.tolist()


@pytest.mark.filterwarnings("ignore::punce.classifier.ClassifierWarning")  # what the fit says of its labels
@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e300])
def test_what_is_too_large_for_the_prior_does_not_stop_a_fit(value: float) -> None:
    frame, labels = problem()
    frame.loc[5, "b"] = value
    assert 0.0 < PUClassifier().fit(frame, labels).prior_.value < 1.0


def test_columns_may_have_the_names_of_a_dates_parts() -> None:
    frame, _ = problem()
    frame["day"] = pd.date_range("2024-01-01", periods=ROWS)
    assert as_rows(prepared(frame.rename(columns={"a": "day:days"}))).values.shape == (ROWS, 6)


# Next week's file ----------------------------------------------------------------------------------------------------


def departments() -> tuple[pd.DataFrame, npt.NDArray[np.int8]]:
    """The problem with codes of which most are digits: 01 … 19 and 2A, informative ones."""
    frame, labels = problem()
    codes = np.array([f"{k:02d}" for k in range(1, 20)] + ["2A"])
    frame["town"] = codes[(7 * np.arange(ROWS) + (frame["a"] > 1.0) * 3) % 20]
    return frame, labels


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on departments, read from a file."""
    folder = tmp_path_factory.mktemp("departments")
    frame, labels = departments()
    frame.assign(y=labels).to_csv(folder / "march.csv", index=False)
    with pytest.MonkeyPatch.context() as patch:
        options = ("--label", "y", "--prior", 0.5, "--drop", "b", "--out", folder / "run")
        assert exit_code(patch, "fit", folder / "march.csv", *options) == 0
    return folder


@pytest.mark.parametrize("batch_rows", [7, 1000])
def test_codes_of_digits_keep_their_names_in_another_file(model: Path, batch_rows: int, tmp_path: Path) -> None:
    frame, _ = departments()
    some = frame[frame["town"] != "2A"].reset_index(drop=True)  # pandas would read what is left as whole numbers
    some.to_csv(tmp_path / "april.csv", index=False)
    done = run_predict(model / "run", tmp_path / "april.csv", tmp_path / "scores.csv", batch_rows=batch_rows)
    expected = PUClassifier.load(model / "run" / "model").predict_proba(some.drop(columns="b"))[:, 1]
    assert pd.read_csv(tmp_path / "scores.csv")["probability"].to_numpy() == pytest.approx(expected)
    assert done.notes == ()


def test_the_file_of_the_fit_holds_no_new_columns(model: Path, tmp_path: Path) -> None:
    assert run_predict(model / "run", model / "march.csv", tmp_path / "scores.csv").notes == ()


def test_two_notes_on_one_column_are_both_told() -> None:
    """The second one was dropped and counted as a later batch of the first."""
    notes = _Notes()
    first = [
        "column 'a': 3 values are no number and count as missing, e.g. ['x', 'y']",
        "column 'a': 2 values are huge",
    ]
    later = ["column 'a': 1 value is no number and counts as missing, e.g. ['z']"]
    for start, told in enumerate((first, later)):
        batch = UserData("table", pd.DataFrame({"a": [0.0]}), None, pd.RangeIndex(1), "b.csv", notes=tuple(told))
        with notes.of_batch(batch, start):
            pass
    assert notes.lines() == (f"rows 0 to 0: {first[0]} (and in 1 later batch)", f"rows 0 to 0: {first[1]}")


def test_predict_says_once_what_is_new(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    frame, _ = departments()
    frame = frame.assign(town=frame["town"].replace("2A", "2B"), **{"bell\x07": 1})
    frame.to_csv(tmp_path / "april.csv", index=False)
    assert exit_code(monkeypatch, "predict", model / "run", tmp_path / "april.csv", "--batch-rows", 50) == 0
    notes = [line for line in capsys.readouterr().out.splitlines() if line.startswith("note: ")]
    assert len(notes) == 2
    assert "note: rows 0 to 49: column 'town': " in notes[0]
    assert "values are of unknown categories such as ['2B'] (and in 3 later batches)" in notes[0]
    assert notes[1] == "note: 1 column is new and ignored: 'bell\\x07'"  # in every batch, so of no rows of its own


def test_predict_refuses_amounts_that_are_no_numbers_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    frame, labels = problem()
    frame["a"] = [f"{value:.2f} €" for value in frame["a"]]
    frame["fee"] = "3.50 €"  # constant, so that it is not learned from and may hold anything
    frame.assign(y=labels).to_csv(tmp_path / "march.csv", index=False)
    command = ("fit", tmp_path / "march.csv", "--label", "y", "--prior", 0.5, "--out", tmp_path / "run")
    assert exit_code(monkeypatch, *command) == 0
    frame.assign(fee="none").to_csv(tmp_path / "april.csv", index=False)
    assert exit_code(monkeypatch, "predict", tmp_path / "run", tmp_path / "april.csv") == 0
    capsys.readouterr()
    frame.assign(a="high").to_csv(tmp_path / "may.csv", index=False)
    assert exit_code(monkeypatch, "predict", tmp_path / "run", tmp_path / "may.csv") == 2
    assert "'a' held numbers in the rows that were learned from" in capsys.readouterr().err
    assert not (tmp_path / "may.scores.parquet").exists()


def test_a_note_on_all_rows_names_no_rows(model: Path, tmp_path: Path) -> None:
    frame, _ = departments()
    frame.assign(town=frame["town"].replace("2A", "2B")).to_csv(tmp_path / "april.csv", index=False)
    done = run_predict(model / "run", tmp_path / "april.csv", tmp_path / "scores.csv")
    assert [note.partition(":")[0] for note in done.notes if "town" in note] == ["column 'town'"]


def test_scoring_warns_of_what_the_fit_has_not_said() -> None:
    frame, labels = problem()
    dirty = frame.assign(a=frame["a"].astype(object).where(frame.index % 50 != 3, "?"))
    classifier = PUClassifier(prior=0.5).fit(dirty, labels)
    note = "column 'a': 4 values are no number and count as missing, e.g. ['?']"
    assert classifier.notes_ == (note,)
    classifier.predict_proba(dirty)  # known from the fit
    with pytest.warns(TableWarning, match="'town': 200 values are of unknown categories") as caught:
        classifier.predict_proba(frame.assign(town="Rome"))
    assert [str(w.message).partition(":")[0] for w in caught] == ["column 'town'"]
    assert caught[0].filename == __file__
    classifier.embed(frame.assign(town="Rome"))  # the image of a report repeats nothing


def test_a_refusal_that_names_some_of_many_missing_columns_says_how_many_more() -> None:
    frame = pd.DataFrame(0.0, index=range(3), columns=[f"c{k}" for k in range(12)])
    with pytest.raises(InputError, match=r"are missing: 'c2', .* 'c9' and 2 more; the table has 'c0', 'c1'$"):
        Columns.of(frame).take(frame[["c0", "c1"]], "PUClassifier")


def test_a_refusal_of_a_missing_column_names_a_new_one_that_is_spelled_alike() -> None:
    frame = pd.DataFrame(0.0, index=range(3), columns=["amount_1", "amount_2", "x"])
    columns = Columns.of(frame)
    with pytest.raises(InputError, match=r"are missing: 'amount_1'; .*; did you mean 'Amount 1'\?$"):
        columns.take(frame.rename(columns={"amount_1": "Amount 1"}), "PUClassifier")
    # 'amount_2' was learned from itself
    with pytest.raises(InputError, match=r"the table has 'amount_2', 'x'$"):
        columns.take(frame[["amount_2", "x"]], "PUClassifier")


def test_a_model_of_a_matrix_says_that_a_table_with_names_is_no_matrix() -> None:
    frame, labels = problem()
    matrix = frame[["a", "b"]].to_numpy()
    model = PUClassifier(prior=0.3).fit(matrix, labels)
    with pytest.raises(InputError, match=r"learned from a matrix, whose columns have no names.*X.to_numpy\(\)"):
        model.predict_proba(frame[["a", "b"]])
    named = pd.DataFrame(matrix, columns=["x0", "x1"])  # as its columns are called in importances and reasons
    np.testing.assert_array_equal(model.predict_proba(named), model.predict_proba(matrix))
