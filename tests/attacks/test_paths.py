"""Places that lead nowhere: links to themselves, files where a folder belongs. One line, exit code 2."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.faults.scenes import table
from tests.in_process import exit_code
from tests.models.stored.write import HERE
from tests.models.stored.write import table as new_rows

_BAD_INPUT = 2
_FIT = ("fit", "rows.csv", "--label", "label", "--out")
_PREDICT = ("predict", "model", "new.csv", "--out")
_PRIOR = ("prior", "rows.csv", "--label", "label", "--out")
CASES: list[tuple[tuple[str, ...], str]] = [
    *((("fit", name, "--label", "label", "--out", "out"), "to itself") for name in ("loop.csv", "loop", "a")),
    (("fit", "links", "--out", "out"), "holds no image files"),
    (("fit", "rows.csv", "--label", "label", "--labels", "loop.csv", "--out", "out"), "to itself"),
    *(((*_FIT, name), "to itself") for name in ("loop", "loop/x", "a", "dangling")),
    *(((*_FIT, name), "file is a file") for name in ("file", "file/x", "folder/../file")),
    (("predict", "loop", "new.csv"), "to itself"),
    (("predict", "linked", "new.csv"), "no regular file but a link"),
    (("predict", "file", "new.csv"), "the folder of a run comes first"),
    (("predict", "model", "loop.csv"), "to itself"),
    (("predict", "model", "loop*.parquet", "--out", "out"), "no file matches"),
    ((*_PREDICT, "folder"), "folder is a folder; name a file"),
    ((*_PREDICT, "file/x.csv"), "file is a file"),
    ((*_PREDICT, "loop/x.csv"), "to itself"),
    ((*_PREDICT, "x" * 300 + ".csv"), "File name too long"),
    (("prior", "loop.csv", "--label", "label"), "to itself"),
    ((*_PRIOR, "folder"), "folder is a folder; name a file"),
    ((*_PRIOR, "file/x.json"), "file is a file"),
    ((*_PRIOR, "loop/x.json"), "to itself"),
    (("report", "loop"), "loop"),
    (("review", "loop"), "loop"),
    (("report", "file"), "file holds no"),
    (("review", "file"), "file holds no"),
    *((("reproduce", "table1", "--results", name), name[:4]) for name in ("file", "file/x", "loop", "loop/x")),
]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table, a model, and links that lead to themselves or to nothing."""
    monkeypatch.chdir(tmp_path)
    table(tmp_path)
    new_rows(50).to_csv("new.csv", index=False)
    for name in ("model", "linked"):
        shutil.copytree(HERE / "table", name)
    Path("folder").mkdir()
    Path("links").mkdir()
    Path("file").write_text("text")
    Path("linked/model.json").unlink()
    links = {"a": "b", "b": "a", "dangling": "nowhere/x", "links/again": ".", "links/x.png": "x.png"}
    same = ("loop", "loop.csv", "loop.parquet")
    for name, target in (links | {name: name for name in same} | {"linked/model.json": "model.json"}).items():
        Path(name).symlink_to(target)
    return tmp_path


@pytest.mark.parametrize(("arguments", "words"), CASES, ids=[" ".join(case[0])[:60] for case in CASES])
def test_places_that_lead_nowhere_are_bad_input(
    arguments: tuple[str, ...],
    words: str,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = sorted(place.rglob("*"))
    code = exit_code(monkeypatch, *arguments)
    said = capsys.readouterr().err
    assert code == _BAD_INPUT, said
    assert said.startswith("punce: ")
    assert said.count("\n") == 1
    assert words in said
    assert "a bug in punce" not in said
    assert sorted(place.rglob("*")) == before
