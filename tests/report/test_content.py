"""Content goes to JSON and back unchanged, and what does not fit is refused with its place."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from punce.errors import InputError, WriteError
from punce.report import ReportContent, write_report
from punce.report.content import DataFacts, Histogram, Interval, PriorFacts, RowMap, TopRow

from .samples import content, hostile


@pytest.mark.parametrize(
    "make", [content, hostile, lambda: content(images=True, n_points=30), lambda: ReportContent("t")]
)
def test_json_round_trip(make: Any) -> None:
    before = make()
    after = ReportContent.from_json(json.loads(json.dumps(before.to_json(), allow_nan=False)))
    assert after == before
    assert after.to_json() == before.to_json()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), json_values, max_size=4), st.lists(st.text(), max_size=3))
def test_any_configuration_survives(configuration: dict[str, Any], warnings: list[str]) -> None:
    before = ReportContent("t", configuration=configuration, warnings=tuple(warnings))
    assert ReportContent.from_json(json.loads(json.dumps(before.to_json()))) == before


def test_numpy_and_paths_become_plain() -> None:
    configuration = {"width": np.int64(3), "rate": np.float32(0.5), "path": Path("a/b"), "sizes": np.arange(2)}
    tree = ReportContent("t", configuration=configuration).to_json()["configuration"]
    assert tree == {"width": 3, "rate": 0.5, "path": str(Path("a/b")), "sizes": [0, 1]}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_undefined_numbers_become_null(value: float) -> None:
    from punce.report.content import Quality

    tree = ReportContent("t", quality=Quality({"precision": Interval(value, value, value)})).to_json()
    assert tree["quality"]["estimates"]["precision"] == {"value": None, "low": None, "high": None, "reason": ""}
    assert ReportContent.from_json(tree).quality is not None


def broken(path: str, value: Any) -> Any:
    tree = json.loads(json.dumps(content(10, 3).to_json()))
    *steps, last = path.split(".")
    place = tree
    for step in steps:
        place = place[int(step) if step.isdigit() else step]
    place[last] = value
    return tree


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("format", 2, "format 2"),
        ("prior.value", "much", "report.prior.value: expected float, got 'much'"),
        ("prior.value", 1.5, r"\[0, 1\], got 1.5"),
        ("data.rows", 1.5, "report.data.rows: expected int"),
        ("data.rows", -1, "must not be negative, got -1"),
        ("data.findings", [["warning"]], r"report.data.findings\[0\]: expected 2 entries"),
        ("map.x", [0.5], "map.y needs 1 entries, got 10"),
        ("map.names", None, "report.map.names: expected list"),
        ("top.rows.0.thumbnail", "https://example.org/x.png", "thumbnail must be a base64 PNG"),
        ("top.rows.0.thumbnail", "data:image/svg+xml;base64,AAAA", "thumbnail must be a base64 PNG"),
        ("top.rows.0.values", [], "0 values for 3 columns"),
        ("histogram.labelled", [1], "edges need 25 counts"),
        ("review.of", 3, "must rise and end at most"),
        ("surprise", 1, "report: unknown field 'surprise'"),
    ],
)
@pytest.mark.faults
def test_damaged_json_is_refused_with_its_place(path: str, value: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        ReportContent.from_json(broken(path, value))


def test_missing_field_and_wrong_root() -> None:
    with pytest.raises(InputError, match="'title' is missing"):
        ReportContent.from_json({"format": 1})
    with pytest.raises(InputError, match="JSON object, got list"):
        ReportContent.from_json([])


def test_read_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"absent\.json does not exist"):
        ReportContent.read(tmp_path / "absent.json")
    cut = tmp_path / "report.json"
    cut.write_text(json.dumps(content(5, 2).to_json())[:-40])
    with pytest.raises(InputError, match=r"report\.json is not valid JSON"):
        ReportContent.read(cut)


def test_a_page_is_rebuilt_from_its_json_byte_for_byte(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text(json.dumps(hostile().to_json(), allow_nan=False))
    first = write_report(hostile(), tmp_path / "a" / "report.html")
    second = write_report(ReportContent.read(tmp_path / "report.json"), tmp_path / "b.html")
    assert first.read_bytes() == second.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b.html", "report.json"]


def test_a_failed_write_leaves_the_old_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")

    def fail(self: Path, target: Path) -> Path:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(WriteError, match=r"cannot write .*report\.html: disk full"):
        write_report(ReportContent("t"), path)
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
    assert path.read_text() == "old"


def test_constructors_refuse_what_cannot_be_shown() -> None:
    with pytest.raises(InputError, match="3001 points"):
        RowMap(*((0.0,) * 3001,) * 3, labels=(0,) * 3001, names=("",) * 3001)
    with pytest.raises(InputError, match=r"prior.value must lie in \[0, 1\]"):
        PriorFacts(23.0)
    with pytest.raises(InputError, match="edges must rise"):
        Histogram((0.0, 0.0), (1,), (1,))
    with pytest.raises(InputError, match="data URI"):
        TopRow(1, "a", 0.5, thumbnail="javascript:alert(1)")
    with pytest.raises(InputError, match="negatives must not be negative"):
        DataFacts("a", "table", 1, 1, 0, -1)
