"""Students: one or two regressions on each kind of features that learn from what all heads together say of a row.

A head sees one kind of features and has its own errors. The weighed sum of all heads is nearer to the truth than most
of them, and a regression that learns this sum, on features of its own, forgets errors that its features do not support
(the idea of co-training, Blum & Mitchell 1998). On digits with 100 labels the sum of the students is right a point more
often than that of their teachers (benchmarks/results/features.json).

Fold k's students are taught by fold k's heads, on the rows that these learned from: no label of fold k is seen.

Shapes: n rows, M features.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from punce.labels import POSITIVE, UNLABELLED, Labels
from punce.models.portfolio.candidates import Candidates, Learn
from punce.models.portfolio.heads import KERNEL_WIDTHS, Head, HeadProblem, kernel_rows
from punce.models.portfolio.logistic import taught_logistic
from punce.models.portfolio.problem import Floats, linear
from punce.models.portfolio.readers import Given
from punce.models.portfolio.weighing import candidate_weights, row_chances, trust_in, weighed_sum
from punce.models.ridge import TINY, regressed
from punce.models.route import FitSettings
from punce.models.tabular.kernel import Basis, radial
from punce.models.tabular.weighing import judging_rows

LINEAR, KERNEL = "taught_linear", "taught_kernel"


def taught(teachers: Candidates, rows: Given, labels: Labels, settings: FitSettings) -> Candidates:
    """The students of cross-fitted heads, on the same features and folds."""
    said = [agreed(teachers, labels, settings.prior, k) for k in range(len(teachers.learned_from))]
    learners: dict[str, Learn] = {LINEAR: partial(_student, False, said), KERNEL: partial(_student, True, said)}
    return teachers.learned(rows, labels, settings, learners, (LINEAR,))


class Agreed(NamedTuple):
    """What the heads of a fold together say of the rows they learned from, and how far held-out rows support it."""

    scores: Floats
    trust: float


def agreed(teachers: Candidates, labels: Labels, prior: float, k: int) -> Agreed:
    """Of fold k; weights and trust are those of the rows of the other folds."""
    others, own = judging_rows(labels, teachers.folds, k), labels[teachers.learned_from[k]]
    held_out = {name: scores[others] for name, scores in teachers.held_out.items()}
    weights = candidate_weights(held_out, labels[others], prior)
    seen = {name: scores[k] / max(float(scores[k][own == 0].std()), TINY) for name, scores in teachers.seen.items()}
    trust = trust_in(weighed_sum(held_out, weights), labels[others], prior)
    return Agreed(weighed_sum(seen, weights), trust)


def taught_chances(said: Agreed, known: Labels, prior: float) -> Floats:
    """How probable each row is to be positive: 1 or 0 where that is known, else what the teachers say. Shape: (n,).

    `prior` is the share of positives among the rows of which nothing is known.
    """
    target: Floats = (known == POSITIVE).astype(np.float64)
    unknown = known == UNLABELLED
    if unknown.any():
        target[unknown] = row_chances(said.scores[unknown], prior, said.trust)
    return target


def _student(is_kernel: bool, said: list[Agreed], problem: HeadProblem, k: int) -> Head:
    known = np.where(problem.is_p, POSITIVE, problem.truths).astype(np.int8)
    target = taught_chances(said[k], known, problem.prior)
    if is_kernel:
        return _kernel(problem, target)
    if not isinstance(problem.x, np.ndarray):
        return taught_logistic(problem, target)
    weight, bias, _ = regressed(problem.x.astype(np.float64), target, problem.balanced)
    return linear(weight, bias)


def _kernel(problem: HeadProblem, target: Floats) -> Head:
    """A regression on a radial basis, with the width under which rows left out come nearest to their targets."""
    rows, centres, weights = kernel_rows(problem)
    tried = [
        (scale, regressed(own, target[rows], weights)) for scale, own in radial(problem.x[rows], centres, KERNEL_WIDTHS)
    ]
    scale, plane = min(tried, key=lambda pair: pair[1].error)
    used = np.arange(problem.x.shape[1])
    return Basis(used, centres, np.array([scale]), plane.weight, np.array([plane.bias]))
