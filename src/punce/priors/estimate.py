"""Run one estimator or all on a sample, convert to the caller's scenario, warn."""

from __future__ import annotations

import logging
import time
import warnings
import zlib
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from punce.errors import InputError, number_of
from punce.priors.cautions import DISAGREEMENT, about_agreement, about_estimate, about_sample, about_scores
from punce.priors.result import PriorEstimate, PriorTable, PriorWarning, chosen_by_data, who_agrees
from punce.priors.sample import PriorEstimator, Sample
from punce.scenario import Scenario, label_frequency, population_prior

logger = logging.getLogger(__name__)


def run_one(estimator: PriorEstimator, method: str, sample: Sample, scenario: Scenario, aside: int) -> PriorEstimate:
    """One estimator's answer."""
    estimate = _run(estimator, method, sample, scenario, aside)
    shared = about_sample(sample)
    # Feature methods need no scores: fitting a model only to warn would cost more than the estimate.
    if estimator.reads == "scores" or sample.has_scores:
        shared += about_scores(sample)
    return replace(estimate, warnings=(*shared, *estimate.warnings))


def run_all(
    catalogue: Mapping[str, type[PriorEstimator]], sample: Sample, scenario: Scenario, aside: int
) -> PriorTable:
    """Every estimator's answer on the same rows and scores; one that cannot run is listed with its reason."""
    estimates, failures = [], {}
    for name, kind in catalogue.items():
        try:
            estimates.append(_run(kind(), name, sample, scenario, aside))
        except InputError as error:
            failures[name] = str(error)
    if not estimates:
        raise InputError(f"no estimator could be run: {failures}")
    free = chosen_by_data(estimates)
    values = [e.value for e in free]
    spread = max(values) - min(values)
    shared = (*about_sample(sample), *about_scores(sample), *about_agreement(free, spread, who_agrees(estimates)))
    return PriorTable(tuple(estimates), failures, spread, float(np.median(values)), spread <= DISAGREEMENT, shared)


def _run(estimator: PriorEstimator, method: str, sample: Sample, scenario: Scenario, aside: int) -> PriorEstimate:
    start = time.perf_counter()
    # Its own stream for every method: a method's answer must not depend on which others ran.
    found = estimator.estimate(sample, np.random.default_rng([sample.seed, zlib.crc32(method.encode())]))
    seconds = time.perf_counter() - start
    said = number_of(aside, "row labelled negative was set aside", "rows labelled negative were set aside")
    notes = found.notes + ((said,) if aside else ())
    for note in notes:
        logger.info("%s: %s", method, note)
    value, low, high = (float(np.clip(x, 0.0, 1.0)) for x in (found.value, found.low, found.high))
    return PriorEstimate(
        value=value,
        low=min(low, value),
        high=max(high, value),
        method=method,
        diagnostics={
            **found.diagnostics,
            "bound": found.bound,
            "notes": list(notes),
            "seconds": seconds,
            "n_labelled": sample.n_p,
            "n_unlabelled": sample.n_u,
            "scenario": scenario,
        },
        population_prior=population_prior(value, sample.n_p, sample.n_u, scenario),
        label_frequency=label_frequency(value, sample.n_p, sample.n_u),
        warnings=tuple(about_estimate(method, found)),
        reason=found.reason,
    )


def issue(found: PriorEstimate | PriorTable) -> None:
    """Warn whoever called the caller of this function."""
    estimates = list(found) if isinstance(found, PriorTable) else []
    for text in (*found.warnings, *(text for estimate in estimates for text in estimate.warnings)):
        warnings.warn(text, PriorWarning, stacklevel=3)
