from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from punce.models.tabular import TabularPU, model, teachers
from punce.models.tabular.steps import Arrays, Steps
from punce.training import parallel
from tests.models.problem import Problem, problem

pytestmark = pytest.mark.usefixtures("quick_tables")  # 2 steps of teachers, 10 of members by fold, 1 of networks


class StoppedError(Exception):
    pass


@pytest.fixture(scope="module")
def rows() -> Problem:
    return problem(200, n_labelled=20, seed=1)


@pytest.fixture(scope="module")
def whole(rows: Problem) -> TabularPU:
    return TabularPU(rows.prior).fit(rows.values, rows.categorical, rows.labels)


def _same(one: TabularPU, other: TabularPU) -> bool:
    (tensors, content), (others, other_content) = one.state(), other.state()
    equal = all(np.array_equal(tensor.numpy(), others[name].numpy()) for name, tensor in tensors.items())
    return content == other_content and tensors.keys() == others.keys() and equal


@pytest.mark.parametrize("after", [0, 4, 12])
@pytest.mark.faults
def test_a_stopped_fit_resumes_with_the_same_bits(
    after: int, rows: Problem, whole: TabularPU, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = rows.values, rows.categorical, rows.labels
    computed: list[str] = []
    store = Steps._store

    def counted(self: Steps, name: str, arrays: Arrays) -> None:
        if len(computed) == after:
            raise StoppedError
        computed.append(name)
        store(self, name, arrays)

    with monkeypatch.context() as patch:
        patch.setattr(Steps, "_store", counted)
        with pytest.raises(StoppedError):
            TabularPU(rows.prior).fit(*given, folder=tmp_path)
    again: list[str] = []
    monkeypatch.setattr(Steps, "_store", lambda self, name, arrays: again.append(name))
    resumed = TabularPU(rows.prior).fit(*given, folder=tmp_path)
    assert _same(resumed, whole)
    assert len(again) == 13 - after
    assert not set(again) & set(computed)


def test_a_stored_step_of_other_rows_is_not_used(tmp_path: Path) -> None:
    def compute() -> Arrays:
        return {"x": np.arange(3.0)}

    def never() -> Arrays:
        raise AssertionError("it is stored")

    x = np.zeros(4)
    Steps(tmp_path, {"x": x})({"one": compute})
    assert np.array_equal(Steps(tmp_path, {"x": x})({"one": never})[0]["x"], np.arange(3.0))
    with pytest.raises(AssertionError, match="stored"):
        Steps(tmp_path, {"x": x + 1.0})({"one": never})
    with pytest.raises(AssertionError, match="stored"):
        Steps(tmp_path, {"x": x.reshape(2, 2)})({"one": never})


@pytest.mark.faults
def test_a_damaged_step_is_computed_again(tmp_path: Path) -> None:
    Steps(tmp_path)({"one": lambda: {"x": np.zeros(3)}})
    file = tmp_path / "one" / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1] + b"\1")
    with pytest.warns(UserWarning, match="damaged"):
        (again,) = Steps(tmp_path)({"one": lambda: {"x": np.ones(3)}})
    assert np.array_equal(again["x"], np.ones(3))
    assert np.array_equal(Steps(tmp_path)({"one": dict})[0]["x"], np.ones(3))


@pytest.mark.slow  # on a busy machine two threads wait for each other for minutes
def test_threads_change_no_bit(rows: Problem, whole: TabularPU, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(teachers, "threads_for", lambda cells: 2)
    assert _same(TabularPU(rows.prior).fit(rows.values, rows.categorical, rows.labels), whole)


def test_steps_side_by_side_change_no_bit(rows: Problem, whole: TabularPU, monkeypatch: pytest.MonkeyPatch) -> None:
    forked: list[int] = []
    by_copies = parallel._by_copies

    def counted(tasks: Any, count: int) -> Any:
        forked.append(len(tasks))
        return by_copies(tasks, count)

    monkeypatch.setattr(parallel, "_copies", lambda: 2)
    monkeypatch.setattr(parallel, "_by_copies", counted)
    assert _same(TabularPU(rows.prior).fit(rows.values, rows.categorical, rows.labels), whole)
    assert forked == [2, 11], "teachers first, then the steps of all members together"


def test_progress_counts_every_step(rows: Problem, capfd: pytest.CaptureFixture[str]) -> None:
    TabularPU(rows.prior).fit(rows.values, rows.categorical, rows.labels, progress=True)
    assert "table: 13/13 steps" in capfd.readouterr().err


def test_bounded_work_is_announced() -> None:
    labels = np.repeat([1, 0], [10, 60_000]).astype(np.int8)
    wide, long = model._notes(2000, labels)
    assert "2,000 columns" in wide
    assert "50,000 of 60,000 unlabelled rows" in long
    assert model._notes(1000, labels[:1000]) == ()
