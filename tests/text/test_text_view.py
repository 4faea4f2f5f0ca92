"""The text view: the tokens twice, some left out, as a function of (seed, epoch, row) alone."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from torch import Tensor

from punce.errors import InputError
from punce.views import VIEWS, Text

N, LONGEST = 40, 30


def rows(n: int = N) -> Tensor:
    """Rows of 2 to 30 different tokens, numbered from 100, end marks 0 and 2."""
    generator = torch.Generator().manual_seed(0)
    x = torch.full((n, LONGEST), -1, dtype=torch.int32)
    for row, length in zip(x, torch.randint(2, LONGEST + 1, (n,), generator=generator).tolist(), strict=True):
        row[:length] = torch.arange(100, 100 + length)
        row[0], row[length - 1] = 0, 2
    return x


def views(drop: float, seed: int = 0, epoch: int = 0, chosen: Tensor | None = None) -> Tensor:
    chosen = torch.arange(N) if chosen is None else chosen
    return Text(drop).plan(N, seed, epoch).apply(rows()[chosen], chosen)


def test_without_dropping_both_views_are_the_row() -> None:
    assert VIEWS["text"]() == Text(0.0)
    two = views(0.0)
    assert two.shape == (2, N, LONGEST)
    assert torch.equal(two[0], rows())
    assert torch.equal(two[1], rows())
    assert torch.equal(Text(0.5).clean(rows()), rows())


def test_dropped_tokens_close_up_and_the_ends_stay() -> None:
    for view in views(0.4):
        for before, after in zip(rows(), view, strict=True):
            was, kept = before[before >= 0].tolist(), after[after >= 0].tolist()
            assert after[len(kept) :].eq(-1).all()
            assert (kept[0], kept[-1]) == (0, 2)
            assert kept[1:-1] == [token for token in was[1:-1] if token in kept[1:-1]]
            assert len(kept) >= min(3, len(was))


def test_the_share_that_is_dropped() -> None:
    inner = int((rows() >= 0).sum()) - 2 * N
    for drop in (0.1, 0.4):
        left = torch.cat([(views(drop, seed)[0] >= 0).sum()[None] - 2 * N for seed in range(20)])
        assert float(left.double().mean()) / inner == pytest.approx(1 - drop, abs=0.02)
    assert bool(((views(0.99) >= 0).sum(2) >= 2).all())


def test_a_rows_views_are_a_function_of_seed_epoch_and_row() -> None:
    whole = views(0.3, seed=5, epoch=2)
    order = torch.randperm(N, generator=torch.Generator().manual_seed(1))
    for chosen in (order[:7], order[7:8], order[8:]):
        assert torch.equal(views(0.3, 5, 2, chosen), whole[:, chosen])
    padded = torch.nn.functional.pad(rows(), (0, 11), value=-1)
    assert torch.equal(Text(0.3).plan(N, 5, 2).apply(padded, torch.arange(N))[:, :, :LONGEST], whole)
    for other in (whole[1], views(0.3, 5, 3)[0], views(0.3, 6, 2)[0]):
        assert (whole[0] != other).any(1).double().mean() > 0.8
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    views(0.3)
    assert torch.equal(torch.rand(3), expected)


def test_a_view_is_its_json_and_refuses_what_it_cannot_read() -> None:
    assert VIEWS["text"](**dataclasses.asdict(Text(0.25))) == Text(0.25)
    with pytest.raises(InputError, match="drop must be within"):
        Text(1.0)
    plan = Text().plan(2, 0, 0)
    for x in (torch.rand(2, 3), torch.zeros(2, dtype=torch.int64), torch.zeros(2, 0, dtype=torch.int64)):
        with pytest.raises(InputError, match="token numbers"):
            plan.apply(x, torch.arange(2))
    with pytest.raises(InputError, match="rows must lie in"):
        plan.apply(rows(2), torch.tensor([0, 2]))
