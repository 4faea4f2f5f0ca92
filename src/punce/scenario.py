"""How the labels came about, and the numbers that follow: prior, population prior, label frequency.

Three numbers that papers all call "the prior", kept apart here:

- ``prior`` π = P(y=1 | unlabelled): the share of positives among the unlabelled rows;
- ``population_prior`` = P(y=1): the share of positives in the world the rows came from;
- ``label_frequency`` c = P(labelled | y=1).

``"single_set"``: labels were taken out of one sample, so labelled rows are missing from the unlabelled part.
``"case_control"``: positives were collected separately; the unlabelled rows are a fresh draw of the population.
"""

from __future__ import annotations

import math
from typing import Any, Literal, get_args

from punce.errors import InputError, is_number

Scenario = Literal["single_set", "case_control"]
SCENARIOS: tuple[Scenario, ...] = get_args(Scenario)
Target = Literal["population", "unlabelled"]
"""The rows that probabilities, calls and quality are for: new rows of the population, or the unlabelled rows at hand.

In ``single_set`` the labelled positives are missing from the unlabelled rows, so that the share of positives differs;
in ``case_control`` the unlabelled rows are the population.
"""
TARGETS: tuple[Target, ...] = get_args(Target)

_ROUNDING = 1e-12  # of a share: a prior that was computed may miss what is possible by its last bits


def check_scenario(scenario: str) -> None:
    """Refuse an unknown scenario."""
    if scenario not in SCENARIOS:
        raise InputError(f"scenario must be one of {list(SCENARIOS)}, got {scenario!r}")


def check_target(target: str) -> None:
    """Refuse an unknown target."""
    if target not in TARGETS:
        raise InputError(f"target must be one of {list(TARGETS)}, got {target!r}")


_AMONG = {
    "prior": "among the unlabelled rows",
    "population_prior": "among all rows of the population",
    "deploy_prior": "where the classifier is used",
    "--share": "among the new rows",
}


def check_prior(prior: Any, name: str = "prior", *, open_interval: bool = False) -> float:
    """Refuse a prior outside [0, 1] (or outside (0, 1)) and return it as a float. Words and flags are no numbers."""
    number = prior.item() if getattr(prior, "shape", None) == () else prior  # one number of NumPy or torch
    if not is_number(number):
        raise InputError(f"{name} must be a number between 0 and 1, got {prior!r}")
    value = float(number)
    inside = 0.0 < value < 1.0 if open_interval else 0.0 <= value <= 1.0
    if not inside:  # also catches NaN
        brackets = "(0, 1)" if open_interval else "[0, 1]"
        raise InputError(
            f"{name} must lie in {brackets}, got {value:g}"
            + (f"; it is the share of positives {_AMONG[name]}" if name in _AMONG else "")
            + (" (a percentage? divide by 100)" if 1.0 < value <= 100.0 else "")
        )
    return value


def exact_prior(n_positive: int, n_negative: int, n_labelled: int, scenario: Scenario = "single_set") -> float:
    """π* of the paper's appendix ("Computing exact π"): (P* − n_P) / (P* + N* − n_P).

    In ``case_control`` the labelled rows were not taken out of the pool, so π* = P* / (P* + N*).
    """
    check_scenario(scenario)
    if min(n_positive, n_negative, n_labelled) < 0:
        raise InputError(f"counts must not be negative: {n_positive=}, {n_negative=}, {n_labelled=}")
    removed = n_labelled if scenario == "single_set" else 0
    if removed > n_positive:
        raise InputError(f"{n_labelled} labelled positives cannot come out of {n_positive} positives")
    n_unlabelled = n_positive + n_negative - removed
    if n_unlabelled == 0:
        raise InputError("no unlabelled row is left, so their share of positives is undefined")
    return (n_positive - removed) / n_unlabelled


def population_prior(prior: float, n_labelled: int, n_unlabelled: int, scenario: Scenario) -> float:
    """P(y=1) from the share of positives among the unlabelled rows."""
    prior = _checked(prior, n_labelled, n_unlabelled, scenario)
    if scenario == "case_control":
        return prior
    return (n_labelled + prior * n_unlabelled) / (n_labelled + n_unlabelled)


def prior_from_population(population_prior: float, n_labelled: int, n_unlabelled: int, scenario: Scenario) -> float:
    """The share of positives among the unlabelled rows from P(y=1). Inverse of :func:`population_prior`."""
    value = _checked(population_prior, n_labelled, n_unlabelled, scenario, name="population_prior")
    if scenario == "case_control":
        return value
    n = n_labelled + n_unlabelled
    hidden = value * n - n_labelled
    if hidden < -_ROUNDING * n:
        raise InputError(
            f"population_prior {value:g} means {value * n:.0f} positives in {n} rows, fewer than the {n_labelled} "
            "labelled ones; in scenario 'case_control' the labelled rows do not count"
        )
    return min(max(hidden / n_unlabelled, 0.0), 1.0)


def label_frequency(prior: float, n_labelled: int, n_unlabelled: int) -> float:
    """c = P(labelled | y=1) in the rows at hand: n_P / (n_P + π n_U). The same in both scenarios."""
    prior = _checked(prior, n_labelled, n_unlabelled, "single_set")
    if n_labelled == 0:
        return 0.0
    return n_labelled / (n_labelled + prior * n_unlabelled)


def prior_from_label_frequency(c: float, n_labelled: int, n_unlabelled: int) -> float:
    """π = (n_P / n_U)(1 − c)/c. Inverse of :func:`label_frequency`; refuses a c that would need π > 1."""
    c = _checked(c, n_labelled, n_unlabelled, "single_set", name="label_frequency")
    lowest = n_labelled / (n_labelled + n_unlabelled)
    if c < lowest - _ROUNDING or c == 0.0:
        raise InputError(
            f"label_frequency {c:g} would need more hidden positives than the {n_unlabelled} unlabelled rows; "
            f"with {n_labelled} labelled rows it is at least {lowest:g}"
        )
    return min(1.0, n_labelled / n_unlabelled * (1.0 - c) / c)


def logit_shift(prior: float, population_prior: float) -> float:
    """What to add to a score trained under `prior` so that its sign decides under `population_prior`.

    log[(π_pop / (1 − π_pop)) / (π / (1 − π))]: both must lie strictly between 0 and 1.
    """
    prior = check_prior(prior, open_interval=True)
    target = check_prior(population_prior, "population_prior", open_interval=True)
    return math.log(target / (1.0 - target)) - math.log(prior / (1.0 - prior))


def _checked(value: float, n_labelled: int, n_unlabelled: int, scenario: Scenario, name: str = "prior") -> float:
    check_scenario(scenario)
    if n_labelled < 0 or n_unlabelled <= 0:
        raise InputError(
            f"need n_labelled >= 0 and n_unlabelled >= 1, got {n_labelled} labelled and {n_unlabelled} unlabelled rows"
        )
    return check_prior(value, name)
