"""Each estimator against its equation in the plainest code, and the properties only it has."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar

from punce.errors import InputError
from punce.priors import BBE, DEDPUL, KM2, Sample, TIcE, crossfit, estimate_prior, pen_l1, tedn
from punce.priors import kernel_mean as km
from punce.priors.dedpul import normal_quantiles, posteriors
from punce.priors.sample import Scores
from punce.priors.score_counts import count, wilson
from tests.priors.mixtures import fast_classifier, gaussians

pytestmark = pytest.mark.filterwarnings("ignore::punce.priors.PriorWarning")

Floats = npt.NDArray[np.float64]


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


# --- BBE -------------------------------------------------------------------------------------------------------------


def bbe_reference(p: Floats, u: Floats, delta: float = 0.1) -> float:
    """Algorithm 1 of Garg et al. (2021), a loop over every labelled score as threshold."""
    slack = math.sqrt(math.log(4 / delta) / (2 * len(p))) + math.sqrt(math.log(4 / delta) / (2 * len(u)))
    best = (math.inf, math.nan)
    for threshold in sorted(set(p), reverse=True):
        q_p, q_u = np.mean(p >= threshold), np.mean(u >= threshold)
        best = min(best, (q_u / q_p + 1.01 * slack / q_p, min(1.0, q_u / q_p)))
    return best[1]


@pytest.mark.parametrize("seed", range(5))
def test_bbe_with_the_papers_bound_is_the_papers_algorithm(seed: int) -> None:
    data = gaussians(0.4, n_p=90, n_u=250, gap=2.0, seed=seed)
    scores = np.round(data.X[:, 0], 1)
    p, u = scores[data.labels == 1], scores[data.labels == 0]
    found = BBE(penalty="hoeffding").from_scores(Scores(p, u), rng())
    assert found.value == pytest.approx(bbe_reference(p, u), abs=1e-12)


def test_bbe_with_wilson_bounds_minimises_the_upper_bound() -> None:
    data = gaussians(0.1, n_p=90, n_u=250, gap=3.0)
    p, u = data.X[data.labels == 1, 0], data.X[data.labels == 0, 0]
    best = (math.inf, math.nan)
    for t in p:
        n_p, n_u = np.array([np.sum(p >= t)]), np.array([np.sum(u >= t)])
        bound = wilson(n_u, len(u), 3.5, 1)[0] / wilson(n_p, len(p), 3.5, -1)[0]
        best = min(best, (bound, (n_u[0] / len(u)) / (n_p[0] / len(p))))
    assert BBE().from_scores(Scores(p, u), rng()).value == pytest.approx(best[1], abs=1e-12)


@settings(max_examples=50, deadline=None)
@example([1], [0] * 9)  # its lower bound was −2e-17
@given(st.lists(st.integers(0, 9), min_size=1, max_size=30), st.lists(st.integers(0, 9), min_size=1, max_size=30))
def test_bbe_is_a_share_whatever_the_scores(p: list[int], u: list[int]) -> None:
    scores = Scores(np.array(p, dtype=float), np.array(u, dtype=float))
    for penalty in ("wilson", "hoeffding"):
        found = BBE(penalty=penalty, bootstrap=5).from_scores(scores, rng())
        assert 0.0 <= found.low <= found.value <= found.high <= 1.0


@pytest.mark.parametrize("options", [{"delta": 0.05}, {"penalty": "hoeffding", "z": 2.0}], ids=str)
def test_bbe_refuses_the_setting_of_the_other_penalty(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="has no effect with penalty="):
        BBE(**options)


def test_counts_are_exact_below_the_limit_and_even_above() -> None:
    scores = Scores(rng().normal(size=5000), rng().normal(size=20_000))
    counts = count(scores)
    assert (len(counts.thresholds), counts.n_p, counts.n_u) == (1000, 5000, 20_000)
    assert set(counts.p.tolist()) == {5}
    k = 123
    assert counts.above.u[k] == np.sum(scores.u >= counts.thresholds[k])


def test_wilson_interval_as_tabulated() -> None:
    # 8 of 10 at 95 %: [0.490, 0.943] (Newcombe 1998, method 3).
    low, high = (wilson(np.array([8]), 10, 1.959964, side)[0] for side in (-1, 1))
    assert (low, high) == (pytest.approx(0.4902, abs=1e-4), pytest.approx(0.9433, abs=1e-4))


@pytest.mark.slow
def test_bbe_intervals_cover() -> None:
    """Of 200 draws, the 90 % interval holds the truth in at least 80 %, also where the classes touch."""
    hits = 0
    for seed in range(200):
        data = gaussians(0.3, n_p=100, n_u=1000, gap=3.0, seed=seed)
        found = estimate_prior(None, data.labels, "bbe", scores=data.X[:, 0])
        hits += found.low <= data.share <= found.high
    assert hits >= 160


# --- DEDPUL ----------------------------------------------------------------------------------------------------------


def test_dedpul_posteriors_are_probabilities_with_the_estimated_mean() -> None:
    data = gaussians(0.3, n_p=200, n_u=500, gap=3.0)
    found = estimate_prior(data.X, data.labels, "dedpul", classifier=fast_classifier())
    p = found.diagnostics["posteriors"]
    assert p.shape == (500,)
    assert 0.0 <= p.min() <= p.max() <= 1.0
    assert p.mean() == pytest.approx(found.value, abs=1e-6)
    hidden = data.is_positive[data.labels == 0]
    assert np.mean((p > 0.5) == hidden) > 0.9
    assert p[hidden].mean() > 0.8 > 0.2 > p[~hidden].mean()


def test_dedpul_em_option() -> None:
    data = gaussians(0.5, n_p=300, n_u=600)
    found = estimate_prior(None, data.labels, "dedpul", scores=data.X[:, 0], share="em")
    assert found.value == found.diagnostics["em_value"] == pytest.approx(0.5, abs=0.1)


def test_normal_quantiles_give_both_groups_the_same_weight() -> None:
    p, u = normal_quantiles(Scores(np.array([1.0, 3.0]), np.array([0.0, 2.0, 2.0, 4.0])))
    balanced = np.concatenate([np.repeat(p, 2), u])
    assert balanced.mean() == pytest.approx(0.0, abs=1e-9)
    assert u[1] == u[2]


def test_posteriors_solve_for_their_mean() -> None:
    ratio, rows = np.array([0.0, 0.5, 2.0, 4.0]), np.array([4, 3, 2, 1])
    p = posteriors(ratio, rows, 0.25)
    assert p @ rows / rows.sum() == pytest.approx(0.25, abs=1e-9)
    assert (np.diff(p) >= 0).all()


# --- Kernel mean -----------------------------------------------------------------------------------------------------


def embedded() -> km.Embedded:
    data = gaussians(0.5, n_p=30, n_u=40, gap=3.0)
    p, u = data.X[data.labels == 1], data.X[data.labels == 0]
    return km._embed(p, u, 1.0, 70, rng())


def test_nystroem_with_every_row_is_the_kernel() -> None:
    data = gaussians(0.5, n_p=30, n_u=40, gap=3.0)
    p, u = data.X[data.labels == 1], data.X[data.labels == 0]
    points = km._embed(p, u, 1.0, 70, rng()).points
    both = np.concatenate([p, u])
    np.testing.assert_allclose(points @ points.T, km._gaussian(both, both, 1.0), atol=1e-4)


def test_distance_to_the_hull_matches_a_general_solver() -> None:
    e = embedded()
    target = e.target(3.0)
    n = len(e.points)
    solved = minimize(
        lambda w: 0.5 * np.sum((w @ e.points - target) ** 2),
        np.full(n, 1.0 / n),
        jac=lambda w: e.points @ (w @ e.points - target),
        bounds=[(0.0, None)] * n,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1.0, "jac": lambda w: np.ones(n)},
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert km._slopes(e)(3.0)[1] == pytest.approx(math.sqrt(2.0 * solved.fun), rel=0.01)


def test_the_slope_is_the_derivative_of_the_distance() -> None:
    slopes = km._slopes(embedded())
    for lam in (2.5, 4.0, 8.0):
        difference = (slopes(lam + 0.1)[1] - slopes(lam - 0.1)[1]) / 0.2
        assert slopes(lam)[0] == pytest.approx(difference, rel=0.05)


def test_projection_onto_the_simplex() -> None:
    v = rng().normal(size=50).astype(np.float32)
    w = km._on_simplex(v)
    assert w.sum() == pytest.approx(1.0, abs=1e-5)
    assert w.min() >= 0.0
    # Optimality: where w > 0, v - w is one constant, elsewhere at most that.
    shift = (v - w)[w > 0]
    assert np.ptp(shift) < 1e-5
    assert ((v - w)[w == 0] <= shift.max() + 1e-5).all()


def test_km2_reaches_beyond_the_usual_ceiling() -> None:
    data = gaussians(0.95, n_p=2000, n_u=2000, gap=80.0)
    assert estimate_prior(data.X, data.labels, "km2", resamples=2).value > 0.875


def test_subsampling_is_announced() -> None:
    data = gaussians(0.5, n_p=60, n_u=120)
    found = estimate_prior(data.X, data.labels, "km2", most_rows=50, resamples=2)
    assert "50 of 120 unlabelled rows were used, drawn at random" in found.diagnostics["notes"]
    assert "50 of 60 labelled rows were used, drawn at random" in found.diagnostics["notes"]


def test_km2_width_does_not_collapse_with_few_labelled_rows() -> None:
    data = gaussians(0.9, n_p=40, n_u=400, gap=6.0, d=10)
    found = KM2(resamples=2).estimate(Sample(data.X, data.labels == 1), rng())
    assert found.diagnostics["kernel_width"] > 1.0


def test_km2_interval_is_as_wide_as_few_unlabelled_rows_make_it() -> None:
    def width(n_p: int, n_u: int) -> float:
        generator = rng()
        centre = np.where(np.arange(n_p + n_u) < n_p + n_u // 2, 3, -3)[:, None]
        X = generator.normal(centre, 1.0, (n_p + n_u, 2))
        found = KM2(resamples=4).estimate(Sample(X, np.arange(n_p + n_u) < n_p), rng())
        return found.high - found.low

    # Subsets of 20 of the 40 unlabelled rows vary as much as the 40 do, however many rows are labelled.
    assert width(1200, 40) > 0.2


# --- pen-L1 ----------------------------------------------------------------------------------------------------------


def test_pen_l1_minimises_its_objective() -> None:
    generator = rng()
    p, u = generator.random(40) + 0.2, generator.random(40) + 0.1
    means = pen_l1.Means(p, u, np.full(40, 0.01), np.full(40, 0.01))
    theta = pen_l1._minimiser(means)
    noise = np.sqrt(theta**2 * means.var_p + means.var_u)
    penalty = 2.0 * float(noise @ p) / math.sqrt(2.0 * math.pi)

    def objective(t: float) -> float:
        b = t * p - u
        return float((np.maximum(b, 0.0) * b).sum()) / penalty - t + 1.0

    assert theta == pytest.approx(minimize_scalar(objective, bounds=(0, 1), method="bounded").x, abs=1e-3)


# --- TIcE ------------------------------------------------------------------------------------------------------------


def test_tice_finds_a_corner_that_takes_two_cuts() -> None:
    generator = rng()
    X = generator.random((4000, 6))
    positive = (X[:, 1] > 0.5) & (X[:, 4] > 0.5)
    labels = (positive & (generator.random(4000) < 0.5)).astype(int)
    truth = np.mean(positive[labels == 0])
    assert estimate_prior(X, labels, "tice").value == pytest.approx(truth, abs=0.05)


def test_tice_finds_the_positives_of_a_hundred_separated_rows() -> None:
    errors = []
    for seed in range(5):
        generator = np.random.default_rng(seed)
        positive = np.arange(100) < 50
        X = generator.normal(size=(100, 2)) + 10 * np.where(positive, 1, -1)[:, None]
        labels = np.zeros(100, dtype=int)
        labels[generator.permutation(50)[:25]] = 1
        errors.append(abs(TIcE().estimate(Sample(X, labels == 1), generator).value - 1 / 3))
    assert np.mean(errors) < 0.15


def test_tice_published_rule_is_conservative_with_many_labelled_rows() -> None:
    data = gaussians(0.5, n_p=2000, n_u=2000)
    sample = Sample(data.X, data.labels == 1)
    held_out, published = (TIcE(rule=rule).estimate(sample, rng()).value for rule in ("held_out", "bound"))
    assert held_out == pytest.approx(0.5, abs=0.05)
    assert published > held_out


def test_tice_splits_off_a_category_and_missing_values() -> None:
    generator = rng()
    kind = generator.integers(0, 5, 3000).astype(object)
    kind[generator.random(3000) < 0.2] = None
    positive = np.array([k is None for k in kind])
    labels = (positive & (generator.random(3000) < 0.5)).astype(int)
    X = np.column_stack([np.where(positive, "", kind.astype(str)), generator.random(3000).astype(str)])
    truth = np.mean(positive[labels == 0])
    assert estimate_prior(X, labels, "tice").value == pytest.approx(truth, abs=0.05)


# --- TEDn and Elkan-Noto ---------------------------------------------------------------------------------------------


def test_tedn_tells_its_rounds() -> None:
    data = gaussians(0.4, n_p=100, n_u=300)
    found = estimate_prior(data.X, data.labels, "tedn", rounds=3, classifier=fast_classifier())
    assert len(found.diagnostics["rounds"]) == 3
    assert found.diagnostics["rounds"][-1] == found.value


@pytest.mark.parametrize("most_rows", [20_000, 150])
def test_tedn_scores_no_row_by_a_model_that_saw_its_copy(monkeypatch: pytest.MonkeyPatch, most_rows: int) -> None:
    data = gaussians(0.02, n_p=60, n_u=200, gap=8.0)
    X = np.vstack([data.X, data.X[data.labels == 1]])
    seen: list[set[bytes]] = []

    def fit(classifier: object, rows: Floats, is_p: npt.NDArray[np.bool_]) -> object:
        seen.append({row.tobytes() for row in rows})
        return crossfit.fit(classifier, rows, is_p)

    def score(model: object, rows: Floats) -> Floats:
        assert not seen[-1] & {row.tobytes() for row in rows}
        return crossfit.score(model, rows)

    monkeypatch.setattr(tedn, "fit", fit)
    monkeypatch.setattr(tedn, "score", score)
    labels = np.r_[data.labels, np.zeros(60, np.int8)]
    estimate_prior(X, labels, "tedn", rounds=1, most_rows=most_rows, classifier=fast_classifier())
    assert len(seen) == 3


def test_tedn_refuses_fewer_rows_than_folds_in_one_line() -> None:
    X = np.random.default_rng(0).normal(size=(12, 3))
    for n_labelled in (2, 10):
        with pytest.raises(InputError, match=f"there are {n_labelled} and {12 - n_labelled}"):
            estimate_prior(X, np.arange(12) < n_labelled, "tedn", classifier=fast_classifier())


def test_tedn_survives_a_share_of_one() -> None:
    data = gaussians(1.0, n_p=100, n_u=300)
    assert estimate_prior(data.X, data.labels, "tedn", classifier=fast_classifier()).value > 0.8


def test_elkan_noto_is_too_large_where_classes_overlap() -> None:
    """The bias its docstring warns of."""
    data = gaussians(0.3, n_p=500, n_u=1500, gap=1.5)
    en, bbe = (estimate_prior(None, data.labels, m, scores=data.X[:, 0]).value for m in ("elkan_noto", "bbe"))
    assert en > bbe
    assert en > 0.35


def test_dedpul_finding_has_no_bound_inside_the_range() -> None:
    data = gaussians(0.5, n_p=200, n_u=400)
    sample = Sample(None, data.labels == 1, data.X[:, 0])
    assert DEDPUL().estimate(sample, rng()).bound is None
