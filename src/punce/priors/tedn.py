"""TED^n (Garg et al., 2021): alternate BBE with CVIR, conditional value-ignoring risk (their Algorithms 2 and 3).

A P-vs-U model is spoilt by the positives among the unlabelled rows it is told to push down. CVIR drops the π·n_U
unlabelled training rows that look most positive and fits labelled rows against the rest; the better model gives BBE a
purer top bin, BBE gives the next round its π.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import _safe_indexing as take_rows

from punce.errors import InputError
from punce.priors.bbe import BBE
from punce.priors.crossfit import fit, folds_of, score
from punce.priors.result import RawEstimate, require_at_least
from punce.priors.sample import PriorEstimator, Sample, split_scores

Indices = npt.NDArray[np.intp]


@dataclass(frozen=True)
class TEDn(PriorEstimator):
    """Folds are held out of everything: their rows take no part in fitting nor in the choice of what is dropped.

    Copies of a row share its fold, as in :mod:`punce.priors.crossfit`.

    `rounds` fits per fold; the answer and its interval are BBE's on the held-out scores of the last round.
    At most `most_rows` rows a side (announced).
    """

    rounds: int = 4
    folds: int = 3
    most_rows: int = 20_000

    def __post_init__(self) -> None:
        require_at_least(self, rounds=1, folds=2, most_rows=2)

    def estimate(self, sample: Sample, rng: np.random.Generator) -> RawEstimate:
        """The share of positives among the unlabelled rows of `sample`."""
        if min(sample.n_p, sample.n_u) < self.folds:
            raise InputError(
                f"TEDn needs {self.folds} labelled positives and {self.folds} unlabelled rows, one of each a fold; "
                f"there are {sample.n_p} and {sample.n_u}"
            )
        p_rows, u_rows, notes = sample.subsample(rng, self.most_rows)
        chosen = np.sort(np.concatenate([p_rows, u_rows]))
        X, is_p = take_rows(sample.model_rows, chosen), sample.is_p[chosen]
        fold = folds_of(is_p, int(rng.integers(2**31)), self.folds, sample.copies.among(chosen))
        splits = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in np.unique(fold)]
        models: list[Any] = [None] * len(splits)
        found, trace = RawEstimate(0.0, 0.0, 1.0), []
        for _ in range(self.rounds):
            scores = np.empty(len(is_p))
            for k, (train, held_out) in enumerate(splits):
                kept = train if models[k] is None else _without_likely_positives(X, is_p, train, models[k], found.value)
                models[k] = fit(sample.classifier, take_rows(X, kept), is_p[kept])
                scores[held_out] = score(models[k], take_rows(X, held_out))
            found = BBE().from_scores(split_scores(scores, is_p), rng)
            trace.append(found.value)
        return replace(found, diagnostics={**found.diagnostics, "rounds": trace}, notes=(*sample.rows.notes, *notes))


def _without_likely_positives(X: Any, is_p: npt.NDArray[np.bool_], train: Indices, model: Any, share: float) -> Indices:
    """The rows of `train` without the `share` of unlabelled ones that look most positive to the last model."""
    labelled, unlabelled = train[is_p[train]], train[~is_p[train]]
    looks = score(model, take_rows(X, unlabelled))
    # Always keep some rows to learn from, also when the share is 1.
    keep = max(len(unlabelled) - round(share * len(unlabelled)), min(10, len(unlabelled)))
    return np.sort(np.concatenate([labelled, unlabelled[np.argsort(looks, kind="stable")[:keep]]]))
