from __future__ import annotations

import numpy as np
import pytest

from punce.judging.sampling import QUANTITIES, Quantity, allocate, draw, stratify


def scored(n: int = 2000, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    score = rng.normal(size=n)
    probability = 1 / (1 + np.exp(-2 * score + 1))
    return probability, score, probability >= 0.5


@pytest.mark.parametrize("quantity", QUANTITIES)
@pytest.mark.parametrize("n_rows", [5, 30, 60, 400])
def test_no_stratum_holds_both_calls_and_every_one_is_drawn_from(quantity: Quantity, n_rows: int) -> None:
    probability, score, called = scored()
    strata = stratify(probability, score, called, quantity, n_rows)
    for h, is_called in enumerate(strata.called):
        assert set(called[strata.of_row == h]) == {bool(is_called)}
    none = np.zeros(len(score), dtype=bool)
    rows = draw(strata, probability, none, np.zeros(len(strata.called), dtype=int), quantity, n_rows, seed=1)
    assert len(rows) == len(set(rows)) == n_rows
    counts = np.bincount(strata.of_row[rows], minlength=len(strata.called))
    assert counts.min() >= 2


def test_strata_follow_the_score() -> None:
    probability, score, called = scored()
    strata = stratify(probability, score, called, "share", 60)
    lowest = [score[strata.of_row == h].min() for h in range(len(strata.called))]
    assert lowest == sorted(lowest)


@pytest.mark.parametrize(("quantity", "more"), [("precision", True), ("recall", False)])
def test_rows_are_drawn_where_the_quantity_is_decided(quantity: Quantity, more: bool) -> None:
    probability, score, called = scored()
    none = np.zeros(len(score), dtype=bool)
    shares = {}
    for aim in ("share", quantity):
        strata = stratify(probability, score, called, aim, 60)
        rows = draw(strata, probability, none, np.zeros(len(strata.called), dtype=int), aim, 60, seed=0)
        shares[aim] = called[rows].mean()
    assert (shares[quantity] > shares["share"]) == more


def test_taken_rows_are_not_drawn_again_and_a_small_stratum_is_drawn_to_its_end() -> None:
    probability, score, called = scored(50)
    strata = stratify(probability, score, called, "share", 20)
    taken = np.arange(50) < 30
    rows = draw(strata, probability, taken, np.zeros(len(strata.called), dtype=int), "share", 40, seed=0)
    assert sorted(rows) == list(range(30, 50))


def test_the_next_row_goes_where_the_variance_shrinks_most() -> None:
    free, judged = np.array([100, 100, 100]), np.zeros(3, dtype=int)
    drawn = allocate(free, judged, np.array([1.0, 2.0, 1.0]), np.array([0.5, 0.5, 0.5]), 40)
    assert drawn.tolist() == [10, 20, 10]
    again = allocate(free, drawn, np.array([1.0, 2.0, 1.0]), np.array([0.5, 0.5, 0.5]), 4)
    assert again.tolist() == [1, 2, 1]
    assert allocate(free, judged, np.array([1.0, 2.0, 3.0]), np.ones(3), 3).tolist() == [0, 1, 2]


def test_nothing_called_or_everything_called_still_gives_strata() -> None:
    probability, score, _ = scored()
    for called in (np.zeros(2000, dtype=bool), np.ones(2000, dtype=bool)):
        for quantity in QUANTITIES:
            strata = stratify(probability, score, called, quantity, 30)
            assert strata.sizes.min() >= 2
