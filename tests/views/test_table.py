from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from punce.errors import InputError
from punce.views import VIEWS, Table


def labelled_cells(n: int, d: int) -> Tensor:
    """A table whose every cell says where it comes from: row + column / 1000."""
    return torch.arange(n)[:, None] + torch.arange(d)[None, :] / 1000


def both_views(view: Table, X: Tensor, seed: int = 0) -> Tensor:
    return view.plan(len(X), seed, 0, X=X).apply(X, torch.arange(len(X)))


@settings(max_examples=40, deadline=None)
@given(n=st.integers(2, 30), d=st.integers(1, 12), rate=st.floats(0, 1), seed=st.integers(0, 10**6))
def test_replacements_are_values_of_the_same_column_in_other_rows(n: int, d: int, rate: float, seed: int) -> None:
    X = labelled_cells(n, d)
    for view in both_views(Table(rate=rate), X, seed):
        assert torch.allclose(view - view.floor(), X - X.floor(), atol=1e-4)  # the column of every cell
        changed = view != X
        assert set(changed.sum(dim=1).tolist()) == {_expected(rate, d)}


def _expected(rate: float, d: int) -> int:
    count = round(rate * d)
    return count if d == 1 or rate in (0.0, 1.0) else min(max(count, 1), d - 1)


def test_every_feature_is_chosen_and_every_other_row_gives_equally_often() -> None:
    n, d = 4000, 10
    X = labelled_cells(n, d)
    first, second = both_views(Table(rate=0.3), X)
    changed = (first != X).double()
    assert changed.mean(dim=0).sub(0.3).abs().max() < 0.03
    donors = first.floor()[first != X]
    assert donors.mean() == pytest.approx((n - 1) / 2, rel=0.03)
    assert torch.histc(donors, 10, 0, n).div(len(donors)).sub(0.1).abs().max() < 0.02
    both = ((first != X) & (second != X)).double().mean()
    assert both == pytest.approx(0.09, abs=0.01)  # the two views choose independently
    other_epoch = Table(rate=0.3).plan(n, 0, 1, X=X).apply(X, torch.arange(n))[0]
    assert ((first != X) & (other_epoch != X)).double().mean() == pytest.approx(0.09, abs=0.01)


def test_columns_of_one_feature_change_together_and_from_one_row() -> None:
    groups = (0, 1, 1, 1, 2, 0)
    X = labelled_cells(500, 6)
    first, _ = both_views(Table(rate=0.34, groups=groups), X)
    changed = first != X
    for feature in range(3):
        columns = [i for i, g in enumerate(groups) if g == feature]
        assert (first[:, columns].floor() == first[:, columns[:1]].floor()).all()
    assert changed[:, [0, 1, 4]].sum(dim=1).eq(1).all()


def test_one_hot_columns_stay_one_hot_and_codes_stay_codes() -> None:
    generator = torch.Generator().manual_seed(0)
    codes = torch.randint(4, (300,), generator=generator)
    X = torch.cat([torch.nn.functional.one_hot(codes, 4), codes[:, None] * 10], dim=1)
    two = both_views(Table(rate=0.5, groups=(0, 0, 0, 0, 1)), X)
    assert two[..., :4].sum(dim=2).eq(1).all()
    assert set(two[..., 4].unique().tolist()) <= {0.0, 10.0, 20.0, 30.0}


def test_without_both_the_first_view_is_the_row() -> None:
    X = labelled_cells(50, 5)
    first, second = both_views(Table(rate=0.6, both=False), X)
    assert torch.equal(first, X)
    assert (second != X).sum(dim=1).eq(3).all()


def test_the_ends_of_the_rate() -> None:
    X = labelled_cells(50, 5)
    assert torch.equal(both_views(Table(rate=0.0), X), X.expand(2, -1, -1))
    assert (both_views(Table(rate=1.0), X) != X).all()
    alone = X[:1]
    assert torch.equal(both_views(Table(rate=1.0), alone), alone.expand(2, -1, -1))


def test_a_smaller_reference_serves_as_well() -> None:
    X, reference = labelled_cells(50, 5), labelled_cells(3, 5) + 1000
    two = Table(rate=0.4).plan(50, 0, 0, X=reference).apply(X, torch.arange(50))
    assert (two != X).sum(dim=2).eq(2).all()
    assert set(two[two != X].floor().unique().tolist()) == {1000.0, 1001.0, 1002.0}


def test_the_plan_keeps_no_copy_of_the_rows() -> None:
    X = labelled_cells(100, 5)
    plan = Table().plan(100, 0, 0, X=X)
    assert plan.reference.data_ptr() == X.data_ptr()
    assert "tensor" not in repr(plan)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (None, r"pass them as plan\(..., X=X\)"),
        (torch.zeros(3), "numeric tensor of at least one row"),
        (torch.zeros(0, 3), "at least one row"),
        (torch.zeros(3, 3, dtype=torch.bool), "dtype torch.bool"),
        (torch.tensor([[0.0, float("nan"), 0.0]]), r"X holds 1 value that is NaN .* \(0, 1\)"),
        (torch.zeros(3, 4), "features of 3 columns, but X has 4"),
    ],
)
def test_reference_rows_that_cannot_serve_are_refused(X: Tensor | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Table(groups=(0, 1, 2)).plan(5, 0, 0, X=X)


def test_a_batch_encoded_otherwise_is_refused() -> None:
    plan = VIEWS["table"]().plan(5, 0, 0, X=torch.zeros(5, 3))
    with pytest.raises(InputError, match="x has 4 features, the reference rows have 3"):
        plan.apply(torch.zeros(2, 4), torch.arange(2))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"rate": 1.1}, "rate must be within"),
        ({"rate": float("nan")}, "rate must be within"),
        ({"groups": (0, 2)}, "counted from 0 without gaps"),
        ({"groups": ()}, "counted from 0"),
    ],
)
def test_impossible_settings_are_refused(setting: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Table(**setting)  # type: ignore[arg-type]
