"""Pieces from arrays: against counts by hand, against the truth of simulated data, and at the edges."""

from __future__ import annotations

import base64
import io
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image
from scipy.stats import norm

from punce.errors import InputError
from punce.report import pieces
from punce.report.content import GOALS, ReviewCurve
from punce.report.pieces import prior_sensitivity, review_curve, score_histogram
from punce.report.rows import lay_out, map_rows, row_map, thumbnail, thumbnail_sheet, top_rows

probabilities = hnp.arrays(np.float64, st.integers(1, 30), elements=st.floats(0, 1))


def opened(uri: str) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2])))


def test_histogram_counts_every_row_once() -> None:
    histogram = score_histogram([0.0, 0.5, 1.0], [0.1, 0.1, 0.99], bins=2)
    assert histogram.edges == (0.0, 0.5, 1.0)
    assert (histogram.labelled, histogram.unlabelled) == ((1, 2), (2, 1))
    assert score_histogram([-3.0, 2.0], [0.0]).axis == "Score"


@given(probabilities, probabilities, st.floats(0.01, 0.99))
def test_review_curve_keeps_its_promises(p: np.ndarray, u: np.ndarray, prior: float) -> None:
    curve = review_curve(p, u, prior, draws=20)
    precision, recall = (np.array([i.value for i in part], float) for part in (curve.precision, curve.recall))
    rows = np.array(curve.rows)
    assert rows[0] == 1
    assert rows[-1] == curve.of == len(u)
    assert np.all(np.diff(recall) >= -1e-4)
    assert recall[-1] == pytest.approx(1.0, abs=1e-4)
    assert precision[-1] == pytest.approx(prior, abs=1e-4)
    for interval in (*curve.precision, *curve.recall):
        assert 0 <= interval.low <= interval.value <= interval.high <= 1  # type: ignore[operator]
    # The same positives, counted both ways.
    assert np.allclose(precision * rows, recall * prior * len(u), atol=1e-4 * len(u))


def curve_on_grid(p: np.ndarray, u: np.ndarray, prior: float, half: int) -> ReviewCurve:
    with patch.object(pieces, "_HALF_GRID", half):
        return review_curve(p, u, prior, draws=1)


@given(probabilities, probabilities, st.floats(0.01, 0.99))
def test_the_fewest_rows_that_find_a_share_of_the_positives_are_in_the_curve(
    p: np.ndarray, u: np.ndarray, prior: float
) -> None:
    """Steps of thirty rows, or of half as many again, told people to review up to half more rows than it takes."""
    every, few = (curve_on_grid(p, u, prior, half) for half in (len(u), 1))
    assert every.rows == tuple(range(1, len(u) + 1))
    recall = np.array([interval.value for interval in every.recall], float)
    for goal in GOALS:
        rounded = {int(np.argmax(recall >= goal + room)) + 1 for room in (0.0, 1e-5)}
        assert rounded & set(few.rows)


@pytest.mark.parametrize(("n_p", "n_u", "prior"), [(20, 300, 0.2), (100, 1000, 0.05), (1000, 5000, 0.2)])
def test_review_curve_on_average_tells_the_truth(n_p: int, n_u: int, prior: float) -> None:
    """Scores N(2, 1) and N(0, 1): bias within 0.06 and the 90 % band holding the truth in at least 80 % of samples."""
    n, shift = 4000, 2.0
    k = np.array([10, 30, 100, 300, 800])
    cut = np.linspace(-5, 7, 20001)
    called = prior * norm.sf(cut - shift) + (1 - prior) * norm.sf(cut)
    at = [int(np.argmin(np.abs(called - share))) for share in k / n]
    truth = prior * norm.sf(cut[at] - shift) / called[at]
    rng = np.random.default_rng(0)
    values, held = [], []
    for seed in range(60):
        u = rng.normal(size=n_u) + shift * (rng.random(n_u) < prior)
        curve = review_curve(rng.normal(shift, 1, n_p), u, prior, n_rows=n, random_state=seed)
        value, low, high = (
            np.interp(k, curve.rows, [getattr(i, part) for i in curve.precision]) for part in ("value", "low", "high")
        )
        values.append(value)
        held.append((low - 0.005 <= truth) & (truth <= high + 0.005))
    assert np.abs(np.mean(values, axis=0) - truth).max() < 0.06
    assert np.mean(held, axis=0).min() >= 0.8


