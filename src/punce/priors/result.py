"""What an estimator found, what the caller gets, and the warning class.

`value`, `low` and `high` are always the share of positives among the **unlabelled** rows; the population prior
and the label frequency that follow from it are carried beside it, so that nobody converts by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from punce.errors import InputError, number_of
from punce.labels import POSITIVE, UNLABELLED, Labels
from punce.notebook import html_table
from punce.scenario import Scenario, label_frequency, population_prior, prior_from_label_frequency

Bound = Literal["lower", "upper"]

Z_90 = 1.645
"""Two-sided 90 % normal quantile: every interval here is of 90 %."""
_ALL = "the estimators"


class PriorWarning(UserWarning):
    """An estimate of the share of positives that should not be used without a second look."""


def require_at_least(estimator: object, **least: int) -> None:
    """Refuse settings below their least value, e.g. ``require_at_least(self, folds=2)``."""
    found = {name: getattr(estimator, name) for name in least}
    if any(found[name] < least[name] for name in least):
        needs = ", ".join(f"{name} >= {value}" for name, value in least.items())
        raise InputError(f"{type(estimator).__name__} needs {needs}, got {', '.join(map(str, found.values()))}")


def require_one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    """Refuse a setting that is none of the known words."""
    if value not in allowed:
        raise InputError(f"{name} must be one of {list(allowed)}, got {value!r}")


def bound_of(value: float, lowest: float = 0.0, highest: float = 1.0) -> Bound | None:
    """The end of the range a method can search on which its value sits."""
    return "upper" if value >= highest else "lower" if value <= lowest else None


def bisect(is_below: Callable[[float], bool], high: float, halvings: int) -> tuple[float, float]:
    """The interval, after so many halvings of [0, `high`], in which `is_below` turns from true to false."""
    low = 0.0
    for _ in range(halvings):
        middle = 0.5 * (low + high)
        if is_below(middle):
            low = middle
        else:
            high = middle
    return low, high


def share_of_label_frequency(c: float, n_p: int, n_u: int) -> tuple[float, Bound | None]:
    """π = (n_P/n_U)(1 − c)/c, and the end of the range it sits on: there are no more positives than rows."""
    # At this c every unlabelled row is positive. A little above it, for what rounding leaves.
    if c <= n_p / (n_p + n_u) * (1.0 + 1e-9):
        return 1.0, "upper"
    return prior_from_label_frequency(min(c, 1.0), n_p, n_u), "lower" if c >= 1.0 else None


@dataclass(frozen=True)
class RawEstimate:
    """What one estimator concludes from a :class:`~punce.priors.sample.Sample`.

    `bound` says that the value sits on an end of the range the method can search, so that the data alone did not
    choose it. `notes` announce what the method did to the data (subsampling, projection).
    """

    value: float
    low: float
    high: float
    diagnostics: Mapping[str, Any] = field(default_factory=dict)
    bound: Bound | None = None
    notes: tuple[str, ...] = ()
    reason: str = ""
    """Why the share cannot be known; empty where it can."""

    @classmethod
    def resampled(
        cls,
        value: float,
        values: Sequence[float],
        diagnostics: Mapping[str, Any],
        bound: Bound | None,
        notes: tuple[str, ...],
    ) -> RawEstimate:
        """With the 5th to 95th percentile of the resampled `values`, widened to hold `value`, as the interval."""
        low, high = (float(end) for end in np.quantile(values, [0.05, 0.95]))
        return cls(value, min(low, value), max(high, value), diagnostics, bound, notes)


@dataclass(frozen=True)
class PriorEstimate:
    """The share of positives among the unlabelled rows, with an interval.

    `diagnostics` depends on the method; ``diagnostics["notes"]`` tells of subsampling, and DEDPUL adds
    ``diagnostics["posteriors"]``, P(y=1|x) for the unlabelled rows in row order.
    """

    value: float
    low: float
    high: float
    method: str
    diagnostics: Mapping[str, Any] = field(repr=False, compare=False)
    population_prior: float
    """P(y=1) in the scenario the caller named."""
    label_frequency: float
    """c = P(labelled | y=1) in the rows at hand."""
    warnings: tuple[str, ...] = field(default=(), repr=False)
    reason: str = ""
    """Why the share cannot be known from these rows; empty where it can. The value is then a placeholder."""

    def moved(self, value: float, low: float, high: float) -> PriorEstimate:
        """The same rows with another share, and what follows from it. Only for estimates of :func:`estimate_prior`."""
        n_p, n_u = self.diagnostics["n_labelled"], self.diagnostics["n_unlabelled"]
        return replace(
            self,
            value=value,
            low=low,
            high=high,
            population_prior=population_prior(value, n_p, n_u, self.diagnostics["scenario"]),
            label_frequency=label_frequency(value, n_p, n_u),
        )

    def _repr_html_(self) -> str:
        """The estimate as a notebook shows it."""
        return _as_html([self], self.warnings)

    def among(self, labels: Labels, scenario: Scenario) -> PriorEstimate:
        """What follows from the share for all rows of a file, of which the estimate saw some that were drawn."""
        n_p, n_u = (int((labels == kind).sum()) for kind in (POSITIVE, UNLABELLED))
        counted = {**self.diagnostics, "n_labelled": n_p, "n_unlabelled": n_u, "scenario": scenario}
        return replace(self, diagnostics=counted).moved(self.value, self.low, self.high)

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers and text for JSON; arrays become their length, mean and quantiles."""
        numbers = ("value", "low", "high", "population_prior", "label_frequency")
        return {
            "method": self.method,
            **{name: getattr(self, name) for name in numbers},
            "warnings": list(self.warnings),
            "reason": self.reason,
            "diagnostics": {name: _plain(value) for name, value in self.diagnostics.items()},
        }


