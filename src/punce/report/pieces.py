"""Pieces of a report from arrays of held-out scores: histogram, review curve, prior sensitivity.

P are held-out labelled positives, U held-out unlabelled rows, π the share of positives among U. As in
:mod:`punce.judging.metrics`, all of it holds if labelled rows are a random sample of the positives and took no part in
training.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from punce.errors import InputError
from punce.judging.estimates import CONFIDENCE
from punce.judging.ranking import checked_column, prior_draws
from punce.report.content import GOALS, Histogram, Interval, ReviewCurve, SensitivityRow
from punce.scenario import check_prior

Floats = npt.NDArray[np.float64]
_ROUNDING = 1e-9
_HALF_GRID = 30  # numbers of rows of a review curve, in geometric and in equal steps
_SHIFT = 0.1  # how much lower or higher the prior is in the other rows of the table


def score_histogram(p_scores: npt.ArrayLike, u_scores: npt.ArrayLike, *, bins: int = 25) -> Histogram:
    """Counts of P and U in equal bins: over [0, 1] when every score lies there, over the scores' range otherwise."""
    p, u = checked_column(p_scores, "p_scores"), checked_column(u_scores, "u_scores")
    both = np.concatenate([p, u])
    # A fixed axis for probabilities, so that two reports can be compared by eye.
    is_probability = both.min() >= 0.0 and both.max() <= 1.0
    edges = np.linspace(0.0, 1.0, bins + 1) if is_probability else np.histogram_bin_edges(both, bins)
    named = "Estimated probability of being positive" if is_probability else "Score"
    labelled, unlabelled = (np.histogram(values, edges)[0] for values in (p, u))
    return Histogram(tuple(edges.tolist()), tuple(labelled.tolist()), tuple(unlabelled.tolist()), named)


def review_curve(
    p_heldout: npt.ArrayLike,
    u_scores: npt.ArrayLike,
    prior: float,
    *,
    n_rows: int | None = None,
    prior_interval: tuple[float, float] | None = None,
    draws: int = 400,
    random_state: int = 0,
) -> ReviewCurve:
    """Precision and recall when the k highest-ranked of `n_rows` unlabelled rows are reviewed, for a grid of k.

    In the grid are the fewest rows that find each of :data:`~punce.report.content.GOALS`.

    With q the share of U above a score and t(q) the share of P above it, recall = t and precision = π·t/q, kept
    within what q and π allow. t is the least concave majorant of the empirical curve (positives thin out down the
    list), without which the top of the list would read 0 or 100 % by chance. The band draws t and q from their Jeffreys
    posteriors, and π within `prior_interval` when that is given; all intervals are 90 % ones.
    """
    p, u = checked_column(p_heldout, "p_heldout"), checked_column(u_scores, "u_scores")
    prior = check_prior(prior, open_interval=True)
    n = len(u) if n_rows is None else int(n_rows)
    if n < 1:
        raise InputError(f"n_rows must be at least 1, got {n_rows}")
    q, t = _concave_roc(p, u)
    rows = np.union1d(_review_grid(n), _rows_to_find(np.array(GOALS), q, t, prior, n))
    share = rows / n
    rng = np.random.default_rng(random_state)
    # A known prior is drawn too (as itself), so that knowing it leaves the draws of t and q what they are.
    priors = prior_draws(prior, prior_interval or (prior, prior), CONFIDENCE, draws, rng)[:, None]
    drawn_t, drawn_q = _jeffreys_draws(share, p, u, draws, rng)
    recall = np.vstack([np.interp(share, q, t), drawn_t])
    called = np.vstack([share, drawn_q])
    # Positives above the cut, as a share of U: at most π and the share above the cut, at least what exceeds the
    # share below the cut.
    hits = np.clip(priors * recall, np.maximum(0.0, called + priors - 1.0), np.minimum(called, priors))
    precision, found = _intervals(hits / called), _intervals(hits / priors)
    return ReviewCurve(tuple(rows.tolist()), precision, found, n, CONFIDENCE)


def prior_sensitivity(
    p_probability: npt.ArrayLike,
    u_probability: npt.ArrayLike,
    prior: float,
    threshold: float,
    *,
    unlabelled: npt.ArrayLike | None = None,
) -> tuple[SensitivityRow, ...]:
    """What follows if the prior were 0.1 lower or higher, from held-out calibrated probabilities.

    P(y=1|x) = π·f_P(x)/f_U(x), and neither density depends on what we believe π to be: another prior scales every
    probability by π'/π (up to 1), which moves rows across the threshold. Rows are counted among `unlabelled`, the
    probabilities of all unlabelled rows (by default the held-out ones).
    """
    p, u = checked_column(p_probability, "p_probability"), checked_column(u_probability, "u_probability")
    everyone = u if unlabelled is None else checked_column(unlabelled, "unlabelled")
    prior = check_prior(prior, open_interval=True)
    # A share must lie in (0, 1); a shift beyond that is left out.
    values = [value for value in (prior - _SHIFT, prior, prior + _SHIFT) if 0.0 < value < 1.0]
    return tuple(_at_prior(p, u, everyone, value, value / prior, threshold) for value in values)


