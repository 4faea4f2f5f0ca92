"""The results of a long benchmark: what is whole is kept, whatever ended the command before."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def json_lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    yield importlib.import_module("json_lines")
    sys.modules.pop("json_lines")


def test_lines_are_added_in_order(json_lines: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    assert json_lines.lines_of(file) == []
    json_lines.add_lines(file, {"seed": 0, "set": "Ünal\u2028"})
    json_lines.add_lines(file, {"seed": 1}, {"seed": 2})
    assert json_lines.lines_of(file) == [{"seed": 0, "set": "Ünal\u2028"}, {"seed": 1}, {"seed": 2}]


@pytest.mark.parametrize("half", [b'{"seed": 1', b'{"seed": 1}', b'{"name": "\xc3'])
def test_half_a_line_of_a_killed_run_is_done_again(json_lines: ModuleType, tmp_path: Path, half: bytes) -> None:
    file = tmp_path / "runs.jsonl"
    file.write_bytes(b'{"seed": 0}\n' + half)
    assert json_lines.lines_of(file) == [{"seed": 0}]
    json_lines.add_lines(file, {"seed": 1})
    assert file.read_text() == '{"seed": 0}\n{"seed": 1}\n'


def test_a_damaged_line_among_others_is_no_half_line(json_lines: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "runs.jsonl").write_text('{"seed"\n{"seed": 1}\n')
    with pytest.raises(ValueError, match="Expecting"):
        json_lines.lines_of(tmp_path / "runs.jsonl")