@dataclass(frozen=True)
class PriorTable:
    """Every estimator's answer on the same rows, and whether they agree.

    Iterates over the estimates that were computed; ``table["bbe"]`` picks one by name. `failures` holds the reason of
    each estimator that could not be run. `spread` is the largest minus the smallest value among the estimators
    whose share can be known and lies on no end of its range, `median` their median.
    """

    estimates: tuple[PriorEstimate, ...]
    failures: Mapping[str, str]
    spread: float
    median: float
    agree: bool
    warnings: tuple[str, ...] = ()

    @property
    def agreement(self) -> str:
        """Median and spread in words, and of which estimators, where not of all."""
        who = who_agrees(self.estimates)
        return f"median {self.median:.3f}, spread {self.spread:.3f}" + ("" if who == _ALL else f", of {who}")

    def __iter__(self) -> Iterator[PriorEstimate]:
        return iter(self.estimates)

    def __len__(self) -> int:
        return len(self.estimates)

    def __getitem__(self, method: str) -> PriorEstimate:
        for estimate in self.estimates:
            if estimate.method == method:
                return estimate
        if method in self.failures:
            raise InputError(f"{method} has no estimate: {self.failures[method]}")
        raise InputError(f"no estimate is called {method!r}; there are {[e.method for e in self.estimates]}")

    def _repr_html_(self) -> str:
        """All estimates as a notebook shows them."""
        failed = (f"{name} could not be run: {reason}" for name, reason in self.failures.items())
        return _as_html(self.estimates, (self.agreement, *failed, *self.warnings))

    def among(self, labels: Labels, scenario: Scenario) -> PriorTable:
        """What follows from the shares for all rows of a file, of which the estimates saw some that were drawn."""
        return replace(self, estimates=tuple(estimate.among(labels, scenario) for estimate in self.estimates))

    def to_frame(self) -> pd.DataFrame:
        """One row per estimator, in the catalogue's order."""
        columns = ["value", "low", "high", "population_prior", "label_frequency", "seconds", "warnings"]
        rows = [
            (*(getattr(e, name) for name in columns[:-2]), e.diagnostics["seconds"], "; ".join(e.warnings))
            for e in self.estimates
        ]
        index = pd.Index([e.method for e in self.estimates], name="method")
        return pd.DataFrame(rows, columns=columns, index=index)

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers and text for JSON."""
        estimates = [estimate.as_dict() for estimate in self.estimates]
        return {**vars(self), "estimates": estimates, "failures": dict(self.failures), "warnings": list(self.warnings)}


def chosen_by_data(estimates: Sequence[PriorEstimate]) -> list[PriorEstimate]:
    """The estimates that take part in the agreement; all of them where none does.

    An estimate on the end of its range was not chosen by the data, and one that cannot be known is a placeholder.
    """
    return [e for e in estimates if e.diagnostics["bound"] is None and not e.reason] or list(estimates)


def who_agrees(estimates: Sequence[PriorEstimate]) -> str:
    """The estimators that take part in the agreement, in words."""
    n = len(chosen_by_data(estimates))
    if n == len(estimates):
        return _ALL
    return f"the {number_of(n, 'estimator', 'estimators')} whose value the data chose"


def _as_html(estimates: Sequence[PriorEstimate], notes: Sequence[str]) -> str:
    return html_table(
        "Share of positives among the unlabelled rows",
        ("estimator", "share", "90 % interval", "in the population", "labelled positives"),
        [
            (e.method, "cannot be known", "", "", "")
            if e.reason
            else (
                e.method,
                f"{e.value:.3f}",
                f"{e.low:.3f} to {e.high:.3f}",
                f"{e.population_prior:.3f}",
                f"{e.label_frequency:.1%}",
            )
            for e in estimates
        ],
        [*(e.reason for e in estimates if e.reason), *notes],
    )


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return _summary(value) if value.size > 20 else value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(inner) for inner in value]
    return value


def _summary(values: np.ndarray[Any, Any]) -> dict[str, Any]:
    if not np.issubdtype(values.dtype, np.number):
        return {"length": int(values.size)}
    quantiles = np.quantile(values, [0.0, 0.25, 0.5, 0.75, 1.0])
    return {"length": int(values.size), "mean": float(values.mean()), "quantiles": quantiles.tolist()}
