"""A number with its interval, or the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

CONFIDENCE = 0.9
"""Of every interval that a fit, a review or `punce predict` reports, like those of the prior estimators."""
WIDEST = 0.5  # an interval wider than this tells a person nothing


@dataclass(frozen=True)
class Estimate:
    """A number with its interval. Where it cannot be estimated, `value` is NaN and `reason` says why."""

    value: float
    low: float
    high: float
    reason: str = ""

    def in_words(self) -> str:
        """0.931 (0.902 to 0.955), or that it cannot be estimated."""
        if np.isnan(self.value):
            return f"cannot be estimated: {self.reason}" if self.reason else "cannot be estimated"
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"

    def cells(self) -> tuple[str, str]:
        """The number and its interval, for a table."""
        if np.isnan(self.value):
            return "cannot be estimated", ""
        return f"{self.value:.3f}", f"{self.low:.3f} to {self.high:.3f}"

    @classmethod
    def impossible(cls, reason: str) -> Estimate:
        """No number: an interval under an assumption that is known to fail would be taken for one."""
        return cls(np.nan, np.nan, np.nan, reason)


def estimate_of(values: npt.NDArray[np.float64], confidence: float, at_bound: bool = False) -> Estimate:
    """values[0] is the estimate, the rest are draws; the interval always holds the estimate.

    `at_bound`: the estimate was cut off at the end of what is possible, so that the mean of the draws is the better
    one: 30 of 30 is not 100 %.
    """
    value = float(values[0])
    draws = values[1:][~np.isnan(values[1:])]  # 0/0: draws in which no row is called
    if np.isnan(value) or len(draws) == 0:
        return Estimate(value, np.nan, np.nan)
    low, high = np.quantile(draws, [(1 - confidence) / 2, (1 + confidence) / 2])
    if at_bound:
        value = float(np.mean(draws))
    return Estimate(value, min(value, float(low)), max(value, float(high)))


def stated(estimate: Estimate, reason: str = "") -> Estimate:
    """The estimate, or none where there is a reason or its interval is too wide to tell anything."""
    if reason:
        return Estimate.impossible(reason)
    if np.isnan(estimate.value):
        # of the mix that the number is for: labelled rows, which are no part of U, may be called positive
        return Estimate.impossible("none of these rows is called positive")
    if estimate.high - estimate.low > WIDEST:
        return Estimate.impossible(f"it may lie anywhere between {estimate.low:.2f} and {estimate.high:.2f}")
    return estimate


def squared_error(values: npt.NDArray[np.float64], doubt: float) -> float:
    """Squared standard error of the mean of values in [0, 1], as if `doubt` more rows had 0 and 1, half of them each.

    Without doubt one row, or rows that all agree, would claim certainty.
    """
    n = len(values) + doubt
    mean = (values.sum() + doubt / 2) / n
    return float((((values - mean) ** 2).sum() + doubt / 2 * (mean**2 + (1.0 - mean) ** 2)) / n**2)
