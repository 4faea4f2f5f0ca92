"""Batches: every row, labelled rows everywhere, the same on any number of ranks, a function of (seed, step)."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from punce.errors import InputError
from punce.labels import Labels
from punce.training.batches import StratifiedBatches, own_part

# Any mix of the three label values, down to one row and to no labelled or no unlabelled row at all.
mixes = st.tuples(st.integers(0, 9), st.integers(0, 80), st.integers(0, 9)).filter(lambda counts: sum(counts) > 0)


def mixed_labels(counts: tuple[int, int, int]) -> Labels:
    labels = np.repeat(np.array([1, 0, -1], dtype=np.int8), counts)
    return np.random.default_rng(sum(counts)).permutation(labels)


def epoch_of(batches: StratifiedBatches, epoch: int) -> list[torch.Tensor]:
    return [batches.rows(epoch * batches.per_epoch + k) for k in range(batches.per_epoch)]


def counts_of(parts: list[torch.Tensor]) -> Counter[int]:
    return Counter(torch.cat(parts).tolist())


@given(mixes, st.integers(2, 120), st.integers(0, 3), st.integers(0, 5))
def test_unlabelled_rows_come_once_and_labelled_ones_at_least_once(
    mix: tuple[int, int, int], batch_size: int, min_labelled: int, epoch: int
) -> None:
    labels = mixed_labels(mix)
    batches = StratifiedBatches(labels, batch_size, 7, min_labelled)
    counts = counts_of(epoch_of(batches, epoch))
    assert sorted(counts) == list(range(len(labels)))
    for value in (1, 0, -1):
        times = [counts[row] for row in np.flatnonzero(labels == value)]
        if value == 0 or len(times) >= min_labelled * batches.per_epoch:
            assert set(times) <= {1}  # nothing is repeated without need
        elif times:
            assert max(times) - min(times) <= 2  # the remainder may meet the seam of two shuffles
            assert sum(times) == min_labelled * batches.per_epoch


@given(mixes, st.integers(2, 120), st.integers(1, 3))
def test_no_batch_lacks_a_labelled_class_and_sizes_are_nearly_equal(
    mix: tuple[int, int, int], batch_size: int, min_labelled: int
) -> None:
    labels = mixed_labels(mix)
    parts = epoch_of(StratifiedBatches(labels, batch_size, 3, min_labelled), 0)
    for value in {1, -1} & set(labels.tolist()):
        assert min(int((labels[part.numpy()] == value).sum()) for part in parts) >= min_labelled
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= len(np.unique(labels))  # one row per label value
    assert min(sizes) >= 1


def test_a_row_repeated_for_want_of_others_comes_equally_often_in_the_long_run() -> None:
    labels = np.array([1] * 3 + [0] * 40, dtype=np.int8)
    batches = StratifiedBatches(labels, 21, 0, min_labelled=2)  # 4 labelled places an epoch for 3 rows
    counts = counts_of([part for epoch in range(30) for part in epoch_of(batches, epoch)])
    assert [counts[row] for row in range(3)] == [40, 40, 40]


@given(st.integers(1, 30), st.integers(1, 200), st.integers(4, 64), st.floats(0.05, 0.9), st.booleans())
def test_labelled_share(n_labelled: int, n_unlabelled: int, batch_size: int, share: float, pnu: bool) -> None:
    labels = np.array([1] * n_labelled + [0] * n_unlabelled + [-1] * (5 if pnu else 0), dtype=np.int8)
    batches = StratifiedBatches(labels, batch_size, 1, min_labelled=1, labelled_share=share)
    parts = epoch_of(batches, 2)
    counts = counts_of(parts)
    assert {counts[row] for row in np.flatnonzero(labels == 0)} == {1}  # one pass over U
    classes = 2 if pnu else 1
    wanted = max(1.0, share * batch_size / classes)
    for part in parts:
        for value in (1, -1)[:classes]:
            dealt = int((labels[part.numpy()] == value).sum())
            assert dealt >= 1
            assert abs(dealt - wanted) <= 1.5
    assert max(counts[row] for row in range(n_labelled)) - min(counts[row] for row in range(n_labelled)) <= 2


def test_many_labelled_rows_are_cycled_through_at_their_own_pace() -> None:
    labels = np.array([1] * 100 + [0] * 100, dtype=np.int8)
    batches = StratifiedBatches(labels, 50, 0, labelled_share=0.2)  # 20 or so of the 100 labelled rows an epoch
    per_epoch = sum(int((labels[part.numpy()] == 1).sum()) for part in epoch_of(batches, 0))
    assert per_epoch < 50
    epochs = 100 // np.gcd(100, per_epoch)  # whole cycles only
    counts = counts_of([part for epoch in range(epochs) for part in epoch_of(batches, epoch)])
    assert len({counts[row] for row in range(100)}) == 1


@given(mixes, st.integers(2, 120), st.integers(1, 5), st.integers(0, 20))
def test_the_shares_of_all_ranks_are_the_global_batch(
    mix: tuple[int, int, int], batch_size: int, world: int, step: int
) -> None:
    labels = mixed_labels(mix)
    rows = StratifiedBatches(labels, batch_size, 5).rows(step)
    shares = [own_part(StratifiedBatches(labels, batch_size, 5).rows(step), rank, world) for rank in range(world)]
    assert sorted(torch.cat(shares).tolist()) == sorted(rows.tolist())
    sizes = [len(share) for share in shares]
    assert max(sizes) - min(sizes) <= 1
    labelled = [int((labels[share.numpy()] == 1).sum()) for share in shares]
    assert max(labelled) - min(labelled) <= 1  # labelled rows are spread over ranks, too


@given(st.integers(0, 40))
def test_a_batch_is_a_function_of_the_step_alone(step: int) -> None:
    labels = mixed_labels((3, 50, 0))
    fresh, walked = (StratifiedBatches(labels, 8, 11) for _ in range(2))
    for before in range(step):
        walked.rows(before)
    assert walked.rows(step).equal(fresh.rows(step))


def test_epochs_and_seeds_shuffle_differently() -> None:
    labels = mixed_labels((5, 60, 0))
    one, other = StratifiedBatches(labels, 65, 0), StratifiedBatches(labels, 65, 1)
    assert one.per_epoch == 1
    assert not one.rows(0).equal(one.rows(1))
    assert not one.rows(0).equal(other.rows(0))


def test_one_labelled_row_is_in_every_batch() -> None:
    labels = np.array([1] + [0] * 99, dtype=np.int8)
    batches = StratifiedBatches(labels, 10, 0, min_labelled=2)
    assert all(part.tolist().count(0) == 2 for part in epoch_of(batches, 4))


def test_a_batch_larger_than_the_data_is_one_batch() -> None:
    batches = StratifiedBatches(mixed_labels((2, 5, 0)), 1024, 0)
    assert batches.per_epoch == 1
    assert sorted(batches.rows(0).tolist()) == list(range(7))


@pytest.mark.parametrize(
    ("options", "message"), [({"batch_size": 1}, "batch_size"), ({"labelled_share": 1.0}, "(0, 1)")]
)
def test_impossible_arguments_are_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message.replace("(", r"\(").replace(")", r"\)")):
        StratifiedBatches(mixed_labels((2, 5, 0)), **{"batch_size": 4, "seed": 0, **options})  # type: ignore[arg-type]
