"""Numbers over seeds: mean, spread, interval, and whether the best of a group stands apart from the others.

The paper prints "±" without saying of what; here every kind has its name. With one seed there is a mean and nothing
else: no spread, no interval, no mark.
"""

from __future__ import annotations

import math
from collections import Counter
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
    deviation: float | None = None
    """Standard deviation of one seed's value, with n − 1 in the denominator."""
    error: float | None = None
    """Standard error of the mean."""
    low: float | None = None
    """Ends of the 95 % t-interval of the mean."""
    high: float | None = None


def summarise(values: Sequence[float]) -> Summary:
    """The summary of finite values, one per seed."""
    n = len(values)
    if n == 0 or not all(math.isfinite(value) for value in values):
        raise InputError(f"a summary needs at least one value, all finite, got {list(values)}")
    mean = math.fsum(values) / n  # exact, so that the order of the seeds cannot change a stored page
    if n == 1:
        return Summary(1, mean)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    error = deviation / math.sqrt(n)
    half = float(stats.t.ppf((1 + LEVEL) / 2, n - 1)) * error
    return Summary(n, mean, deviation, error, mean - half, mean + half)


def p_ahead(first: BySeed, second: BySeed) -> float | None:
    """The p-value of a paired t-test over the seeds both have, where they favour the first; 1 where they do not.

    None where there is nothing to test with: fewer than two shared seeds, or the same difference at each. Paired,
    because a seed fixes the labelled set, the initial weights and the batches of both: what they share cancels.
    """
    seeds = sorted(first.keys() & second.keys())
    if len(seeds) < 2:
        return None
    summary = summarise([first[seed] - second[seed] for seed in seeds])
    if summary.error is None or summary.error < _NO_SPREAD:
        return None
    return 2 * float(stats.t.sf(summary.mean / summary.error, summary.n - 1)) if summary.mean > 0 else 1.0


@dataclass(frozen=True)
class Standing:
    """The best of a group by its mean over the same seeds (several if their means are equal), and those the test sets
    apart from it."""

    best: frozenset[Hashable]
    behind: frozenset[Hashable]
    left_out: frozenset[Hashable] = frozenset()
    """Members that lack some of those seeds: they cannot be called best, but may be behind."""


def standing(group: Mapping[K, BySeed]) -> Standing | None:
    """The best member, and those that paired t-tests against it, Holm-corrected within the group, put behind it.

    The best is chosen over :func:`common_seeds`; each test is over the seeds that the two share. None for a group
    with fewer than two measured members, and where too few have a seed in common: nothing is best of one.
    """
    measured = {name: values for name, values in group.items() if values}
    seeds = common_seeds(measured)
    if len(measured) < 2 or not seeds:
        return None
    complete = {name: values for name, values in measured.items() if seeds <= values.keys()}
    means = {name: math.fsum(values[seed] for seed in seeds) / len(seeds) for name, values in complete.items()}
    best = max(means, key=lambda name: means[name])
    # Equal means share the place: the order of the columns must not decide who is bold.
    ties = frozenset(name for name, mean in means.items() if means[best] - mean < _NO_SPREAD)
    others = [name for name in measured if name not in ties]
    tested = {name: p_ahead(measured[best], measured[name]) for name in others}
    p_values: dict[Hashable, float] = {name: p for name, p in tested.items() if p is not None}
    return Standing(ties, frozenset(rejected_names(p_values)), frozenset(measured.keys() - means.keys()))


def common_seeds(group: Mapping[K, BySeed]) -> set[int]:
    """The seeds that more than half of the members have all of, at least two of them if there are two.

    So a member with few seeds does not take those of all others away. Empty when no seed is so common.
    """
    held = Counter(seed for values in group.values() for seed in values)
    counts = sorted(held.values(), reverse=True)
    for count in [*counts[1:2], *counts[:1]]:  # the second most common seed and all as common; else the first
        seeds = {seed for seed, members in held.items() if members >= count}
        if 2 * sum(seeds <= values.keys() for values in group.values()) > len(group):
            return seeds
    return set()


def rejected_names(p_values: Mapping[Hashable, float]) -> set[Hashable]:
    """Names rejected by Holm's rule: the k-th smallest p is below (1 − LEVEL) / (m − k + 1)."""
    rejected: set[Hashable] = set()
    ordered = sorted(p_values.items(), key=lambda item: item[1])
    for k, (name, p) in enumerate(ordered):  # k counts from 0 here
        if p >= (1 - LEVEL) / (len(ordered) - k):
            break
        rejected.add(name)
    return rejected
