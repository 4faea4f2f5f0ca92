from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from punce.errors import InputError
from punce.judging.judgement import judge
from punce.judging.thresholds import choose_threshold, shortfall
from punce.judging.used_prior import given_prior

PRIOR = 0.3


@pytest.fixture(scope="module")
def sample() -> dict[str, np.ndarray]:
    """Calibrated probabilities of a mixture with known classes."""
    random = np.random.default_rng(0)
    y = random.random(20_000) < PRIOR
    s = random.normal(np.where(y, 1.2, -1.2), 1.0)
    probability = 1 / (1 + (1 - PRIOR) / PRIOR * np.exp(-2.4 * s))
    p = 1 / (1 + (1 - PRIOR) / PRIOR * np.exp(-2.4 * random.normal(1.2, 1.0, 5_000)))
    return {"p": p, "u": probability, "y": y}


def achieved(sample: dict[str, np.ndarray], threshold: float) -> tuple[float, float, float]:
    called = sample["u"] >= threshold
    precision, recall = sample["y"][called].mean(), called[sample["y"]].mean()
    return float(precision), float(recall), float(2 * precision * recall / (precision + recall))


def test_a_wanted_precision_or_recall_is_reached_on_the_true_classes(sample: dict[str, np.ndarray]) -> None:
    for wanted in (0.7, 0.9, 0.97):
        precision, recall, _ = achieved(sample, choose_threshold(f"precision={wanted}", sample["p"], sample["u"]))
        assert precision == pytest.approx(wanted, abs=0.03)
        cut = choose_threshold(f"recall={wanted}", sample["p"], sample["u"])
        precision, recall, _ = achieved(sample, cut)
        assert recall == pytest.approx(wanted, abs=0.02)


def test_f1_is_nearly_the_best_there_is(sample: dict[str, np.ndarray]) -> None:
    chosen = achieved(sample, choose_threshold("f1", sample["p"], sample["u"]))[2]
    best = max(achieved(sample, t)[2] for t in np.linspace(0.05, 0.95, 91))
    assert chosen > best - 0.01


def test_accuracy_and_numbers(sample: dict[str, np.ndarray]) -> None:
    assert choose_threshold("accuracy", sample["p"], sample["u"]) == 0.5
    assert choose_threshold(0.8, sample["p"], sample["u"]) == 0.8


@pytest.mark.parametrize("rule", ["best", "precision", "precision=2", "recall=x", 0.0, 1.5])
def test_senseless_rules_are_refused(rule: Any) -> None:
    with pytest.raises(InputError, match="threshold must"):
        choose_threshold(rule, np.array([0.9]), np.array([0.1]))


@pytest.mark.parametrize(("n", "wanted"), [(25, 0.68), (100, 0.93), (20, 0.95), (5, 0.2)])
def test_a_recall_that_labelled_rows_have_exactly_is_enough(n: int, wanted: float) -> None:
    p = np.arange(1, n + 1) / (n + 1)
    assert (p >= choose_threshold(f"recall={wanted}", p, p[:1])).sum() == round(wanted * n)


def test_an_unreachable_precision_takes_the_best_threshold_and_says_so() -> None:
    p, u = np.array([0.6, 0.2]), np.array([0.6, 0.2, 0.1])
    assert choose_threshold("precision=0.9", p, u) == 0.6
    assert "precision of 0.9; the best is 0.600" in shortfall("precision=0.9", p, u)
    assert shortfall("precision=0.5", p, u) == shortfall("f1", p, u) == ""


@pytest.mark.parametrize("seed", range(3))
def test_a_fit_names_the_precision_of_the_threshold_it_uses(seed: int) -> None:
    """Probabilities of single folds reach higher or less high than those that the threshold is chosen on."""
    random = np.random.default_rng(seed)
    scores = random.normal(np.repeat([1.0, 1.0, -1.0], [30, 60, 140]), 1.0)
    labels = np.repeat([1, 0], [30, 200]).astype(np.int8)
    first = given_prior(PRIOR, labels, "case_control")
    asked: dict[str, Any] = {"scenario": "case_control", "target": "population", "sees_more": False, "seed": seed}
    judged = judge(scores, labels, first, "precision=0.999", labelled_share=0.0, **asked)
    assert f"the best is {judged.threshold:.3f}, which is used" in " ".join(judged.warnings)


def test_the_mix_to_be_called_may_hold_labelled_rows() -> None:
    """By hand: all rows are U, then U with one half of rows like P."""
    p, u = np.array([0.9, 0.9]), np.array([0.9, 0.5, 0.1, 0.1])
    assert choose_threshold("precision=0.7", p, u) == 0.5  # mean of 0.9 and 0.5
    assert choose_threshold("precision=0.7", p, u, labelled_share=0.5) == 0.5  # (0.5*0.9 + 0.125*1.4) / 0.75 = 0.83
    assert choose_threshold("precision=0.7", p, u, labelled_share=0.9) == 0.1
