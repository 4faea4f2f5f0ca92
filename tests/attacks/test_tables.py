"""Tables that somebody made on purpose: bombs, absurd widths, formulas, control characters."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import sqlite3
import struct
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from punce.data import read, read_at_most
from punce.data import unpacked as limits
from punce.data.tables import open_table
from punce.errors import InputError
from punce.storage.formulas import defused, defused_frame, restored
from tests.copies import punce_command
from tests.data.test_file_forms import WRITERS, rows, write_arrow_stream

_LINE = b"1,0\n" * (1 << 16)


@pytest.fixture
def small_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound of any packed file lowered from 256 MB, so that a bomb takes no seconds."""
    monkeypatch.setattr(limits, "_ALWAYS", 1 << 20)


def _zipped(path: Path, content: bytes) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb.csv", content)


BOMBS: dict[str, Callable[[Path, bytes], object]] = {
    "bomb.csv.gz": lambda path, content: path.write_bytes(gzip.compress(content)),
    "bomb.csv.bz2": lambda path, content: path.write_bytes(bz2.compress(content)),
    "bomb.csv.xz": lambda path, content: path.write_bytes(lzma.compress(content)),
    "bomb.csv": lambda path, content: path.write_bytes(gzip.compress(content)),
    "bomb.zip": _zipped,
    "bomb.jsonl.gz": lambda path, content: path.write_bytes(gzip.compress(b'{"a": 1, "label": 0}\n' * (1 << 17))),
}


def write_equal_rows(path: Path, doublings: int) -> int:
    """A small Parquet file with very many rows, whose groups are all the same bytes. The number of rows."""
    frame = pd.DataFrame({"a": np.zeros(1 << 16), "label": np.arange(1 << 16) % 2})
    frame.to_parquet(path, index=False)
    content, footer = path.read_bytes(), pq.read_metadata(path)
    for _ in range(doublings):
        footer.append_row_groups(footer)
    footer.write_metadata_file(end := io.BytesIO())
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    path.write_bytes(content[:start] + end.getvalue()[4:])
    return int(pq.read_metadata(path).num_rows)


def test_parquet_rows_that_cannot_fit_into_memory_are_refused_before_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = write_equal_rows(tmp_path / "t.parquet", 10)
    assert (tmp_path / "t.parquet").stat().st_size < rows / 100
    monkeypatch.setattr(limits, "free_memory", lambda: 1 << 28)
    for options in ({}, {"max_rows": 1000}):
        with pytest.raises(InputError, match=r"t.parquet: 67,108,864 rows need at least .* GB are free"):
            read_at_most(tmp_path / "t.parquet", "label", **options)
    first = next(open_table(tmp_path / "t.parquet").frames(1000, None, (), "."))
    assert len(first) == 1000


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.usefixtures("small_bound")
def test_a_packed_bomb_is_refused_before_it_fills_memory(name: str, tmp_path: Path) -> None:
    BOMBS[name](tmp_path / name, b"a,label\n1,1\n" + _LINE * 8)
    with pytest.raises(InputError, match="unpacks to more than 200 times its size"):
        read(tmp_path / name, "label")


@pytest.mark.usefixtures("small_bound")
def test_bombs_in_workbooks_and_archives_of_arrays(tmp_path: Path) -> None:
    rows(8).to_excel(tmp_path / "good.xlsx", index=False)
    with zipfile.ZipFile(tmp_path / "good.xlsx") as good, zipfile.ZipFile(tmp_path / "t.xlsx", "w", 8) as bomb:
        for name in good.namelist():
            bomb.writestr(name, good.read(name) + (b" " * (4 << 20) if name.endswith("sheet1.xml") else b""))
    np.savez_compressed(tmp_path / "x.npz", X=np.zeros((1 << 20, 2), dtype=np.float32), y=np.zeros(1 << 20))
    for name in ("t.xlsx", "x.npz"):
        with pytest.raises(InputError, match="unpacks to more than 200 times its size"):
            read(tmp_path / name, "label" if name == "t.xlsx" else "y")


@pytest.mark.usefixtures("small_bound")
@pytest.mark.parametrize("name", [name for name in WRITERS if name.endswith((".gz", ".bz2", ".xz", ".zip"))])
def test_what_packs_well_is_no_bomb(name: str, tmp_path: Path) -> None:
    WRITERS[name](rows(20_000), tmp_path / name)
    assert len(read(tmp_path / name, "label")) == 20_000


def test_an_archive_that_announces_more_than_memory_holds(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    np.save(buffer, np.zeros((4, 4), dtype=np.float32))
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (40000000000000, 4), }".ljust(117) + "\n"
    content = buffer.getvalue()[:8] + len(header).to_bytes(2, "little") + header.encode() + bytes(64)
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("X.npy", content)
    (tmp_path / "x.npy").write_bytes(content)
    for name in ("x.npz", "x.npy"):
        with pytest.raises(InputError, match=f"{name}.*(more numbers than fit into memory|cannot be read)"):
            read(tmp_path / name)


def test_a_million_columns(tmp_path: Path) -> None:
    names = ",".join(f"c{i}" for i in range(1_000_000))
    (tmp_path / "t.csv").write_text(f"{names},label\n" + "1," * 1_000_000 + "1\n")
    with pytest.raises(InputError, match="has 1,000,001 columns, and at most 100,000 are read"):
        read(tmp_path / "t.csv", "label")
    (tmp_path / "long.csv").write_text("x" * (17 << 20))
    with pytest.raises(InputError, match="its first line is longer than 16 MB"):
        read(tmp_path / "long.csv", "label")


