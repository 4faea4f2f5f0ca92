"""From scores to probabilities without negatives: held-out odds of P against U, times the prior.

By Bayes, for a row of the unlabelled mix,  P(y=1 | s) = π·f_P(s)/f_U(s).  The ratio is estimated on *held-out* labelled
and unlabelled scores (rows that took part in training look better than new ones), as a monotone function of the
score, in one of two ways:

- ``"sigmoid"``: P(y=1 | s) = σ(a·s + b), fitted through the likelihood of P against U that it implies (the constrained
  logistic model of Ward et al. 2009). Two parameters: right for few labelled rows.
- ``"isotonic"``: any monotone function, by isotonic regression. Needs some hundred labelled rows.

Probabilities lie in [0, 1] and average to the prior over the unlabelled rows.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, Self, get_args

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.isotonic import IsotonicRegression

from punce.errors import InputError
from punce.scenario import check_prior

Floats = npt.NDArray[np.float64]
Method = Literal["auto", "sigmoid", "isotonic"]

_ISOTONIC_FROM = 500  # held-out labelled rows; below, steps of the isotonic fit are mostly noise
_MOST = 1.0 - 1e-6  # a probability of exactly 0 or 1 claims more than any finite sample shows


@dataclass(frozen=True)
class PUCalibrator:
    """A monotone map from scores to P(y=1 | x) under the unlabelled mix, as knots (scores, logits).

    Between knots the logit is linear in the score; beyond them it keeps the last value. JSON-able.
    """

    scores: tuple[float, ...]
    logits: tuple[float, ...]
    prior: float
    method: str

    @classmethod
    def fit(
        cls, scores_p: npt.ArrayLike, scores_u: npt.ArrayLike, prior: float, method: Method = "auto"
    ) -> PUCalibrator:
        """Fit on held-out scores of labelled positives and of unlabelled rows."""
        if method not in get_args(Method):
            raise InputError(f"calibration method must be one of {list(get_args(Method))}, got {method!r}")
        prior = check_prior(prior, open_interval=True)
        p, u = _checked(scores_p, "labelled"), _checked(scores_u, "unlabelled")
        if method == "auto":
            method = "isotonic" if len(p) >= _ISOTONIC_FROM else "sigmoid"
        knots, ratio = _isotonic_ratio(p, u) if method == "isotonic" else _sigmoid_ratio(p, u, prior)
        on_u = np.interp(u, knots, ratio)
        probability = np.clip(_scale_to_prior(on_u, prior) * ratio, 1.0 - _MOST, _MOST)
        return cls(tuple(knots.tolist()), tuple(logit(probability).tolist()), prior, method)

    def probability(self, scores: npt.ArrayLike, deploy_prior: float | None = None) -> Floats:
        """P(y=1 | x) for scores; with `deploy_prior` for a population with that share of positives instead.

        Where only the share changes and each class looks the same, the log-odds shift by that of the two shares.
        """
        log_odds = np.interp(np.asarray(scores, dtype=np.float64), self.scores, self.logits)
        if deploy_prior is not None:
            target = check_prior(deploy_prior, "deploy_prior", open_interval=True)
            log_odds = log_odds + logit(target) - logit(self.prior)
        return np.asarray(expit(log_odds), dtype=np.float64)

    def score_at(self, probability: float) -> float:
        """The lowest score with at least this probability, by bisection; just beyond the knots if there is none."""
        low, high = self.scores[0] - 1.0, self.scores[-1] + 1.0
        if float(self.probability(low)) >= probability:
            return low
        while float(np.nextafter(low, high)) < high:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if float(self.probability(middle)) >= probability else (middle, high)
        return high

    def to_json(self) -> dict[str, Any]:
        """Plain numbers and strings."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Self:
        """Inverse of :meth:`to_json`."""
        knots = {key: tuple(float(v) for v in content[key]) for key in ("scores", "logits")}
        return cls(**knots, prior=float(content["prior"]), method=str(content["method"]))


def _checked(scores: npt.ArrayLike, which: str) -> Floats:
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1 or len(values) == 0:
        raise InputError(f"calibration needs held-out scores of {which} rows, got shape {values.shape}")
    if not np.isfinite(values).all():
        raise InputError(f"the score of {which} row {int(np.flatnonzero(~np.isfinite(values))[0])} is not finite")
    return values


def _isotonic_ratio(p: Floats, u: Floats) -> tuple[Floats, Floats]:
    """Knots and f_P/f_U there, from isotonic regression of P against U with both sides weighing one."""
    s = np.concatenate([p, u])
    is_p = np.repeat([1.0, 0.0], [len(p), len(u)])
    weight = np.repeat([1.0 / len(p), 1.0 / len(u)], [len(p), len(u)])
    share = IsotonicRegression(out_of_bounds="clip").fit(s, is_p, sample_weight=weight)
    knots, r = share.X_thresholds_.astype(np.float64), share.y_thresholds_.astype(np.float64)
    return knots, r / np.maximum(1.0 - r, 1.0 / (len(u) + 1))  # no U row there: as if one more would have been


def _sigmoid_ratio(p: Floats, u: Floats, prior: float) -> tuple[Floats, Floats]:
    """Knots and f_P/f_U = σ(a·s + b)/π, a ≥ 0, by the balanced likelihood of P against U."""
    centre, scale = float(np.median(u)), float(np.std(np.concatenate([p, u]))) or 1.0
    x_p, x_u = (p - centre) / scale, (u - centre) / scale

    def negative_log_likelihood(parameters: Floats) -> float:
        a, b = np.exp(parameters[0]), parameters[1]
        at_p, at_u = expit(a * x_p + b) / prior, expit(a * x_u + b) / prior
        return float(-np.mean(np.log(at_p / (1.0 + at_p) + 1e-12)) + np.mean(np.log1p(at_u)))

    best = minimize(negative_log_likelihood, np.array([0.0, logit(prior)]), method="Nelder-Mead")
    knots = np.unique(np.quantile(np.concatenate([p, u]), np.linspace(0, 1, 129)))
    return knots, expit(np.exp(best.x[0]) * (knots - centre) / scale + best.x[1]) / prior


def _scale_to_prior(ratio_on_u: Floats, prior: float) -> float:
    """c such that the mean over U of min(1, c·ratio) is the prior: capping at 1 must not lose mass."""
    low, high = 0.0, 1.0
    while np.minimum(1.0, high * ratio_on_u).mean() < prior and high < 1e9:
        high *= 2.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.minimum(1.0, middle * ratio_on_u).mean() < prior else (low, middle)
    return high
