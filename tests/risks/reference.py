"""Every risk as its formula, one row at a time in plain Python floats: slow, obvious, independent of the library."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

Rows = Sequence[float]


def sigmoid(t: float) -> float:
    return 1.0 / (1.0 + math.exp(-t)) if t >= 0 else math.exp(t) / (1.0 + math.exp(t))


def sigmoid_loss(t: float) -> float:
    return sigmoid(-t)


def logistic_loss(t: float) -> float:
    return math.log1p(math.exp(-abs(t))) + max(-t, 0.0)


def double_hinge_loss(t: float) -> float:
    return max(-t, max(0.0, 0.5 - 0.5 * t))


LOSSES: dict[str, Callable[[float], float]] = {
    "sigmoid": sigmoid_loss,
    "logistic": logistic_loss,
    "double_hinge": double_hinge_loss,
}


def mean(values: Rows) -> float:
    return math.fsum(values) / len(values) if values else 0.0


def split(scores: Rows, labels: Sequence[int]) -> tuple[list[float], list[float]]:
    p = [g for g, label in zip(scores, labels, strict=True) if label == 1]
    u = [g for g, label in zip(scores, labels, strict=True) if label == 0]
    return p, u


def pn(scores: Rows, labels: Sequence[int], surrogate: str = "logistic") -> float:
    ell = LOSSES[surrogate]
    return mean([ell(g) if label == 1 else ell(-g) for g, label in zip(scores, labels, strict=True)])


def upu(scores: Rows, labels: Sequence[int], prior: float, surrogate: str = "sigmoid") -> float:
    ell = LOSSES[surrogate]
    p, u = split(scores, labels)
    return prior * mean([ell(g) for g in p]) + mean([ell(-g) for g in u]) - prior * mean([ell(-g) for g in p])


def nnpu_parts(scores: Rows, labels: Sequence[int], prior: float, surrogate: str = "sigmoid") -> tuple[float, float]:
    ell = LOSSES[surrogate]
    p, u = split(scores, labels)
    r = mean([ell(-g) for g in u]) - prior * mean([ell(-g) for g in p]) if u else 0.0
    return prior * mean([ell(g) for g in p]), r


def nnpu(
    scores: Rows,
    labels: Sequence[int],
    prior: float,
    surrogate: str = "sigmoid",
    beta: float = 0.0,
    gamma: float = 1.0,
) -> float:
    positive_part, r = nnpu_parts(scores, labels, prior, surrogate)
    return positive_part + r if r >= -beta else -gamma * r


def pvu_weighted(
    scores: Rows, labels: Sequence[int], weights: Rows, prior: float | None = None, surrogate: str = "logistic"
) -> float:
    ell = LOSSES[surrogate]
    rows = list(zip(scores, labels, weights, strict=True))
    if prior is None:
        return mean([ell(g) if label == 1 else w * ell(g) + (1 - w) * ell(-g) for g, label, w in rows])
    positive_weight = [1.0 if label == 1 else w for _, label, w in rows]
    total = math.fsum(positive_weight)
    plus = math.fsum(v * ell(g) for v, g in zip(positive_weight, scores, strict=True)) / total if total else 0.0
    minus = mean([(1 - w) * ell(-g) for g, label, w in rows if label == 0])
    return prior * plus + minus


def pvu_balanced(scores: Rows, labels: Sequence[int]) -> float:
    p, u = split(scores, labels)
    return 0.5 * mean([logistic_loss(g) for g in p]) + 0.5 * mean([logistic_loss(-g) for g in u])


def vpu(scores: Rows, labels: Sequence[int]) -> float:
    p, u = split(scores, labels)
    log_mean_u = math.log(mean([sigmoid(g) for g in u])) if u else 0.0
    return log_mean_u - mean([-logistic_loss(g) for g in p])


def vpu_consistency(mixed: Rows, unlabelled: Rows, mix: Rows, weight: float) -> float:
    squares = []
    for m, u, gamma in zip(mixed, unlabelled, mix, strict=True):
        target = gamma * sigmoid(u) + (1.0 - gamma)
        squares.append((math.log(target) + logistic_loss(m)) ** 2)
    return weight * mean(squares)
