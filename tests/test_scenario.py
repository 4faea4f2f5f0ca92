from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from punce.errors import InputError
from punce.scenario import (
    Scenario,
    check_prior,
    exact_prior,
    label_frequency,
    logit_shift,
    population_prior,
    prior_from_label_frequency,
    prior_from_population,
)

CIFAR = (20_000, 30_000)  # vehicles, animals


@pytest.mark.parametrize(("n_labelled", "expected"), [(1_000, 0.3878), (3_000, 0.3617), (10_000, 0.2500)])
def test_the_papers_exact_prior_on_cifar(n_labelled: int, expected: float) -> None:
    assert exact_prior(*CIFAR, n_labelled) == pytest.approx(expected, abs=5e-5)
    assert exact_prior(*CIFAR, n_labelled, "case_control") == 0.4


@pytest.mark.parametrize(("n_labelled", "shift"), [(1_000, 0.05), (3_000, 0.16), (10_000, 0.69)])
def test_the_logit_shift_to_the_population(n_labelled: int, shift: float) -> None:
    assert logit_shift(exact_prior(*CIFAR, n_labelled), 0.4) == pytest.approx(shift, abs=5e-3)


@pytest.mark.parametrize("n_labelled", [1_000, 3_000, 10_000])
def test_the_population_prior_comes_back(n_labelled: int) -> None:
    prior = exact_prior(*CIFAR, n_labelled)
    assert population_prior(prior, n_labelled, 50_000 - n_labelled, "single_set") == pytest.approx(0.4)
    assert label_frequency(prior, n_labelled, 50_000 - n_labelled) == pytest.approx(n_labelled / 20_000)


@given(
    prior=st.floats(0, 1),
    n_labelled=st.integers(1, 10**6),
    n_unlabelled=st.integers(1, 10**6),
    scenario=st.sampled_from(["single_set", "case_control"]),
)
@example(prior=0.0, n_labelled=1, n_unlabelled=1314, scenario="single_set")  # 1/1315 · 1315 is just below 1
def test_conversions_are_inverses(prior: float, n_labelled: int, n_unlabelled: int, scenario: Scenario) -> None:
    there = population_prior(prior, n_labelled, n_unlabelled, scenario)
    assert prior_from_population(there, n_labelled, n_unlabelled, scenario) == pytest.approx(prior, abs=1e-6)
    c = label_frequency(prior, n_labelled, n_unlabelled)
    assert prior_from_label_frequency(c, n_labelled, n_unlabelled) == pytest.approx(prior, abs=1e-6)


@pytest.mark.parametrize("prior", [-0.1, 1.5, math.nan, math.inf])
def test_a_prior_outside_the_unit_interval_is_refused(prior: float) -> None:
    with pytest.raises(InputError, match=r"prior must lie in \[0, 1\]"):
        check_prior(prior)


def test_one_number_of_numpy_or_torch_is_a_prior() -> None:
    for prior in (np.float32(0.25), np.array(0.25), torch.tensor(0.25)):
        assert check_prior(prior) == 0.25


def test_refusals_say_what_to_do() -> None:
    with pytest.raises(InputError, match="a percentage"):
        check_prior(38.0)
    with pytest.raises(InputError, match="share of positives where the classifier is used"):
        check_prior(2, "deploy_prior", open_interval=True)
    with pytest.raises(InputError, match=r"^labelled_share must lie in \[0, 1\], got -1$"):
        check_prior(-1, "labelled_share")
    with pytest.raises(InputError, match=r"\(0, 1\)"):
        check_prior(1.0, open_interval=True)
    for wrong in ("auto", "0.3", True, None, np.array([0.3, 0.4])):
        with pytest.raises(InputError, match="prior must be a number between 0 and 1, got"):
            check_prior(wrong)
    with pytest.raises(InputError, match="scenario must be one of"):
        exact_prior(1, 1, 0, "wrong")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="30 labelled positives cannot come out of 20"):
        exact_prior(20, 5, 30)
    with pytest.raises(InputError, match="no unlabelled row is left"):
        exact_prior(20, 0, 20)
    with pytest.raises(InputError, match="fewer than the 50 labelled"):
        prior_from_population(0.1, 50, 50, "single_set")
    with pytest.raises(InputError, match=r"at least 0\.5"):
        prior_from_label_frequency(0.2, 50, 50)
