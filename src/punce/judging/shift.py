"""The share of positives among new rows, by label shift: each class looks as before, only their mix has changed.

With f_P and f_U the labelled and the unlabelled rows of the fit and π the share of positives in U, new rows with share
θ of positives are distributed as

    θ·f_P + (1−θ)·f_N  =  (1−k)·f_P + k·f_U,        k = (1−θ)/(1−π).

So k is what the scores can tell, without any prior, and the prior's own doubt enters through θ = 1 − k·(1−π) alone.
Whether new rows differ from those of the fit is a question about k, and needs no prior either.

The EM of Saerens et al. (2002) finds the θ of the largest likelihood from calibrated probabilities. It is biased where
they are not quite calibrated, so one step follows that needs no calibration: with q the posteriors at EM's θ,
k = (mean q of P − mean q of the new rows)/(mean q of P − mean q of U), both means over held-out rows of the fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from punce.judging.estimates import CONFIDENCE, Estimate, stated
from punce.judging.ranking import prior_draws
from punce.judging.used_prior import usable_interval, usable_prior
from punce.priors import PriorEstimate

Floats = npt.NDArray[np.float64]

_BINS = np.linspace(-12.0, 12.0, 241)  # of log-odds; finer than any calibration
_CENTRES = (_BINS[1:] + _BINS[:-1]) / 2
_EXTREME = 0.1  # posteriors at a share nearer to 0 or 1 would rest on a few rows
_DIFFERS = 0.99  # of the interval outside of which a share is called different: most files are not
_SMALLEST = 0.01  # difference of shares that is worth a word, however many rows show it
_NOTHING = 1e-9  # rounding sets the means of equal probabilities apart by less
_DRAWS = 1_000
_MOST_ROWS = 1e15  # of a fit; a larger count was not written by punce
_NO_PRIOR = "the share among the rows that the model learned from is not known"


@dataclass(frozen=True)
class Share:
    """The share of positives among new rows. `k` and `k_error` say how they mix the rows of the fit (see above)."""

    estimate: Estimate
    k: float
    k_error: float
    differs: bool
    """Whether the mix is another one than that of the fit, beyond chance."""


@dataclass(frozen=True)
class SeenScores:
    """What is kept of the fit to judge new rows by: how many held-out rows have which probability. Shape: (240,) each.

    `prior` is that of the unlabelled rows with its interval, `labelled_share` the share of labelled rows in the
    population (below 0 where labelled negatives outweigh them): new rows may come from it or be like the unlabelled
    rows. `target` is what the probabilities are for.
    """

    positive: Floats
    unlabelled: Floats
    prior: tuple[float, float, float]
    labelled_share: float
    target: float

    @classmethod
    def of(
        cls, positive: Floats, unlabelled: Floats, prior: PriorEstimate, labelled_share: float, target: float
    ) -> Self:
        """From the probabilities of held-out labelled and unlabelled rows."""
        value, interval = usable_prior(prior), usable_interval(prior)
        low, high = (value, value) if interval is None else interval
        return cls(count(positive), count(unlabelled), (value, low, high), labelled_share, target)

    def share(self, new: Floats, *, has_prior: bool = True) -> Share:
        """The share of positives among rows counted by :func:`count`.

        Without `has_prior` the prior had to be assumed: the mixes are compared, and the share has no value. Nor has it
        one where its interval says nothing: one row has no share of positives.
        """
        if not new.sum():
            return _no_share("there is no row in which anything is known")
        posterior = self._posteriors(new)
        rng = np.random.default_rng(0)
        p, u = (_mean_draws(counts, posterior, rng) for counts in (self.positive, self.unlabelled))
        k, error = _mixes(p, u, _mean_draws(new, posterior, rng, self._half_of_each()))
        if np.isnan(k[0]):
            return _no_share("the scores do not tell labelled rows from unlabelled ones")
        value, low, high = self.prior
        prior = prior_draws(value, (low, high) if low < high else None, CONFIDENCE, _DRAWS, rng)
        shares = np.clip(1.0 - k * (1.0 - prior), 0.0, 1.0)
        ends = np.quantile(shares[1:], [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
        estimate = Estimate(float(shares[0]), min(float(ends[0]), shares[0]), max(float(ends[1]), shares[0]))
        estimate = stated(estimate, "" if has_prior else _NO_PRIOR)
        return Share(estimate, float(k[0]), error, self._differs(k, value))

    def _half_of_each(self) -> Floats:
        """One row, half of it labelled and half not: few new rows must not look surer than they are."""
        return np.asarray(self.positive / self.positive.sum() + self.unlabelled / self.unlabelled.sum()) / 2

    def _posteriors(self, new: Floats) -> Floats:
        """P(y=1 | bin) at the share that EM finds in the new rows. Shape: (240,)."""
        ratio = np.exp(_CENTRES - logit(self.target))  # f_P/f_N
        share = float(np.clip(em_share(new, ratio), _EXTREME, 1 - _EXTREME))
        return np.asarray(expit(np.log(ratio) + logit(share)), dtype=np.float64)

    def _differs(self, k: Floats, prior: float) -> bool:
        # A new file may be like U or like the whole population; in between is no surprise.
        low, high = np.quantile(k[1:], [(1 - _DIFFERS) / 2, (1 + _DIFFERS) / 2])
        fewest, most = sorted((1.0 - self.labelled_share, 1.0))
        usual = float(np.clip(k[0], fewest, most))
        return bool(not low <= usual <= high and abs(k[0] - usual) * (1.0 - prior) >= _SMALLEST)

    def to_json(self) -> dict[str, Any]:
        """Plain numbers; the counts without the empty bins at either end would save little."""
        counts = {name: getattr(self, name).astype(int).tolist() for name in ("positive", "unlabelled")}
        return {**counts, "prior": list(self.prior), "labelled_share": self.labelled_share, "target": self.target}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """Inverse of :meth:`to_json`."""
        value, low, high = (float(number) for number in content["prior"])
        positive, unlabelled = (np.array(content[name], dtype=np.float64) for name in ("positive", "unlabelled"))
        if positive.shape != _CENTRES.shape or unlabelled.shape != _CENTRES.shape:
            raise ValueError(f"counts of probabilities need {len(_CENTRES)} bins")
        if not all((counts >= 0).all() and counts.sum() < _MOST_ROWS for counts in (positive, unlabelled)):
            raise ValueError("counts of probabilities are numbers of rows")
        return cls(positive, unlabelled, (value, low, high), float(content["labelled_share"]), float(content["target"]))


def _no_share(reason: str) -> Share:
    return Share(Estimate.impossible(reason), k=1.0, k_error=0.0, differs=False)


def count(probabilities: npt.ArrayLike) -> Floats:
    """How many rows have which probability. Shape: (n,) -> (240,)."""
    with np.errstate(divide="ignore"):
        log_odds = np.clip(logit(np.asarray(probabilities, dtype=np.float64)), _BINS[0], _BINS[-1])
    return np.histogram(log_odds, _BINS)[0].astype(np.float64)


def em_share(counts: Floats, ratio: Floats) -> float:
    """The fixed point of Saerens' EM: the θ of the largest likelihood Π (θ·ratio + 1 − θ).

    The likelihood is concave, so that bisection of its derivative finds in 50 steps what EM may need thousands for.
    """
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = 0.5 * (low + high)
        rises = float((counts * (ratio - 1.0) / (1.0 + middle * (ratio - 1.0))).sum()) > 0
        low, high = (middle, high) if rises else (low, middle)
    return 0.5 * (low + high)


def _mean_draws(counts: Floats, values: Floats, rng: np.random.Generator, more: Floats | float = 0.0) -> Floats:
    """The mean of `values` over counted rows, then that of bootstrap samples of these and `more` rows.

    Shape: (240,) -> (1 + B,).
    """
    from_these = counts + more
    n, there = round(float(from_these.sum())), from_these > 0
    drawn = rng.multinomial(n, from_these[there] / from_these.sum(), size=_DRAWS) @ values[there] / n
    return np.concatenate([[counts @ values / counts.sum()], drawn])


def _mixes(p: Floats, u: Floats, t: Floats) -> tuple[Floats, float]:
    """k and its draws, with the standard error; NaN where labelled rows do not stand out from unlabelled ones."""
    apart = p - u
    if apart[0] <= max(_NOTHING, 3 * apart[1:].std()):
        return np.full_like(apart, np.nan), 0.0
    k = (p - t) / np.maximum(apart, apart[0] / 10)  # a draw must not divide by about nothing
    return k, float(k[1:].std())
