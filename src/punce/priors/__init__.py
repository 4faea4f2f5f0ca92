"""Class-prior estimators: how many positives are among the unlabelled rows.

CONTRIBUTING.md says how to add an estimator.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt

from punce.errors import InputError
from punce.labels import NEGATIVE, as_labels
from punce.priors.bbe import BBE
from punce.priors.combined import Combined
from punce.priors.dedpul import DEDPUL
from punce.priors.elkan_noto import ElkanNoto
from punce.priors.estimate import issue, run_all, run_one
from punce.priors.kernel_mean import KM1, KM2
from punce.priors.pen_l1 import PenL1
from punce.priors.result import PriorEstimate, PriorTable, PriorWarning, RawEstimate
from punce.priors.roc import ROC
from punce.priors.sample import PriorEstimator, Sample, read_sample
from punce.priors.tedn import TEDn
from punce.priors.tice import TIcE
from punce.scenario import Scenario, check_scenario

PRIORS: dict[str, type[PriorEstimator]] = {
    "combined": Combined,
    "bbe": BBE,
    "roc": ROC,
    "tedn": TEDn,
    "dedpul": DEDPUL,
    "km1": KM1,
    "km2": KM2,
    "pen_l1": PenL1,
    "tice": TIcE,
    "elkan_noto": ElkanNoto,
}


@overload
def estimate_prior(X: Any, labels: Any, method: Literal["all"], scores: Any = ..., **given: Any) -> PriorTable: ...
@overload
def estimate_prior(X: Any, labels: Any, method: str = ..., scores: Any = ..., **given: Any) -> PriorEstimate: ...
def estimate_prior(
    X: Any,
    labels: Any,
    method: str = "combined",
    scores: Any = None,
    random_state: int | None = 0,
    scenario: Scenario = "single_set",
    classifier: Any = None,
    **options: Any,
) -> PriorEstimate | PriorTable:
    """How large a share of the unlabelled rows is positive, with a 90 % interval.

    `X` holds n rows (array, DataFrame with categories and missing values, sparse matrix, list of texts, images), or
    None when `scores` stand alone. `labels`: 1 labelled positive, 0 unlabelled; rows labelled -1 are set aside.
    `scores` (n,) rank rows, larger is more positive, and must come from a model that did **not** see the row;
    without them out-of-fold P-vs-U models are fitted: `classifier`, or a well-regularised gradient boosting, which
    ``"combined"`` accompanies by a linear and a kernel model.
    `method` is a name in :data:`PRIORS`, or ``"all"`` for every one in a table; `options` go to the method's class.

    `scenario` changes only the population prior: the share among the unlabelled rows is estimated the same way.
    Same `random_state`, same result. Warnings are issued as :class:`PriorWarning` and kept in ``.warnings``.
    """
    given: dict[str, Any] = {"scores": scores, "random_state": random_state, "scenario": scenario}
    found = _estimated(X, labels, method, classifier=classifier, **given, **options)
    issue(found)
    return found


def estimate_quietly(X: Any, labels: Any, method: str = "combined", **given: Any) -> PriorEstimate:
    """One method of :func:`estimate_prior` without warnings being issued: they are in ``.warnings`` only.

    For a caller that does not want them. ``warnings.catch_warnings`` would change what every thread is warned of.
    """
    found = _estimated(X, labels, method, **given)
    assert isinstance(found, PriorEstimate)
    return found


def _estimated(
    X: Any,
    labels: Any,
    method: str,
    *,
    scores: Any = None,
    random_state: int | None = 0,
    scenario: Scenario = "single_set",
    classifier: Any = None,
    **options: Any,
) -> PriorEstimate | PriorTable:
    check_scenario(scenario)
    run = _asked(method, options)
    if classifier is not None and method != "all" and not PRIORS[method].has_classifier:
        raise InputError(f"classifier has no effect on {method}, which fits none; leave it out")
    if scores is not None and classifier is not None and method != "all" and PRIORS[method].reads == "scores":
        raise InputError(f"classifier has no effect on {method} beside scores, which take its place; give one of them")
    sample, aside = read_sample(X, labels, scores, classifier, random_state)
    return run(sample, scenario, aside)


def _asked(method: str, options: dict[str, Any]) -> Callable[[Sample, Scenario, int], PriorEstimate | PriorTable]:
    """What runs the method, or all of them."""
    if method == "all":
        if options:
            raise InputError(f"options {sorted(options)} belong to one method; name it instead of method='all'")
        return partial(run_all, PRIORS)
    if not isinstance(method, str) or method not in PRIORS:
        raise InputError(f"no prior estimator is called {method!r}; there are {', '.join(PRIORS)} and 'all'")
    names = list(signature(PRIORS[method]).parameters)
    if odd := sorted(set(options) - set(names)):
        raise InputError(f"{method} has no option {odd}; it takes {names or 'none'}")
    try:
        return partial(run_one, PRIORS[method](**options), method)
    except TypeError as error:
        raise InputError(f"{method}: {error}") from None


def estimate_with_scores(
    X: Any, labels: Any, method: str = "combined", random_state: int | None = 0, scenario: Scenario = "single_set"
) -> tuple[npt.NDArray[np.float64], PriorEstimate | PriorTable]:
    """What :func:`held_out_scores` and :func:`estimate_prior` give of the same rows, with one fit of the model of both.

    To hand the scores back as ``scores=`` is not the same: then ``"combined"`` has this one model to go by. No
    warnings are issued: they are in ``.warnings``.
    """
    check_scenario(scenario)
    run = _asked(method, {})
    sample, aside = read_sample(X, labels, None, None, random_state)
    scores = _of_all_rows(sample, labels)
    return scores, run(sample, scenario, aside)


def held_out_scores(
    X: Any, labels: Any, classifier: Any = None, random_state: int | None = 0
) -> npt.NDArray[np.float64]:
    """Out-of-fold P-vs-U scores, one a row, as :func:`estimate_prior` makes them; NaN for rows labelled -1.

    Each row is scored by models that never saw it. Pass them back as ``scores=`` to several estimators, or look at
    the two distributions.
    """
    sample, _ = read_sample(X, labels, None, classifier, random_state)
    return _of_all_rows(sample, labels)


def _of_all_rows(sample: Sample, labels: Any) -> npt.NDArray[np.float64]:
    codes = as_labels(labels, setting="pnu")
    scores = np.full(len(codes), np.nan)
    used = codes != NEGATIVE if len(sample.is_p) < len(codes) else np.ones(len(codes), dtype=bool)
    scores[used] = sample.fitted.scores
    return scores


__all__ = [
    "BBE",
    "DEDPUL",
    "KM1",
    "KM2",
    "PRIORS",
    "ROC",
    "Combined",
    "ElkanNoto",
    "PenL1",
    "PriorEstimate",
    "PriorEstimator",
    "PriorTable",
    "PriorWarning",
    "RawEstimate",
    "Sample",
    "TEDn",
    "TIcE",
    "estimate_prior",
    "estimate_quietly",
    "estimate_with_scores",
    "held_out_scores",
]
