"""Labelled negatives and judged rows through the classifier."""

from __future__ import annotations

import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from punce import PUClassifier
from punce.classifier import ClassifierWarning, ScorerWarning
from punce.errors import InputError
from punce.judging.propensity import by_propensity
from punce.models.known_rows import known_share, known_weight
from punce.product.fit import _about_seen, _fit
from punce.ran import ran_in_words

pytestmark = pytest.mark.usefixtures("quick_tables")


def blobs(n: int = 300) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of two classes, labels for half of the first, the classes. Shapes: (n, 4), (n,), (n,)."""
    random = np.random.default_rng(0)
    truth = np.arange(n) % 2
    X = random.normal(1.2 * (2 * truth[:, None] - 1), 1.0, (n, 4))
    return X, np.where((truth == 1) & (np.arange(n) < n // 2), 1, 0), truth


def test_negatives_and_judged_rows_are_accepted_and_recorded(tmp_path: Path) -> None:
    X, y, truth = blobs()
    some = np.flatnonzero((y == 0) & (truth == 0))[:12]
    y[some] = -1
    judged = np.zeros(len(y), dtype=bool)
    judged[some[8:]] = True
    clf = PUClassifier(prior=0.3).fit(X, y, judged=judged)
    assert clf.setting_ == "pnu"
    assert clf.ran_["known"] == {"labelled negatives": 8, "judged rows": 4}
    clf.save(tmp_path / "model")
    assert PUClassifier.load(tmp_path / "model").setting_ == "pnu"


def test_a_fit_warns_of_scorers_that_misread_negatives_and_a_command_which_has_none_does_not() -> None:
    def fit(X: Any, y: Any, **_: Any) -> None:
        warnings.warn("scorers misread it", ScorerWarning, stacklevel=2)
        warnings.warn("something else", ClassifierWarning, stacklevel=2)

    X, y, truth = blobs()
    y[np.flatnonzero((y == 0) & (truth == 0))[:8]] = -1
    with pytest.warns(ScorerWarning, match="y holds -1 for known negatives"):
        PUClassifier(prior=0.3).fit(X, y)
    clf: Any = SimpleNamespace(fit=fit, notes_=(), seen_in_training_=np.zeros(len(y), dtype=bool))
    clf.metrics_ = SimpleNamespace(notes=())
    folder: Any = SimpleNamespace(work=None)
    assert _fit(clf, X, y.astype(np.int8), folder, None) == ("something else",)


def test_quality_rests_on_rows_held_out_of_training_only_where_a_labelled_row_was() -> None:
    labels = np.array([1, 1, 0, 0], dtype=np.int8)
    some, all_seen = (
        SimpleNamespace(seen_in_training_=np.array(seen)) for seen in ([True, False, True, True], [True] * 4)
    )
    for clf, is_said in ((some, True), (all_seen, False)):
        (note,) = _about_seen(clf, labels)  # type: ignore[arg-type]
        assert note.startswith("2 of 2 rows of the ranked list were in the training")
        assert ("rest on rows held out" in note) is is_said


def test_two_corrections_of_biased_labels_are_refused_before_anything_is_learned() -> None:
    """After the training a message had asked for the propensity that was given."""
    X, y, _ = blobs()
    with pytest.raises(InputError, match="labelling='biased' and propensity= correct for the same"):
        PUClassifier(labelling="biased").fit(X, y, propensity=np.ones(len(y)))


def test_new_rows_are_compared_with_the_labelled_rows_that_propensities_keep() -> None:
    """With all labelled rows, 80 % of positives among new rows were said to be 73 % (72 to 75 %)."""
    X, y, _ = blobs()
    propensity = np.where(X[:, 0] > 1.2, 0.9, 0.2)
    kept = by_propensity(y.astype(np.int8), propensity, None, 0)[0][y == 1].sum()
    clf = PUClassifier(prior=0.3, random_state=0).fit(X, y, propensity=propensity)
    assert clf._seen is not None
    assert kept < (y == 1).sum()
    assert clf.prior_.value == clf.first_prior_.value == pytest.approx(0.3)
    assert clf.prior_.population_prior == pytest.approx(((y == 1).sum() + 0.3 * (y == 0).sum()) / len(y))
    assert clf.metrics_.population.prior == pytest.approx(clf.prior_.population_prior)
    assert clf._seen.scores.positive.sum() == kept
    assert (clf._seen.columns.positive.sum(axis=1) == kept).all()


@pytest.mark.parametrize("target", ["unlabelled", "population"])
def test_probabilities_that_are_not_for_the_unlabelled_rows_alone_are_told(target: Any) -> None:
    """They averaged to a share other than `prior_`, and a precision of 0.85 was said where 0.14 was true."""
    X, y, _ = blobs()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        PUClassifier(prior=0.3, target=target).fit(X, y, propensity=np.where(X[:, 0] > 1.2, 0.9, 0.2))
    assert any("unlabelled rows alone it is 30%" in str(each.message) for each in told) == (target == "unlabelled")


def test_many_negatives_are_what_the_quality_is_counted_on_and_no_unlabelled_rows() -> None:
    X, y, truth = blobs(600)
    y[np.flatnonzero((y == 0) & (truth == 0))[:100]] = -1
    clf = PUClassifier().fit(X, y)
    assert (clf.metrics_.basis, clf.metrics_.n_negative, clf.metrics_.n_unlabelled) == ("pnu", 100, 350)
    assert clf.both_prior_ is not None
    assert clf.prior_.value == pytest.approx(150 / 350, abs=0.12)
    assert clf.scores_[(y == 0) & (truth == 0)].mean() < 0.3


FIXED: dict[str, Any] = {"kind": "embedding", "encoder": "identity", "risk": "nnpu", "prior": 0.4}


def test_a_head_learns_from_known_negatives_and_what_does_not_says_so() -> None:
    X, y, truth = blobs(600)
    y[np.flatnonzero((y == 0) & (truth == 0))[:60]] = -1
    clf = PUClassifier(**FIXED).fit(X.astype(np.float32), y)
    assert "known_share" in clf.ran_["risk"]
    assert (clf.predict(X.astype(np.float32)) == truth).mean() > 0.9
    assert clf.ran_["known"] == {"labelled negatives": 60}
    with pytest.warns(ClassifierWarning, match="does not learn from labelled negatives; they serve") as told:
        clf = PUClassifier(**{**FIXED, "risk": "upu"}).fit(X.astype(np.float32), y)
    assert "known" not in clf.ran_
    assert "labelled negatives" not in ran_in_words(clf.ran_)
    assert {warning.filename for warning in told} == {__file__}  # the line that called fit


def test_embeddings_learn_from_known_negatives_by_default() -> None:
    X, y, truth = blobs(600)
    y[np.flatnonzero((y == 0) & (truth == 0))[:80]] = -1
    clf = PUClassifier(kind="embedding", epochs=2).fit(X.astype(np.float32), y)
    assert clf.ran_["known"] == {"labelled negatives": 80}
    assert (clf.setting_, clf.metrics_.basis) == ("pnu", "pnu")


def test_what_a_known_row_weighs() -> None:
    assert known_weight(0.5, 100, 1000) == pytest.approx((1 + 0.25 * 10) / 0.5)
    labels = np.repeat([1, 0, -1], [100, 1000, 50]).astype(np.int8)
    of_u, of_n = 1 / 1000 + 0.25 / 100, 0.25 / 50  # the variances
    assert known_share(labels, 0.5) == pytest.approx(of_u / (of_u + of_n))


def test_minus_one_without_a_zero_means_unlabelled_and_it_is_said() -> None:
    X, y, _ = blobs()
    with (
        pytest.warns(ClassifierWarning, match="-1 was read as unlabelled"),
        pytest.warns(ClassifierWarning, match="predict says 1 and 0, but y holds 1 and -1"),
    ):
        clf = PUClassifier(prior=0.3).fit(X, np.where(y == 1, 1, -1))
    np.testing.assert_array_equal(clf.scores_, PUClassifier(prior=0.3).fit(X, y).scores_)
    assert clf.setting_ == "pu"


def test_negatives_shape_the_features_of_a_network() -> None:
    X, y, truth = blobs()
    y[np.flatnonzero((y == 0) & (truth == 0))[:40]] = -1
    network: dict[str, Any] = {"kind": "embedding", "loss": "punce", "risk": "nnpu", "prior": 0.4, "epochs": 2}
    clf = PUClassifier(**network).fit(X, y)
    assert "weighting='posterior'" in clf.ran_["loss"]
    assert "weighting='paper'" in PUClassifier(**network).fit(X, np.maximum(y, 0)).ran_["loss"]
    asked = PUClassifier(configs={"loss": {"weighting": "paper"}}, **network).fit(X, y)
    assert "weighting='paper'" in asked.ran_["loss"]
    assert (asked.embed(X) != clf.embed(X)).any()