def test_records_that_each_name_other_columns(tmp_path: Path) -> None:
    lines = (json.dumps({"label": i % 2, **{f"k{i}-{j}": 1 for j in range(40)}}) for i in range(1_000))
    (tmp_path / "t.jsonl").write_text("\n".join(lines))
    with pytest.raises(InputError, match="1,000 records name 40,001 columns and fill 41,000 cells"):
        read(tmp_path / "t.jsonl", "label")


def test_a_huge_field_is_a_field(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b,label\n" + "x" * (8 << 20) + ",1,1\ny,2,0\nz,3,0\n")
    assert len(read(tmp_path / "t.csv", "label")) == 3


def test_a_view_of_a_database_is_not_read_unless_it_is_named(tmp_path: Path) -> None:
    endless = "WITH RECURSIVE r(a, label) AS (SELECT 1, 1 UNION ALL SELECT a + 1, 0 FROM r) SELECT * FROM r"
    with closing(sqlite3.connect(tmp_path / "t.sqlite")) as database:
        database.execute(f"CREATE VIEW v AS {endless}")
    with pytest.raises(InputError, match=r"has only a view \(v\); name one with --table"):
        read(tmp_path / "t.sqlite", "label")


def test_bytes_of_an_arrow_file_are_not_believed(tmp_path: Path) -> None:
    """Without a check Arrow reads text beyond its buffer where an offset says so."""
    write_arrow_stream(pd.DataFrame({"a": ["abc", "def"], "label": [1, 0]}), tmp_path / "t.arrow")
    good = (tmp_path / "t.arrow").read_bytes()
    offsets = struct.pack("<iii", 0, 3, 6) if struct.pack("<iii", 0, 3, 6) in good else struct.pack("<qqq", 0, 3, 6)
    wild = struct.pack("<iii", 0, 1 << 20, 6) if len(offsets) == 12 else struct.pack("<qqq", 0, 1 << 20, 6)
    assert good.count(offsets) == 1
    (tmp_path / "t.arrow").write_bytes(good.replace(offsets, wild))
    with pytest.raises(InputError, match="cannot be read as a table"):
        read(tmp_path / "t.arrow", "label")


@pytest.mark.parametrize("kind", ["pipe", "device", "loop", "long"])
def test_what_is_no_file(kind: str, tmp_path: Path) -> None:
    path = tmp_path / ("x" * 300 + ".csv" if kind == "long" else "t.csv")
    if kind == "pipe":
        os.mkfifo(path)
    elif kind != "long":
        path.symlink_to("/dev/zero" if kind == "device" else path.name)
    words = {
        "pipe": "a pipe or a device",
        "device": "a pipe or a device",
        "loop": "to itself",
        "long": "cannot be looked at",
    }
    with pytest.raises(InputError, match=words[kind]):
        read(path, "label")


# Formulas: what punce writes for people is opened in spreadsheets -----------------------------------------------------

FORMULAS = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "'=1", "''=x", "=HYPERLINK(0)"]


@pytest.mark.parametrize("text", [*FORMULAS, "plain", "-5", "+3.5", "1e9", "", "'quoted", "a=b", "-", "nan", "-inf"])
def test_formulas_are_text_and_come_back(text: str) -> None:
    written = defused(text)
    is_number = text in ("-5", "+3.5", "-inf")
    assert restored(written) == text
    assert is_number or not written.startswith(("=", "+", "-", "@", "\t", "\r"))
    assert written == text if is_number else True


def test_names_of_columns_and_other_types() -> None:
    frame = defused_frame(pd.DataFrame({"=a": [1, -2], "b": ["=x", None], "c": [True, False]}))
    assert list(frame.columns) == ["'=a", "b", "c"]
    assert frame["'=a"].tolist() == [1, -2]
    assert frame["b"].tolist()[0] == "'=x"


def _odd_table(path: Path) -> Path:
    n = 60
    names = [f"{FORMULAS[i % 4]}{i}" for i in range(n)]
    frame = pd.DataFrame({"who": names, "a": np.arange(n) % 7 + (np.arange(n) % 3 == 0), "b": np.arange(n) % 5})
    frame["\x1b]0;title\x07"] = np.where(np.arange(n) % 2, "\x1b[2Jx", "y")
    frame["always"] = "\x1b[31mred"
    frame["label"] = (np.arange(n) % 6 == 0).astype(int)
    frame.to_csv(path, index=False)
    return path


def test_nothing_that_is_written_for_people_runs_in_a_spreadsheet_or_terminal(tmp_path: Path) -> None:
    table, run, out = _odd_table(tmp_path / "t.csv"), tmp_path / "run", tmp_path / "new.csv"
    said = [
        punce_command("fit", table, "--label", "label", "--id", "who", "--out", run, "--scores", "csv", "--reasons"),
        punce_command("predict", run, table, "--out", out),
        punce_command("review", run, "--rows", 10),
        punce_command("prior", table, "--label", "label", "--method", "elkan_noto"),
    ]
    assert [done.returncode for done in said] == [0] * 4, [done.stderr for done in said]
    assert not any("\x1b" in done.stdout + done.stderr for done in said)
    for file in (run / "scores.csv", out, run / "review" / "review.csv"):
        cells = pd.read_csv(file, dtype=str, keep_default_na=False)
        wild = [c for c in [*cells.columns, *cells.to_numpy().ravel()] if str(c)[:1] in tuple("=+@\t\r")]
        wild += [c for c in cells["id"] if c.startswith("-")]
        assert not wild, (file, wild[:3])
