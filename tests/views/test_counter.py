from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from punce.views import counter

WORD = (1 << 64) - 1


def keys(n: int, seed: int = 0, epoch: int = 0, view: int = 0) -> torch.Tensor:
    return counter.row_keys(torch.arange(n), seed=seed, epoch=epoch, view=view)


def _splitmix(x: int) -> int:
    """The published function, in unbounded integers."""
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & WORD
    return x ^ (x >> 31)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20))
def test_wrapping_tensor_arithmetic_is_unsigned_arithmetic(words: list[int]) -> None:
    mixed = counter._mix(torch.tensor(words))
    assert [int(w) & WORD for w in mixed] == [_splitmix(w & WORD) for w in words]


def test_uniform_draws_are_uniform_and_uncorrelated() -> None:
    u = counter.uniform(keys(20_000), 12).numpy().T
    assert u.min() >= 0
    assert u.max() < 1
    for column in u.T:
        assert stats.kstest(column, "uniform").pvalue > 1e-4
    between_positions = np.corrcoef(u.T) - np.eye(12)
    between_rows = np.corrcoef(u[:-1].ravel(), u[1:].ravel())[0, 1]
    assert np.abs(between_positions).max() < 0.04
    assert abs(between_rows) < 0.01


def test_streams_seeds_epochs_and_views_are_unrelated() -> None:
    draws = [
        counter.uniform(keys(20_000), 1),
        counter.uniform(keys(20_000), 1, stream=1),
        counter.uniform(keys(20_000, seed=1), 1),
        counter.uniform(keys(20_000, epoch=1), 1),
        counter.uniform(keys(20_000, view=1), 1),
        counter.uniform(keys(20_000, seed=1, epoch=1), 1),
    ]
    assert np.abs(np.corrcoef(torch.cat(draws).numpy()) - np.eye(6)).max() < 0.03


def test_keys_of_a_million_rows_are_distinct() -> None:
    rows = torch.arange(1_000_000)
    both = torch.cat([counter.row_keys(rows, seed=0, epoch=0, view=v) for v in (0, 1)])
    assert len(both.unique()) == len(both)


def test_hashes_of_a_row_are_distinct_and_uniform() -> None:
    hashes = counter.bits(keys(50), 20_000)
    for row in hashes:
        assert len(row.unique()) == 20_000
    share = counter.unit_interval(hashes).numpy()
    assert share.min() >= 0
    assert share.max() < 1
    assert stats.kstest(share.ravel()[::10], "uniform").pvalue > 1e-4
    assert abs(np.corrcoef(share[:-1].ravel(), share[1:].ravel())[0, 1]) < 0.01
    assert abs(np.corrcoef(share[:, :-1].ravel(), share[:, 1:].ravel())[0, 1]) < 0.01


def test_a_rows_hashes_do_not_depend_on_how_many_are_drawn() -> None:
    assert torch.equal(counter.bits(keys(5), 100)[:, :30], counter.bits(keys(5), 30))
    assert torch.equal(counter.uniform(keys(5), 100)[:30], counter.uniform(keys(5), 30))


def test_integers_below_a_bound_are_uniform() -> None:
    hashes = counter.bits(keys(1000), 60)
    for n in (1, 2, 7, 2**31 - 1):
        drawn = counter.below(hashes, n)
        assert drawn.min() >= 0
        assert drawn.max() < n
    counts = torch.bincount(counter.below(hashes, 7).flatten(), minlength=7)
    assert stats.chisquare(counts.numpy()).pvalue > 1e-4


def test_bell_shaped_draws() -> None:
    noise = counter.bell(counter.bits(keys(200), 5000)).double()
    assert abs(noise.mean()) < 0.005
    assert abs(noise.std() - 1) < 0.005
    assert noise.abs().max() < 3.47
    assert abs(float((noise**4).mean()) - 2.7) < 0.03  # Irwin-Hall of four: 3 − 1.2 / 4
