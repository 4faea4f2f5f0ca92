"""Numbers over seeds: mean, spread, interval, and whether the best of a group stands apart from the others.

The paper prints "±" without saying of what; here every kind has its name. With one seed there is a mean and nothing
else: no spread, no interval, no mark.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from scipy import stats

from punce.errors import InputError

LEVEL = 0.95
"""Of the intervals; marks use 1 − LEVEL."""

_NO_SPREAD = 1e-9  # what agrees but for rounding

K = TypeVar("K", bound=Hashable)
BySeed = Mapping[int, float]


@dataclass(frozen=True)
class Summary:
    """What n seeds say: `deviation`, `error`, `low` and `high` need at least two."""

    n: int
    mean: float
    deviation: float | None
    """Standard deviation of one seed's value, with n − 1 in the denominator."""
    error: float | None
    """Standard error of the mean."""
    low: float | None
    """Ends of the 95 % t-interval of the mean."""
    high: float | None


def summarise(values: Sequence[float]) -> Summary:
    """The summary of finite values, one per seed."""
    n = len(values)
    if n == 0 or not all(math.isfinite(value) for value in values):
        raise InputError(f"a summary needs at least one value, all finite, got {list(values)}")
    mean = math.fsum(values) / n
    if n == 1:
        return Summary(1, mean, None, None, None, None)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    error = deviation / math.sqrt(n)
    half = float(stats.t.ppf((1 + LEVEL) / 2, n - 1)) * error
    return Summary(n, mean, deviation, error, mean - half, mean + half)


@dataclass(frozen=True)
class Difference:
    """First minus second over the seeds both have, with the interval and p-value of a paired t-test."""

    n: int
    mean: float
    low: float | None
    high: float | None
    p: float | None
    """None with one shared seed, and where every seed has the same difference: there is no spread to test with."""

    @property
    def is_clear(self) -> bool:
        """Whether the 95 % interval leaves zero out."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


def paired_difference(first: BySeed, second: BySeed) -> Difference | None:
    """None when no seed is shared.

    Paired, because a seed fixes the labelled set, the initial weights and the batches of both: what they share
    cancels. Seeds that only one of them has are left out.
    """
    seeds = sorted(first.keys() & second.keys())
    if not seeds:
        return None
    summary = summarise([first[seed] - second[seed] for seed in seeds])
    if summary.error is None or summary.error < _NO_SPREAD:
        return Difference(summary.n, summary.mean, None, None, None)
    t = abs(summary.mean) / summary.error
    p = 2 * float(stats.t.sf(t, summary.n - 1))
    return Difference(summary.n, summary.mean, summary.low, summary.high, p)


@dataclass(frozen=True)
class Standing:
    """The best of a group by its mean (several if their means are equal), and those the test sets apart from it."""

    best: frozenset[Hashable]
    behind: frozenset[Hashable]


def standing(group: Mapping[K, BySeed]) -> Standing | None:
    """The best member, and those that paired t-tests against it, Holm-corrected within the group, put behind it.

    None for a group with fewer than two measured members: nothing is best of one.
    """
    means = {name: summarise(list(values.values())).mean for name, values in group.items() if values}
    if len(means) < 2:
        return None
    best = max(means, key=lambda name: means[name])
    p_values: dict[Hashable, float] = {}
    for name in means:
        difference = paired_difference(group[best], group[name])
        if name != best and difference is not None and difference.p is not None:
            p_values[name] = difference.p
    ties = frozenset(name for name in means if means[best] - means[name] < _NO_SPREAD)
    return Standing(ties, frozenset(holm(p_values)) - ties)


def holm(p_values: Mapping[Hashable, float], level: float = 1 - LEVEL) -> set[Hashable]:
    """Names rejected by Holm's step-down procedure: the k-th smallest p against level / (m − k + 1)."""
    rejected: set[Hashable] = set()
    ordered = sorted(p_values.items(), key=lambda item: item[1])
    for k, (name, p) in enumerate(ordered):
        if p >= level / (len(ordered) - k):
            break
        rejected.add(name)
    return rejected
