"""How much each member counts, by what held-out labelled rows say. No true label is used."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from punce.judging.ranking import auc_between, share_below
from punce.labels import POSITIVE, UNLABELLED, Labels
from punce.models.tabular.trees import AnyArray, Flags, Floats, Rows

_PICKS = 20
_LEAST = 0.01  # a member that counts less changes no ranking, but costs its time whenever rows are scored
_MOST_ROWS = 5_000  # of each kind, on which picks are compared


Weigh = Callable[[Mapping[str, Floats], Labels], dict[str, float]]
"""From every member's held-out scores (n,) and labels (n,) to weights that sum to 1."""


def member_weights(held_out: Mapping[str, Floats], labels: Labels, counts: Floats | None = None) -> dict[str, float]:
    """The mean of two opinions, which sum to 1 each: who ranks best alone, and who adds most to the others.

    Members that the labelled rows cannot tell apart count about the same in the first, so that chance decides little.
    The second finds the member that alone sees a structure, even if it is one of five. On the design sets of
    benchmarks/tabular.py the mean ranks better than either. `counts` say how much each unlabelled row counts, all the
    same unless given. Shape: scores (n,) on one common scale, labels (n,), counts (number of unlabelled rows,).
    """
    alone, picked = weights_alone(held_out, labels, counts), _picked(held_out, labels, counts)
    mean = {name: (alone[name] + picked[name]) / 2 for name in held_out}
    kept = sum(weight for weight in mean.values() if weight >= _LEAST)
    return {name: weight / kept if weight >= _LEAST else 0.0 for name, weight in mean.items()}


def cross_fitted(held_out: Mapping[str, Floats], labels: Labels, folds: Rows, weigh: Weigh = member_weights) -> Floats:
    """The weighted sum, every fold's weights chosen by the other folds: no row decides about its own score."""
    total = np.empty(len(labels))
    for k in range(int(folds.max()) + 1):
        inside, others = folds == k, judging_rows(labels, folds, k)
        weights = weigh({name: own[others] for name, own in held_out.items()}, labels[others])
        total[inside] = np.sum([weights[name] * own[inside] for name, own in held_out.items()], axis=0)
    return total


def judging_rows(labels: Labels, folds: Rows, fold: int) -> Flags:
    """Rows of the other folds; all rows where those hold no labelled one: a single labelled row has to judge itself."""
    others: Flags = folds != fold
    return others if (labels[others] == POSITIVE).any() else np.ones_like(others)


def weights_alone(held_out: Mapping[str, Floats], labels: Labels, counts: Floats | None) -> dict[str, float]:
    """A labelled row's share of unlabelled rows below it, averaged over labelled rows, is the AUC of P against U.

    It orders members as the true AUC does. z is the paired difference to the best member in standard errors and
    exp(−z²/2) the weight.
    """
    is_p, is_u = labels == POSITIVE, labels == UNLABELLED
    ranks = {name: share_below(scores[is_p], scores[is_u], counts) for name, scores in held_out.items()}
    best = max(ranks, key=lambda name: float(ranks[name].mean()))
    weights = {name: float(np.exp(-0.5 * _paired_z(ranks[best] - rank) ** 2)) for name, rank in ranks.items()}
    return {name: weight / sum(weights.values()) for name, weight in weights.items()}


def _picked(held_out: Mapping[str, Floats], labels: Labels, counts: Floats | None) -> dict[str, float]:
    """Shares of picks, each the member that raises the AUC of the sum most (Caruana et al. 2004)."""
    positive, unlabelled = (_some(np.flatnonzero(labels == kind)) for kind in (POSITIVE, UNLABELLED))
    counts = None if counts is None else _some(counts)
    own = {name: (scores[positive], scores[unlabelled]) for name, scores in held_out.items()}
    picks = dict.fromkeys(own, 0)
    p, u = np.zeros(len(positive)), np.zeros(len(unlabelled))
    for _ in range(_PICKS):
        auc = {name: _auc(p + own_p, u + own_u, counts) for name, (own_p, own_u) in own.items()}
        best = max(own, key=lambda name: (auc[name], -picks[name]))  # members that tie take turns
        picks[best] += 1
        p, u = p + own[best][0], u + own[best][1]
    return {name: count / _PICKS for name, count in picks.items()}


def _auc(p: Floats, u: Floats, counts: Floats | None) -> float:
    return auc_between(p, u) if counts is None else float(share_below(p, u, counts).mean())


def _some(rows: AnyArray) -> AnyArray:
    return rows[:: -(-len(rows) // _MOST_ROWS)]


def _paired_z(difference: Floats) -> float:
    if len(difference) < 2:  # a single labelled row says nothing about how much rows differ
        return 0.0
    error = difference.std(ddof=1) / np.sqrt(len(difference))
    return float(difference.mean() / error) if error > 0 else 0.0  # such as the best member against itself
