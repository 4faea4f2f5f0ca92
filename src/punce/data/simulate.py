"""PU and PNU labels drawn from known true labels, as the paper's experiments do ("Computing exact π", appendix)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from punce.errors import InputError
from punce.labels import NEGATIVE, POSITIVE, UNLABELLED, Labels, Setting
from punce.scenario import Scenario, check_scenario, exact_prior

Rows = npt.NDArray[np.int64]
Propensity = npt.ArrayLike | Callable[[Rows], npt.ArrayLike]


@dataclass(frozen=True)
class PUSample:
    """Labels for training, and nothing that would give the truth away except the exact prior.

    The training matrix is ``X[sample.rows]``. Shape: `rows` int64 (m,), `labels` int8 (m,).
    In ``single_set`` (and PNU) `rows` is simply 0…n−1 and m = n. In ``case_control`` the unlabelled part is the whole
    set, untouched, and the labelled rows follow as copies: m = n + n_P. That is how nnPU's experiments
    are set up (Kiryo et al. 2017); a labelled row then also occurs, unlabelled, in U.
    """

    rows: Rows
    labels: Labels
    prior: float
    """Exact share of positives among the unlabelled rows."""
    population_prior: float
    """Share of positives in the whole set."""
    scenario: Scenario
    setting: Setting
    seed: int

    @property
    def n_labelled(self) -> int:
        """Rows that carry a label (of either class in the PNU setting)."""
        return int((self.labels != UNLABELLED).sum())


def simulate_pu(
    y_true: npt.ArrayLike,
    n_labelled: int,
    scenario: Scenario = "single_set",
    seed: int = 0,
    propensity: Propensity | None = None,
) -> PUSample:
    """Label `n_labelled` positives, uniformly at random, and leave every other row unlabelled.

    With `propensity` the labelling is biased: positives are drawn without replacement with probability proportional
    to it (Efraimidis–Spirakis). It is an array of one weight per row of `y_true`, or a function of row numbers.
    For one seed the uniform labelled sets are nested: those of 1,000 rows are among those of 3,000.
    """
    check_scenario(scenario)
    is_p = _true_labels(y_true)
    positives = np.flatnonzero(is_p).astype(np.int64)
    _check_count(n_labelled, len(positives), "positive rows")
    order = _order(positives, propensity, len(is_p), _random(seed))
    _check_count(n_labelled, len(order), "positive rows with a propensity above 0")
    labelled = np.sort(order[:n_labelled])
    rows, labels = _place(labelled, len(is_p), scenario)
    prior = exact_prior(len(positives), len(is_p) - len(positives), n_labelled, scenario)
    return PUSample(rows, labels, prior, float(is_p.mean()), scenario, "pu", seed)


def simulate_pnu(y_true: npt.ArrayLike, n_labelled: int, seed: int = 0) -> PUSample:
    """Keep the true label of `n_labelled` rows drawn uniformly at random (1 or -1); the rest are unlabelled (0)."""
    is_p = _true_labels(y_true)
    _check_count(n_labelled, len(is_p), "rows")
    labelled = _random(seed).permutation(len(is_p))[:n_labelled]
    labels = np.full(len(is_p), UNLABELLED, dtype=np.int8)
    labels[labelled] = np.where(is_p[labelled], POSITIVE, NEGATIVE)
    # Labelled negatives leave the unlabelled rows as labelled positives do.
    n_p, n_n = int((labels == POSITIVE).sum()), int((labels == NEGATIVE).sum())
    prior = exact_prior(int(is_p.sum()), int((~is_p).sum()) - n_n, n_p)
    rows = np.arange(len(is_p), dtype=np.int64)
    return PUSample(rows, labels, prior, float(is_p.mean()), "single_set", "pnu", seed)


def biased_propensity(score: npt.ArrayLike, strength: float) -> npt.NDArray[np.float64]:
    """Weights exp(strength · standardised score): labelling that prefers rows with a high score of their x.

    ``strength=0`` is uniform labelling; 1 makes a row one standard deviation above the mean e times as likely.
    """
    values = np.asarray(score, dtype=np.float64)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise InputError(f"score must be one finite number per row, got shape {values.shape}")
    spread = values.std()
    standard = (values - values.mean()) / spread if spread > 0 else np.zeros_like(values)
    return np.exp(strength * standard)


def _true_labels(y_true: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    values: npt.NDArray[Any] = np.asarray(y_true)
    if values.ndim != 1 or len(values) == 0:
        raise InputError(f"y_true must be one-dimensional and not empty, got shape {values.shape}")
    wrong = (values != 0) & (values != 1)
    if np.any(wrong):
        row = int(np.flatnonzero(wrong)[0])
        seen = values[row : row + 1].tolist()[0]  # as Python writes it: -1 and not np.int64(-1)
        raise InputError(f"y_true holds the true classes, 1 positive and 0 negative; row {row} holds {seen!r}")
    return np.asarray(values == 1)


def _check_count(n_labelled: int, available: int, what: str) -> None:
    if not (isinstance(n_labelled, SupportsIndex) and 0 < n_labelled <= available):
        raise InputError(
            f"cannot label {n_labelled!r} rows: the set has {available} {what}; give a whole number of at least 1 "
            "and at most that many"
        )


def _random(seed: int) -> np.random.RandomState:
    # RandomState: its stream is frozen (NEP 19), so a labelled set named by its seed stays the same set
    if not isinstance(seed, int | np.integer) or not 0 <= seed < 2**32:
        raise InputError(f"seed must be a whole number between 0 and 2**32 - 1, got {seed!r}")
    return np.random.RandomState(seed)


def _order(positives: Rows, propensity: Propensity | None, n: int, random: np.random.RandomState) -> Rows:
    """The positives that may be labelled, in the order in which they get labelled."""
    if propensity is None:
        return positives[random.permutation(len(positives))]
    weights = _weights(positives, propensity, n)
    possible = positives[weights > 0]
    # 1 - u lies in (0, 1], so its logarithm is finite
    keys = np.log(1.0 - random.random_sample(len(possible))) / weights[weights > 0]
    return possible[np.argsort(-keys, kind="stable")]


def _weights(positives: Rows, propensity: Propensity, n: int) -> npt.NDArray[np.float64]:
    """The weight of each positive: a function is asked for those rows only, an array has one for every row."""
    of_positives = callable(propensity)
    weights = np.asarray(propensity(positives) if callable(propensity) else propensity, dtype=np.float64)
    expected = len(positives) if of_positives else n
    if weights.shape != (expected,):
        raise InputError(f"propensity must be {expected} weights, one per row; got shape {weights.shape}")
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise InputError("propensity weights must be finite and not negative")
    return weights if of_positives else weights[positives]


def _place(labelled: Rows, n: int, scenario: Scenario) -> tuple[Rows, Labels]:
    rows = np.arange(n, dtype=np.int64)
    labels = np.full(n, UNLABELLED, dtype=np.int8)
    if scenario == "single_set":
        labels[labelled] = POSITIVE
        return rows, labels
    extra = np.full(len(labelled), POSITIVE, dtype=np.int8)
    return np.concatenate([rows, labelled]), np.concatenate([labels, extra])
