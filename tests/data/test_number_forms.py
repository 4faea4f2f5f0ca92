"""Numbers as people write them, in files: the column decides, then the file, then the run a model comes from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer

from punce.columns.number_forms import NumberForms
from punce.columns.written import is_other_unit
from punce.data import TableEncoder, read, stream
from punce.data.read import read_at_most
from punce.errors import InputError


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def values(path: Path, **options: Any) -> dict[str, list[Any]]:
    """What :func:`read` gives, which :func:`stream` must give too."""
    data = read(path, "y", **options)
    streamed = next(stream(path, "y", **options).batches())
    pd.testing.assert_frame_equal(streamed.features, data.features, check_dtype=False)
    assert data.labels is not None
    assert data.labels.tolist() == [1, 0, 0]
    return data.features.to_dict("list")


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_decimal_commas(separator: str, tmp_path: Path) -> None:
    text = "a;b;n;day;y\n3,5;-1,25;7;12.03.2024;1\n4,25;0,5;8;13.03.2024;0\n5,0;1,5;9;14.03.2024;0\n"
    path = write(tmp_path / "t.csv", text.replace(";", separator))
    assert values(path) == {
        "a": [3.5, 4.25, 5.0],
        "b": [-1.25, 0.5, 1.5],
        "n": [7, 8, 9],
        "day": ["12.03.2024", "13.03.2024", "14.03.2024"],
    }
    data = read(path, "y")
    assert data.notes == ("2 columns are numbers as people write them: 'a' ('4,25' is 4.25), 'b' ('-1,25' is -1.25)",)
    assert data.number_forms.decimal == ","


def test_labels_with_a_decimal_comma_are_the_same_however_much_is_read(tmp_path: Path) -> None:
    rows = "".join(f"{i},5;{'1,0' if i < 4 else '0,0'}\n" for i in range(40))
    path = write(tmp_path / "t.csv", "a;y\n" + rows)
    for data in (read(path, "y"), stream(path, "y"), read_at_most(path, "y", max_rows=30)):
        assert data.labels is not None
        assert data.labels[:5].tolist() == [1, 1, 1, 1, 0]


def test_quoted_decimal_commas_between_commas(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", 'a,b,y\n"3,5",0.5,1\n"4,25",1.5,0\n"5,0",2.25,0\n')
    assert values(path) == {"a": [3.5, 4.25, 5.0], "b": [0.5, 1.5, 2.25]}


def test_thousands_currencies_per_cent_and_brackets(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.csv",
        "sum\tprice\tshare\tchange\tspaced\ty\n"
        "1,234.50\t€3.50\t12 %\t(3.5)\t1 234\t1\n"
        "999\t€4\t5%\t2\t999\t0\n"
        "1,000,000\t€1,200.10\t0\t1.5\t12 345\t0\n",
    )
    assert values(path) == {
        "sum": [1234.5, 999.0, 1e6],
        "price": [3.5, 4.0, 1200.1],
        "share": [12.0, 5.0, 0.0],
        "change": [-3.5, 2.0, 1.5],
        "spaced": [1234.0, 999.0, 12345.0],
    }
    assert "'sum' ('1,000,000' is 1000000), 'price' ('€1,200.10' is 1200.1)" in read(path, "y").notes[0]
    assert "and 1 more" in read(path, "y").notes[0]


AMBIGUOUS = "a;b;y\n1,234;{};1\n2,345;{};0\n999;{};0\n"


def test_the_separator_decides_what_nothing_else_does(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", AMBIGUOUS.format("x", "y", "z"))
    assert values(path)["a"] == [1.234, 2.345, 999.0]
    assert (
        "'a' could be read in two ways: the decimal mark is taken to be , because ; separates"
        in read(path, "y").notes[1]
    )
    assert values(path, decimal=".")["a"] == [1234.0, 2345.0, 999.0]
    assert "as asked (--decimal , for the other)" in read(path, "y", decimal=".").notes[1]
    tabs = write(tmp_path / "t.tsv", AMBIGUOUS.format("x", "y", "z").replace(";", "\t"))
    assert values(tabs)["a"] == [1234.0, 2345.0, 999.0]
    assert values(tabs, decimal=",")["a"] == [1.234, 2.345, 999.0]
    assert "as nothing says otherwise (--decimal , for the other)" in read(tabs, "y").notes[1]


def test_other_columns_decide_what_the_column_does_not_say(tmp_path: Path) -> None:
    points = write(tmp_path / "points.csv", AMBIGUOUS.format("0.5", "0.25", "1.5"))
    assert values(points) == {"a": [1234.0, 2345.0, 999.0], "b": [0.5, 0.25, 1.5]}
    commas = write(tmp_path / "commas.csv", "a;b;y\n1.234;0,5;1\n2.345;0,25;0\n999;1,5;0\n")
    assert values(commas) == {"a": [1234.0, 2345.0, 999.0], "b": [0.5, 0.25, 1.5]}
    assert "the decimal mark is taken to be , as in" in " ".join(read(commas, "y").notes)


def test_a_plain_file_is_read_as_ever_and_says_nothing(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "a;b;c;y\n1.234;01;x;1\n2.345;2A;y;0\n3.456;03;z;0\n")
    assert values(path) == {"a": [1.234, 2.345, 3.456], "b": ["01", "2A", "03"], "c": ["x", "y", "z"]}
    assert read(path, "y").notes == ()
    assert read(path, "y").number_forms.to_json() == {}


def test_a_column_that_the_mark_does_not_fit_is_not_shown_as_if_it_did(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "a;b;y\n2.723;1,5;1\n0.25;2,5;0\n1.5;3,5;0\n")
    assert read(path, "y", decimal=",").notes == ("the decimal mark , does not fit 'a': read with .",)


def test_what_is_mixed_stays_text_and_is_said(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "a;b;y\n€3;1,5;1\n$4;2.5;0\n€5;3.5;0\n")
    assert values(path) == {"a": ["€3", "$4", "€5"], "b": ["1,5", "2.5", "3.5"]}
    assert read(path, "y").notes == ("'a', 'b' mix several ways to write numbers, or currencies, and stay text",)
    only_b = read(path, "y", keep=["b"]).notes
    assert only_b == ("'b' mixes several ways to write numbers, or currencies, and stays text",)


def test_odd_words_count_as_missing_and_are_said(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "a\ty\n" + "".join(f"{k},5\t{int(k < 5)}\n" for k in range(60)) + "?\t0\n")
    data = read(path, "y")
    assert int(data.features["a"].isna().sum()) == 1
    assert "column 'a': 1 value is no number and counts as missing, e.g. ['?']" in data.notes


def test_names_labels_and_codes_are_left_alone(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.csv", "a\tb\tc\td\ty\n1,5\t1,5\t1,5\t1,5\t1\n2,5\t2,5\t2,5\t2,5\t0\n3,5\t3,5\t3,5\t3,5\t0\n"
    )
    data = read(path, "y", id="a", as_text=["b"], drop=["d"])
    assert data.ids.tolist() == ["1,5", "2,5", "3,5"]
    assert data.features.to_dict("list") == {"b": ["1,5", "2,5", "3,5"], "c": [1.5, 2.5, 3.5]}
    labels = write(tmp_path / "labels.csv", "x;y\n1,5;1,0\n2,5;0,0\n3,5;0,0\n")
    assert values(labels) == {"x": [1.5, 2.5, 3.5]}


@pytest.mark.parametrize("options", [{"keep": ["c"]}, {"text": "c"}, {"columns": ["c"]}])
def test_columns_that_nothing_is_learned_from_decide_the_mark_and_are_not_spoken_of(
    options: dict[str, Any], tmp_path: Path
) -> None:
    rows = "".join(f"{k},5\t1.{k % 10}34\t{int(k < 3)}\n" for k in range(30)) + "?\t1.234\t0\n"
    path = write(tmp_path / "t.csv", "a\tc\ty\n" + rows)
    notes = " ".join(read(path, "y", **options).notes)
    assert "numbers as people write" not in notes.replace("1 column holds numbers as people write them: 'c'", "")
    assert "column 'a'" not in notes
    if "text" not in options:
        assert read(path, "y", **options).features["c"].iloc[3] == 1334.0


@pytest.mark.parametrize("name", ["t.xlsx", "t.parquet", "t.jsonl"])
def test_text_in_files_that_know_their_types(name: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": ["3,5", "4,25", "5"], "b": [1.5, 2.5, 3.5], "y": [1, 0, 0]})
    path = tmp_path / name
    writer: Any = {"t.xlsx": frame.to_excel, "t.parquet": frame.to_parquet, "t.jsonl": frame.to_json}[name]
    writer(path, **({"orient": "records", "lines": True} if name == "t.jsonl" else {"index": False}))
    assert values(path) == {"a": [3.5, 4.25, 5.0], "b": [1.5, 2.5, 3.5]}


def test_a_new_file_is_read_as_the_run_read_its_own(tmp_path: Path) -> None:
    first = write(tmp_path / "first.csv", "a;b;y\n1.234;0,5;1\n2.345;0,25;0\n999;1,5;0\n")
    known = NumberForms.from_json(read(first, "y").number_forms.to_json())
    short = write(tmp_path / "short.csv", "a;b;y\n1.234;5;1\n2.345;7;0\n8.999;9;0\n")  # nothing in it says how
    assert values(short)["a"] == [1.234, 2.345, 8.999]
    assert values(short, number_forms=known)["a"] == [1234.0, 2345.0, 8999.0]
    english = write(tmp_path / "english.csv", "a,b,y\n1234,0.5,1\n2345,0.25,0\n999,1.5,0\n")
    assert values(english, number_forms=known) == {"a": [1234, 2345, 999], "b": [0.5, 0.25, 1.5]}


def test_amounts_in_another_currency_than_those_of_the_run_are_told(tmp_path: Path) -> None:
    said = "column 'a': its numbers are in $ and not in €, as in the rows the model learned from"
    said += "; they are taken as they are"
    euros = "a,b,y\n€3.50,1,1\n€4.25,2,0\n€5.00,3,0\n"
    first = read(write(tmp_path / "first.csv", euros), "y")
    for unit, is_told in (("$", True), ("€", False), ("EUR ", False), ("", False)):
        new = write(tmp_path / "new.csv", euros.replace("€", unit))
        notes = read(new, "y", number_forms=first.number_forms).notes
        assert (said in notes) is is_told
    frame = pd.DataFrame({"a": ["€3.50", "€4.25", "€5.00"], "b": [1, 2, 3]})
    encoder = TableEncoder.fit(frame)
    assert encoder.transform(frame).notes == ()
    assert encoder.transform(frame.replace("€", "$", regex=True)).notes == (said,)


@pytest.mark.parametrize(("rates", "is_told"), [([0.125, 0.06, 0.0], True), ([0.0, 0.0, None], False)])
def test_per_cents_that_come_without_their_sign_are_told(tmp_path: Path, rates: list[float], is_told: bool) -> None:
    said = "column 'rate': its numbers are written without %, and with it in the rows the model learned from; "
    said += "they are taken as they are, 0.12 as 0.12 %"
    frame = pd.DataFrame({"rate": ["12.5 %", "6 %", "0"], "b": [1, 2, 3], "y": [1, 0, 0]})
    frame.to_csv(tmp_path / "first.csv", index=False)
    frame.assign(rate=rates).to_csv(tmp_path / "new.csv", index=False)
    first = read(tmp_path / "first.csv", "y")
    assert (said in read(tmp_path / "new.csv", "y", number_forms=first.number_forms).notes) is is_told
    encoder = TableEncoder.fit(frame)
    assert encoder.transform(frame).notes == ()
    assert (said in encoder.transform(frame.assign(rate=rates)).notes) is is_told


@pytest.mark.parametrize(
    ("before", "now", "is_other"),
    [("€", "$", True), ("SEK", "NOK", True), ("€", "EUR", False), ("EUR", "€", False), ("kr", "NOK", False)],
)
def test_a_code_and_its_sign_are_one_currency(before: str, now: str, is_other: bool) -> None:
    assert is_other_unit(before, now) is is_other


def test_the_run_knows_the_mark_of_single_columns(tmp_path: Path) -> None:
    first = write(tmp_path / "first.csv", 'a,b,y\n"3,5",0.5,1\n"4,25",1.5,0\n"5,0",2.25,0\n')
    known = read(first, "y").number_forms
    new = write(tmp_path / "new.csv", 'a,b,y\n"1,234",0.5,1\n"2,345",1.5,0\n"3,456",2.25,0\n')
    assert values(new)["a"] == [1234.0, 2345.0, 3456.0]
    assert values(new, number_forms=known)["a"] == [1.234, 2.345, 3.456]
    assert values(new, number_forms=known, decimal=".")["a"] == [1234.0, 2345.0, 3456.0]
    said = "'a' could be read in two ways: the decimal mark is taken to be , as in the rows the model learned from"
    assert said in read(new, "y", number_forms=known).notes[1]


def test_batches_are_read_alike(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "a\n" + "".join(f"{k}\n" for k in range(20)) + '"1,000"\n"1,001"\n')
    parts = [batch.features["a"].to_numpy() for batch in stream(path, batch_rows=8).batches()]
    assert np.concatenate(parts).tolist() == [*range(20), 1000, 1001]


def test_a_decimal_mark_must_be_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--decimal must be a point or a comma, got ';'"):
        read(write(tmp_path / "t.csv", "a,y\n1,1\n2,0\n"), "y", decimal=";")


def test_a_real_table_with_decimal_commas_has_the_same_bits(tmp_path: Path) -> None:
    frame = load_breast_cancer(as_frame=True).data.assign(y=(np.arange(569) < 100).astype(int))
    frame.to_csv(tmp_path / "plain.csv", index=False)
    frame.to_csv(tmp_path / "comma.csv", index=False, sep=";", decimal=",")
    plain, comma = (read(tmp_path / f"{name}.csv", "y").features for name in ("plain", "comma"))
    pd.testing.assert_frame_equal(comma, plain, check_exact=True)
    assert read(tmp_path / "comma.csv", "y").notes[0].startswith("30 columns are numbers as people write them")
