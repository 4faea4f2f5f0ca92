"""The list of breaks follows the code: `make mutants` itself takes a quarter of an hour and is run by hand."""

from __future__ import annotations

from tests.mutants import ROOT, mutants


def test_every_break_has_its_one_place() -> None:
    places = {f"{one.file}: {one.old}": (ROOT / "src" / one.file).read_text().count(one.old) for one in mutants()}
    assert {place: count for place, count in places.items() if count != 1} == {}
