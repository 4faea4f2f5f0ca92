"""From scores to probabilities without negatives: held-out odds of P against U, times the prior.

With r(s) = p_P(s)/p_U(s), the ratio of the densities of held-out labelled and unlabelled scores, Bayes' rule gives

    P(y=1 | s, unlabelled) = π · r(s)

r is estimated twice and averaged. Isotonic regression of "labelled?" on the score, both groups weighing the same,
follows any monotone shape, but with few labelled rows it is a staircase. The logistic form σ(a·s + b)/π with a ≥ 0 has
two parameters and, unlike Platt's sigmoid on P against U, levels off at 1/π where it must. The share of the staircase
grows with the number of labelled rows. What is left of the error in level is removed: the mean over the unlabelled
rows is made equal to the prior.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from punce.errors import InputError
from punce.scenario import check_prior, logit_shift

Floats = npt.NDArray[np.float64]
_KNOTS = 256
_HALF = 200  # labelled rows at which staircase and curve count the same
_SMALLEST = 1e-6


@dataclass(frozen=True)
class PUCalibrator:
    """P(y=1 | score) among the unlabelled rows: ``min(1, factor · curve(score))``, the curve linear between knots."""

    prior: float
    factor: float
    knots: tuple[float, ...]
    curve: tuple[float, ...]

    @classmethod
    def fit(cls, scores_p: npt.ArrayLike, scores_u: npt.ArrayLike, prior: float) -> PUCalibrator:
        """From scores of labelled and unlabelled rows that the scoring model did not see. Shape: (n_P,), (n_U,)."""
        prior = check_prior(prior, open_interval=True)
        p, u = _checked(scores_p, "scores_p"), _checked(scores_u, "scores_u")
        knots = np.unique(np.quantile(np.concatenate([u, p]), np.linspace(0.0, 1.0, _KNOTS)))
        share = len(p) / (len(p) + _HALF)
        curve = share * _staircase(p, u, prior, knots) + (1.0 - share) * _logistic(p, u, prior, knots)
        curve = np.maximum.accumulate(np.clip(curve, _SMALLEST, 1.0))
        factor = _factor(np.interp(u, knots, curve), prior)
        return cls(prior, factor, tuple(knots.tolist()), tuple(curve.tolist()))

    def probability(self, scores: npt.ArrayLike, deploy_prior: float | None = None) -> Floats:
        """P(y=1 | score) in [0, 1], never falling with the score. Shape: (n,) -> (n,).

        `deploy_prior` is the share of positives in the rows to decide about, if not that of the unlabelled rows.
        """
        values = _checked(scores, "scores", at_least=0)
        p: Floats = np.minimum(1.0, self.factor * np.interp(values, self.knots, self.curve))
        if deploy_prior is None:
            return p
        ratio = np.exp(logit_shift(self.prior, check_prior(deploy_prior, "deploy_prior", open_interval=True)))
        shifted: Floats = np.minimum(1.0, ratio * p / (ratio * p + 1.0 - p))  # rounding can exceed 1
        return shifted

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers for JSON."""
        return {
            "prior": self.prior,
            "factor": self.factor,
            "knots": list(self.knots),
            "curve": list(self.curve),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> PUCalibrator:
        """What :meth:`as_dict` gave."""
        try:
            knots, curve = ([float(x) for x in content[name]] for name in ("knots", "curve"))
            made = cls(float(content["prior"]), float(content["factor"]), tuple(knots), tuple(curve))
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"not a stored calibration: {error!r}") from error
        if len(knots) != len(curve) or not knots or np.any(np.diff(knots) <= 0) or np.any(np.diff(curve) < 0):
            raise InputError("not a stored calibration: knots must increase and the curve must not fall")
        return made


def _staircase(p: Floats, u: Floats, prior: float, knots: Floats) -> Floats:
    """π·r by isotonic regression. A step that holds labelled rows only would be infinite; it counts as certain."""
    from sklearn.isotonic import IsotonicRegression

    scores = np.concatenate([p, u])
    labelled = np.concatenate([np.ones(len(p)), np.zeros(len(u))])
    weights = np.concatenate([np.full(len(p), 1.0 / len(p)), np.full(len(u), 1.0 / len(u))])
    g = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(scores, labelled, weights).predict(knots)
    curve: Floats = np.clip(prior * g / np.maximum(1.0 - g, _SMALLEST), 0.0, 1.0)
    return curve


def _logistic(p: Floats, u: Floats, prior: float, knots: Floats) -> Floats:
    """σ(a·s + b) whose P-vs-U odds σ/π fit best: Σ_P log h / n_P + Σ_U log(1−h) / n_U with h = σ/(σ + π)."""
    from scipy.optimize import minimize
    from scipy.special import expit, log_expit

    middle, spread = float(np.median(u)), float(np.std(np.concatenate([p, u]))) or 1.0
    zp, zu = (p - middle) / spread, (u - middle) / spread

    def loss(parameters: Floats) -> float:
        slope, offset = np.exp(parameters[0]), parameters[1]
        terms = []
        for z, numerator in ((zp, True), (zu, False)):
            log_sigma = log_expit(slope * z + offset)
            log_sum = np.logaddexp(log_sigma, np.log(prior))
            terms.append(float(np.mean(log_sum - (log_sigma if numerator else np.log(prior)))))
        return sum(terms) + 1e-3 * float(parameters[0] ** 2)

    found = minimize(loss, np.zeros(2), method="Nelder-Mead", options={"maxiter": 200, "xatol": 1e-3, "fatol": 1e-6})
    slope, offset = float(np.exp(found.x[0])), float(found.x[1])
    curve: Floats = expit(slope * (knots - middle) / spread + offset)
    return curve


def _factor(values: Floats, prior: float) -> float:
    """The k with mean(min(1, k·values)) = prior, by bisection; the mean grows with k."""
    low, high = 0.0, 1.0 / float(values.min())
    for _ in range(100):
        middle = 0.5 * (low + high)
        if np.minimum(1.0, middle * values).mean() < prior:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


def _checked(scores: npt.ArrayLike, name: str, at_least: int = 1) -> Floats:
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1 or len(values) < at_least:
        raise InputError(f"{name} must be one number per row, at least {at_least} rows; got shape {values.shape}")
    if not np.isfinite(values).all():
        raise InputError(f"{name}: row {int(np.flatnonzero(~np.isfinite(values))[0])} is not finite")
    return values
