"""What every view in the catalogue promises, whatever it does to a row."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from punce.errors import InputError
from punce.views import VIEWS, Table, View
from punce.views.plan import Plan

N = 23
SHAPES = {
    "cifar": (3, 12, 10),
    "cifar on grey images": (1, 28, 28),
    "digit": (1, 8, 8),
    "digit on colour images": (3, 9, 9),
    "table": (7,),
    "embedding": (33,),
}
EVERY_VIEW = pytest.mark.parametrize("case", list(SHAPES))


def view_of(case: str) -> View:
    return VIEWS[case.split(" ")[0]]()


def rows_of(case: str, n: int = N) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    shape = (n, *SHAPES[case])
    if len(shape) == 4:
        return torch.randint(256, shape, dtype=torch.uint8, generator=generator)
    return torch.randn(shape, generator=generator)


def plan_of(case: str, seed: int = 0, epoch: int = 0) -> Plan:
    return view_of(case).plan(n_rows=N, seed=seed, epoch=epoch, X=rows_of(case))


def all_views(case: str, seed: int = 0, epoch: int = 0) -> Tensor:
    return plan_of(case, seed, epoch).apply(rows_of(case), torch.arange(N))


@EVERY_VIEW
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_a_rows_views_are_a_function_of_seed_epoch_and_row(case: str, data: st.DataObject) -> None:
    """Any order, any batch sizes, any repetition: bit for bit the same."""
    seed, epoch = data.draw(st.integers(0, 2**63 - 1)), data.draw(st.integers(0, 10_000))
    rows = torch.tensor(data.draw(st.lists(st.integers(0, N - 1), min_size=1, max_size=2 * N)))
    cuts = sorted(data.draw(st.sets(st.integers(1, 2 * N), max_size=5)))
    X, plan, whole = rows_of(case), plan_of(case, seed, epoch), all_views(case, seed, epoch)
    parts = [part for part in torch.tensor_split(rows, cuts) if len(part)]
    batches = torch.cat([plan.apply(X[part], part) for part in parts], dim=1)
    assert torch.equal(batches, whole[:, rows])


@EVERY_VIEW
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**63 - 1), epoch=st.integers(0, 2**63 - 1), b=st.integers(0, N))
def test_shape_type_and_range(case: str, seed: int, epoch: int, b: int) -> None:
    view, X, rows = view_of(case), rows_of(case), torch.arange(b)
    two = plan_of(case, seed, epoch).apply(X[:b], rows)
    clean = view.clean(X[:b])
    assert two.shape == (2, b, *SHAPES[case])
    assert clean.shape == (b, *SHAPES[case])
    assert two.dtype == clean.dtype == torch.float32
    assert bool(two.isfinite().all())
    if X.ndim == 4 and b:
        assert two.min() >= -1
        assert two.max() <= 1


@EVERY_VIEW
@pytest.mark.parametrize("threads", [1, 2])
def test_large_images_and_threads_change_no_bit(case: str, threads: int) -> None:
    """Sizes at which torch splits one row's work over threads when the row comes alone."""
    shape = (SHAPES[case][0], 130, 97) if len(SHAPES[case]) == 3 else (40_000,)
    n, before = 8, torch.get_num_threads()
    X, rows = torch.rand((n, *shape), generator=torch.Generator().manual_seed(5)), torch.arange(n)
    plan = view_of(case).plan(n, 0, 0, X=X)
    try:
        torch.set_num_threads(1)
        whole = plan.apply(X, rows)
        torch.set_num_threads(threads)
        assert torch.equal(plan.apply(X, rows), whole)
        assert torch.equal(torch.cat([plan.apply(X[[i]], rows[[i]]) for i in range(n)], dim=1), whole)
    finally:
        torch.set_num_threads(before)


@EVERY_VIEW
def test_ranks_that_share_an_epoch_make_the_views_of_one(case: str) -> None:
    X, whole = rows_of(case), all_views(case)
    order = torch.randperm(N, generator=torch.Generator().manual_seed(3))
    for world in (2, 3, 5):
        for rank in range(world):
            rows = order[rank::world]
            assert torch.equal(plan_of(case).apply(X[rows], rows), whole[:, rows])


def _digest(case: str) -> str:
    return hashlib.sha256(np.ascontiguousarray(all_views(case)).tobytes()).hexdigest()


def test_another_process_makes_the_same_views() -> None:
    torch.rand(3)  # neither reads nor moves the global stream
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as worker:
        elsewhere = list(worker.map(_digest, SHAPES))
    assert elsewhere == [_digest(case) for case in SHAPES]


@EVERY_VIEW
def test_a_plan_over_two_thousand_million_rows_is_as_small_as_any(case: str) -> None:
    n, X = 2**31 - 1, rows_of(case)
    plan = view_of(case).plan(n, 0, 0, X=X)
    held = [v for v in vars(plan).values() if isinstance(v, Tensor)]
    assert all(v.data_ptr() == X.data_ptr() for v in held)  # the table's reference rows, not copied
    rows = torch.tensor([0, n - 1, n - 1])
    two = plan.apply(X[[0, 0, 0]], rows)
    assert torch.equal(two[:, 1], two[:, 2])
    assert not torch.equal(two[:, 0], two[:, 1])


@EVERY_VIEW
def test_the_global_stream_is_left_alone(case: str) -> None:
    torch.manual_seed(0)
    expected = torch.rand(4)
    torch.manual_seed(0)
    all_views(case)
    assert torch.equal(torch.rand(4), expected)


