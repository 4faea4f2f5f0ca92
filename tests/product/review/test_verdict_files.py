from __future__ import annotations

from pathlib import Path

import pytest

from punce.errors import InputError
from punce.product.review.files import read_verdicts, refuse_to_lose
from punce.product.review.store import NO, UNSURE, YES, DrawnRow, Verdict

DRAWN = {f"bcdf-bbb{c}": DrawnRow(i, str(i), f"bcdf-bbb{c}", "") for i, c in enumerate("bcdfg")}
KEYS = list(DRAWN)


def written(tmp_path: Path, text: str, encoding: str = "utf-8") -> Path:
    path = tmp_path / "verdicts.csv"
    path.write_text(text, encoding=encoding)
    return path


def said(tmp_path: Path, *cells: str) -> dict[str, str]:
    lines = [f"{key},{cell}" for key, cell in zip(KEYS, cells, strict=False)]
    read = read_verdicts(written(tmp_path, "key,verdict\n" + "\n".join(lines) + "\n"), DRAWN, None)
    assert read.problems == []
    return {one.key: one.verdict for one in read.verdicts}


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (("yes", "no", "unsure"), (YES, NO, UNSURE)),
        (("1", "0", "?"), (YES, NO, UNSURE)),
        (("1.0", "0.0", "maybe"), (YES, NO, UNSURE)),
        (('"1,0"', '"0,0"', "u"), (YES, NO, UNSURE)),
        (("TRUE", "FALSE", "unknown"), (YES, NO, UNSURE)),
        (("WAHR", "FALSCH", " Unsure "), (YES, NO, UNSURE)),
        (("positive", "negative", "Maybe"), (YES, NO, UNSURE)),
        ((" Y ", "'N'", "?"), (YES, NO, UNSURE)),
        (("1", "-1", "?"), (YES, NO, UNSURE)),
    ],
)
def test_verdicts_in_many_spellings(tmp_path: Path, cells: tuple[str, ...], expected: tuple[str, ...]) -> None:
    assert tuple(said(tmp_path, *cells).values()) == expected


def test_an_empty_cell_is_a_row_that_nobody_judged_yet(tmp_path: Path) -> None:
    assert said(tmp_path, "yes", "", "no") == {KEYS[0]: YES, KEYS[2]: NO}


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_what_a_spreadsheet_saves(tmp_path: Path, encoding: str) -> None:
    text = f"Key;note;Verdict\n{KEYS[0].upper()};a;1.0\n{KEYS[1]};b;FALSE\n"
    read = read_verdicts(written(tmp_path, text, encoding), DRAWN, "ann")
    assert [(one.key, one.verdict, one.who) for one in read.verdicts] == [(KEYS[0], YES, "ann"), (KEYS[1], NO, "ann")]


def test_without_keys_the_names_of_the_rows_do(tmp_path: Path) -> None:
    read = read_verdicts(written(tmp_path, "id,verdict\n0.0,yes\n1,no\n77,yes\n"), DRAWN, None)
    assert [(one.key, one.verdict) for one in read.verdicts] == [(KEYS[0], YES), (KEYS[1], NO)]
    assert "1 id is not in this review (77)" in read.problems[0]


def test_a_verdict_in_a_row_without_a_key_is_not_lost_silently(tmp_path: Path) -> None:
    read = read_verdicts(written(tmp_path, f"key,verdict\n{KEYS[0]},yes\n,no\n,\n"), DRAWN, None)
    assert [one.key for one in read.verdicts] == [KEYS[0]]
    (problem,) = read.problems
    assert problem.endswith("1 verdict stands in rows without a key, left out")


def test_what_is_wrong_is_named_and_the_rest_is_kept(tmp_path: Path) -> None:
    lines = [
        f"{KEYS[0]},yes",
        f"{KEYS[1]},1900-01-01",
        f"{KEYS[2]},yes",
        f"{KEYS[2]},no",
        "bcdf-zzzz,yes",
        "wxyz-bbbb,no",
    ]
    read = read_verdicts(written(tmp_path, "key,verdict\n" + "\n".join(lines) + "\n"), DRAWN, None)
    assert [one.key for one in read.verdicts] == [KEYS[0]]
    told = " / ".join(read.problems)
    assert "'1900-01-01' is not yes, no or unsure" in told
    assert f"1 row has both yes and no ({KEYS[2]})" in told
    assert "1 key is not known here (bcdf-zzzz)" in told
    assert "1 row is of another review (wxyz-bbbb)" in told


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("key,verdict\nwxyz-bbbb,yes\n", "of another review"),
        (f"key,verdict\n{KEYS[0]},\n", "is empty"),
        ("key,answer\nx,yes\n", "needs the columns key"),
        ("key,verdict\n", "no rows"),
    ],
)
def test_a_file_of_nothing_usable_is_refused(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        read_verdicts(written(tmp_path, text), DRAWN, None)


def test_a_file_with_verdicts_that_were_not_handed_in_is_not_replaced(tmp_path: Path) -> None:
    path = written(tmp_path, f"key,verdict\n{KEYS[0]},yes\n")
    with pytest.raises(InputError, match="not handed in"):
        refuse_to_lose(path, [], DRAWN)
    refuse_to_lose(path, [Verdict(KEYS[0], YES, "ann")], DRAWN)
    refuse_to_lose(written(tmp_path, f"key,verdict\n{KEYS[0]},\n"), [], DRAWN)
    path.write_text("")  # as mktemp leaves it
    refuse_to_lose(path, [], DRAWN)


def test_a_file_that_lost_its_keys_is_replaced_only_where_all_its_verdicts_were_handed_in(tmp_path: Path) -> None:
    told = [Verdict(KEYS[0], YES, "ann")]
    refuse_to_lose(written(tmp_path, "id,verdict\n0,yes\n1,\n"), told, DRAWN)
    for lines in ("0,no\n", "1,yes\n", "of no row,yes\n"):
        with pytest.raises(InputError, match="not handed in"):
            refuse_to_lose(written(tmp_path, f"id,verdict\n{lines}"), told, DRAWN)


def test_a_file_that_is_not_of_a_review_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    for content in ("other\n1\n", "my notes", 'key,verdict\n"', "\0\1"):
        path.write_text(content)
        with pytest.raises(InputError, match="is not a file of rows to judge and would be replaced"):
            refuse_to_lose(path, [], DRAWN)