def _at_prior(p: Floats, u: Floats, everyone: Floats, prior: float, scale: float, threshold: float) -> SensitivityRow:
    above_p, above_u, above = (np.minimum(1.0, values * scale) >= threshold for values in (p, u, everyone))
    recall, called = float(above_p.mean()), float(above_u.mean())
    row = SensitivityRow(prior=prior, hidden=prior * len(everyone), called=int(above.sum()), recall=recall)
    hits = prior * recall
    if hits > called + _ROUNDING or hits < called + prior - 1.0 - _ROUNDING:
        return row  # more positives, or fewer, than the calls have room for: numbers cut off there would flatter
    return replace(
        row,
        precision=hits / called if called > 0 else None,
        accuracy=hits + (1.0 - called) - (prior - hits),
        f1=2.0 * hits / (called + prior),
    )


def _concave_roc(p: Floats, u: Floats) -> tuple[Floats, Floats]:
    """Corners of t(q), from (0, 0) to (1, 1), as a concave curve. Shapes: (C,).

    A majorant flatters; half a row less of P and more of U above each score takes most of that back (simulated with
    20 to 1,000 held-out positives: bias of the precision at most 0.05 either way).
    """
    # q is the share of U above a score, t that of P.
    q, t = _roc(p, u)
    q[1:] = (q[1:] * len(u) + 0.5) / (len(u) + 0.5)
    t[:-1] = np.maximum(0.0, t[:-1] - 0.5 / len(p))
    keep = _upper_hull(q, t)
    return q[keep], t[keep]


def _rows_to_find(goals: Floats, q: Floats, t: Floats, prior: float, n: int) -> npt.NDArray[np.int64]:
    """The fewest of n rows with a recall of each goal r. Shape: (G,).

    There t reaches r and π·r has room above the cut, unless the rows below are too few for the other π(1 − r).
    """
    shares = np.minimum(np.maximum(np.interp(goals, t, q), prior * goals), 1.0 - prior * (1.0 - goals))
    return np.ceil(n * shares - _ROUNDING).astype(np.int64)


def _jeffreys_draws(share: Floats, p: Floats, u: Floats, draws: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Draws of t and of q at the scores that cut off each `share` of U. Shapes: (B, K)."""
    above_p, above_u = np.interp(share, *_roc(p, u)) * len(p), share * len(u)
    size = (draws, len(share))
    # Jeffreys: Beta(k + ½, n − k + ½) for k of n rows above the cut.
    t = rng.beta(above_p + 0.5, len(p) - above_p + 0.5, size)
    q = rng.beta(above_u + 0.5, len(u) - above_u + 0.5, size)
    return t, q


def _roc(p: Floats, u: Floats) -> tuple[Floats, Floats]:
    """Shares of U and of P at or above each score, from (0, 0) to (1, 1)."""
    cuts = np.unique(np.concatenate([p, u]))[::-1]
    above_u = len(u) - np.searchsorted(np.sort(u), cuts, side="left")
    above_p = len(p) - np.searchsorted(np.sort(p), cuts, side="left")
    return np.append(0.0, above_u / len(u)), np.append(0.0, above_p / len(p))


def _upper_hull(x: Floats, y: Floats) -> list[int]:
    """Indices of the least concave majorant of points in x order (Andrew's monotone chain)."""
    hull: list[int] = []
    for i in range(len(x)):
        while len(hull) >= 2 and _turns_up(x, y, hull[-2], hull[-1], i):
            hull.pop()
        hull.append(i)
    return hull


def _turns_up(x: Floats, y: Floats, a: int, b: int, c: int) -> bool:
    return bool((y[b] - y[a]) * (x[c] - x[a]) <= (y[c] - y[a]) * (x[b] - x[a]))


def _review_grid(n: int) -> npt.NDArray[np.int64]:
    """Whole numbers of rows up to n, finer at the top of the list where the decision is made."""
    # Half of the points in geometric steps, half in equal steps.
    fine = np.geomspace(1, n, _HALF_GRID) if n > 1 else np.array([1.0])
    even = np.linspace(1, n, _HALF_GRID)
    return np.unique(np.round(np.concatenate([fine, even])).astype(np.int64))


def _intervals(draws: Floats) -> tuple[Interval, ...]:
    """Row 0 is the estimate, the rest are draws; every interval holds its estimate. Shape: (1 + B, K)."""
    value = draws[0]
    low, high = np.quantile(draws, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2], axis=0)
    # Quantiles of draws need not hold the estimate, because the estimate is smoothed.
    low, high = np.minimum(low, value), np.maximum(high, value)
    stacked = np.round(np.stack([value, low, high], axis=1), 5).tolist()
    return tuple(Interval(*triple) for triple in stacked)
