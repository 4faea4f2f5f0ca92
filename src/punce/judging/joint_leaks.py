"""Do a few columns, alone or together, give the label away?

Labels are taken at random among positives, so honest columns cannot tell labelled from unlabelled *positives*: wherever
a share t of the labelled rows lies, at least π·t of the unlabelled rows lie, too. A region with many labelled rows and
(almost) no unlabelled ones therefore says: either (almost) no unlabelled row is positive, or a column was filled in
after the label was. The rows alone cannot tell which; a person who knows the columns can, so this names them. A table
that separates the classes honestly still has its hidden positives in that region. Where no small set of columns
explains the separation, nothing is named.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

from punce.columns.bins import N_BINS
from punce.judging.importance import Rows, Values, telling_columns
from punce.judging.ranking import auc_between
from punce.labels import POSITIVE, Labels
from punce.priors import estimate_quietly

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

SUSPICIOUS = 0.03
"""At most this share of the unlabelled rows may be positive by the scores: then columns are looked for."""
_STILL = 0.05  # the same by the quick model, which is weaker than what made the scores
_ORDINARY = 0.1  # without the columns, so many and more may be positive
_MOST_NAMED = 3  # honest separation rests on more columns, or on none in particular
_MOST_LABELLED, _MOST_UNLABELLED, _MOST_COLUMNS = 1000, 3000, 100  # bound the time to a few seconds
_MOSTLY = 0.8  # share of positives from which the AUC of the rest is not estimated
_FEWEST = 10  # labelled rows; fewer can lie together by chance
_CUTS = np.array([0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0])  # shares of the labelled rows above a cut
_ERROR = 0.05  # chance that the bound is too low, over all cuts
_FOLDS = 3


@dataclass(frozen=True)
class JointLeak:
    """Columns that seem to give the label away, and what a quick model is with and without them.

    `auc_with` and `auc_without` are out-of-fold AUCs of labelled against unlabelled rows. `hidden_with` is the largest
    share of positives among the unlabelled rows if all columns were honest; `share_without` is the estimated share, and
    `true_auc_without` the estimated AUC of positives against negatives, without the columns.
    """

    columns: tuple[str, ...]
    auc_with: float
    auc_without: float
    hidden_with: float
    share_without: float
    true_auc_without: float

    def __str__(self) -> str:
        is_one = len(self.columns) == 1
        what, they, them, seem = ("column", "it", "it", "seems") if is_one else ("columns", "they", "them", "seem")
        were, drop = "was" if is_one else "were", " ".join(f"--drop {shlex.quote(name)}" for name in self.columns)
        names = ", ".join(map(repr, self.columns)) + ("" if is_one else " together")
        return (
            f"{what} {names} {seem} to give the label away: AUC of labelled against "
            f"unlabelled rows {self.auc_with:.3f} with {them}, {self.auc_without:.3f} without. "
            f"If {they} {were} filled in after labelling, every number here is too good: leave {them} out ({drop}); a "
            f"quick model without {them} estimates {self._quality()}. If {they} {were} known before, at most "
            f"{self.hidden_with:.1%} of the unlabelled rows are positive"
        )

    def _quality(self) -> str:
        share = f"that {self.share_without:.0%} of the unlabelled rows are positive"
        # Near chance, or where nearly all rows may be positive, the correction for the hidden positives says nothing.
        return (
            f"{share}, and an AUC of about {self.true_auc_without:.2f}" if 0.5 < self.true_auc_without <= 1 else share
        )


def most_hidden(scores: Floats, is_p: Flags) -> float:
    """The largest share π of positives among the unlabelled rows that the scores leave room for (95 %).

    Above a cut with a share t of the labelled rows lie at least π·t of the unlabelled ones: π ≤ q_U / t, of which the
    smallest over the cuts is taken, each with exact (Clopper–Pearson) bounds for its shares.
    """
    p, u = np.sort(scores[is_p])[::-1], np.sort(scores[~is_p])
    above_p = np.ceil(_CUTS * len(p)).astype(np.intp)
    above_u = len(u) - np.searchsorted(u, p[above_p - 1], side="left")
    error = _ERROR / (2 * len(_CUTS))
    least_p = betaincinv(above_p, len(p) - above_p + 1, error)
    # betaincinv needs a positive second argument; all rows above the cut means a share of at most 1
    most_u = np.where(above_u < len(u), betaincinv(above_u + 1, np.maximum(len(u) - above_u, 1), 1 - error), 1.0)
    return float(min(1.0, (most_u / least_p).min()))


def find_joint_leak(
    binned: Callable[[Rows], Values], labels: Labels, columns: Mapping[str, Rows], scores: Floats, seed: int = 0
) -> JointLeak | None:
    """The columns that leak the label, if the out-of-fold `scores` are too good and few columns explain that.

    Columns are removed one after another, each time the one without which most rows may be positive, until what is left
    is ordinary. `binned` gives rows (m,) -> (m, d), of which `columns` says what each column of the table became; codes
    of categories are read as numbers, which trees can cut as finely as they need.
    """
    is_p = labels == POSITIVE
    if is_p.sum() < _FEWEST or most_hidden(scores, is_p) > SUSPICIOUS:
        return None
    rows = _sampled(is_p, seed)
    values = binned(rows)
    names = telling_columns(values, scores[rows], columns, _MOST_COLUMNS)
    quick = QuickModel(values, is_p[rows], {name: columns[name] for name in names}, seed)
    everything = quick.out_of_fold(())
    if quick.hidden(everything) > _STILL:
        return None
    blamed = _blamed(quick)
    if blamed is None:
        return None
    blamed = _completed(quick, _needed(quick, blamed))
    without = quick.out_of_fold(blamed)
    share = estimate_quietly(None, labels[rows], "bbe", scores=without, random_state=seed).value
    auc = quick.auc(without)
    true_auc = (auc - share / 2) / (1 - share) if share < _MOSTLY else float("nan")
    return JointLeak(blamed, quick.auc(everything), auc, quick.hidden(everything), share, true_auc)


class QuickModel:
    """Boosting of labelled against unlabelled rows, out of fold, without some of the columns."""

    def __init__(self, values: Values, is_p: Flags, columns: Mapping[str, Rows], seed: int) -> None:
        # Only these columns: of a wide table most are left out, and the rows are copied for every shuffled one.
        self._values, self._is_p, self._seed = values[:, np.concatenate(list(columns.values()))], is_p, seed
        ends = np.cumsum([len(own) for own in columns.values()])
        self.columns = {name: np.arange(end - len(columns[name]), end) for name, end in zip(columns, ends, strict=True)}
        self._folds = np.empty(len(is_p), dtype=np.intp)
        for side in (is_p, ~is_p):
            self._folds[side] = np.random.default_rng(seed).permutation(int(side.sum())) % _FOLDS

    def hidden(self, scores: Floats) -> float:
        """The largest share of positives among the unlabelled rows that these scores leave room for."""
        return most_hidden(scores, self._is_p)

    def auc(self, scores: Floats) -> float:
        """AUC of labelled against unlabelled rows."""
        return auc_between(scores[self._is_p], scores[~self._is_p])

    def out_of_fold(self, without: Collection[str]) -> Floats:
        """Scores of all rows by models that did not see them, nor these columns. Shape: (n,)."""
        return self._fitted(without)[0]

    def worst(self, without: Collection[str]) -> list[str]:
        """The columns that are left, first the one after whose shuffling most rows may be positive."""
        _, models, places = self._fitted(without)
        rng = np.random.default_rng(self._seed)
        found: dict[str, tuple[float, float]] = {}
        for name in sorted(self.columns.keys() - set(without)):  # in order: a set has none, and the draws follow it
            changed, own = self._values.copy(), self.columns[name]
            changed[:, own] = self._values[rng.permutation(len(changed))][:, own]
            shuffled = self._scored(models, changed[:, places])
            found[name] = (-self.hidden(shuffled), self.auc(shuffled))
        return sorted(found, key=lambda name: found[name])

    def _fitted(self, without: Collection[str]) -> tuple[Floats, list[object], Rows]:
        places = np.concatenate([own for name, own in self.columns.items() if name not in set(without)])
        models: list[object] = []
        for k in range(_FOLDS):
            rest = self._folds != k
            is_p = self._is_p[rest]
            weights = np.where(is_p, 1 / is_p.mean(), 1 / (~is_p).mean())
            models.append(_booster(self._seed).fit(self._values[np.ix_(rest, places)], is_p, weights))
        return self._scored(models, self._values[:, places]), models, places

    def _scored(self, models: list[object], values: Values) -> Floats:
        scores = np.empty(len(values))
        for k, model in enumerate(models):
            scores[self._folds == k] = model.decision_function(values[self._folds == k])  # type: ignore[attr-defined]
        return scores


def _sampled(is_p: Flags, seed: int) -> Rows:
    rng = np.random.default_rng(seed)
    labelled, others = (rng.permutation(np.flatnonzero(side)) for side in (is_p, ~is_p))
    return np.sort(np.concatenate([labelled[:_MOST_LABELLED], others[:_MOST_UNLABELLED]]))


def _blamed(quick: QuickModel) -> tuple[str, ...] | None:
    """Columns without which the rest is ordinary; None if there are no such few."""
    blamed: tuple[str, ...] = ()
    while len(blamed) < min(_MOST_NAMED, len(quick.columns) - 1):
        blamed = (*blamed, quick.worst(blamed)[0])
        if quick.hidden(quick.out_of_fold(blamed)) >= _ORDINARY:
            return blamed
    return None


def _needed(quick: QuickModel, blamed: tuple[str, ...]) -> tuple[str, ...]:
    """Without the columns that can come back and leave the rest ordinary."""
    for name in blamed[:-1]:
        fewer = tuple(other for other in blamed if other != name)
        if quick.hidden(quick.out_of_fold(fewer)) >= _ORDINARY:
            blamed = fewer
    return blamed


def _completed(quick: QuickModel, blamed: tuple[str, ...]) -> tuple[str, ...]:
    """With the columns that give the label away only together with these: taking out either is enough to stop it."""
    candidates = [name for name in quick.worst(()) if name not in blamed][:_MOST_NAMED]
    for named in (blamed, *((*blamed, name) for name in candidates)):
        if quick.hidden(quick.out_of_fold(quick.columns.keys() - set(named))) <= _STILL:
            return named
    return blamed


def _booster(seed: int) -> Any:
    """Coarse and quick: a column that gives the label away is found by any model."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(
        learning_rate=0.2,
        max_iter=30,
        max_leaf_nodes=15,
        max_bins=N_BINS + 1,
        min_samples_leaf=5,
        l2_regularization=1.0,
        early_stopping=False,
        random_state=seed,
    )
