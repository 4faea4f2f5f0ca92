"""Result files: whole or not there, never believed when damaged, claimed by one process at a time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from punce.errors import PunceError
from punce.experiments.cell import Cell
from punce.experiments.store import Record, ResultError, ResultStore, StoreWarning
from tests.experiments.tiny import joint, punce


@pytest.fixture
def store(tmp_path: Path) -> ResultStore:
    return ResultStore(tmp_path, "smoke")


def result_of(store: ResultStore) -> dict[str, Any] | None:
    record = store.read(punce())
    return record.result if record is not None and record.is_done else None


def record(cell: Cell, accuracy: float = 90.0) -> Record:
    return Record(cell.key, cell.config(), "done", {"test_accuracy": accuracy}, seconds={"total": 1.5})


def test_what_is_written_comes_back(store: ResultStore) -> None:
    assert store.read(punce()) is None
    store.write(record(punce()))
    assert store.read(punce()) == record(punce())
    assert result_of(store) == {"test_accuracy": 90.0}
    assert store.read(joint()) is None


def test_a_failed_cell_has_no_result(store: ResultStore) -> None:
    store.write(replace(record(punce()), status="failed", error="no memory"))
    assert result_of(store) is None


@pytest.mark.faults
def test_a_write_that_fails_leaves_the_old_result_and_nothing_else(
    store: ResultStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.write(record(punce(), 90.0))

    def full_disk(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full_disk)
        with pytest.raises(PunceError, match="No space left"):
            store.write(record(punce(), 91.0))
    assert result_of(store) == {"test_accuracy": 90.0}
    assert [path.name for path in store.folder.iterdir()] == [f"{punce().name}.json"]


def test_a_result_that_is_not_finite_is_refused_by_name(store: ResultStore) -> None:
    wrong = replace(record(punce()), result={"test_accuracy": 90.0, "auc": float("nan"), "curve": [1.0, float("inf")]})
    with pytest.raises(ResultError, match="not finite in auc, curve"):
        store.write(wrong)
    assert not store.folder.exists()


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "",
        lambda text: "[]",
        lambda text: text.replace("90.0", "\x00"),
        lambda text: text.replace('"n_labelled": 40', '"n_labelled": 41'),
        lambda text: text.replace('"done"', '"dnoe"'),
        lambda text: text.replace('"attempts": 1', '"attmepts": 1'),
        lambda text: text.replace('"attempts": 1', '"attempts": null'),
        lambda text: text.replace('"error": null', '"error": 5'),
        lambda text: text.replace('"machine": {}', '"machine": 3'),
        lambda text: text.replace('"seconds": {', '"seconds": {"transfer": "x", '),
        lambda text: text.replace("90.0", '"90"'),
        lambda text: text.replace('"test_accuracy"', '"text_accuracy"'),
        lambda text: text.replace('"test_accuracy"', '"curve": "zz", "test_accuracy"'),
        lambda text: text.replace('"test_accuracy"', '"prior": {"true": "x"}, "test_accuracy"'),
        lambda text: "[" * 100_000,
    ],
    ids=[
        *("cut", "empty", "no object", "control character", "another configuration", "status", "field"),
        *("attempts", "error", "machine", "seconds", "accuracy", "no accuracy", "curve", "prior", "nested"),
    ],
)
@pytest.mark.faults
def test_a_damaged_file_is_not_believed_and_kept_when_the_next_result_comes(store: ResultStore, damage: object) -> None:
    path = store.write(record(punce()))
    changed = damage(path.read_text())  # type: ignore[operator]
    assert changed != path.read_text()
    path.write_text(changed)
    with pytest.warns(StoreWarning, match="cannot be used"):
        assert store.read(punce()) is None
    assert [(found, found.read_text()) for found in store.folder.iterdir()] == [
        (path, changed)
    ]  # reading wrote nothing
    store.write(record(punce()))
    assert store.read(punce()) == record(punce())
    assert path.with_name(f"{path.name}.damaged-1").read_text() == changed


@pytest.mark.faults
def test_bytes_that_are_no_text_are_kept_beside_earlier_ones(store: ResultStore) -> None:
    path = store.write(record(punce()))
    for number in (1, 2):
        path.write_bytes(b"\xff\xfe\x00")
        with pytest.warns(StoreWarning):
            assert store.read(punce()) is None
        store.write(record(punce()))
        assert path.with_name(f"{path.name}.damaged-{number}").exists()


def test_the_result_of_another_cell_under_this_name_is_not_believed(store: ResultStore) -> None:
    store.write(record(joint())).rename(store.path(punce()))
    with pytest.warns(StoreWarning, match="another cell"):
        assert store.read(punce()) is None


@pytest.mark.faults
def test_a_good_file_that_comes_between_reading_and_writing_is_not_taken_for_the_damaged_one(
    store: ResultStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = store.write(record(punce()))
    good = path.read_bytes()
    path.write_bytes(b"damaged")

    def read_late(damaged: Path) -> bytes:
        content = b"damaged"
        damaged.write_bytes(good)  # another runner is quicker
        return content

    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_bytes", read_late)
        store.write(record(punce(), 91.0))
    assert path.with_name(f"{path.name}.damaged-1").read_bytes() == b"damaged"
    assert result_of(store) == {"test_accuracy": 91.0}


def test_results_that_replace_results_leave_nothing_beside_them(store: ResultStore) -> None:
    for accuracy in (90.0, 91.0):
        path = store.write(record(punce(), accuracy))
    assert list(store.folder.iterdir()) == [path]


# Claims ----------------------------------------------------------------------------------------------------------

HOLD = """
import sys
from pathlib import Path
from punce.experiments.store import ResultStore
from punce.storage.files import locked
with locked(Path(sys.argv[1])) as ours:
    print(ours, flush=True)
    sys.stdin.read()
"""


def lock_of(store: ResultStore, cell: Cell) -> Path:
    with store.claim(cell):
        (path,) = (store.results / "work" / "locks").glob(f"*{cell.name}*")
    return path


@pytest.mark.faults
def test_a_claim_is_refused_while_another_process_holds_it_and_free_when_that_is_killed(store: ResultStore) -> None:
    line = [sys.executable, "-c", HOLD, str(lock_of(store, punce()))]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "True\n"
        with store.claim(punce()) as ours:
            assert not ours
        with store.claim(joint()) as ours:
            assert ours
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    with store.claim(punce()) as ours:
        assert ours


@pytest.mark.faults
def test_two_claims_within_one_process_exclude_each_other(store: ResultStore) -> None:
    with store.claim(punce()) as first, store.claim(punce()) as second:
        assert (first, second) == (True, False)


def test_scales_do_not_claim_each_others_cells(store: ResultStore) -> None:
    other = ResultStore(store.results, "paper")
    with store.claim(punce()) as first, other.claim(punce()) as second:
        assert first
        assert second
