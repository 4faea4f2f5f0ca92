"""Warnings: given when they should be, silent when not, the same in the result and in Python's machinery."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from punce.priors import PriorTable, PriorWarning, estimate_prior
from punce.priors.cautions import area_under_curve, top_region
from punce.priors.sample import Scores
from tests.priors.mixtures import fast_classifier, gaussians


def warned(*arguments: Any, **named: Any) -> tuple[Any, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = estimate_prior(*arguments, **named)
    assert all(w.category is PriorWarning for w in caught)
    assert all(w.filename == __file__ for w in caught), "the warning must point at the caller"
    return result, [str(w.message) for w in caught]


def test_a_good_sample_gives_no_warning() -> None:
    data = gaussians(0.4)
    found, texts = warned(data.X, data.labels, classifier=fast_classifier())
    assert (found.warnings, texts) == ((), [])


def test_few_positives() -> None:
    data = gaussians(0.4, n_p=29, n_u=200)
    found, texts = warned(data.X, data.labels, classifier=fast_classifier())
    assert list(found.warnings) == texts
    assert texts[0].startswith("only 29 labelled positives")


def test_nothing_tells_rows_apart() -> None:
    data = gaussians(0.4, gap=0.0)
    _, texts = warned(data.X, data.labels, classifier=fast_classifier())
    assert any("hardly rank labelled rows above unlabelled ones (AUC" in text for text in texts)


def test_wide_interval() -> None:
    data = gaussians(0.6, n_p=100, n_u=500, gap=2.0)
    found, texts = warned(data.X, data.labels, classifier=fast_classifier())
    assert found.high - found.low > 0.3
    assert any("is too wide to plan with" in text for text in texts)


@pytest.mark.parametrize(("share", "word"), [(1.0, "largest"), (0.0, "smallest")])
def test_estimate_on_its_bound(share: float, word: str) -> None:
    labels = np.r_[np.ones(100), np.zeros(200)]
    scores = np.arange(300.0) * (1 if share else -1)  # unlabelled rows all above, or all below
    _, texts = warned(None, labels, "bbe", scores=scores)
    assert any(f"is the {word} this method can give" in text for text in texts)


def test_disagreeing_estimators() -> None:
    """Overlap in many noisy columns: Elkan-Noto and pen-L1 see far more positives than BBE."""
    data = gaussians(0.1, n_p=200, n_u=600, gap=2.0, d=12)
    table, texts = warned(data.X, data.labels, "all", classifier=fast_classifier())
    assert isinstance(table, PriorTable)
    assert table.spread > 0.15
    assert not table.agree
    assert any(" disagree by " in text for text in table.warnings)
    assert texts == [*table.warnings, *(text for e in table for text in e.warnings)]


def test_the_agreement_says_that_estimates_on_the_end_of_their_range_take_no_part() -> None:
    """Of rows that tell nothing most methods give 1."""
    rng = np.random.default_rng(0)
    labels = np.r_[np.ones(40), np.zeros(120)]
    table, _ = warned(rng.normal(size=(160, 2)), labels, "all", classifier=fast_classifier())
    assert isinstance(table, PriorTable)
    own = [e.value for e in table if e.diagnostics["bound"] is None and not e.reason]
    assert 1 < len(own) < len(table)
    assert table.median == np.median(own)
    of = f"the {len(own)} estimators whose value the data chose"
    assert table.agreement == f"median {table.median:.3f}, spread {table.spread:.3f}, of {of}"
    assert of in table._repr_html_()
    assert any(text.startswith(f"{of} disagree by") for text in table.warnings) == (not table.agree)


def test_agreeing_estimators() -> None:
    data = gaussians(0.4, n_p=800, n_u=1600, gap=8.0)
    table, _ = warned(data.X, data.labels, "all", classifier=fast_classifier())
    assert table.agree
    assert table.median == pytest.approx(0.4, abs=0.05)
    assert not any("disagree" in text for text in table.warnings)


def biased_scores(strength: float, seed: int) -> Scores:
    """Positives score N(4, 1); a positive is labelled with odds that grow with its score."""
    rng = np.random.default_rng(seed)
    positives, negatives = rng.normal(4.0, 1.0, 1500), rng.normal(0.0, 1.0, 1500)
    weights = np.exp(strength * positives)
    labelled = np.zeros(1500, bool)
    labelled[rng.choice(1500, 500, replace=False, p=weights / weights.sum())] = True
    return Scores(positives[labelled], np.concatenate([positives[~labelled], negatives]))


def test_biased_labelling_is_detected_and_random_labelling_is_not() -> None:
    flagged = {s: sum(top_region(biased_scores(s, k)).suspicious for k in range(20)) for s in (0.0, 1.0)}  # type: ignore[union-attr]
    assert flagged[0.0] <= 1
    assert flagged[1.0] >= 18


def test_biased_labelling_is_said() -> None:
    scores = biased_scores(1.0, 0)
    labels = np.r_[np.ones(len(scores.p)), np.zeros(len(scores.u))]
    _, texts = warned(None, labels, scores=np.concatenate([scores.p, scores.u]))
    assert any("may not be a random sample of the positives" in text for text in texts)


def test_top_region_says_nothing_about_too_few_rows() -> None:
    assert top_region(Scores(np.arange(8.0), np.arange(100.0))) is None


def test_area_under_curve_counts_ties_half() -> None:
    assert area_under_curve(np.array([1.0, 2.0]), np.array([1.0, 0.0])) == pytest.approx(0.875)