def test_an_uncertain_prior_widens_the_band() -> None:
    rng = np.random.default_rng(0)
    p, u = rng.normal(2, 1, 300), rng.normal(0, 1, 2000)
    known = review_curve(p, u, 0.2)
    unsure = review_curve(p, u, 0.2, prior_interval=(0.1, 0.3))
    width = [sum(i.high - i.low for i in curve.precision) for curve in (known, unsure)]  # type: ignore[operator]
    assert width[1] > 1.2 * width[0]


def test_sensitivity_by_hand() -> None:
    rows = prior_sensitivity([0.9, 0.4], [0.9, 0.4, 0.1, 0.1], 0.4, 0.45, unlabelled=[0.9, 0.4, 0.4] + [0.0] * 7)
    assert [round(row.prior, 9) for row in rows] == [0.3, 0.4, 0.5]
    assert [row.called for row in rows] == [1, 1, 3]  # 0.4 becomes 0.5 at the higher prior
    assert [row.hidden for row in rows] == pytest.approx([3, 4, 5])
    assert rows[1].recall == 0.5
    assert rows[1].precision == pytest.approx(0.4 * 0.5 / 0.25)
    assert rows[1].accuracy == pytest.approx(0.2 + 0.75 - 0.2)
    assert rows[1].f1 == pytest.approx(2 * 0.2 / 0.65)


def test_a_share_with_no_room_among_the_calls_gives_no_precision() -> None:
    """Cut off at the called rows it would read 100 %."""
    lower, used, higher = prior_sensitivity([0.9] * 9 + [0.1], [0.9] * 4 + [0.1] * 6, 0.4, 0.5)
    assert used.precision == pytest.approx(0.9)
    assert lower.precision == pytest.approx(0.3 * 0.9 / 0.4)
    assert (higher.recall, higher.precision, higher.accuracy, higher.f1) == (0.9, None, None, None)


def test_a_row_at_the_threshold_is_called_positive() -> None:
    """As predict, metrics and the ranked list do."""
    row = prior_sensitivity([0.5], [0.5, 0.1], 0.4, 0.5, unlabelled=[0.5, 0.5, 0.2])[1]
    assert (row.called, row.recall) == (2, 1.0)


def test_sensitivity_leaves_out_impossible_priors_and_undefined_precision() -> None:
    rows = prior_sensitivity([0.3], [0.2], 0.05, 0.9)
    assert [round(row.prior, 9) for row in rows] == [0.05, 0.15]
    assert rows[0].precision is None
    assert prior_sensitivity([0.6], [0.5], 0.95, 0.9)[-1].prior == 0.95


@pytest.mark.parametrize("bad", [[], [[0.1]], [0.1, np.nan]])
def test_unusable_scores_are_refused(bad: list[float]) -> None:
    with pytest.raises(InputError, match="p_scores"):
        score_histogram(bad, [0.5])
    with pytest.raises(InputError, match="p_heldout"):
        review_curve(bad, [0.5], 0.5)
    with pytest.raises(InputError, match=r"prior_interval must hold the prior 0\.5"):
        review_curve([0.5], [0.5], 0.5, prior_interval=(0.6, 0.7))
    with pytest.raises(InputError, match="n_rows"):
        review_curve([0.5], [0.5], 0.5, n_rows=0)


@pytest.mark.parametrize(
    ("array", "mode"),
    [
        (np.zeros((8, 8), np.uint8), "L"),
        (np.zeros((1, 8, 8)), "L"),
        (np.zeros((8, 8, 3), np.uint8), "RGB"),
        (np.random.default_rng(0).normal(size=(3, 8, 8)), "RGB"),
        (np.zeros((8, 8, 4), np.uint8), "RGB"),
        (np.full((8, 8), np.nan), "L"),
        (np.zeros((8, 8), bool), "L"),
    ],
)
def test_thumbnail_takes_every_layout(array: np.ndarray, mode: str) -> None:
    picture = opened(thumbnail(array))
    assert (picture.format, picture.size, picture.mode) == ("PNG", (8, 8), mode)


