from __future__ import annotations

import numpy as np
import pytest

from punce.judging.audit import Audit, Judged, agreed_share, audit, disagreements
from punce.judging.metrics import Estimate
from punce.judging.sampling import Strata, draw, stratify


def population(seed: int, biased: bool, n: int = 1500) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """True classes, scores and probabilities, which are far too low if the labels were biased."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.35
    score = np.where(y, 1.3, -1.3) + 1.3 * rng.normal(size=n)
    return y, score, 1 / (1 + np.exp(-1.5 * score + (4.0 if biased else 0.6)))


def judge(y: np.ndarray, strata: Strata, rows: np.ndarray) -> Judged:
    counts = np.bincount(strata.of_row[rows], minlength=len(strata.called))
    return Judged(rows, y[rows], (counts / strata.sizes)[strata.of_row[rows]])


def audited(seed: int, biased: bool, n_rows: int = 60) -> tuple[Audit, dict[str, float]]:
    y, score, p = population(seed, biased)
    called = p >= 0.5
    strata = stratify(p, score, called, "share", n_rows)
    none = np.zeros(len(y), dtype=bool)
    rows = draw(strata, p, none, np.zeros(len(strata.called), dtype=int), "share", n_rows, seed)
    truth = {
        "share": y.mean(),
        "precision": y[called].mean(),
        "recall": called[y].mean(),
        "accuracy": (y == called).mean(),
    }
    return audit(strata, judge(y, strata, rows), p), truth


@pytest.mark.parametrize("biased", [False, True])
def test_intervals_hold_the_truth_whatever_the_probabilities_say(biased: bool) -> None:
    runs = [audited(seed, biased) for seed in range(100)]
    for name in ("share", "precision", "recall", "accuracy"):
        held = np.mean([found.of(name).low <= truth[name] <= found.of(name).high for found, truth in runs])
        off = np.mean([found.of(name).value - truth[name] for found, truth in runs])
        assert 0.82 <= held <= 1.0, name
        assert name == "precision" or abs(off) < 0.02, name


def test_the_interval_is_narrower_than_that_of_random_rows() -> None:
    widths = [found.share.high - found.share.low for found, _ in (audited(seed, False) for seed in range(20))]
    assert np.mean(widths) < 0.7 * 2 * 1.645 * np.sqrt(0.35 * 0.65 / 60)


def test_strata_without_or_with_only_positives_leave_doubt() -> None:
    strata = Strata(np.repeat([0, 1], 500), np.array([False, True]))
    for positive in (False, True):
        rows = np.r_[:10, 500:510]
        found = audit(strata, Judged(rows, np.full(20, positive), np.full(20, 0.02)), np.full(1000, 0.5))
        assert found.share.value == positive
        assert found.share.high - found.share.low > 0.02
    assert (
        "no judged row is positive"
        in audit(strata, Judged(rows, np.zeros(20, dtype=bool), np.full(20, 0.02)), np.full(1000, 0.5)).recall.reason
    )


def test_a_file_that_is_judged_to_the_last_row_has_no_doubt_left() -> None:
    y, score, p = population(0, False, 80)
    strata = stratify(p, score, p >= 0.5, "share", 30)
    found = audit(strata, Judged(np.arange(80), y, np.ones(80)), p)
    assert found.share == Estimate(y.mean(), y.mean(), y.mean())
    assert found.accuracy.value == pytest.approx((y == (p >= 0.5)).mean())


def test_unequal_chances_are_weighed() -> None:
    """Twenty positives of a hundred rows that were drawn ten times as often as the others say little of the whole."""
    strata = Strata(np.zeros(2000, dtype=int), np.array([False]))
    chance = np.r_[np.full(20, 0.2), np.full(38, 0.02)]
    found = audit(strata, Judged(np.arange(58), np.arange(58) < 20, chance), np.full(2000, 0.3))
    assert found.share.value == pytest.approx(0.05, abs=0.01)
    assert "no row is called" in found.precision.reason


def test_labels_that_say_something_else_are_contradicted_and_others_combined() -> None:
    found, truth = audited(1, True)
    assert disagreements({"share": Estimate(0.05, 0.03, 0.07)}, found) == ["share"]
    assert disagreements({"share": Estimate(truth["share"], 0.3, 0.4), "recall": Estimate.impossible("?")}, found) == []
    agreed = agreed_share(Estimate(0.35, 0.28, 0.42), Estimate(0.31, 0.24, 0.38))
    assert agreed.value == pytest.approx(0.33)
    assert agreed.high - agreed.low == pytest.approx(0.14 / np.sqrt(2))
    assert agreed_share(Estimate(0.05, 0.03, 0.07), found.share) == found.share
    assert agreed_share(None, found.share) == found.share