@EVERY_VIEW
def test_seeds_epochs_views_and_rows_differ(case: str) -> None:
    first, second = all_views(case)
    shape = SHAPES[case]
    for other in (second, all_views(case, epoch=1)[0], all_views(case, seed=1)[0], all_views(case, epoch=2**40)[0]):
        different = (first != other).flatten(1).any(dim=1)
        assert different.double().mean() > 0.8
    X = rows_of(case)
    same = X[:1].expand(N, *shape)
    views = view_of(case).plan(N, 0, 0, X=X).apply(same, torch.arange(N))[0]
    assert len({row.numpy().tobytes() for row in views}) > 0.8 * N


@EVERY_VIEW
def test_rows_may_be_int32_and_the_batch_is_not_changed(case: str) -> None:
    X = rows_of(case)
    before = X.clone()
    plan, rows = plan_of(case), torch.arange(5)
    assert torch.equal(plan.apply(X[:5], rows.to(torch.int32)), plan.apply(X[:5], rows))
    assert torch.equal(X, before)


@EVERY_VIEW
def test_a_view_is_its_json(case: str) -> None:
    view = view_of(case)
    settings_ = json.loads(json.dumps(dataclasses.asdict(view)))  # type: ignore[call-overload]
    assert VIEWS[case.split(" ")[0]](**settings_) == view
    with pytest.raises(dataclasses.FrozenInstanceError):
        view.rate = 0.5  # type: ignore[attr-defined]


@EVERY_VIEW
def test_a_view_with_numbers_of_numpy_is_that_with_pythons(case: str) -> None:
    """Settings often come from a grid. What is shown counts, too: a resumed run compares it."""
    kind = VIEWS[case.split(" ")[0]]
    defaults = dataclasses.asdict(kind())  # type: ignore[call-overload]
    first = {name: value for name, value in defaults.items() if isinstance(value, float)}
    view = kind(**{name: np.float32(0.5) for name in first})
    assert repr(view) == repr(kind(**dict.fromkeys(first, 0.5)))
    assert json.dumps(dataclasses.asdict(view))  # type: ignore[call-overload]


def test_the_groups_of_a_table_may_be_an_array_of_whole_numbers() -> None:
    assert repr(Table(groups=np.array([0, 1, 1]))) == repr(Table(groups=(0, 1, 1)))  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"counted from 0 without gaps; got \(0\.0, 1\.0\)"):
        Table(groups=(0.0, 1.0))  # type: ignore[arg-type]


@EVERY_VIEW
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (torch.tensor([0, N]), rf"rows must lie in \[0, {N}\).* got \[{N}\]"),
        (torch.tensor([-1, 0]), r"got \[-1\]"),
        (torch.tensor([0]), r"one index for each of the 2 rows of x, got shape \(1,\)"),
        (torch.tensor([0.0, 1.0]), "int64 row indices, got torch.float32"),
        ([0, 1], "int64 row indices, got list"),
    ],
)
def test_row_indices_that_cannot_be_are_refused(case: str, rows: Tensor, message: str) -> None:
    with pytest.raises(InputError, match=message):
        plan_of(case).apply(rows_of(case)[:2], rows)


@EVERY_VIEW
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seed": -1}, "seed must be a whole number from 0"),
        ({"seed": 1.5}, "seed must be a whole number"),
        ({"epoch": 2**63}, "epoch must be a whole number"),
        ({"epoch": True}, "epoch must be a whole number"),
        ({"n_rows": 0}, "n_rows must be a whole number from 1"),
    ],
)
def test_plans_that_cannot_be_are_refused(case: str, arguments: dict[str, object], message: str) -> None:
    good: dict[str, object] = {"n_rows": N, "seed": 0, "epoch": 0, "X": rows_of(case)}
    with pytest.raises(InputError, match=message):
        view_of(case).plan(**(good | arguments))  # type: ignore[arg-type]


@EVERY_VIEW
def test_numbers_of_numpy_draw_the_views_of_pythons(case: str) -> None:
    """Seeds often come from an arange."""
    X, rows = rows_of(case), torch.arange(N)
    plan = view_of(case).plan(np.int64(N), np.uint32(7), np.int32(2), X=X)  # type: ignore[arg-type]
    assert torch.equal(plan.apply(X, rows), all_views(case, 7, 2))


@pytest.mark.parametrize("name", ["table", "embedding"])
@pytest.mark.parametrize(
    ("x", "message"),
    [
        (torch.zeros(2, 3, 4), r"must be a matrix \(rows, features\), got shape \(2, 3, 4\)"),
        (torch.zeros(2, 0), "must be a matrix"),
        (torch.zeros(2, 7, dtype=torch.bool), "must hold numbers, got dtype torch.bool"),
        (torch.tensor([[0.0] * 7, [0, 0, float("nan"), 0, 0, 0, 0]]), r"1 value that is NaN .* \(1, 2\)"),
        (torch.tensor([[float("-inf")] + [0.0] * 6, [0.0] * 7]), r"NaN or infinite, first at .* \(0, 0\)"),
        (np.zeros((2, 7)), "torch tensor, got ndarray"),
    ],
)
def test_feature_rows_that_cannot_be_used_are_refused(name: str, x: Tensor, message: str) -> None:
    view = VIEWS[name]()
    plan = view.plan(N, 0, 0, X=torch.zeros(N, 7))
    for use in (lambda: plan.apply(x, torch.arange(2)), lambda: view.clean(x)):
        with pytest.raises(InputError, match=message):
            use()
