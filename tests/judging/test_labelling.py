"""Whether the labelled rows are a random sample of the positives, and intervals where they are not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from punce.classifier import ClassifierWarning, PUClassifier
from punce.errors import InputError
from punce.judging.calls import Calls
from punce.judging.gap import Smoother, split_near, split_without_gap, standard_columns, with_bumps
from punce.judging.judgement import judge_fit
from punce.judging.labelling import (
    LabellingCheck,
    about_groups,
    by_groups,
    check_labelling,
    widened,
    widened_prior,
)
from punce.judging.metrics import pu_metrics
from punce.judging.used_prior import assumed_prior, given_prior
from punce.labels import Labels
from punce.priors import PriorEstimate

N, N_P = 900, 100


def rows(seed: int, shift: float = 3.0) -> tuple[np.ndarray, np.ndarray]:
    """Two classes, four tenths positive, apart by `shift` in each of five columns."""
    rng = np.random.default_rng(seed)
    y = rng.random(N) < 0.4
    return rng.normal(size=(N, 5)) + shift * y[:, None], y


def labelled(y: np.ndarray, weight: np.ndarray, seed: int) -> Labels:
    """N_P positives, drawn with probability proportional to `weight`."""
    chosen = np.random.default_rng(seed).choice(N, N_P, replace=False, p=y * weight / (y * weight).sum())
    labels = np.zeros(N, dtype=np.int8)
    labels[chosen] = 1
    return labels


def estimate(labels: Labels, value: float) -> PriorEstimate:
    return replace(assumed_prior(labels, "single_set"), value=value, low=0.8 * value, high=1.2 * value)


def check(x: np.ndarray, labels: Labels, scores: np.ndarray, prior: float, seed: int = 0) -> LabellingCheck:
    called = scores > np.quantile(scores[labels == 0], 1 - prior)
    return check_labelling(
        scores, labels, estimate(labels, prior), called, features=lambda some: x[some], labelled_share=0.1, seed=seed
    )


@pytest.mark.parametrize("seed", range(3))
def test_random_labels_of_clear_classes_are_no_alarm(seed: int) -> None:
    x, y = rows(seed)
    labels = labelled(y, np.ones(N), seed)
    found = check(x, labels, x.sum(axis=1), float(y[labels == 0].mean()))
    assert not found.fires
    assert found.sentence == ""
    assert found.gap > 0.95
    assert found.share == pytest.approx(y[labels == 0].mean(), abs=0.03)


def directions(seed: int, shift: float) -> tuple[np.ndarray, np.ndarray, Labels, np.ndarray]:
    """Rows in 30 directions, the classes apart in the first; labels that prefer positives high in the second."""
    rng = np.random.default_rng(seed)
    y = rng.random(N) < 0.4
    x = rng.normal(size=(N, 30))
    x[:, 0] += shift * y
    labels = labelled(y, np.exp(3.0 * x[:, 1]), seed)
    return x, y, labels, x[:, 0] + x[:, 1]


@pytest.mark.parametrize("seed", range(3))
def test_along_directions_only_a_very_clear_gap_speaks_of_biased_labels(seed: int) -> None:
    far, near = (directions(seed, shift) for shift in (9.0, 3.0))
    found = [
        check_labelling(
            scores,
            labels,
            estimate(labels, 0.15),
            scores > 5.0,
            features=lambda some, x=x: x[some],
            are_directions=True,
        )
        for x, _, labels, scores in (far, near)
    ]
    assert found[0].fires
    assert found[0].gap > 1.9
    assert found[0].share == pytest.approx(far[1][far[2] == 0].mean(), abs=0.05)
    assert not found[1].fires
    x, y, _, _ = far
    fair = labelled(y, np.ones(N), seed)
    silent = check_labelling(
        x[:, 0], fair, estimate(fair, 0.33), x[:, 0] > 4.5, features=lambda some: x[some], are_directions=True
    )
    assert not silent.fires
    assert silent.gap > 1.9


@pytest.mark.parametrize("seed", range(3))
def test_labels_that_prefer_one_column_are_noticed_in_clear_classes(seed: int) -> None:
    x, y = rows(seed)
    labels = labelled(y, np.exp(4.0 * (x[:, 0] - x[y, 0].mean())), seed)
    found = check(x, labels, x.sum(axis=1) + 8.0 * x[:, 0], 0.15)
    assert found.fires
    assert found.evidence > 1.0
    assert "random sample" in found.sentence
    assert found.most >= y[labels == 0].mean() - 0.03
    assert "of them may be positive" in found.sentence


def test_a_given_share_is_not_contradicted() -> None:
    x, y = rows(0)
    labels = labelled(y, np.exp(4.0 * (x[:, 0] - x[y, 0].mean())), 0)
    given, scores = given_prior(0.15, labels, "single_set"), x.sum(axis=1) + 8.0 * x[:, 0]
    found = check_labelling(scores, labels, given, scores > 5.0, features=lambda some: x[some])
    assert found.fires
    assert "of them may be positive" not in found.sentence


@pytest.mark.parametrize("seed", range(3))
def test_overlapping_classes_are_no_alarm(seed: int) -> None:
    x, y = rows(seed, shift=0.7)
    labels = labelled(y, np.ones(N), seed)
    assert not check(x, labels, x.sum(axis=1), float(y[labels == 0].mean())).fires


@pytest.mark.parametrize("seed", range(3))
def test_a_group_larger_than_the_given_share_is_no_alarm(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(500, 4))  # one cloud: any split of it has about half of the rows
    labels = np.repeat([1, 0], [60, 440]).astype(np.int8)
    given, scores = given_prior(0.1, labels, "single_set"), x.sum(axis=1) + rng.normal(size=500)
    assert not check_labelling(scores, labels, given, scores > 3.0, features=lambda some: x[some], seed=seed).fires


@pytest.mark.parametrize("seed", range(3))
def test_the_two_values_of_a_column_are_no_gap_between_classes(seed: int) -> None:
    x, y = rows(seed, shift=0.8)
    x[:, 0] = np.random.default_rng(seed).random(N) < np.where(y, 0.9, 0.1)
    labels = labelled(y, np.ones(N), seed)
    found = check(x, labels, x @ [3.0, 1.0, 1.0, 1.0, 1.0], float(y[labels == 0].mean()))
    assert found.gap < 0.95
    assert not found.fires


def test_nothing_is_said_without_columns_or_from_few_rows() -> None:
    x, y = rows(0)
    labels = labelled(y, np.ones(N), 0)
    prior, scores = estimate(labels, 0.3), x.sum(axis=1)
    silent = check_labelling(scores, labels, prior, scores > 0)
    few = np.concatenate([np.flatnonzero(labels == 1)[:20], np.flatnonzero(labels == 0)])
    also = check_labelling(scores[few], labels[few], prior, scores[few] > 0, features=lambda some: x[few][some])
    constant = check_labelling(scores, labels, prior, scores > 0, features=lambda some: np.ones((len(some), 2)))  # type: ignore[arg-type]
    assert (silent.evidence, also.evidence, constant.evidence) == (0.0, 0.0, 0.0)


def test_left_out_predictions_are_those_of_refitting_without_the_row() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(12, 2)), rng.normal(size=12)
    x -= x.mean(axis=0)
    gram = x.T @ x + 3.0 * np.eye(2)
    leverage = np.einsum("ij,jk,ik->i", x, np.linalg.inv(gram), x)
    deviation = y - y.mean()
    refitted = [
        x[i] @ np.linalg.solve(gram - np.outer(x[i], x[i]), x.T @ deviation - x[i] * deviation[i]) for i in range(12)
    ]
    smoother = Smoother.on(x)
    np.testing.assert_allclose(smoother.leverage, leverage, atol=1e-9)
    np.testing.assert_allclose(smoother.left_out(y), y.mean() + np.array(refitted), atol=1e-9)


def test_a_gap_is_deeper_than_that_of_normal_rows_of_the_same_covariance() -> None:
    x, y = rows(1)
    standard, nobody = standard_columns(x, x[:, 0]), np.zeros(N, dtype=bool)
    rng = np.random.default_rng(0)
    real = split_near(Smoother.on(with_bumps(standard, rng)), x[:, 0], nobody, 0.2)
    normal = split_without_gap(standard, x[:, 0], 0.2, rng)
    assert real is not None
    assert normal is not None
    assert np.mean(real.guess == y) > 0.98  # although it started from a fifth of the rows by one column
    assert real.valley < 0.3 * normal.valley
    assert real.sharpness > normal.sharpness


def test_very_many_columns_are_cut_to_those_that_the_scores_follow() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 300))
    kept = standard_columns(x, x[:, 299])
    assert kept.shape == (50, 200)
    assert np.abs(np.corrcoef(kept[:, -1], x[:, 299])[0, 1]) > 0.999


def test_intervals_widen_only_where_the_check_fires() -> None:
    rng = np.random.default_rng(0)
    p, u = rng.normal(2, 1, 200), np.concatenate([rng.normal(2, 1, 200), rng.normal(-1, 1, 600)])
    metrics = pu_metrics(p, u, 0.25, calls=Calls(p > 1, u > 1), labelled_share=0.2, random_state=0)
    mix = {"recall": (0.3, 0.9), "precision": (0.7, 0.9), "accuracy": (0.6, 0.8), "f1": (0.5, 0.8), "auc": (0.7, 0.9)}
    fired = LabellingCheck(True, 0.01, 0.4, 0.5, ranges={"unlabelled": mix, "population": mix}, sentence="…")
    wide, prior = widened(metrics, fired), estimate(np.array([1, 0], dtype=np.int8), 0.2)
    assert wide.unlabelled.accuracy.low == pytest.approx(0.55)
    assert wide.unlabelled.accuracy.value == metrics.unlabelled.accuracy.value
    assert "between 0.25 and 0.9" in wide.recall.reason  # too wide to be a number
    assert widened_prior(prior, fired).high == pytest.approx(0.55)
    caution = (
        "{}: the 90 % interval of the share of positives, {}, is too wide to plan with; "
        "more labelled positives or better features narrow it"
    )
    width = caution.format(prior.method, "0.10 to 0.45")
    wide_prior = widened_prior(replace(prior, low=0.1, high=0.45, warnings=("other", width)), fired)
    # the number of the warning is that of the interval which the fit states
    assert wide_prior.warnings == ("other", caution.format(prior.method, "0.10 to 0.55"))
    assert widened(metrics, replace(fired, fires=False)) is metrics
    given = given_prior(0.2, np.array([1, 0], dtype=np.int8), "single_set")
    assert widened_prior(given, fired) is given


def test_groups_take_the_place_of_labels_that_prefer_some() -> None:
    x, y = rows(0)
    labels = labelled(y, np.exp(4.0 * (x[:, 0] - x[y, 0].mean())), 0)
    scores = x.sum(axis=1) + 8.0 * x[:, 0]
    judged, own, prior = by_groups(scores, labels, estimate(labels, 0.15), "single_set", lambda some: x[some], 0)
    true = y[labels == 0].mean()
    assert prior.low <= true <= prior.high
    assert prior.value == pytest.approx(true, abs=0.05)
    assert prior.method == "groups"
    assert judged[own == 0].tolist() == scores[labels == 0].tolist()
    assert (own == 1).mean() == pytest.approx(prior.value / (1 + prior.value), abs=0.01)
    with pytest.raises(InputError, match="fall into two groups"):
        by_groups(scores, labels, prior, "single_set", None, 0)


@pytest.mark.parametrize(("shift", "is_told"), [(0.5, True), (3.0, False)])
def test_groups_without_a_clear_gap_are_told(shift: float, is_told: bool) -> None:
    """A split comes out of any rows: the accuracy of overlapping classes was said to be 0.94 and was 0.78, silently."""
    x, y = rows(0, shift)
    found = check(x, labelled(y, np.ones(N), 0), x.sum(axis=1), 0.3)
    assert bool(about_groups(found, are_directions=False)) == is_told


def test_a_fit_by_groups_without_a_clear_gap_says_so() -> None:
    x, y = rows(1, 0.8)
    labels, features = labelled(y, np.ones(N), 1), lambda some: x[some].astype(np.float32)
    for labelling in ("random", "biased"):
        judged, _ = judge_fit(
            x.sum(axis=1),
            labels,
            given_prior(0.3, labels, "single_set"),
            "accuracy",
            labelling=labelling,
            features=features,
            shares=(N_P / N, 0.0),
            scenario="single_set",
            target="population",
            sees_more=False,
            seed=0,
        )
        assert any("no clear gap" in text for text in judged.warnings) == (labelling == "biased")


@pytest.mark.slow
def test_a_fit_warns_of_biased_labels_and_widens_what_it_says() -> None:
    x, y = rows(0)
    labels = labelled(y, np.exp(4.0 * (x[:, 0] - x[y, 0].mean())), 0)
    with pytest.warns(ClassifierWarning) as warned:
        model = PUClassifier().fit(x, labels)
    assert any("random sample" in str(each.message) for each in warned)
    assert model.labelling_.fires
    truth = float((model.predict(x[labels == 0]) == y[labels == 0]).mean())
    accuracy = model.metrics_.unlabelled.accuracy
    assert accuracy.low <= truth <= accuracy.high
    assert "random sample" in model.labelling_.sentence
    with pytest.warns(ClassifierWarning, match="give the label away"):  # labels that prefer a column look like a leak
        biased = PUClassifier(labelling="biased").fit(x, labels)
    assert (biased.predict(x[labels == 0]) == y[labels == 0]).mean() > truth + 0.05
    assert biased.prior_.method == "groups"


@pytest.mark.slow
def test_a_fit_of_embeddings_warns_of_biased_labels_and_can_learn_from_them() -> None:
    x, y, labels, _ = directions(0, 9.0)
    rows = x.astype(np.float32)
    with pytest.warns(ClassifierWarning) as warned:
        model = PUClassifier(kind="embedding", random_state=0).fit(rows, labels)
    assert any("random sample" in str(each.message) for each in warned)
    hidden = labels == 0
    truth = float((model.predict(rows[hidden]) == y[hidden]).mean())
    accuracy = model.metrics_.unlabelled.accuracy
    assert accuracy.low <= truth <= accuracy.high
    biased = PUClassifier(kind="embedding", labelling="biased", random_state=0).fit(rows, labels)
    assert biased.prior_.method == "groups"
    assert (biased.predict(rows[hidden]) == y[hidden]).mean() >= truth
