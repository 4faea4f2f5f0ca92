from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from punce.data import TableEncoder, check, read, read_at_most, stream
from punce.errors import InputError


def _frame(n: int = 200, seed: int = 0) -> pd.DataFrame:
    random = np.random.RandomState(seed)
    return pd.DataFrame(
        {
            "customer": [f"{k:05d}" for k in range(n)],
            "amount": random.lognormal(size=n),
            "country": random.choice(["DE", "FR", "UK"], n),
            "label": (np.arange(n) % 10 == 0).astype(int),
        }
    )


def _write(frame: pd.DataFrame, path: Path) -> Path:
    if path.name.endswith(".parquet"):
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if ".tsv" in path.name else ",")
    return path


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz", "t.parquet"])
def test_a_table_is_read_in_every_format(name: str, tmp_path: Path) -> None:
    frame = _frame()
    data = read(_write(frame, tmp_path / name), "label", id="customer")
    assert data.kind == "table"
    assert data.columns == ("amount", "country")
    assert data.labels is not None
    assert data.labels.tolist() == frame["label"].tolist()
    assert data.ids.tolist() == frame["customer"].tolist()  # leading zeros kept
    assert data.features["amount"].to_numpy() == pytest.approx(frame["amount"].to_numpy())


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_the_separator_of_a_csv_file_is_found(separator: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    _frame().to_csv(path, index=False, sep=separator)
    assert read(path, "label").columns == ("customer", "amount", "country")


def test_a_byte_order_mark_does_not_change_the_first_name(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("label,x\n1,2\n0,3\n", encoding="utf-8-sig")
    assert read(path, "label").columns == ("x",)


@pytest.mark.parametrize(
    ("cells", "positive"),
    [
        (["1", "0", "0"], None),
        (["1", "-1", "-1"], None),
        (["true", "false", "false"], None),
        (["1", "", ""], None),
        (["fraud", "ok", ""], "fraud"),
        (["2", "1", "1"], "2"),
    ],
)
def test_every_label_convention_is_translated(cells: list[str], positive: str | None, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x,label\n" + "".join(f"{k},{cell}\n" for k, cell in enumerate(cells)))
    data = read(path, "label", positive=positive)
    assert data.labels is not None
    assert data.labels.tolist() == [1, 0, 0]


def test_pnu_labels_keep_their_negatives(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x,label\n1,1\n2,0\n3,-1\n")
    data = read(path, "label", setting="pnu")
    assert data.labels is not None
    assert data.labels.tolist() == [1, 0, -1]


def test_without_a_label_the_rows_come_to_be_scored(tmp_path: Path) -> None:
    data = read(_write(_frame(), tmp_path / "t.csv"), drop=["label"])
    assert data.labels is None
    assert data.ids.tolist() == list(range(200))
    assert "label" not in data.columns


def test_a_folder_of_parquet_files_is_one_table(tmp_path: Path) -> None:
    for k in range(3):
        _write(_frame(50, seed=k), tmp_path / f"part-{k}.parquet")
    assert len(read(tmp_path, "label")) == sum(map(len, stream(tmp_path, "label").batches())) == 150


def test_other_tables_in_a_folder_of_parquet_files_are_named_as_not_read(tmp_path: Path) -> None:
    for name in ("a.parquet", "more.csv", "sheet.tsv"):
        _write(_frame(50), tmp_path / name)
    (tmp_path / "_SUCCESS").touch()
    for notes in (read(tmp_path, "label").notes, stream(tmp_path, "label").notes):
        assert [note for note in notes if "not more.csv, sheet.tsv" in note]
    assert not read(tmp_path / "a.parquet", "label").notes


def test_parquet_files_with_other_columns_are_refused(tmp_path: Path) -> None:
    _write(_frame(50), tmp_path / "a.parquet")
    _write(_frame(50).drop(columns="amount"), tmp_path / "b.parquet")
    with pytest.raises(InputError, match=r"b\.parquet do not have the same columns \(only one of them has 'amount'\)"):
        read(tmp_path, "label")


def test_parquet_files_with_columns_in_another_order_are_refused(tmp_path: Path) -> None:
    _write(_frame(50), tmp_path / "a.parquet")
    _write(_frame(50).iloc[:, ::-1], tmp_path / "b.parquet")
    with pytest.raises(InputError, match="the order differs"):
        read(tmp_path, "label")


def test_rows_can_be_taken_and_batched(tmp_path: Path) -> None:
    data = read(_write(_frame(), tmp_path / "t.csv"), "label")
    part = data.take([3, 10])
    assert part.features["customer"].tolist() == ["00003", "00010"]
    assert data.take(data.labels == 1).labels.tolist() == [1] * 20  # type: ignore[union-attr]
    assert [len(batch) for batch in data.batches(64)] == [64, 64, 64, 8]


# --- text ---------------------------------------------------------------------------------------------------------

_REVIEW = "a film that keeps its promise to the very last minute of the evening, number {}"


def _reviews(n: int = 60) -> pd.DataFrame:
    return pd.DataFrame(
        {"id": range(n), "review": [_REVIEW.format(k) for k in range(n)], "label": [k % 6 == 0 for k in range(n)]}
    )


def test_a_column_of_long_text_is_found(tmp_path: Path) -> None:
    data = read(_write(_reviews(), tmp_path / "t.csv"), "label", id="id")
    assert data.kind == "text"
    assert data.features[2] == _REVIEW.format(2)
    assert data.load() is data.features


def test_a_text_column_can_be_named_and_missing_text_is_noted(tmp_path: Path) -> None:
    frame = _frame().assign(note="short")
    frame.loc[3, "note"] = None
    data = read(_write(frame, tmp_path / "t.csv"), "label", text="note")
    assert data.kind == "text"
    assert data.features[2:4] == ["short", ""]
    assert data.notes[1:] == ("1 row has no text; it is read as empty",)


def test_a_fit_of_texts_says_which_columns_it_does_not_learn_from(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    pd.DataFrame({"body": ["good", "bad"], "amount": [1.5, 2.5], "y": [1, 0]}).to_csv(path, index=False)
    assert read(path, "y", text="body").notes == ("only the texts of column 'body' are learned from, not 'amount'",)
    assert read(path, text="body").notes == ()  # rows to be scored


def test_text_beside_other_columns_stays_a_table(tmp_path: Path) -> None:
    frame = _reviews().assign(stars=np.arange(60) % 5)
    assert read(_write(frame, tmp_path / "t.csv"), "label").kind == "table"
    found = read(tmp_path / "t.csv", "label", kind="text")
    assert found.kind == "text"
    assert any("column 'review' (--text names another)" in note for note in found.notes)  # nobody named it


def test_kind_text_without_a_clear_column_asks(tmp_path: Path) -> None:
    path = _write(_frame(), tmp_path / "t.parquet")
    with pytest.raises(InputError, match="which column is the text"):
        read(path, "label", kind="text")


def test_a_numeric_table_may_be_read_as_embeddings(tmp_path: Path) -> None:
    path = _write(_frame(), tmp_path / "t.csv")
    data = read(path, "label", kind="embedding", id="customer", drop=["country"])
    assert data.features.shape == (200, 1)
    assert data.features.dtype == np.float32
    with pytest.raises(InputError, match=r"numeric columns; \['country'\]"):
        read(path, "label", kind="embedding", id="customer")


@pytest.mark.parametrize("ending", ["parquet", "feather", "jsonl", "sqlite", "csv"])
def test_names_of_rows_that_are_whole_numbers_stay_so_beside_a_row_without_a_name(ending: str, tmp_path: Path) -> None:
    names = [None if k == 2 else (1 << 60) + k for k in range(8)]
    frame = pd.DataFrame({"k": pd.array(names, dtype="Int64"), "a": range(8), "label": [1, 0] * 4})
    path = tmp_path / f"t.{ending}"
    if ending == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    elif ending == "sqlite":
        with closing(sqlite3.connect(path)) as database:
            frame.to_sql("t", database, index=False)
    else:
        getattr(frame, f"to_{ending}")(path, **({"index": False} if ending == "csv" else {}))
    found = read(path, "label", id="k")
    assert [str(name) for name in found.ids] == ["nan" if name is None else str(name) for name in names]
    (batch,) = stream(path, "label", id="k").batches()
    assert batch.ids.equals(found.ids)
    assert found.features["a"].tolist() == list(range(8))


def test_a_column_of_lists_beside_names_of_rows_says_how_to_read_it(tmp_path: Path) -> None:
    vectors = np.arange(120.0).reshape(30, 4)
    frame = pd.DataFrame({"id": [f"row{k}" for k in range(30)], "vector": list(vectors), "label": [1, 0] * 15})
    frame.to_parquet(tmp_path / "t.parquet")
    with pytest.raises(InputError, match=r"--kind embedding\), and name or drop the other columns \(--id, --drop\)"):
        TableEncoder.fit(read(tmp_path / "t.parquet", "label").features)
    with pytest.raises(InputError, match=r"if 'vector' is that column, 'id' must be named otherwise \(id= or drop=\)"):
        read(tmp_path / "t.parquet", "label", kind="embedding")
    assert read(tmp_path / "t.parquet", "label", kind="embedding", id="id").features.shape == (30, 4)


def test_a_column_of_lists_may_be_read_as_embeddings(tmp_path: Path) -> None:
    rows = np.random.RandomState(0).standard_normal((30, 3)).astype(np.float32)
    frame = pd.DataFrame({"vector": list(rows), "label": (np.arange(30) < 5).astype(int)})
    frame.to_parquet(tmp_path / "t.parquet")
    data = read(tmp_path / "t.parquet", "label", kind="embedding")
    assert data.kind == "embedding"
    assert (data.features == rows).all()
    assert data.source_columns == ("vector",)
    batches = stream(tmp_path / "t.parquet", kind="embedding", columns=["vector"], batch_rows=7).batches()
    assert (np.concatenate([batch.features for batch in batches]) == rows).all()
    frame.at[3, "vector"] = np.zeros(2, dtype=np.float32)
    frame.to_parquet(tmp_path / "t.parquet")
    frame.at[4, "vector"] = None
    frame.to_parquet(tmp_path / "t.parquet")
    seen = r"of one length in column 'vector'; there are lists of 2 numbers, 3 numbers, and 1 row without a list"
    with pytest.raises(InputError, match=seen):
        read(tmp_path / "t.parquet", "label", kind="embedding")


# --- streams ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_a_stream_gives_the_same_rows_as_reading(name: str, tmp_path: Path) -> None:
    path = _write(_frame(), tmp_path / name)
    whole, parts = read(path, "label", id="customer"), list(stream(path, "label", id="customer").batches(64))
    assert [len(part) for part in parts] == [64, 64, 64, 8]
    pd.testing.assert_frame_equal(pd.concat([p.features for p in parts], ignore_index=True), whole.features)
    assert [name for part in parts for name in part.ids] == whole.ids.tolist()
    assert np.concatenate([p.labels for p in parts]).tolist() == whole.labels.tolist()  # type: ignore[arg-type, union-attr]


def test_a_stream_can_be_gone_through_twice_and_numbers_its_rows(tmp_path: Path) -> None:
    rows = stream(_write(_frame(), tmp_path / "t.parquet"), batch_rows=90)
    for _ in range(2):
        assert [row for batch in rows.batches() for row in batch.ids] == list(range(200))


def test_a_batch_without_the_positive_value_is_no_error_in_a_stream(tmp_path: Path) -> None:
    frame = _frame().assign(label=["fraud"] * 10 + ["fine"] * 190)
    rows = stream(_write(frame, tmp_path / "t.csv"), "label", positive="fraud")
    sums = [int(batch.labels.sum()) for batch in rows.batches(50) if batch.labels is not None]
    assert sums == [10, 0, 0, 0]


def test_batches_need_rows(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="batch_rows must be at least 1"):
        stream(_write(_frame(), tmp_path / "t.csv"), batch_rows=0)


# --- what is refused, and how -------------------------------------------------------------------------------------


@pytest.mark.parametrize("reader", [read, stream, read_at_most])
@pytest.mark.parametrize("name", ["positive", "negative"])
def test_a_value_of_a_label_column_that_is_not_named_is_refused(reader: Any, name: str, tmp_path: Path) -> None:
    """The label would be learned from, and the value be ignored."""
    path = tmp_path / "table.csv"
    path.write_text("a,state\n1,fraud\n2,\n")
    with pytest.raises(InputError, match=rf"{name} names a value of the label column; .* it has: a, state\)"):
        reader(path, **{name: "fraud"})


def test_a_missing_label_column_suggests_near_names(tmp_path: Path) -> None:
    path = _write(_frame().rename(columns={"label": "Labels"}), tmp_path / "t.csv")
    with pytest.raises(InputError, match=r"no column 'label'; did you mean 'Labels'\? \(it has: customer, amount"):
        read(path, "label")


def test_names_of_columns_that_were_joined_by_commas_are_told_apart(tmp_path: Path) -> None:
    path = _write(_frame(), tmp_path / "t.csv")
    with pytest.raises(InputError, match=r"'amount, country'; these are 2 columns, and .* \(--drop A --drop B\)"):
        read(path, "label", drop=["amount, country"])
    with pytest.raises(InputError, match="no column 'amount,zzz'; did you mean 'amount'"):
        read(path, "label", drop=["amount,zzz"])


@pytest.mark.parametrize("role", ["id", "text"])
def test_other_missing_columns_are_named_too(role: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no column 'contry'; did you mean 'country'"):
        read(_write(_frame(), tmp_path / "t.csv"), "label", **{role: "contry"})  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no column 'zzz' "):
        read(tmp_path / "t.csv", "label", drop=["zzz"])


def test_one_column_in_two_roles_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="named twice"):
        read(_write(_frame(), tmp_path / "t.csv"), "label", id="label")


def test_a_missing_file_suggests_its_neighbour(tmp_path: Path) -> None:
    _write(_frame(), tmp_path / "customers.csv")
    with pytest.raises(InputError, match=r"customer\.csv does not exist; did you mean customers\.csv"):
        read(tmp_path / "customer.csv", "label")


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.npy", "t.npz"])
def test_an_empty_file_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(InputError, match=f"{name} is empty"):
        read(tmp_path / name, "label")


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
@pytest.mark.parametrize("reader", [read, lambda path, label: list(stream(path, label).batches())])
def test_a_header_without_rows_is_refused(name: str, reader, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match="a header but no rows"):
        reader(_write(_frame().iloc[:0], tmp_path / name), "label")


def test_what_is_no_parquet_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.parquet").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match=r"t\.parquet cannot be read as a table"):
        read(tmp_path / "t.parquet", "a")


@pytest.mark.faults
def test_a_cut_off_parquet_file_is_refused(tmp_path: Path) -> None:
    path = _write(_frame(5000), tmp_path / "t.parquet")
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(InputError, match="cannot be read as a table"):
        read(path, "label")


def test_ragged_lines_are_refused_with_the_line(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x,label\n1,1\n2,0,7,8\n3,0\n")
    with pytest.raises(InputError, match="line 3"):
        read(tmp_path / "t.csv", "label")


def test_lines_with_too_few_cells_are_told(tmp_path: Path) -> None:
    """sep= is line 1 and the header line 2; a blank line is no row, and a line break in a cell no line of its own."""
    lines = ["sep=;", "y;a;b", "1;2;3", "", '0;"x\ny";', "0;1", "0;3;1", "0;7;8"]
    (tmp_path / "d.csv").write_text("\n".join(lines))
    note = "1 line has fewer cells than the 3 columns, first line 7; absent ones count as missing"
    assert read(tmp_path / "d.csv", "y").notes == (note,)
    rows = stream(tmp_path / "d.csv", "y", batch_rows=2)
    assert [len(batch) for batch in rows.batches()] == [2, 2, 1]
    assert note in rows.notes
    assert note in [finding.message for finding in check(rows).findings]


def test_a_last_line_that_is_cut_off_is_told(tmp_path: Path) -> None:
    whole = "y,a,b\n" + "1,2,3\n0,1,\n" * 9
    (tmp_path / "d.csv").write_text(whole)
    assert read(tmp_path / "d.csv", "y").notes == ()  # empty cells are there
    (tmp_path / "d.csv").write_text(whole + "0,4")
    (note,) = read(tmp_path / "d.csv", "y").notes
    assert note.startswith("1 line has fewer cells than the 3 columns, first line 20;")
    assert note.endswith("; the last line, 20, has 2: the file may be cut off")


def test_batches_of_a_csv_agree_on_what_is_text(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    codes = [*("01", "2A", "02"), *("01", "02", "03"), *("04", "", "05")]
    path.write_text("code,x\n" + "".join(f"{code},{k}\n" for k, code in enumerate(codes)))
    seen = [batch.features["code"].fillna("").tolist() for batch in stream(path, batch_rows=3).batches()]
    assert seen == [codes[:3], codes[3:6], codes[6:]]


def test_columns_whose_digits_are_names_keep_their_spelling(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("name,code,x\n007,01,1\n008,02,2\n")
    options = {"id": "name", "as_text": ["code", "not there"]}
    parts = [read(path, **options), next(stream(path, **options).batches())]  # type: ignore[arg-type]
    for part in parts:
        assert part.features["code"].tolist() == ["01", "02"]
        assert part.features["x"].tolist() == [1, 2]
        assert part.ids.tolist() == ["007", "008"]
    assert read(path, as_text="code").features["code"].tolist() == ["01", "02"]


def test_zip_codes_keep_their_zeros_and_are_learned_from_as_numbers(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    zips = ["12345", "", "01234", "90210"] * 9
    path.write_text("sep=;\nzip;half;y\n" + "".join(f"{code};0{k % 9},5;0{k % 2}\n" for k, code in enumerate(zips)))
    for part in (read(path, "y"), next(stream(path, "y").batches())):
        assert part.features["zip"].tolist()[2:4] == ["01234", "90210"]
        assert part.features["zip"].isna()[1]
        assert part.features["half"].tolist()[:2] == [0.5, 1.5]  # of a number the zero says nothing
        assert part.labels is not None
        assert part.labels.tolist()[:2] == [0, 1]
    encoder = TableEncoder.fit(read(path, "y").features)
    assert {column.name: column.kind for column in encoder.columns} == {"zip": "number", "half": "number"}


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_numbers_that_are_named_as_categories_are_categories(name: str, tmp_path: Path) -> None:
    codes = [1, 2, 3, 12] * 9 if name == "t.parquet" else ["01", "02", "03", "12"] * 9
    path = _write(pd.DataFrame({"code": codes, "x": range(36), "y": [1, 0, 0] * 12}), tmp_path / name)
    data = read(path, "y", category="code")
    assert data.features["code"].astype(str).tolist()[:4] == list(map(str, codes[:4]))
    encoder = TableEncoder.fit(data.features)
    assert {column.name: column.kind for column in encoder.columns} == {"code": "category", "x": "number"}
    later = pd.DataFrame({"code": [1.0, 2.0, 3.0, 12.0] * 9, "x": range(36)})  # a workbook drops the zeros
    assert (encoder.transform(later).values == encoder.transform(data.features).values).all()


def test_a_category_that_is_not_learned_from_is_refused(tmp_path: Path) -> None:
    path = _write(_frame(), tmp_path / "t.csv")
    with pytest.raises(InputError, match="no column 'contry'; did you mean 'country'"):
        read(path, "label", category="contry")
    for options in ({"drop": "country"}, {"keep": "amount"}, {"id": "country"}, {"text": "country"}):
        with pytest.raises(InputError, match="column 'country' is not learned from, so --category has no effect"):
            read(path, "label", category="country", **options)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="--category has no effect with --kind embedding"):
        read(path, "label", category="country", kind="embedding")


def test_a_csv_of_padded_numbers_may_be_embeddings(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n007,1\n012,2\n")
    assert read(path, kind="embedding").features.tolist() == [[7.0, 1.0], [12.0, 2.0]]


def test_a_csv_saved_with_its_index_has_the_names_that_pandas_gives(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    _frame().to_csv(path)
    assert read(path, "label", drop=["Unnamed: 0"]).columns == ("customer", "amount", "country")
    assert read(path, "label", id="Unnamed: 0").ids.tolist()[:2] == ["0", "1"]
    with pytest.raises(InputError, match="has no column ''"):
        read(path, "label", drop=[""])
    path.write_text("Unnamed: 1,,label\n1,2,1\n3,4,0\n")
    with pytest.raises(InputError, match=r"column names occur twice: \['Unnamed: 1'\]"):
        read(path, "label")


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_duplicate_column_names_are_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if name == "t.csv":
        path.write_text("x,x,label\n1,2,1\n3,4,0\n")
    else:
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table([[1, 2], [3, 4], [1, 0]], names=["x", "x", "label"]), path)
    with pytest.raises(InputError, match=r"column names occur twice: \['x'\]"):
        read(path, "label")


def test_no_positives_and_no_unlabelled_rows_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x,label\n1,0\n2,0\n")
    with pytest.raises(InputError, match="no labelled positive among 2 rows"):
        read(path, "label")
    with pytest.raises(InputError, match="no labelled positive"):
        stream(path, "label")
    path.write_text("x,label\n1,1\n2,1\n")
    with pytest.raises(InputError, match="no unlabelled row"):
        read(path, "label")


def test_labels_without_meaning_name_the_column_and_the_values(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x,state\n1,open\n2,closed\n")
    with pytest.raises(InputError, match=r"label column 'state': .*\['open', 'closed'\]"):
        read(path, "state")
    with pytest.raises(InputError, match=r"label column 'state': no row equals the positive value 'fraud'"):
        read(path, "state", positive="fraud")


def test_a_table_of_labels_only_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("label\n1\n0\n")
    with pytest.raises(InputError, match="no feature column is left"):
        read(tmp_path / "t.csv", "label")


def test_unknown_file_types_and_kinds_are_refused(tmp_path: Path) -> None:
    (tmp_path / "t.ods").write_bytes(b"PK")
    with pytest.raises(InputError, match=r"'\.ods' are not known"):
        read(tmp_path / "t.ods", "label")
    path = _write(_frame(), tmp_path / "t.csv")
    with pytest.raises(InputError, match="kind must be"):
        read(path, "label", kind="video")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="setting must be"):
        read(path, "label", setting="nu")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="is a table; images come from a folder"):
        read(path, "label", kind="image")
