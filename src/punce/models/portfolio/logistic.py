"""Logistic heads: labelled against other rows, with hard or soft labels; the penalty is chosen by inner folds.

Regressions of all penalties on dense features are solved together. The logistic loss has at most a quarter of XᵀWX for
its Hessian (Böhning & Lindsay 1988): steps with this fixed bound need no line search, and one product of matrices
serves every regression. One at a time they take several times as long.

Shapes: n rows, D features, K regressions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from punce.judging.ranking import auc_between
from punce.models.portfolio.problem import Floats, HeadProblem, Linear, linear
from punce.models.ridge import STEEPNESS, TINY, chances

_PENALTIES = (0.003, 0.03, 0.1, 0.3, 1.0, 3.0)
_PENALTIES_OF_COUNTS = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.1)
_INNER_FOLDS = 3
_STEPS = 200
_ENOUGH = 2.5e-4  # of the gradient, where the weights of the rows sum to 1
_ENOUGH_OF_COUNTS = 1e-5  # a word stands in few texts and has a small share of the gradient: 1e-3 is no step at all
_STEPS_OF_COUNTS = 1000
_INNER = "inner"


def logistic(problem: HeadProblem) -> Linear:
    """Labelled against all other rows, both groups weighing the same; the penalty chosen inside the training rows."""
    target = problem.hard_targets.astype(np.float64)
    return solved(problem.x, target, problem.balanced, _chosen(problem)[0])


def weighted_logistic(problem: HeadProblem) -> Linear:
    """Logistic regression on soft labels: every unlabelled row counts as positive with its chance, else as negative.

    The chances come from scores that did not see the row (Elkan & Noto 2008 with out-of-fold scores), and their mean
    is the prior.
    """
    return taught_logistic(problem, soft_targets(problem))


def taught_logistic(problem: HeadProblem, target: Floats) -> Linear:
    """The regression on given soft labels, with the penalty chosen as for the labels themselves. Shape: target (n,)."""
    return solved(problem.x, target, problem.balanced, _chosen(problem)[0])


def soft_targets(problem: HeadProblem) -> Floats:
    """Every row's chance of being positive by a regression that did not see it; 1 and 0 where it is known.

    Shape: (n,).
    """
    left_out = _chosen(problem)[1]
    target, unknown = problem.hard_targets.astype(np.float64), ~problem.is_p & (problem.truths == 0)
    if unknown.any():
        spread = max(float(left_out[unknown].std()), TINY)
        target[unknown] = chances(STEEPNESS * left_out[unknown] / spread, problem.prior)
    return target


def solved(x: Any, target: Floats, weights: Floats, penalty: float) -> Linear:
    """The regression of one penalty. Shape: x (n, D), target (n,) in [0, 1], weights (n,) with sum 1."""
    if isinstance(x, np.ndarray):
        weight, bias = _together(x, target, weights[:, None], (penalty,))
        return linear(weight[:, 0], float(bias[0]))
    from sklearn.linear_model import LogisticRegression

    # Soft labels as two copies of a row: scikit-learn knows hard ones only.
    both = np.concatenate([weights * target, weights * (1.0 - target)])
    kept, is_positive = both > 0, np.repeat([True, False], len(target))
    rows = np.tile(np.arange(len(target)), 2)[kept]
    # scikit-learn's C multiplies the sum over rows; weights that sum to 1 make it the same for any number of rows.
    model = LogisticRegression(C=1.0 / penalty, max_iter=_STEPS_OF_COUNTS, tol=_ENOUGH_OF_COUNTS)
    model.fit(x[rows], is_positive[kept], both[kept])
    return linear(model.coef_[0], float(model.intercept_[0]))


def _chosen(problem: HeadProblem) -> tuple[float, Floats]:
    """The penalty whose scores of rows left out rank labelled rows highest, and those scores. Shape: (n,)."""
    if _INNER not in problem.memory:  # several heads ask for it
        scores, is_p = _left_out(problem), problem.is_p
        aucs = [auc_between(own[is_p], own[~is_p]) for own in scores]
        problem.memory[_INNER] = max(zip(aucs, _penalties(problem.x), scores, strict=True), key=lambda one: one[0])[1:]
    found: tuple[float, Floats] = problem.memory[_INNER]
    return found


def _penalties(x: Any) -> tuple[float, ...]:
    """Those to choose from: dense features have a spread near 1, the weighted words of a text a length of 1."""
    return _PENALTIES if isinstance(x, np.ndarray) else _PENALTIES_OF_COUNTS


def _left_out(problem: HeadProblem) -> list[Floats]:
    """For each penalty, scores of every row by regressions on the other folds, each centred: their biases differ."""
    folds, scores = _inner_folds(problem), [np.empty(len(problem.is_p)) for _ in _penalties(problem.x)]
    targets, weights = problem.hard_targets.astype(np.float64), problem.balanced
    for k in range(_INNER_FOLDS):
        inside = folds == k
        if not inside.any():  # fewer rows than folds
            continue
        rest = ~inside if targets[~inside].any() else np.ones(len(inside), dtype=bool)  # a single labelled row
        own = weights[rest] / weights[rest].sum()
        for of_penalty, raw in zip(scores, _path(problem.x, rest, inside, targets, own), strict=True):
            of_penalty[inside] = raw - np.median(raw)
    return scores


def _path(
    x: Any, rest: npt.NDArray[np.bool_], inside: npt.NDArray[np.bool_], targets: Floats, weights: Floats
) -> list[Floats]:
    """Scores of the rows `inside` by the regressions on the `rest`, one for each penalty."""
    penalties = _penalties(x)
    if not isinstance(x, np.ndarray):
        return [solved(x[rest], targets[rest], weights, penalty).score(x[inside]) for penalty in penalties]
    weight, bias = _together(x[rest], targets[rest], weights[:, None], penalties)
    return list((x[inside] @ weight + bias).T.astype(np.float64))


def _inner_folds(problem: HeadProblem) -> npt.NDArray[np.intp]:
    folds = np.empty(len(problem.is_p), dtype=np.intp)
    for group in (problem.is_p, ~problem.is_p):
        rows = np.random.default_rng(problem.seed).permutation(np.flatnonzero(group))
        folds[rows] = np.arange(len(rows)) % _INNER_FOLDS
    return folds


def _together(x: Any, target: Floats, weights: Floats, penalties: tuple[float, ...]) -> tuple[Any, Any]:
    """Weights and biases of K regressions that differ in their penalty.

    Minimises Σ w·[log(1 + eˢ) − t·s] + λ/2·|β|², accelerated by Nesterov's momentum, restarted where it goes uphill.
    Shape: x (n, D), target (n,), weights (n, 1), penalties K -> (D, K), (K,).
    """
    values = np.column_stack([x, np.ones(len(x), dtype=x.dtype)]).astype(np.float32)
    ridge = np.array(penalties, dtype=np.float32)[None, :]
    own, wanted = weights.astype(np.float32), target.astype(np.float32)[:, None]
    curvature = (values.T @ (own * values)).astype(np.float64) / 4
    curvature[-1, -1] += TINY
    spread, vectors = np.linalg.eigh(curvature)
    # The bias is not penalised, but its step is as if it were: a shorter step is safe.
    inverse = (1.0 / (np.maximum(spread, 0.0)[:, None] + ridge)).astype(np.float32)
    axes = vectors.astype(np.float32)
    beta = np.zeros((values.shape[1], len(penalties)), dtype=np.float32)
    ahead, momentum = beta.copy(), 1.0
    is_penalised = np.ones((len(beta), 1), dtype=np.float32)
    is_penalised[-1] = 0.0
    for _ in range(_STEPS):
        residual = own * (_sigmoid(values @ ahead) - wanted)
        gradient = values.T @ residual + ridge * is_penalised * ahead
        if float(np.abs(gradient).max()) < _ENOUGH:
            break
        after = ahead - axes @ (inverse * (axes.T @ gradient))
        if float(np.sum(gradient * (after - beta))) > 0:
            momentum = 1.0
        faster = (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
        ahead = after + np.float32((momentum - 1.0) / faster) * (after - beta)
        beta, momentum = after, faster
    return ahead[:-1], ahead[-1]


def _sigmoid(scores: Any) -> Any:
    from scipy.special import expit

    return expit(scores)
