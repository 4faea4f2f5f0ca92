from __future__ import annotations

import numpy as np
import pytest

from punce.judging.audit import Audit, Sample, agreed_share, audit, disagreements
from punce.judging.estimates import Estimate
from punce.judging.sampling import Strata, draw, stratify


def population(seed: int, biased: bool, n: int = 1500) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """True classes, scores and probabilities, which are far too low if the labels were biased."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.35
    score = np.where(y, 1.3, -1.3) + 1.3 * rng.normal(size=n)
    return y, score, 1 / (1 + np.exp(-1.5 * score + (4.0 if biased else 0.6)))


def drawn(y: np.ndarray, score: np.ndarray, p: np.ndarray, n_rows: int, seed: int, taken: np.ndarray) -> Sample:
    strata = stratify(p, score, p >= 0.5, "share", n_rows)
    rows = draw(strata, p, taken, np.zeros(len(strata.called), dtype=int), "share", n_rows, seed)
    taken[rows] = True
    return Sample(strata, rows, y[rows])


def audited(seed: int, biased: bool, rounds: int = 1) -> tuple[Audit, dict[str, float]]:
    """Sixty verdicts; in two rounds, the first thirty by the scores of a worse model."""
    y, score, p = population(seed, biased)
    noisy = score + np.random.default_rng(seed).normal(size=len(y))
    called, taken = p >= 0.5, np.zeros(len(y), dtype=bool)
    by = [(score, p)] if rounds == 1 else [(noisy, 1 / (1 + np.exp(-noisy))), (score, p)]
    samples = [drawn(y, *one, 60 // rounds, seed, taken) for one in by]
    truth = {
        "share": y.mean(),
        "precision": y[called].mean(),
        "recall": called[y].mean(),
        "accuracy": (y == called).mean(),
    }
    return audit(samples, called, p), truth


@pytest.mark.parametrize(("biased", "rounds"), [(False, 1), (True, 1), (False, 2)])
def test_intervals_hold_the_truth_whatever_the_probabilities_say(biased: bool, rounds: int) -> None:
    runs = [audited(seed, biased, rounds) for seed in range(100)]
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
    called, rows = strata.of_row == 1, np.r_[:10, 500:510]
    for positive in (False, True):
        found = audit([Sample(strata, rows, np.full(20, positive))], called, np.full(1000, 0.5))
        assert found.share.value == positive
        assert found.share.high - found.share.low > 0.02
        assert bool(found.recall.reason) != positive
    nobody = audit([Sample(strata, rows, np.full(20, True))], np.zeros(1000, dtype=bool), np.full(1000, 0.2))
    assert "no row is called" in nobody.precision.reason


def test_a_file_that_is_judged_to_the_last_row_has_no_doubt_left() -> None:
    y, score, p = population(0, False, 80)
    strata = stratify(p, score, p >= 0.5, "share", 30)
    found = audit([Sample(strata, np.arange(80), y)], p >= 0.5, p)
    assert found.share == Estimate(y.mean(), y.mean(), y.mean())
    assert found.accuracy.value == pytest.approx((y == (p >= 0.5)).mean())


def test_rows_stand_for_their_stratum_only() -> None:
    """Twenty positives of a stratum of a hundred rows say nothing of the other 1,900."""
    strata = Strata(np.repeat([0, 1], [100, 1900]), np.array([False, False]))
    found = audit(
        [Sample(strata, np.arange(58) + 80, np.arange(58) < 20)], np.zeros(2000, dtype=bool), np.full(2000, 0.3)
    )
    assert found.share.value == pytest.approx(0.05, abs=0.001)


def test_the_narrower_sample_weighs_more() -> None:
    strata, few, many = Strata(np.zeros(5000, dtype=int), np.array([False])), np.arange(10), np.arange(10, 910)
    samples = [Sample(strata, few, few < 5), Sample(strata, many, many % 10 == 0)]
    found = audit(samples, np.zeros(5000, dtype=bool), np.full(5000, 0.3))
    assert found.share.value == pytest.approx(0.1, abs=0.02)
    assert found.verdicts == 910


def test_labels_that_say_something_else_are_contradicted_and_others_combined() -> None:
    found, truth = audited(1, True)
    assert disagreements({"share": Estimate(0.05, 0.03, 0.07)}, found) == ["share"]
    assert disagreements({"share": Estimate(truth["share"], 0.3, 0.4), "recall": Estimate.impossible("?")}, found) == []
    agreed = agreed_share(Estimate(0.35, 0.28, 0.42), Estimate(0.31, 0.24, 0.38))
    assert agreed.value == pytest.approx(0.33)
    assert agreed.high - agreed.low == pytest.approx(0.14 / np.sqrt(2))
    assert agreed_share(Estimate(0.05, 0.03, 0.07), found.share) == found.share
    assert agreed_share(None, found.share) == found.share


def test_rows_that_a_later_round_took_out_of_a_stratum_do_not_raise_what_an_earlier_one_says() -> None:
    """20 of 100 rows are positive. Random rows say so; then a better classifier finds all 18 that are left."""
    one, two = (
        Strata(np.zeros(100, dtype=int), np.array([False])),
        Strata(np.arange(100) // 20, np.zeros(5, dtype=bool)),
    )
    first, second = np.r_[0, 1, 50:58], np.r_[2:20, 30, 31, 45, 46, 60, 61, 90, 91]
    samples = [Sample(one, first, first < 20), Sample(two, second, second < 20)]
    for some in (samples[:1], samples):
        found = audit(some, np.zeros(100, dtype=bool), np.full(100, 0.2))
        assert found.share.value == pytest.approx(0.2, abs=0.001)
