"""What may be passed, what is translated, what is refused and in which words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from punce.errors import InputError
from punce.priors import PRIORS, estimate_prior, held_out_scores
from punce.priors.cautions import area_under_curve
from punce.priors.features import MAX_COLUMNS, PROJECTED, as_rows
from tests.priors.mixtures import fast_classifier, gaussians

pytestmark = pytest.mark.filterwarnings("ignore::punce.priors.PriorWarning")


def test_unknown_method_names_the_known_ones() -> None:
    data = gaussians(0.5, n_p=20, n_u=20)
    with pytest.raises(InputError, match="no prior estimator is called 'magic'; there are combined, bbe, "):
        estimate_prior(data.X, data.labels, "magic")


def test_unknown_and_misplaced_options_are_refused() -> None:
    data = gaussians(0.5, n_p=20, n_u=20)
    with pytest.raises(InputError, match=r"combined has no option \['colour'\]; it takes none$"):
        estimate_prior(data.X, data.labels, colour=3)
    with pytest.raises(InputError, match=r"bbe has no option \['seed'\]; it takes \['penalty', 'z', "):
        estimate_prior(data.X, data.labels, "bbe", seed=3)
    with pytest.raises(InputError, match="belong to one method"):
        estimate_prior(data.X, data.labels, "all", delta=0.1)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("bbe", {"penalty": "guess"}),
        ("bbe", {"z": 0.0}),
        ("dedpul", {"share": "guess"}),
        ("dedpul", {"bandwidth": 0.0}),
        ("tice", {"rule": "guess"}),
        ("tice", {"folds": 1}),
        ("tedn", {"rounds": 0}),
        ("km2", {"rank": 0}),
        ("pen_l1", {"centres": 0}),
        ("elkan_noto", {"splits": 0}),
    ],
)
def test_impossible_settings_are_refused(method: str, options: dict[str, Any]) -> None:
    data = gaussians(0.5, n_p=20, n_u=20)
    with pytest.raises(InputError):
        estimate_prior(data.X, data.labels, method, **options)


@pytest.mark.parametrize("seed", [-1, 1.5, "a", True, 2**32])
def test_bad_seeds_are_refused(seed: Any) -> None:
    data = gaussians(0.5, n_p=20, n_u=20)
    with pytest.raises(InputError, match="random_state"):
        estimate_prior(data.X, data.labels, random_state=seed)


def test_the_largest_seed_is_taken_although_each_folding_has_another() -> None:
    data = gaussians(0.5, n_p=20, n_u=20)
    assert held_out_scores(data.X, data.labels, fast_classifier(), random_state=2**32 - 1).shape == (40,)


def test_shapes_must_agree() -> None:
    data = gaussians(0.5, n_p=20, n_u=20)
    with pytest.raises(InputError, match="39 rows of features but 40 labels"):
        estimate_prior(data.X[1:], data.labels)
    with pytest.raises(InputError, match="39 scores but 40 labels"):
        estimate_prior(None, data.labels, scores=data.X[1:, 0])
    with pytest.raises(InputError, match=r"take the column \[:, 1\]"):
        estimate_prior(None, data.labels, scores=data.X)
    with pytest.raises(InputError, match="give features X, or held-out scores"):
        estimate_prior(None, data.labels)


@pytest.mark.parametrize("translate", [lambda s: s.astype(str) + "x", lambda s: s + 1j])
def test_scores_that_are_no_numbers_are_refused(translate: Any) -> None:
    data = gaussians(0.5, n_p=20, n_u=20)
    with pytest.raises(InputError, match="scores must hold numbers"):
        estimate_prior(None, data.labels, scores=translate(data.X[:, 0]))


def test_what_a_masked_array_hides_does_not_come_back() -> None:
    data = gaussians(0.5, n_p=20, n_u=20)
    with pytest.raises(InputError, match="1 score is NaN or infinite, first at row 3"):
        estimate_prior(None, data.labels, scores=np.ma.MaskedArray(data.X[:, 0], np.arange(40) == 3))
    hidden = np.ma.MaskedArray(np.ones(40, dtype=int), data.labels == 0)
    known = estimate_prior(None, data.labels, "bbe", scores=data.X[:, 0])
    assert estimate_prior(None, hidden, "bbe", scores=data.X[:, 0]) == known


def test_infinite_features_are_located() -> None:
    data = gaussians(0.5, n_p=20, n_u=20)
    data.X[7, 1] = np.inf
    with pytest.raises(InputError, match="first at row 7, column 1"):
        estimate_prior(data.X, data.labels)


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.float64])
def test_a_column_far_from_zero_says_as_much_as_one_near_it(kind: type) -> None:
    """Seconds since 1970 within an hour were refused: "all feature columns are constant or empty"."""
    data = gaussians(0.3, n_p=60, n_u=200)
    near = np.round(data.X[:, :1] * 40)
    assert estimate_prior((near + 1_700_000_000).astype(kind), data.labels, "bbe") == estimate_prior(
        near, data.labels, "bbe"
    )
    gaps = np.where(np.arange(len(near))[:, None] % 9 == 0, np.nan, near + 1_700_000_000)
    assert estimate_prior(np.c_[gaps, np.full(len(gaps), np.nan)], data.labels, "bbe").value < 0.6


@pytest.mark.parametrize(("n_p", "n_u", "words"), [(1, 20, "label at least 2 rows"), (20, 1, "one unlabelled row")])
def test_one_row_cannot_be_held_out(n_p: int, n_u: int, words: str) -> None:
    data = gaussians(1.0, n_p=n_p, n_u=n_u)
    with pytest.raises(InputError, match=words):
        estimate_prior(data.X, data.labels)
    assert 0.0 <= estimate_prior(None, data.labels, scores=data.X[:, 0]).value <= 1.0


def test_a_single_value_among_gaps_tells_nothing() -> None:
    frame = pd.DataFrame({"a": [1.0, *[np.nan] * 59]})
    with pytest.raises(InputError, match="nothing tells 20 labelled from 40 unlabelled rows"):
        estimate_prior(frame, np.arange(60) % 3 == 0)


def test_held_out_scores_are_those_the_estimate_uses() -> None:
    data = gaussians(0.4, n_p=50, n_u=100)
    labels = data.labels.copy()
    labels[np.flatnonzero(~data.is_positive)[:5]] = -1
    scores = held_out_scores(data.X, labels, fast_classifier(), random_state=3)
    np.testing.assert_array_equal(np.isnan(scores), labels == -1)
    direct = estimate_prior(data.X, labels, classifier=fast_classifier(), random_state=3)
    through = estimate_prior(None, labels, scores=np.nan_to_num(scores), random_state=3)
    assert (direct.value, direct.low, direct.high) == (through.value, through.low, through.high)


def test_held_out_scores_do_not_know_the_row() -> None:
    """A model that memorises would rank labelled rows above hidden positives; out of fold it cannot."""
    data = gaussians(0.5, n_p=200, n_u=400, gap=0.0)
    scores = held_out_scores(data.X, data.labels, KNeighborsClassifier(1))
    memorised = KNeighborsClassifier(1).fit(data.X, data.labels).predict_proba(data.X)[:, 1]
    assert area_under_curve(*_sides(memorised, data.labels)) == 1.0
    assert area_under_curve(*_sides(scores, data.labels)) == pytest.approx(0.5, abs=0.06)


def _sides(scores: Any, labels: Any) -> tuple[Any, Any]:
    return scores[labels == 1], scores[labels == 0]


@pytest.mark.parametrize("translate", [lambda y: y == 1, lambda y: np.where(y == 1, 1, -1), lambda y: pd.Series(y)])
def test_label_conventions_mean_the_same(translate: Any) -> None:
    data = gaussians(0.4, n_p=50, n_u=100)
    plain, other = (estimate_prior(None, y, scores=data.X[:, 0]) for y in (data.labels, translate(data.labels)))
    assert plain == other


def test_rows_labelled_negative_are_set_aside() -> None:
    data = gaussians(0.4, n_p=50, n_u=100)
    extra = np.full((30, 2), 9.0)
    plain = estimate_prior(data.X, data.labels, classifier=fast_classifier())
    pnu = estimate_prior(np.vstack([data.X, extra]), np.r_[data.labels, np.full(30, -1)], classifier=fast_classifier())
    assert plain == pnu
    assert "30 rows labelled negative were set aside" in pnu.diagnostics["notes"]


@pytest.mark.parametrize(
    "classifier",
    [
        make_pipeline(StandardScaler(), LogisticRegression()),  # weights reach the last step
        RidgeClassifier(),  # no predict_proba
        LogisticRegression(class_weight="balanced"),
    ],
    ids=["pipeline", "decision_function", "balanced"],
)
def test_any_classifier_will_do(classifier: Any) -> None:
    data = gaussians(0.3, n_p=100, n_u=300)
    assert estimate_prior(data.X, data.labels, classifier=classifier).value == pytest.approx(0.3, abs=0.05)


@pytest.mark.parametrize("method", sorted(PRIORS))
def test_a_classifier_is_fitted_or_refused(method: str) -> None:
    data = gaussians(0.3)
    if PRIORS[method].has_classifier:
        with pytest.raises(RuntimeError, match="asked to fit"):
            estimate_prior(data.X, data.labels, method, classifier=Unwilling())
    else:
        with pytest.raises(InputError, match=f"no effect on {method}, which fits none"):
            estimate_prior(data.X, data.labels, method, classifier=Unwilling())


class Unwilling(LogisticRegression):
    def fit(self, *given: Any, **options: Any) -> Any:
        raise RuntimeError("asked to fit")


def test_a_classifier_that_cannot_score_is_refused() -> None:
    data = gaussians(0.3, n_p=20, n_u=20)
    with pytest.raises(InputError, match="got StandardScaler"):
        estimate_prior(data.X, data.labels, classifier=StandardScaler())
    with pytest.raises(InputError, match=r"give an object of it: LogisticRegression\(\)"):
        estimate_prior(data.X, data.labels, classifier=LogisticRegression)


def test_scores_take_the_place_of_a_classifier() -> None:
    data = gaussians(0.3, n_p=20, n_u=20)
    with pytest.raises(InputError, match="classifier has no effect on bbe beside scores"):
        estimate_prior(data.X, data.labels, "bbe", scores=data.X[:, 0], classifier=fast_classifier())
    with pytest.raises(InputError, match=r"no prior estimator is called \['bbe'\]"):
        estimate_prior(data.X, data.labels, ["bbe"])  # type: ignore[call-overload]


def test_the_callers_classifier_gets_the_callers_rows() -> None:
    data = gaussians(0.3, n_p=50, n_u=100)
    frame = pd.DataFrame(data.X, columns=["a", "b"])
    by_name = make_pipeline(_TakeColumn("a"), LogisticRegression())
    assert estimate_prior(frame, data.labels, classifier=by_name).value == pytest.approx(0.3, abs=0.07)


def test_sparse_rows_and_texts() -> None:
    data = gaussians(0.5, n_p=60, n_u=120)
    words = np.where(data.is_positive, "prize win free claim", "meeting agenda minutes room")
    texts = [f"{text} filler{k % 7}" for k, text in enumerate(words)]
    assert estimate_prior(texts, data.labels).value == pytest.approx(0.5, abs=0.1)
    counts = sparse.coo_matrix(np.column_stack([data.is_positive, ~data.is_positive, np.ones(180)]).astype(float))
    for method in ("bbe", "tice", "km2"):
        assert estimate_prior(counts, data.labels, method).value == pytest.approx(0.5, abs=0.2)


def test_texts_whose_words_do_not_repeat_are_read_by_their_letters() -> None:
    data = gaussians(0.5, n_p=60, n_u=120)
    random = np.random.default_rng(0)
    letters = np.where(data.is_positive[:, None], random.choice(list("acegikm"), (180, 9)), "")
    others = random.choice(list("bdfhjlnp"), (180, 9))
    texts = ["".join(row) or "".join(other) for row, other in zip(letters, others, strict=True)]
    found = estimate_prior(texts, data.labels)
    assert found.value == pytest.approx(0.5, abs=0.1)
    assert "texts were read as tf-idf letter counts, as too few words repeat" in found.diagnostics["notes"]


def test_texts_with_words_are_read_by_their_words() -> None:
    texts = ["prize win", "win prize now", "agenda now"]
    rows = as_rows(texts)
    assert rows.values.shape == (3, 3)  # now, prize, win; no pair of words is in two texts
    assert rows.notes == ("texts were read as tf-idf word counts",)


def test_images_and_wide_rows_are_projected_and_it_is_said() -> None:
    data = gaussians(0.5, n_p=60, n_u=120)
    rng = np.random.default_rng(0)
    images = rng.normal(size=(180, 3, 10, 10)) + 4.0 * data.is_positive[:, None, None, None]
    found = estimate_prior(images, data.labels)
    assert found.value == pytest.approx(0.5, abs=0.1)
    assert f"300 columns were projected to {PROJECTED} principal components" in found.diagnostics["notes"]
    assert MAX_COLUMNS < 300


def test_wide_rows_fewer_than_the_components_they_are_projected_to() -> None:
    data = gaussians(0.5, n_p=15, n_u=25)
    genes = np.random.default_rng(0).normal(size=(40, 300)) + data.is_positive[:, None]
    found = estimate_prior(genes, data.labels)
    assert "300 columns were projected to 39 principal components" in found.diagnostics["notes"]


def test_frames_are_read_as_models_read_them() -> None:
    frame = pd.DataFrame(
        {
            "number": [1.0, None, 3.0],
            "flag": pd.array([True, None, False], dtype="boolean"),
            "kind": ["b", "a", None],
            "when": pd.to_datetime(["1970-01-01", "1970-01-02", None]),
            "constant": [5, 5, 5],
        }
    )
    rows = as_rows(frame)
    # the date is read as days since 1970, weekday, month and hour; the codes 0 and 1 mean missing and unknown
    expected = [[1, 1, 3, 0, 3, 1, 0], [np.nan, np.nan, 2, 1, 4, 1, 0], [3, 0, *[np.nan] * 5]]
    np.testing.assert_array_equal(rows.values, np.array(expected, dtype=np.float32))
    assert rows.categorical.tolist() == [False, False, True, False, False, False, False]
    assert rows.notes == ("1 column was left out, as it says nothing or cannot be read",)


def test_columns_of_a_matrix_that_say_nothing_are_left_out_and_counted() -> None:
    rows = as_rows(np.array([[1.0, 5.0, np.nan], [2.0, 5.0, np.nan]]))
    assert rows.values.tolist() == [[1], [2]]
    assert rows.notes == ("2 constant or empty columns were left out",)
    assert as_rows(np.array([[1, 5], [2, 5]])).notes == ("1 constant or empty column was left out",)


def test_many_categories_become_how_often_they_occur() -> None:
    towns = [f"town {k}" for k in range(250)] + ["town 0"] * 20 + [None]
    rows = as_rows(pd.DataFrame({"town": towns, "x": np.arange(271.0)}))
    assert rows.categorical.tolist() == [False, False]
    assert rows.values[[0, 1, 260], 0].tolist() == [21, 1, 21]
    assert np.isnan(rows.values[-1, 0])


def test_names_of_rows_carry_nothing() -> None:
    frame = pd.DataFrame({"id": [f"row-{k:04d}" for k in range(500)], "x": np.arange(500.0)})
    assert as_rows(frame).values.shape == (500, 1)


def test_no_promises_for_what_is_not_data() -> None:
    labels = np.r_[1, 1, 0, 0]
    with pytest.raises(InputError, match="features are empty"):
        estimate_prior(np.empty((4, 0)), labels)
    with pytest.raises(InputError, match="no words to learn from in 4 texts"):
        estimate_prior(["a", "b", "c", "d"], labels)
    with pytest.raises(InputError, match="complex"):
        estimate_prior(np.ones((4, 2)) * 1j, labels)


class _TakeColumn:
    """A transformer that only works on a frame with this column."""

    def __init__(self, name: str) -> None:
        self.name = name

    def get_params(self, deep: bool = True) -> dict[str, str]:
        return {"name": self.name}

    def set_params(self, name: str) -> _TakeColumn:
        self.name = name
        return self

    def fit(self, X: pd.DataFrame, y: Any = None) -> _TakeColumn:
        return self

    def transform(self, X: pd.DataFrame) -> Any:
        return X[[self.name]].to_numpy()

    def fit_transform(self, X: pd.DataFrame, y: Any = None) -> Any:
        return self.transform(X)


def test_a_column_may_have_no_value_in_a_fold() -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 2))
    X[1:, 1] = np.nan
    assert 0.0 <= estimate_prior(X, (np.arange(60) < 10).astype(int), method="bbe").value <= 1.0


def test_texts_are_texts_in_whatever_they_come() -> None:
    """Also short ones that repeat, which in a table would be categories; the classifier reads them so, too."""
    data = gaussians(0.5, n_p=60, n_u=120)
    words = np.where(data.is_positive, ["win prize", "free claim"] * 90, ["lunch room", "meeting minutes"] * 90)
    plain = estimate_prior(words.tolist(), data.labels)
    polars = pytest.importorskip("polars", reason="polars is not installed (punce[dev])")
    for texts in (words.astype(object), pd.Series(words), pd.Series(words, dtype="string"), polars.Series(words)):
        assert estimate_prior(texts, data.labels) == plain
    assert estimate_prior([None, *words[1:]], data.labels).value == pytest.approx(plain.value, abs=0.05)


def test_a_query_of_polars_is_run() -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed (punce[dev])")
    data = gaussians(0.4, n_p=50, n_u=100)
    frame = pd.DataFrame(data.X, columns=["a", "b"])
    assert estimate_prior(polars.from_pandas(frame).lazy(), data.labels) == estimate_prior(frame, data.labels)


def test_labels_in_another_order_than_the_rows_are_refused() -> None:
    data = gaussians(0.4, n_p=50, n_u=100)
    frame, labels = pd.DataFrame(data.X), pd.Series(data.labels)
    with pytest.raises(InputError, match=r"the index of labels is not the index of X.*labels.loc\[X.index\]"):
        estimate_prior(frame, labels.iloc[::-1])
    with pytest.raises(InputError, match=r"the index of labels is not the index of scores"):
        estimate_prior(None, labels, scores=frame[0].iloc[::-1])
    with pytest.raises(InputError, match=r"labels.to_numpy\(\) if they do belong together"):
        held_out_scores(frame.set_axis(range(1, 151)), labels)
