"""The catalogue of heads on features. Each learns from labelled and unlabelled rows and becomes arrays that score.

Add a head: one function from a :class:`HeadProblem` to a :class:`Head`, and one line in :data:`HEADS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from punce.judging.ranking import auc_between
from punce.labels import NEGATIVE, POSITIVE, Labels
from punce.models.heads import drawn_by_weight
from punce.models.known_rows import known_share
from punce.models.portfolio.logistic import logistic, soft_targets, solved, weighted_logistic
from punce.models.portfolio.problem import Flags, Floats, HeadProblem, Linear, Values, linear
from punce.models.ridge import Ridge
from punce.models.tabular.kernel import Basis, best_basis, radial
from punce.models.tabular.trees import Rows, Trees, forest_trees
from punce.risks import NNPU
from punce.stages.probe import ProbeConfig, probe
from punce.stages.pupl import PuplConfig, pseudo_labels

__all__ = ["DEFAULT", "HEADS", "SPARSE", "Head", "HeadProblem", "head_from_arrays"]

Head = Linear | Trees | Basis
_WHITENED = (0.0, 0.5, 1.0)  # exponents of the inverse spread of a direction: 0 as it is, 1 all directions alike
_CENTRES, _KERNEL_ROWS = 500, 10_000
KERNEL_WIDTHS = (0.5, 0.7, 1.0, 2.0)
"""In units of the median distance to a centre."""
_DECAYS = (0.0, 0.03, 0.3)  # weight decay of nnPU
_NNPU_STEPS, _LEAST_EPOCHS, _BATCH = 150, 10, 4096
_FEWEST = 6  # labelled rows from which some can be set aside to choose by
_TREES, _LEAVES = 100, 500
_PUPL_PENALTY = 0.03


def self_consistent(problem: HeadProblem) -> Head:
    """Ridge regression whose targets agree with its own left-out scores; penalty and whitening chosen by them."""
    weights, found = problem.balanced, []
    spread = np.maximum(problem.x.std(axis=0).astype(np.float64), 1e-6)
    for whitened in _WHITENED:
        scale = spread**-whitened
        found.append((Ridge(problem.x * scale, weights, problem.is_p, problem.truths), scale))
    ridge, scale = max(found, key=lambda pair: pair[0].auc)
    weight, bias = ridge.solved(problem.prior)
    return linear(weight * scale, bias)


def kernel(problem: HeadProblem) -> Head:
    """Self-consistent ridge regression on a radial basis: for a class of several regions that no plane cuts out."""
    rows, centres, weights = kernel_rows(problem)
    x = problem.x[rows]
    tried = [
        (scale, Ridge(own, weights, problem.is_p[rows], problem.truths[rows]))
        for scale, own in radial(x, centres, KERNEL_WIDTHS)
    ]
    return best_basis(tried, np.arange(x.shape[1]), centres, problem.prior)


def kernel_rows(problem: HeadProblem) -> tuple[Rows, Values, Floats]:
    """Rows that a kernel learns from, its centres, and how much each row counts.

    Centres are means of random pairs of rows. A row that is a centre itself would be recognised by its own score when
    it is left out, and the narrowest width would always win. Shape: (m,), (C, M), (m,) with sum 1.
    """
    rng = np.random.default_rng(problem.seed)
    positive, others = (
        rng.permutation(np.flatnonzero(group))[:_KERNEL_ROWS] for group in (problem.is_p, ~problem.is_p)
    )
    rows = np.concatenate([positive, others])
    x = problem.x[rows]
    first, second = rng.integers(len(rows), size=(2, min(_CENTRES, len(rows) // 2 + 1)))
    weights = problem.balanced[rows]
    return rows, (x[first] + x[second]) / 2, weights / weights.sum()


def nnpu(problem: HeadProblem) -> Head:
    """A linear layer on the nnPU risk; its weight decay is chosen by rows set aside inside the training rows."""
    known = np.where(problem.truths != 0, problem.truths, problem.is_p).astype(np.int8)
    if int(problem.is_p.sum()) < _FEWEST:
        return _nnpu(problem, known, _DECAYS[-1])
    aside = _set_aside(problem)
    rest = problem.changed(x=problem.x[~aside], counts=problem.counts[~aside])
    heads = {decay: _nnpu(rest, known[~aside], decay) for decay in _DECAYS}
    positive, other = problem.x[aside & problem.is_p], problem.x[aside & ~problem.is_p]
    best = max(heads, key=lambda decay: auc_between(heads[decay].score(positive), heads[decay].score(other)))
    return _nnpu(problem, known, best)


def _set_aside(problem: HeadProblem) -> Flags:
    """A third of the labelled and a third of the other rows. Shape: (n,)."""
    aside = np.zeros(len(problem.is_p), dtype=bool)
    for group in (problem.is_p, ~problem.is_p):
        rows = np.random.default_rng(problem.seed).permutation(np.flatnonzero(group))
        aside[rows[::3]] = True
    return aside


def _nnpu(problem: HeadProblem, known: Labels, decay: float) -> Linear:
    if problem.counts.min() != problem.counts.max():  # no risk knows of weights
        drawn = drawn_by_weight(known, problem.counts, problem.seed)
        problem, known = problem.changed(x=problem.x[drawn]), known[drawn]
    share = known_share(known, problem.prior) if (known == NEGATIVE).any() else 0.0
    risk = NNPU(problem.prior, known_share=share) if share else NNPU(problem.prior)
    batch = min(_BATCH, max(256, len(known) // 4))
    config = ProbeConfig(
        epochs=max(_LEAST_EPOCHS, _NNPU_STEPS * batch // len(known)),
        batch_size=min(batch, len(known)),
        lr=3e-2,
        weight_decay=decay,
        validation_share=0.0,
        seed=problem.seed,
    )
    head = probe(torch.from_numpy(problem.x), known, risk, config, prior=problem.prior)
    weight = (head.weight / head.scale).numpy()
    return linear(weight, float(head.bias) - float(head.mean.numpy() @ weight))


def trees(problem: HeadProblem) -> Head:
    """Extra trees that regress on each row's chance of being positive, as an out-of-fold regression sees it."""
    from sklearn.ensemble import ExtraTreesRegressor

    forest = ExtraTreesRegressor(
        _TREES, max_features="sqrt", min_samples_leaf=3, max_leaf_nodes=_LEAVES, random_state=problem.seed
    )
    return forest_trees(forest.fit(problem.x, soft_targets(problem), problem.balanced))


