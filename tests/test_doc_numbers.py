"""The numbers in docs/ and the README are those of the result files: `benchmarks/pages.py` would change nothing."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    yield importlib.import_module("pages")
    sys.modules.pop("pages")


_NAMES = (
    *("priors", "peers", "benchmarks", "tables", "text", "images"),
    *("review", "labels", "numbers", "training", "when-to-use"),
)
_PLACES = [
    "../README.md",
    "../README.md#demo",
    "labels.md#biased",
    "labels.md#biased features",
    "reliability.md#fuzz",
    "reliability.md#kills",
    "when-to-use.md#when",
    *(f"{name}.md" for name in _NAMES),
]


@pytest.mark.parametrize("place", _PLACES)
def test_a_page_says_what_its_files_say(pages: ModuleType, place: str) -> None:
    assert pages.between_marks(place) == pages.PAGES[place]()


def test_the_readme_counts_the_published_figures_as_their_page_does() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    behind, of = map(int, re.search(r"behind in (\d+) of (\d+)\.", page).groups())  # type: ignore[union-attr]
    sets = len(re.findall(r"^\| PU(?:ICL|-Bench), ", page, flags=re.MULTILINE))
    said = f"Of {of} figures that others published for {sets} sets, the default reaches {of - behind} and stays behind"
    assert f"{said} {behind} " in (ROOT / "README.md").read_text()


def test_every_page_with_marks_is_compared(pages: ModuleType) -> None:
    found = {
        f"{name}#{word}".removesuffix("#numbers")
        for name in ("../README.md", *(page.name for page in pages.DOCS.glob("*.md")))
        for word in pages.MARK.findall((pages.DOCS / name).read_text())
    }
    assert found == set(pages.PAGES)


def test_other_numbers_make_another_page(pages: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    speed = {"bbe, 1,000,000 scores": {"seconds": 12.5, "goal": 1, "peak_mb": 9}}
    assert "| bbe, 1,000,000 scores | 12.50 | 1 | 9 |" in sys.modules["prior_pages"].prior_speed(speed)


def test_full_disks_and_broken_promises_are_on_the_page_of_kills(pages: ModuleType) -> None:
    found = pages.read("faults")
    found["scenes"]["prior"] |= {"kills": 1_234, "full_disks": 31, "file_limits": 29, "broken": ["a file was lost"]}
    row = next(line for line in pages.kills_page(found).splitlines() if line.startswith("| `prior` |"))
    assert row.startswith("| `prior` | 1,234 |")
    assert " | 31 | 29 | " in row
    assert row.endswith(" | 1 |")


def test_the_page_of_fuzzing_counts_and_names_no_commit(pages: ModuleType) -> None:
    found = pages.read("fuzz")
    codes = {tally["code"] for tallies in found["targets"].values() for tally in tallies.values()}
    found["targets"]["model"]["hypothesis"] |= {"defects": {"KeyError": 3}, "slowest_seconds": 9.96}
    page = pages.fuzz_page(found)
    assert not [code for code in codes if code in page]
    last = next(line for line in page.splitlines() if line.startswith("| all |"))
    assert last.startswith(f"| all | {found['total']['forms']} | {found['total']['inputs']:,} |")
    assert " | 3 | 10.0 s | " in last


def test_the_plain_benchmark_of_tables_runs_what_the_page_compares(pages: ModuleType) -> None:
    tabular, found = importlib.import_module("tabular"), pages.read("tabular")
    plain, design = tabular.asked([]), tabular.asked(["--sets", "design", "ring", "--methods", "told"])
    methods = {name for family in plain.methods for name in tabular.ALL[family].methods}
    assert methods == set(found["methods"])
    assert plain.sets == found["sets"]["reported"]
    assert len(plain.seeds) == found["runs"]["reported"]["most_seeds"]
    assert design.sets == [*found["sets"]["design"], "ring"]
    assert design.methods == ["told"]
