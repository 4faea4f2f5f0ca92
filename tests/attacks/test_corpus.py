"""Inputs that once broke a reader, and some that reach far into one: each is read or refused with words.

tests/attacks/corpus/TARGET/NAME      the bytes of a file; TARGET is a key of tests.attacks.targets.TARGETS
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from tests.attacks.changes import changed
from tests.attacks.targets import TARGETS

CORPUS = Path(__file__).parent / "corpus"
KEPT = sorted(path for path in CORPUS.glob("*/*") if path.is_file())
_GROWTH = 600 << 20  # bytes that all of them together may take


@pytest.fixture(scope="module", autouse=True)
def bounded_memory() -> Iterator[None]:
    """None of them makes this process grow by much, although some announce terabytes."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    yield
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before < _GROWTH


@pytest.mark.parametrize("path", KEPT, ids=lambda path: f"{path.parent.name}/{path.name}")
@pytest.mark.faults
def test_kept_inputs(path: Path, tmp_path: Path) -> None:
    target = TARGETS[path.parent.name]
    (tmp_path / target.name).write_bytes(path.read_bytes())
    assert target.accepts(tmp_path / target.name) in (True, False)


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.faults
def test_good_files_are_read_and_a_few_changed_ones_do_no_harm(name: str, tmp_path: Path) -> None:
    target = TARGETS[name]
    (tmp_path / "in").mkdir()
    seeds = target.seeds(tmp_path)
    for seed in seeds:
        (tmp_path / "in" / name).write_bytes(seed)
        assert target.accepts(tmp_path / "in" / name), "a good file is refused"

    @settings(max_examples=15, database=None, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(changed(seeds, target.words))
    def one(content: bytes) -> None:
        (tmp_path / "in" / name).write_bytes(content)
        target.accepts(tmp_path / "in" / name)

    one()