def pupl(problem: HeadProblem) -> Head:
    """puPL: two clusters seeded by the labelled rows, then a logistic regression on the clusters. Uses no prior."""
    labels = problem.is_p.astype(np.int8) * POSITIVE
    clusters = pseudo_labels(torch.from_numpy(problem.x), labels, PuplConfig(seed=problem.seed, starts=5))
    target = np.where(problem.truths != 0, problem.truths > 0, clusters.is_positive.numpy())
    if target.all():  # one cluster: nothing to tell apart but the labels
        target = problem.hard_targets
    return solved(problem.x, target.astype(np.float64), problem.balanced, _PUPL_PENALTY)


HEADS: dict[str, Callable[[HeadProblem], Head]] = {
    "self_consistent": self_consistent,
    "logistic": logistic,
    "weighted_logistic": weighted_logistic,
    "kernel": kernel,
    "nnpu": nnpu,
    "trees": trees,
    "pupl": pupl,
}
DEFAULT = ("self_consistent", "logistic", "weighted_logistic", "kernel")
"""Heads that are tried without being asked for: in benchmarks/features.py the others cost more and bring less."""
SPARSE = ("logistic", "weighted_logistic")
"""Heads that take word counts as a sparse matrix."""


def head_from_arrays(arrays: Mapping[str, npt.NDArray[Any]]) -> Head:
    """Inverse of a head's `arrays`."""
    if "centres" in arrays:
        return Basis.from_arrays(arrays)
    return Trees.from_arrays(arrays) if "roots" in arrays else Linear.from_arrays(arrays)
