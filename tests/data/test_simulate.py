from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from punce.data import biased_propensity, simulate_pnu, simulate_pu
from punce.errors import InputError


def _truth(n_positive: int = 40, n_negative: int = 60) -> np.ndarray:
    y_true = np.array([1] * n_positive + [0] * n_negative, dtype=np.int8)
    return np.random.RandomState(3).permutation(y_true)


def test_single_set_labels_only_positives_and_returns_the_exact_prior() -> None:
    y_true = _truth()
    sample = simulate_pu(y_true, 15, seed=1)
    assert sample.labels.dtype == np.int8
    assert (sample.rows == np.arange(100)).all()
    assert (sample.labels == 1).sum() == sample.n_labelled == 15
    assert set(sample.labels.tolist()) == {0, 1}
    assert (y_true[sample.labels == 1] == 1).all()
    assert sample.prior == y_true[sample.labels == 0].mean() == 25 / 85
    assert sample.population_prior == 0.4


def test_case_control_keeps_the_whole_set_unlabelled_and_appends_copies() -> None:
    y_true = _truth()
    sample = simulate_pu(y_true, 15, "case_control", seed=1)
    assert len(sample.rows) == len(sample.labels) == 115
    unlabelled = sample.rows[sample.labels == 0]
    assert (unlabelled == np.arange(100)).all()
    assert (y_true[sample.rows[sample.labels == 1]] == 1).all()
    assert sample.prior == y_true[unlabelled].mean() == 0.4


def test_a_seed_names_a_labelled_set_for_ever() -> None:
    rows = np.flatnonzero(simulate_pu(np.arange(20) % 2, 4, seed=7).labels)
    assert rows.tolist() == [1, 5, 11, 17]  # RandomState's stream is frozen: this must never change


def test_labelled_sets_of_one_seed_are_nested_and_seeds_differ() -> None:
    y_true = _truth()
    small, large = (set(np.flatnonzero(simulate_pu(y_true, n, seed=2).labels)) for n in (10, 30))
    assert small < large
    assert small != set(np.flatnonzero(simulate_pu(y_true, 10, seed=3).labels))


def test_labelling_is_uniform_over_positives() -> None:
    y_true = np.array([1, 1, 1, 1, 0])
    counts = sum(simulate_pu(y_true, 2, seed=s).labels.astype(int) for s in range(2000))
    assert isinstance(counts, np.ndarray)
    assert counts[4] == 0
    # each positive is drawn with probability 1/2: 1000 ± 5 standard deviations of 22.4
    assert np.abs(counts[:4] - 1000).max() < 112


def test_propensity_biases_the_draw_in_its_direction() -> None:
    y_true = [1, 1, 0]
    draws = sum(simulate_pu(y_true, 1, seed=s, propensity=[3.0, 1.0, 9.0]).labels.astype(int) for s in range(2000))
    assert isinstance(draws, np.ndarray)
    assert draws[2] == 0
    assert abs(draws[0] - 1500) < 5 * np.sqrt(2000 * 0.75 * 0.25)


def test_propensity_as_a_function_of_rows_equals_the_array() -> None:
    y_true, weights = _truth(), np.linspace(0.1, 5, 100)
    by_array = simulate_pu(y_true, 10, propensity=weights)
    by_function = simulate_pu(y_true, 10, propensity=lambda rows: weights[rows])
    assert (by_array.labels == by_function.labels).all()


def test_biased_propensity_is_uniform_at_strength_zero_and_safe_for_a_constant_score() -> None:
    assert (biased_propensity([1.0, 5.0, 9.0], 0.0) == 1).all()
    assert (biased_propensity([2.0, 2.0], 3.0) == 1).all()
    weights = biased_propensity([1.0, 2.0, 3.0], 1.0)
    assert weights[2] / weights[1] == pytest.approx(np.exp(np.sqrt(1.5)))


def test_zero_propensity_rows_are_never_labelled() -> None:
    weights = np.zeros(100)
    y_true = _truth()
    allowed = np.flatnonzero(y_true)[:5]
    weights[allowed] = 1.0
    sample = simulate_pu(y_true, 5, propensity=weights)
    assert np.flatnonzero(sample.labels).tolist() == allowed.tolist()
    with pytest.raises(InputError, match="propensity above 0"):
        simulate_pu(y_true, 6, propensity=weights)


def test_pnu_keeps_true_labels_of_random_rows() -> None:
    y_true = _truth()
    sample = simulate_pnu(y_true, 30, seed=4)
    assert sample.setting == "pnu"
    assert sample.n_labelled == 30
    assert ((sample.labels == 1) <= (y_true == 1)).all()
    assert ((sample.labels == -1) <= (y_true == 0)).all()
    assert (sample.labels == -1).any()
    assert sample.prior == pytest.approx(y_true[sample.labels == 0].mean())


def test_the_sample_does_not_carry_the_truth() -> None:
    sample = simulate_pu(_truth(), 10)
    arrays = [name for name, value in vars(sample).items() if isinstance(value, np.ndarray)]
    assert sorted(arrays) == ["labels", "rows"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, 0, 1], 3), "the set has 2 positive rows; give .* at most that many"),
        (([1, 0, 1], 0), "at least 1"),
        (([1, 0, 1], 0.5), "cannot label 0.5 rows.*a whole number"),
        (([1, -1, 1], 1), "row 1 holds"),
        (([[1, 0]], 1), "one-dimensional"),
        (([], 1), "not empty"),
        (([1, 0], 1, "two_set"), "scenario must be one of"),
        (([1, 0], 1, "single_set", -1), "seed must be"),
        (([1, 0], 1, "single_set", 0, [1.0]), "2 weights"),
        (([1, 0], 1, "single_set", 0, [np.nan, 1.0]), "finite"),
        (([1, 0], 1, "single_set", 0, [-1.0, 1.0]), "not negative"),
        (([1, 1], 2), "no unlabelled row is left"),
    ],
)
def test_bad_arguments_are_refused_with_the_reason(arguments: tuple, message: str) -> None:
    with pytest.raises(InputError, match=message):
        simulate_pu(*arguments)


def test_biased_propensity_refuses_what_is_not_a_score() -> None:
    with pytest.raises(InputError, match="one finite number per row"):
        biased_propensity([[1.0, 2.0]], 1.0)
    with pytest.raises(InputError, match="one finite number per row"):
        biased_propensity([1.0, np.nan], 1.0)


@pytest.mark.parametrize("seed", [None, 1.5, "1", -1, 2**32, np.random.default_rng(0)])
def test_a_seed_that_names_no_labelled_set_is_refused(seed: Any) -> None:
    with pytest.raises(InputError, match=r"seed must be a whole number between 0 and 2\*\*32 - 1, got"):
        simulate_pu([1, 0, 1], 1, seed=seed)


def test_another_vocabulary_of_classes_is_told_as_it_was_written() -> None:
    with pytest.raises(InputError, match=r"row 1 holds -1$"):
        simulate_pu(np.array([1, -1, 1]), 1, seed=0)
