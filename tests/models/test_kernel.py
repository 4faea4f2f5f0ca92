"""The kernel member, PU trees and how members are weighed."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier

from punce.errors import InputError
from punce.judging.ranking import auc_between
from punce.models.ridge import Ridge, chances
from punce.models.tabular.kernel import Kernel
from punce.models.tabular.model import TabularPU, stratified_folds
from punce.models.tabular.trees import forest_trees
from punce.models.tabular.weighing import cross_fitted, member_weights


def _problem() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    features, is_p = rng.normal(size=(40, 5)), np.arange(40) < 12
    return features, np.where(is_p, 0.5 / 12, 0.5 / 28), is_p


def test_left_out_scores_are_those_of_a_regression_without_the_row() -> None:
    features, weights, is_p = _problem()
    ridge, target = Ridge(features, weights, is_p, np.zeros(40, np.int8)), is_p.astype(float)
    inverse = ridge._inverse
    found = ridge._on.left_out(target, inverse)
    # The closed form holds for the penalised problem with a fixed centre: solve it anew without each row.
    centred, aim = features - weights @ features, target - weights @ target
    vectors = ridge._on._vectors
    penalty = vectors @ np.diag(1.0 / inverse) @ vectors.T - centred.T @ (weights[:, None] * centred)
    for k in range(5):
        rest = np.arange(40) != k
        gram = centred[rest].T @ (weights[rest, None] * centred[rest]) + penalty
        weight = np.linalg.solve(gram, centred[rest].T @ (weights[rest] * aim[rest]))
        assert found[k] == pytest.approx(centred[k] @ weight, abs=1e-10)


def test_chances_average_to_the_prior_in_the_order_of_the_scores() -> None:
    scores = np.random.default_rng(1).normal(size=50)
    found = chances(scores, 0.3)
    assert found.mean() == pytest.approx(0.3, abs=1e-6)
    assert np.array_equal(np.argsort(found), np.argsort(scores))
    assert chances(np.zeros(4), 0.2) == pytest.approx(np.full(4, 0.2))


def test_a_ring_is_found_by_the_kernel_and_weighs_most_there() -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(size=(700, 2)).astype(np.float32)
    y = np.hypot(*values.T) < 1.0
    labels = np.zeros(700, np.int8)
    labels[np.flatnonzero(y)[:60]] = 1
    model = TabularPU(0.35, members=("boosting", "kernel")).fit(values, np.zeros(2, bool), labels)
    kernel = model.member_scores_["kernel"]
    assert auc_between(kernel[y & (labels == 0)], kernel[~y]) > 0.95
    assert model.weights_["kernel"] > 0.5


def test_a_plane_in_many_columns_is_found_by_the_linear_member_with_few_labels() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(size=(700, 12)).astype(np.float32)
    y = values.sum(axis=1) > 1.0
    labels = np.zeros(700, np.int8)
    labels[np.flatnonzero(y)[:30]] = 1
    model = TabularPU(0.35, members=("boosting", "linear")).fit(values, np.zeros(12, bool), labels)
    linear, boosting = (model.member_scores_[name] for name in ("linear", "boosting"))
    hidden = y & (labels == 0)
    assert auc_between(linear[hidden], linear[~y]) > 0.05 + auc_between(boosting[hidden], boosting[~y])
    assert model.weights_["linear"] > 0.5


@pytest.mark.parametrize("name", ["kernel", "linear"])
@pytest.mark.faults
def test_damaged_arrays_of_a_ridge_are_refused(name: str) -> None:
    rng = np.random.default_rng(0)
    labels = np.repeat([1, 0], [10, 60]).astype(np.int8)
    model = TabularPU(0.3, members=(name,)).fit(rng.normal(size=(70, 3)), np.zeros(3, bool), labels)
    member = model.fitted_[name]
    assert isinstance(member, Kernel)
    arrays = member.arrays()
    for name, wrong in (("0.used", arrays["0.used"] + 3), ("0.weight", arrays["0.weight"][1:])):
        with pytest.raises(InputError, match="kernel member do not fit"):
            Kernel.from_arrays({**arrays, name: wrong})


def test_negative_weights_make_gini_the_pu_risk_of_a_node() -> None:
    # 4 labelled and 10 unlabelled rows on one column: the risk by hand, and scikit-learn's impurity.
    x = np.array([5, 6, 7, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9], dtype=float)
    is_p, prior = np.arange(14) < 4, 0.4

    def risk(inside: np.ndarray) -> float:
        w_p, w_u = prior * (inside & is_p).sum() / 4, (inside & ~is_p).sum() / 10
        return 4 * w_p * (w_u - w_p) / w_u

    cut = min(np.arange(0.5, 9), key=lambda at: risk(x <= at) + risk(x > at))
    twice = np.concatenate([x[is_p], x[is_p], x[~is_p]])[:, None]
    weights = np.repeat([prior * 10 / 4, -prior * 10 / 4, 1.0], [4, 4, 10])
    model = ExtraTreesClassifier(300, max_depth=1, random_state=0)
    trees = forest_trees(model.fit(twice, np.repeat([1, 0, 0], [4, 4, 10]), sample_weight=weights))
    roots = [tree.tree_.impurity[0] for tree in model.estimators_]
    assert roots == pytest.approx([risk(x > -1) / 2] * 300)
    assert cut == 4.5
    assert trees.value.max() == pytest.approx(prior / 0.5)  # right of it: all labelled, half of the unlabelled rows
    assert trees.value.min() == 0.0


def test_scores_that_are_judged_are_weighed_by_other_folds() -> None:
    rng = np.random.default_rng(0)
    labels = np.repeat([1, 0], [40, 400]).astype(np.int8)
    held_out = {name: rng.normal(size=440) + labels for name in "ab"}
    folds = stratified_folds(labels, 4, 0)
    scores = cross_fitted(held_out, labels, folds)
    changed = {name: np.where(folds == 2, own[::-1], own) for name, own in held_out.items()}
    weights = member_weights({name: own[folds != 2] for name, own in held_out.items()}, labels[folds != 2])
    again = cross_fitted(changed, labels, folds)[folds == 2]
    assert again == pytest.approx(sum(weights[name] * changed[name][folds == 2] for name in "ab"))
    assert scores[folds == 2] == pytest.approx(sum(weights[name] * held_out[name][folds == 2] for name in "ab"))


def test_a_member_that_adds_to_the_others_keeps_weight() -> None:
    rng = np.random.default_rng(0)
    labels = np.repeat([1, 0], [300, 3000]).astype(np.int8)
    # Each sees one half of the positives; the first sees a little more of them, which must not silence the other.
    first = rng.normal(size=3300) + 3 * ((labels == 1) & (np.arange(3300) % 100 < 56))
    second = rng.normal(size=3300) + 3 * ((labels == 1) & (np.arange(3300) % 100 >= 56))
    weights = member_weights({"first": first, "second": second}, labels)
    assert weights["second"] > 0.3
