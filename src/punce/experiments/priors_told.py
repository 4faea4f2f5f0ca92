"""The number that an algorithm is told as its prior: the true one, a wrong one, or an estimate."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from punce.data import PUSample
from punce.errors import InputError
from punce.experiments.cell import PriorSpec
from punce.priors import PRIORS, PriorWarning, estimate_prior
from punce.scenario import check_prior

_SMALLEST = 0.01
Features = Callable[[], npt.NDArray[np.float32]]
"""Features that no label has shaped; asked for only when an estimator needs them."""


def told_prior(spec: PriorSpec, sample: PUSample, features: Features, seed: int) -> float:
    """``"true"``, ``"true-0.1"``, a number, or an estimator's name -> a prior inside (0, 1)."""
    if isinstance(spec, float | int):
        return check_prior(float(spec), open_interval=True)
    if wrong := re.fullmatch(r"true([+-]\d*\.?\d+)?", spec):
        value = sample.prior + float(wrong[1] or 0)
        return min(1 - _SMALLEST, max(_SMALLEST, value))
    if spec not in PRIORS:
        raise InputError(f"a prior is 'true', 'true+0.1', a number or one of {list(PRIORS)}, got {spec!r}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PriorWarning)  # the experiment is about how far off it is
        found = estimate_prior(features(), sample.labels, spec, random_state=seed, scenario=sample.scenario)
    return min(1 - _SMALLEST, max(_SMALLEST, found.value))