def test_thumbnail_keeps_pixels_and_shrinks_large_pictures() -> None:
    values = np.array([[0.0, 1.0], [0.5, 0.25]])
    assert np.asarray(opened(thumbnail(values))).tolist() == [[0, 255], [128, 64]]
    assert opened(thumbnail(np.zeros((300, 600, 3), np.uint8))).size == (64, 32)
    with pytest.raises(InputError, match=r"got \(5,\)"):
        thumbnail(np.zeros(5))


def test_sheet_places_tiles_and_respects_its_budget() -> None:
    tones = np.arange(10) * 20
    sheet = thumbnail_sheet([np.full((16, 16), tone, np.uint8) for tone in tones])
    pixels = np.asarray(opened(sheet.uri).convert("L")).astype(int)
    for i, tone in enumerate(tones):
        y, x = i // sheet.columns * sheet.tile + 8, i % sheet.columns * sheet.tile + 8
        assert abs(pixels[y, x] - tone) < 12
    noise = np.random.default_rng(0).integers(0, 256, (400, 32, 32, 3), dtype=np.uint8)
    small = thumbnail_sheet(noise, budget=60_000)
    assert len(small.uri) <= 60_000
    assert small.tile < 32
    with pytest.raises(InputError, match="at least one image"):
        thumbnail_sheet([])


def test_map_rows_keeps_labelled_rows_and_the_limit() -> None:
    labels = np.zeros(10_000, int)
    labels[:40] = 1
    rows = map_rows(labels, limit=500)
    assert len(rows) == len(set(rows.tolist())) == 500
    assert labels[rows].sum() == 40
    assert len(map_rows(np.ones(900, int), limit=500)) == 500
    assert map_rows(labels[:30]).tolist() == list(range(30))


def test_row_map_and_top_rows_carry_awkward_cells() -> None:
    frame = pd.DataFrame(
        {
            "n": [1, 2, 3],
            "x": [0.5, np.nan, np.inf],
            "when": pd.to_datetime(["2026-01-01", None, "2026-01-03"]),
            "flag": pd.array([True, None, False], dtype="boolean"),
            "same": ["a" * 500, None, "c"],
        }
    )
    frame.columns = ["n", "x", "when", "flag", "n"]  # duplicate names happen
    top = top_rows([0.1, 0.9, 0.5], ["a", "b", "c"], table=frame, limit=2)
    assert [(row.rank, row.name) for row in top.rows] == [(1, "b"), (2, "c")]
    assert top.rows[0].values == (2, None, None, None, None)
    assert top.rows[1].values[:4] == (3, None, "2026-01-03 00:00:00", False)
    points = row_map([[0, 0], [5, 5], [10, 2]], [0.1, 0.9, 0.5], [1, 0, 0], [7, 8, 9], table=frame)
    assert points.x == (0.0, 0.5, 1.0)
    assert points.names == ("7", "8", "9")
    assert isinstance(points.cells[0][4], str)
    assert len(points.cells[0][4]) == 60
    with pytest.raises(InputError, match=r"shape \(n, 2\)"):
        row_map([[0, np.nan]], [0.1], [0], ["a"])


def test_rows_that_are_all_alike_have_a_map() -> None:
    xy, said = lay_out(np.ones((60, 5)) / 3)
    assert said == "PCA"  # t-SNE would crash the process
    assert np.abs(xy).max() < 1e-9


@pytest.mark.parametrize(
    ("n", "d", "method"), [(1, 5, "features"), (10, 1, "features"), (20, 5, "PCA"), (60, 5, "t-SNE")]
)
def test_lay_out_any_shape(n: int, d: int, method: str) -> None:
    xy, said = lay_out(np.random.default_rng(0).normal(size=(n, d)))
    assert said == method
    assert xy.shape == (n, 2)
    assert np.isfinite(xy).all()
