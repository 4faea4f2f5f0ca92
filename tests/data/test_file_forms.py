"""Files as real programs write them: encodings, separators, headers, packed files, workbooks, databases."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import sqlite3
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from punce.data import check, read, read_at_most, stream
from punce.errors import InputError


def rows(n: int = 40) -> pd.DataFrame:
    random = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "amount": random.normal(size=n).round(3),
            "town": random.choice(["Köln", "Bonn", "Zürich"], n),
            "day": pd.date_range("2024-01-30", periods=n).strftime("%Y-%m-%d"),
            "label": (np.arange(n) % 4 == 0).astype(int),
        }
    )


def write_sqlite(frame: pd.DataFrame, path: Path, table: str = "rows") -> None:
    with closing(sqlite3.connect(path)) as database:
        frame.to_sql(table, database, index=False)


def write_arrow_stream(frame: pd.DataFrame, path: Path) -> None:
    table = pa.Table.from_pandas(frame)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


def write_zip(frame: pd.DataFrame, path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:  # as the Finder packs it
        archive.writestr("rows.csv", frame.to_csv(index=False))
        archive.writestr("__MACOSX/._rows.csv", b"\0\0")


def as_csv(frame: pd.DataFrame) -> bytes:
    return frame.to_csv(index=False).encode()


WRITERS: dict[str, Callable[[pd.DataFrame, Path], Any]] = {
    "t.csv": lambda f, p: f.to_csv(p, index=False),
    "t.txt": lambda f, p: f.to_csv(p, index=False, sep="|"),
    "t.tsv": lambda f, p: f.to_csv(p, index=False, sep="\t"),
    "t.data": lambda f, p: f.to_csv(p, index=False),
    "t.csv.gz": lambda f, p: p.write_bytes(gzip.compress(as_csv(f))),
    "t.csv.bz2": lambda f, p: p.write_bytes(bz2.compress(as_csv(f))),
    "t.csv.xz": lambda f, p: p.write_bytes(lzma.compress(as_csv(f))),
    "t.csv.zip": write_zip,
    "t.zip": write_zip,
    "packed but not said.csv": lambda f, p: p.write_bytes(gzip.compress(as_csv(f))),
    "t.parquet": lambda f, p: f.to_parquet(p),
    "t.feather": lambda f, p: f.to_feather(p),
    "t.arrow": write_arrow_stream,
    "t.xlsx": lambda f, p: f.to_excel(p, index=False),
    "t.jsonl": lambda f, p: f.to_json(p, orient="records", lines=True),
    "t.jsonl.gz": lambda f, p: f.to_json(p, orient="records", lines=True),
    "t.json": lambda f, p: f.to_json(p, orient="records"),
    "t.sqlite": write_sqlite,
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_form_gives_the_same_rows_whole_and_in_batches(name: str, tmp_path: Path) -> None:
    frame = rows()
    WRITERS[name](frame, tmp_path / name)
    data = read(tmp_path / name, "label")
    expected = frame.drop(columns="label")
    pd.testing.assert_frame_equal(data.features, expected, check_dtype=False)
    assert data.labels is not None
    assert data.labels.tolist() == frame["label"].tolist()
    assert data.notes == ()
    batches = list(stream(tmp_path / name, "label", batch_rows=16).batches())
    assert [len(batch) for batch in batches] == [16, 16, 8]
    joined = pd.concat([batch.features for batch in batches], ignore_index=True)
    pd.testing.assert_frame_equal(joined, expected, check_dtype=False)


# --- encodings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252", "latin-1"])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_the_encoding_is_found_and_a_guess_is_said(encoding: str, separator: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    rows().to_csv(path, index=False, sep=separator, encoding=encoding)
    data = read(path, "label")
    assert data.features["town"].tolist() == rows()["town"].tolist()
    guessed = encoding in ("cp1252", "latin-1")
    assert ["read as Windows-1252" in note for note in data.notes] == [True] * guessed
    assert read(path, "label", encoding=encoding).notes == ()
    assert stream(path, "label").notes == data.notes


def test_bytes_that_windows_1252_does_not_have_are_latin_1(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("town,label\nK\x81öln,1\nx,0\n".encode("latin-1"))
    data = read(tmp_path / "t.csv", "label")
    assert data.features["town"].tolist() == ["K\x81öln", "x"]
    assert "Latin-1" in data.notes[0]


def test_encodings_that_cannot_be(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("a,label\nKöln,1\nBönn,0\n".encode() + "Zürich,0\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"mixes encodings: line 4 is not UTF-8 \(byte 0xfc\)"):
        read(path, "label")
    assert len(read(path, "label", encoding="latin-1")) == 3
    with pytest.raises(InputError, match=r"line 4: byte 0xfc is not utf-8"):
        read(path, "label", encoding="utf-8")
    for name in ("klingon", "base64", "undefined"):
        with pytest.raises(InputError, match=f"--encoding '{name}' is not known"):
            read(path, "label", encoding=name)
    with pytest.raises(InputError, match="line 1: the text is not utf-16; name another one"):
        read(path, "label", encoding="utf-16")
    path.write_bytes(b"a,label\n1\x00,1\n2,0\n")
    with pytest.raises(InputError, match="is not text: byte 9 is 0"):
        read(path, "label")


# --- separators and headers -------------------------------------------------------------------------------------------


def test_quotes_are_respected_when_the_separator_is_found(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('"a, b, c";"d, e";label\n"1, 2, 3";4,5;1\n"x";5,5;0\n')
    assert read(path, "label").columns == ("a, b, c", "d, e")


def test_a_separator_can_be_said(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text("a b label\n1 2 1\n3 4 0\n")
    for said in (" ", "space"):
        assert read(path, "label", sep=said).features.to_numpy().tolist() == [[1, 2], [3, 4]]
    with pytest.raises(InputError, match="--sep must be one character"):
        read(path, "label", sep="::")
    path.write_text("sep=^\na^label\n1^1\n2^0\n")  # as Excel says it
    assert read(path, "label").features["a"].tolist() == [1, 2]


def test_any_number_of_spaces_and_tabs_can_separate(tmp_path: Path) -> None:
    """As in many tables of UCI, which are aligned; a name of several words is in quotes."""
    path = tmp_path / "auto.txt"
    lines = ["   mpg  zip   label \t 'name'", ' 18.0   00501  1 \t "buick  skylark 320"  ', "", "9.5 01001\t0  x"]
    path.write_text("\r\n".join([lines[0].replace("'", '"'), *lines[1:] * 3]) + "\r\n")
    for said in ("whitespace", r"\s+"):
        data = read(path, "label", sep=said)
        assert data.columns == ("mpg", "zip", "name")
        assert data.features.iloc[:2].to_numpy().tolist() == [
            [18.0, "00501", "buick  skylark 320"],
            [9.5, "01001", "x"],
        ]
        assert data.labels is not None
        assert data.labels.tolist() == [1, 0] * 3
        assert not any("fewer cells" in note for note in data.notes)
    batches = [*stream(path, "label", sep="whitespace", batch_rows=2).batches()]
    assert pd.concat([batch.features for batch in batches], ignore_index=True).equals(data.features)
    path.write_text("a b label\n1  2   1\n3     0\n4 5 1\n")
    assert read(path, "label", sep="whitespace").notes[0].startswith("1 line has fewer cells than the 3 columns")


def test_names_lose_the_spaces_around_them(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a, b , label\n1, x, 1\n2, y, 0\n")
    assert read(tmp_path / "t.csv", "label").columns == ("a", "b")


def test_a_file_whose_separator_was_not_found_is_told_how_to_name_it(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a:b:label\n1:x:1\n2:y:0\n")
    for options in ({"label": "label"}, {"id": "a"}, {"category": ["b"]}):
        with pytest.raises(InputError, match=r"it has: a:b:label\); if that is several columns, --sep names what"):
            read(path, **options)  # type: ignore[arg-type]
    assert len(read(path, "label", sep=":").columns) == 2
    path.write_text("a\n1\n2\n")
    assert read(path).notes == ()  # one column can be meant


def test_a_file_without_a_header_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("5.1,3.5,setosa,1\n4.9,3.0,setosa,0\n6.2,2.9,other,0\n")
    with pytest.raises(InputError, match=r"no column 'label'.*first line looks like data \(5\.1, 3\.5, setosa, …\)"):
        read(path, "label")
    data = read(path, "column_4", header="no")
    assert data.columns == ("column_1", "column_2", "column_3")
    assert len(data) == 3
    assert "looks like data" in read(path).notes[0]
    assert read(path, header="yes").notes == ()
    with pytest.raises(InputError, match="--header must be"):
        read(path, header="perhaps")  # type: ignore[typeddict-item]
    path.write_text("1,1,0\n4,4,1\n")
    with pytest.raises(InputError, match=r"occur twice: \['1'\].*--header no"):
        read(path, "label")


@pytest.mark.parametrize("cell", ["\x1c7", "9" * 5000, "\u0667"])
def test_a_first_line_of_numbers_that_int_refuses_or_reads_otherwise(cell: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(f"{cell},8,1.5\n1,2,3\n")
    with pytest.raises(InputError, match="no column 'label'"):
        read(tmp_path / "t.csv", "label")


@pytest.mark.parametrize("header", ["0,1,2,label", "2019,2020,2021,label", "a,b,3,label"])
def test_names_that_are_numbers_are_names(header: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(f"{header}\n1,2,3,1\n4,5,6,0\n")
    assert read(tmp_path / "t.csv", "label").notes == ()


def test_a_workbook_without_a_header(tmp_path: Path) -> None:
    rows().to_excel(tmp_path / "t.xlsx", index=False, header=False)
    data = read(tmp_path / "t.xlsx", "column_4", header="no")
    assert data.features["column_1"].tolist() == rows()["amount"].tolist()
    pd.DataFrame([[1.5, 2.5, 1], [2.5, 3.5, 0]]).to_excel(tmp_path / "n.xlsx", index=False, header=False)
    with pytest.raises(InputError, match="first line looks like data"):
        read(tmp_path / "n.xlsx", "label")


def test_a_title_above_the_table_is_noticed(tmp_path: Path) -> None:
    mend = "remove what stands above the names of the columns"
    path = tmp_path / "t.csv"
    path.write_text("# sales of May\n\n" + rows().to_csv(index=False))
    with pytest.raises(InputError, match=f"line 3: 4 cells where the header names only '# sales of May'; {mend}"):
        read(path, "label")
    path.write_text("sales of May,,,\n" + rows().to_csv(index=False))
    with pytest.raises(InputError, match=f"no column 'label'.*its first line holds only 'sales of May': {mend}"):
        read(path, "label")
    with pd.ExcelWriter(tmp_path / "t.xlsx") as book:
        rows().to_excel(book, index=False, startrow=2)
        book.book.active["A1"] = "sales of May"
    with pytest.raises(InputError, match=f"no column 'label'.*its first line holds only 'sales of May': {mend}"):
        read(tmp_path / "t.xlsx", "label")
    path.write_text(",label\n0,1\n1,0\n")  # a Series with its index
    assert read(path, "label").notes == ()


# --- lines that are not as they should be -----------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [2, 60])  # among the lines looked at first, and after them
def test_a_line_with_a_cell_too_many_is_named(bad: int, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x,label\n" + "".join("1,5,0\n" if k == bad else f"{k},{k % 2}\n" for k in range(2, 100)))
    with pytest.raises(InputError, match=rf"line {bad}: 3 cells where the header names 2 columns.*needs quotes"):
        read(path, "label")


def test_a_cell_too_many_in_every_line_does_not_shift_the_columns(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x,label\n3,5,1\n4,5,0\n")  # unquoted decimal commas
    with pytest.raises(InputError, match="line 2: 3 cells"):
        read(path, "label")
    path.write_text("x,label\n3,1,\n4,0,\n")  # separators at the end of the lines
    assert read(path, "label").features["x"].tolist() == [3, 4]


def test_a_quote_that_is_never_closed(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('x,label\n1,1\n"2,0\n3,0\n')
    with pytest.raises(InputError, match="a quote opened near line 3 is never closed"):
        read(tmp_path / "t.csv", "label")


@pytest.mark.parametrize("name", ["t.csv.gz", "t.csv.bz2", "t.csv.xz", "t.zip", "t.xlsx", "t.feather", "t.arrow"])
@pytest.mark.faults
def test_a_file_that_is_cut_off(name: str, tmp_path: Path) -> None:
    WRITERS[name](rows(2000), tmp_path / name)
    whole = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=f"{name} cannot be read"):
        read(tmp_path / name, "label")


@pytest.mark.parametrize("name", ["t.csv", "t.xlsx", "t.jsonl", "t.feather", "t.sqlite", "t.zip"])
def test_an_empty_file_is_refused_in_every_form(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(InputError, match=rf"{name} (is empty|cannot be read)"):
        read(tmp_path / name, "label")


@pytest.mark.parametrize("name", ["t.csv", "t.xlsx", "t.feather", "t.sqlite", "t.csv.gz"])
def test_a_header_alone_is_refused_in_every_form(name: str, tmp_path: Path) -> None:
    WRITERS[name](rows(0), tmp_path / name)
    for reader in (read, stream):
        with pytest.raises(InputError, match="has a header but no rows"):
            reader(tmp_path / name, "label")


# --- several tables in one file ---------------------------------------------------------------------------------------


def test_a_workbook_with_several_sheets_asks_which(tmp_path: Path) -> None:
    path = tmp_path / "t.xlsx"
    with pd.ExcelWriter(path) as book:
        rows().to_excel(book, sheet_name="March", index=False)
        pd.DataFrame({"note": ["x"]}).to_excel(book, sheet_name="Notes", index=False)
    with pytest.raises(InputError, match=r"several sheets \(March, Notes\); name one with --table"):
        read(path, "label")
    assert len(read(path, "label", table="March")) == 40
    assert len(read(f"{path}::March", "label")) == 40
    with pytest.raises(InputError, match=r"no sheet 'April' \(it has: March, Notes\)"):
        read(path, "label", table="April")
    with pd.ExcelWriter(path) as book:
        rows().to_excel(book, sheet_name="March", index=False)
        pd.DataFrame().to_excel(book, sheet_name="Sheet2", index=False)
    assert read(path, "label").notes == ("sheet 'March' is read; the other sheets are empty",)


def test_a_sheet_that_begins_with_empty_rows_is_not_empty(tmp_path: Path) -> None:
    # it was taken for empty, and the sheet before it was read with a note that said so
    path = tmp_path / "t.xlsx"
    with pd.ExcelWriter(path) as book:
        rows(8).to_excel(book, sheet_name="March", index=False)
        rows().to_excel(book, sheet_name="April", index=False, startrow=2)
        pd.DataFrame().to_excel(book, sheet_name="Sheet3", index=False)
    with pytest.raises(InputError, match=r"several sheets \(March, April\); name one with --table"):
        read(path, "label")
    assert len(read(path, "label", table="April")) == 40


def test_a_database_with_several_tables_asks_which(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    write_sqlite(rows(), path, 'the "rows"')
    write_sqlite(rows(8), path, "others")
    with pytest.raises(InputError, match=r"several tables \(others, the \"rows\"\); name one with --table"):
        read(path, "label")
    assert len(read(path, "label", table='the "rows"')) == 40
    assert len(read(f"{path}::others", "label")) == 8
    with pytest.raises(InputError, match="no table 'none'"):
        read(f"{path}::none", "label")
    with pytest.raises(InputError, match="two tables are named"):
        read(f"{path}::none", "label", table="others")


@pytest.mark.parametrize("table", ["plain", "indexed", "seen", "numberless"])
def test_labels_that_a_database_keeps_in_an_index_stay_with_their_rows(table: str, tmp_path: Path) -> None:
    """Asked for the label column alone, SQLite reads it from the index: in the order of the labels."""
    path, n = tmp_path / "t.sqlite", 200
    label = np.arange(n) % 3 == 0
    with closing(sqlite3.connect(path)) as database:
        for name, more in (("plain", ""), ("indexed", ""), ("numberless", " WITHOUT ROWID")):
            database.execute(f"CREATE TABLE {name} (a INT PRIMARY KEY, b TEXT, label INT){more}")
            values = [(k, f"town {k % 7}", int(label[k])) for k in range(n)]
            database.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", values)
        for name in ("indexed", "numberless"):
            database.execute(f"CREATE INDEX of_{name} ON {name} (label)")
        database.execute("CREATE VIEW seen AS SELECT * FROM indexed")
        database.commit()
    batches = list(stream(path, "label", table=table, batch_rows=30).batches())
    for data in (*batches, read_at_most(path, "label", table=table, max_rows=120), read(path, "label", table=table)):
        assert (label[data.features["a"]] == (data.labels == 1)).all()
    assert sum(map(len, batches)) == n


def test_an_archive_with_several_files_asks_which(tmp_path: Path) -> None:
    path = tmp_path / "t.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("march.csv", as_csv(rows()))
        archive.writestr("readme.txt", "hello")
    with pytest.raises(InputError, match=r"holds 2 files \(march\.csv, readme\.txt\); name one with --table"):
        read(path, "label")
    assert len(read(path, "label", table="march.csv")) == 40
    with pytest.raises(InputError, match=r"no file 'x' \(it holds: march\.csv"):
        read(path, "label", table="x")


@pytest.mark.parametrize("name", ["t.jsonl", "t.xlsx", "sub/t.parquet"])
def test_an_archive_of_another_form_says_what_to_do(name: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "t.zip", "w") as archive:
        archive.writestr(name, '{"a": 1, "label": 1}\n')
    with pytest.raises(InputError, match=rf"t\.zip holds {name}, and only CSV files are read .* unpack it"):
        read(tmp_path / "t.zip", "label")


def test_a_workbook_under_another_name_is_told_apart(tmp_path: Path) -> None:
    rows().to_excel(tmp_path / "t.xlsx", index=False)
    (tmp_path / "t.xlsx").rename(tmp_path / "t.csv")
    with pytest.raises(InputError, match=r"is an Excel file: give it the ending \.xlsx"):
        read(tmp_path / "t.csv", "label")
    (tmp_path / "t.xls").write_bytes(b"\xd0\xcf\x11\xe0")
    with pytest.raises(InputError, match=r"save it as \.xlsx or CSV"):
        read(tmp_path / "t.xls", "label")


def test_without_the_library_for_workbooks_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows().to_excel(tmp_path / "t.xlsx", index=False)
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    with pytest.raises(InputError, match=r"pip install 'punce\[excel\]'"):
        read(tmp_path / "t.xlsx", "label")


# --- JSON -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_list", [True, False])
def test_texts_cut_within_a_character_are_read_and_told(is_list: bool, tmp_path: Path) -> None:
    r"""A program that cuts a text at 280 units of UTF-16 may leave half an emoji, which JSON writes as \ud83d."""
    texts = ["cut \ud83d", "whole \U0001f600", "é"]
    records = [{"text": text, "n": 0.5, "label": k % 2} for k, text in enumerate(texts)]
    path = tmp_path / "t.json"
    path.write_text(json.dumps(records) if is_list else "\n".join(map(json.dumps, records)))
    data = read(path, "label", text="text")
    assert data.features == ["cut ?", *texts[1:]]
    assert "1 record has a text cut in the middle of a character, such as an emoji; ? stands for the half" in data.notes
    check(read(path, "label"))
    path.write_text(json.dumps(records[1:]))
    assert read(path).notes == ()


def test_columns_of_json_lines_may_be_in_some_lines_only(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"x": 1}\n\n{"x": 2, "label": 1}\n{"x": 3, "more": {"y": 1}}\n')
    data = read(path, "label")
    assert data.columns == ("x", "more")
    assert data.labels is not None
    assert data.labels.tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"x": 1}\n{"x": \n', "line 2: no JSON"),
        ('{"x": 1}\n5\n', "record 2: "),
        ("[[1, 2]]", "record 1: "),
        ('[{"x": 1},\n{"x" 2}]', "line 2: no JSON"),
        ("[" * 100_000, "line 1: no JSON"),
    ],
)
def test_what_is_no_json_is_named_by_line(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(InputError, match=message):
        read(tmp_path / "t.json", "label")


# --- columns to keep, and options that do not apply -------------------------------------------------------------------


def test_columns_to_keep(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    rows().to_csv(path, index=False)
    assert read(path, "label", keep=["town", "amount"]).columns == ("amount", "town")
    assert read(path, "label", keep="town", id="day").columns == ("town",)
    with pytest.raises(InputError, match="no column 'twon'; did you mean 'town'"):
        read(path, "label", keep=["twon"])
    with pytest.raises(InputError, match=r"named twice .*: 'town'; name"):
        read(path, "label", keep=["amount", "town", "town"])
    with pytest.raises(InputError, match="--drop has no effect"):
        read(path, "label", keep=["town"], drop=["day"])


@pytest.mark.parametrize(
    ("name", "option", "applies"),
    [
        ("t.parquet", {"sep": ";"}, "a Parquet file, to which --label, --positive, --negative, --id"),
        ("t.parquet", {"encoding": "utf-8"}, "a Parquet file"),
        ("t.csv", {"table": "x"}, "a CSV file"),
        ("t.xlsx", {"encoding": "utf-8"}, "an Excel file"),
        ("t.sqlite", {"header": "no"}, "an SQLite file"),
        ("t.csv", {"skip_unreadable": True}, "a CSV file"),
        ("t.feather", {"header": "yes"}, "an Arrow file"),
    ],
)
def test_options_without_effect_are_refused(name: str, option: dict[str, Any], applies: str, tmp_path: Path) -> None:
    WRITERS[name](rows(), tmp_path / name)
    flag = "--" + next(iter(option)).replace("_", "-")
    for reader in (read, stream):
        with pytest.raises(InputError, match=f"{flag} has no effect on {applies}"):
            reader(tmp_path / name, "label", **option)


def test_json_writes_what_json_reads(tmp_path: Path) -> None:
    (tmp_path / "t.ndjson").write_text("".join(json.dumps(r) + "\n" for r in rows().to_dict("records")))
    assert len(read(tmp_path / "t.ndjson", "label")) == 40


def test_a_cell_may_hold_a_whole_document(tmp_path: Path) -> None:
    frame = pd.DataFrame({"text": ["word " * 40_000] * 3, "label": [1, 0, 0]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert read(tmp_path / "t.csv", "label").features[0] == frame["text"][0]


@pytest.mark.parametrize("content", ["{}", '{"a": 1, "label": 1}', '{"a": {"b": 1}, "label": 1}'])
def test_one_row_as_one_object_is_a_row(content: str, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(content)
    if content == "{}":
        with pytest.raises(InputError):
            read(tmp_path / "t.json")
    else:
        assert len(read(tmp_path / "t.json")) == 1


def test_a_table_in_one_object_is_refused_as_such(tmp_path: Path) -> None:
    rows().to_json(tmp_path / "t.json")  # by columns: pandas' default
    said = r"t.json holds one object for each column, not one for each row; .*orient='records', lines=True"
    with pytest.raises(InputError, match=said):
        read(tmp_path / "t.json", "label")
    (tmp_path / "t.json").write_text(json.dumps({"rows": rows().to_dict("records")}))
    with pytest.raises(InputError, match="holds a list of objects under 'rows', not one for each row"):
        read(tmp_path / "t.json", "label")
