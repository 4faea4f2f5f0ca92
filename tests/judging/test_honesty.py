"""What a fit reports is what is true: the quick part of benchmarks/honesty.py."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from punce.judging.judgement import JudgedScores, judge
from punce.judging.used_prior import given_prior

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def honesty() -> ModuleType:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import honesty
    finally:
        sys.path.pop(0)
    return honesty


def errors(found: list[dict[str, Any]], rule: str, metric: str) -> np.ndarray:
    return np.array([row[rule][metric][0] - row[rule][metric][3] for row in found if row[rule][metric][0] is not None])


@pytest.mark.parametrize("prior", [0.2, 0.6])
def test_cross_fitted_quality_is_not_flattered(honesty: ModuleType, prior: float) -> None:
    """At 50 labelled rows thresholds chosen for F1 on the rows that judge them flatter accuracy by 3 to 6 points."""
    found = [honesty.simulated("gumbel 0.9", 50, prior, True, seed, ("f1",)) for seed in range(40)]
    for metric in ("accuracy", "f1", "recall"):
        bias = errors(found, "f1", metric)
        assert len(bias) > 30, "nearly always stated"
        assert bias.mean() < 0.01 + 2 * bias.std() / np.sqrt(len(bias)), metric
        assert abs(bias.mean()) < 0.02, metric
        covered = [row["f1"][metric][1] <= row["f1"][metric][3] <= row["f1"][metric][2] for row in found]
        assert np.mean(covered) >= 0.75, metric  # 90 % intervals, 40 draws


@pytest.mark.filterwarnings("ignore")  # the estimate of the prior warns, and should
def test_useless_scores_are_never_given_a_number(honesty: ModuleType) -> None:
    for seed in range(6):
        found = honesty.simulated("noise", (30, 100, 500)[seed % 3], 0.3, False, seed, ("accuracy",))["accuracy"]
        assert {name for name, (value, *_) in found.items() if value is not None} <= {"recall"}


def test_the_verdict_on_a_row_has_no_say_in_what_is_reported_of_it() -> None:
    """Another verdict on one row changes the calibration of the other folds, not that of its own."""
    rng = np.random.default_rng(0)
    codes = np.repeat([1, 0], [60, 600]).astype(np.int8)
    y = np.concatenate([np.ones(60, dtype=bool), rng.random(600) < 0.4])
    scores = rng.normal(np.where(y, 1.0, -1.0))
    truths = np.zeros(660, dtype=np.int8)
    truths[60:120] = np.where(y[60:120], 1, -1)
    first = given_prior(0.4, codes, "single_set")
    asked: dict[str, Any] = {"scenario": "single_set", "target": "unlabelled", "sees_more": False, "seed": 0}

    def reported(truths: np.ndarray) -> np.ndarray:
        people = JudgedScores.of(scores, codes, truths)
        return judge(scores, codes, first, "accuracy", labelled_share=0.1, people=people, **asked).held_out[
            "unlabelled"
        ]

    plain = reported(truths)
    for place in (0, 7, 59):
        other = truths.copy()
        other[60 + place] *= -1
        moved = reported(other) != plain
        assert not moved[place]
        assert moved.mean() == pytest.approx(0.8, abs=0.01), "the other four folds learn from the verdict"


@pytest.mark.parametrize("target", ["population", "unlabelled"])
def test_verdicts_against_an_estimate_by_biased_labels_move_probabilities_once(target: Any) -> None:
    """They were bent to the verdicts, then shifted to the population by the odds of that estimate: 0.63 for 0.33."""
    rng = np.random.default_rng(0)
    y = np.concatenate([np.ones(80, dtype=bool), rng.random(1200) < 0.3])
    scores = rng.normal(np.where(y, 1.2, -1.2))
    scores[:80] = np.sort(rng.normal(1.2, 1.0, 800))[-80:]  # only clear positives are labelled
    codes, truths = np.repeat([1, 0], [80, 1200]).astype(np.int8), np.zeros(1280, dtype=np.int8)
    truths[80:230] = np.where(y[80:230], 1, -1)
    first = replace(given_prior(0.01, codes, "single_set"), low=0.005, high=0.03, method="combined")
    people = JudgedScores.of(scores, codes, truths)
    judged = judge(
        scores,
        codes,
        first,
        "accuracy",
        labelled_share=80 / 1280,
        people=people,
        scenario="single_set",
        target=target,
        sees_more=False,
        seed=0,
    )
    true = y.mean() if target == "population" else y[80:].mean()
    rows = scores if target == "population" else scores[80:]
    assert judged.calibrator.probability(rows).mean() == pytest.approx(true, abs=0.06)
    assert judged.calibrator.prior == pytest.approx(true, abs=0.06)
    deployed = judged.calibrator.probability(rows, float(true))
    assert deployed.mean() == pytest.approx(true, abs=0.06)  # a shift to the share that they have already


def test_the_recall_of_a_wanted_precision_agrees_with_the_calls_that_are_shown(honesty: ModuleType) -> None:
    """76 rows were called and at least 232 were positive, but recall was said to lie between 0.00 and 0.82."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        y = np.concatenate([np.ones(60, dtype=bool), rng.random(1_000) < 0.3])
        scores, labels = honesty.scores_of(y, "normal 0.8", rng), (np.arange(len(y)) < 60).astype(np.int8)
        first = replace(given_prior(0.3, labels, "single_set"), low=0.25, high=0.36)
        own = {"labelled_share": 60 / 1_060, "scenario": "single_set", "target": "unlabelled", "sees_more": False}
        judged = judge(scores, labels, first, "precision=0.99", **own, seed=seed, has_all=True)
        called = (judged.calibrator.probability(scores[60:]) >= judged.threshold).mean()
        assert judged.metrics.recall.high <= called / 0.25 + 1e-9
