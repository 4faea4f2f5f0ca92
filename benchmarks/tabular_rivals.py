"""What else there is for positive and unlabelled tables, with fair settings; used by benchmarks/tabular.py.

Every rival gets standardised numbers and one-hot codes (boosting: its own categories), and its regularisation is chosen
by the criterion that punce's members are weighed by: AUC of labelled against unlabelled rows it was not fitted on. Rows
are held out in three folds, the same for every rival (a random forest: its out-of-bag rows; nnPU: one of the folds).

- "P-vs-U …": labelled against unlabelled rows; the probability of being labelled is taken for that of being positive.
- "…, Elkan-Noto" (2008): the same ranking, divided by c, the mean held-out probability of the labelled rows. In the
  single-set scenario this is the probability for the population, which is what the test rows come from.
- nnPU is told the true share of positives; its scores, made for the unlabelled rows, are shifted to the population.
- "oracle" sees every true label, and chooses among boosting, logistic regression and extremely randomised trees.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from punce.scenario import population_prior

FOLDS = 3
_STRENGTHS = (0.001, 0.01, 0.1, 1.0, 10.0)  # scikit-learn's C
_BOOSTING = ((30, 4, 5.0), (100, 8, 1.0), (100, 31, 0.0))  # trees, leaves, penalty; the last is scikit-learn's default
_LEAVES = (1, 5, 20)  # fewest rows in a leaf of a forest
_BAG_LEAVES = (1, 5)
_FEW, _MANY = 30, 100  # trees of a forest or bag to choose with, and to answer with
_DECAYS = (1e-5, 1e-3)
_LIMIT = 0.995  # of a bag's probability: odds stay finite


@dataclass(frozen=True)
class Cell:
    """One simulated problem. `x` are encoded rows, `frame` the columns as they are. `y` is for the oracle alone."""

    frame: pd.DataFrame
    frame_test: pd.DataFrame
    x: np.ndarray
    x_test: np.ndarray
    categorical: np.ndarray
    labels: np.ndarray
    prior: float
    y: np.ndarray
    y_test: np.ndarray
    seed: int

    @property
    def n_labelled(self) -> int:
        return int(self.labels.sum())

    @property
    def population_prior(self) -> float:
        return population_prior(self.prior, self.n_labelled, len(self.labels) - self.n_labelled, "single_set")

    @cached_property
    def dense(self) -> tuple[np.ndarray, np.ndarray]:
        """Standardised numbers (a missing one is the mean) and one-hot codes."""
        codes = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
        columns = [("numbers", StandardScaler(), ~self.categorical), ("codes", codes, self.categorical)]
        made = ColumnTransformer(columns, sparse_threshold=0).fit(self.x)
        x, x_test = (np.nan_to_num(made.transform(rows)).astype(np.float32) for rows in (self.x, self.x_test))
        return x, x_test


@dataclass(frozen=True)
class Answer:
    scores: np.ndarray
    called: np.ndarray
    probability: np.ndarray
    notes: dict[str, Any] = field(default_factory=dict)


Fit = Callable[[np.ndarray, np.ndarray], Callable[[np.ndarray], np.ndarray]]
"""Rows and targets in, a function out that gives the probability of target 1."""


def held_out(fit: Fit, x: np.ndarray, target: np.ndarray, seed: int) -> np.ndarray:
    """Every row's probability by a model that did not see it."""
    scores = np.empty(len(x))
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(x, target):
        scores[test] = fit(x[train], target[train])(x[test])
    return scores


def best_of(fits: Sequence[Fit], x: np.ndarray, target: np.ndarray, seed: int) -> tuple[Fit, np.ndarray]:
    """The fit with the highest held-out AUC, and its held-out probabilities. A tie goes to the first."""
    found = [(fit, held_out(fit, x, target, seed)) for fit in fits]
    return max(found, key=lambda pair: roc_auc_score(target, pair[1]))


def scikit(model: Any) -> Fit:
    def fit(x: np.ndarray, target: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        fitted = clone(model).fit(x, target)
        return lambda rows: fitted.predict_proba(rows)[:, 1]

    return fit


def boosters(cell: Cell) -> list[Fit]:
    categorical = cell.categorical if cell.categorical.any() else None
    return [
        scikit(
            HistGradientBoostingClassifier(
                max_iter=trees,
                max_leaf_nodes=leaves,
                l2_regularization=penalty,
                early_stopping=False,
                categorical_features=categorical,
                random_state=cell.seed,
            )
        )
        for trees, leaves, penalty in _BOOSTING
    ]


def logistic(cell: Cell) -> list[Fit]:
    return [scikit(LogisticRegression(C=strength, max_iter=300)) for strength in _STRENGTHS]


def plain_and_corrected(g: np.ndarray, held_out_g: np.ndarray, labels: np.ndarray, name: str) -> dict[str, Answer]:
    """The probability of being labelled as it is, and divided by the labelled rows' mean. Shape: g (test rows,)."""
    c = float(held_out_g[labels == 1].mean())
    corrected = np.clip(g / max(c, 1e-6), 0.0, 1.0)
    return {name: Answer(g, g > 0.5, g), f"{name}, Elkan-Noto": Answer(g, corrected > 0.5, corrected, {"c": c})}


def p_vs_u_boosting(cell: Cell) -> dict[str, Answer]:
    fit, scores = best_of(boosters(cell), cell.x, cell.labels, cell.seed)
    return plain_and_corrected(fit(cell.x, cell.labels)(cell.x_test), scores, cell.labels, "P-vs-U boosting")


def p_vs_u_logistic(cell: Cell) -> dict[str, Answer]:
    x, x_test = cell.dense
    fit, scores = best_of(logistic(cell), x, cell.labels, cell.seed)
    return plain_and_corrected(fit(x, cell.labels)(x_test), scores, cell.labels, "P-vs-U logistic")


def pulearn_elkan_noto(cell: Cell) -> dict[str, Answer]:
    from pulearn import ElkanotoPuClassifier

    x, x_test = cell.dense
    forests = [
        RandomForestClassifier(_FEW, min_samples_leaf=n, oob_score=True, random_state=cell.seed).fit(x, cell.labels)
        for n in _LEAVES
    ]
    best = max(forests, key=lambda forest: roc_auc_score(cell.labels, forest.oob_decision_function_[:, 1]))
    forest = clone(best).set_params(oob_score=False, n_estimators=_MANY)
    model = ElkanotoPuClassifier(forest, 0.2, cell.seed).fit(x, cell.labels)
    p = model.predict_proba(x_test)[:, 1]
    return {"pulearn Elkan-Noto": Answer(p, model.predict(x_test) == 1, np.clip(p, 0, 1))}


def pulearn_bagging(cell: Cell) -> dict[str, Answer]:
    from pulearn import BaggingPuClassifier

    x, x_test = cell.dense

    def bagged(leaf: int, trees: int) -> Fit:
        def fit(rows: np.ndarray, labels: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
            tree = DecisionTreeClassifier(min_samples_leaf=leaf)
            size = int(min(labels.sum(), (labels == 0).sum()))
            model = BaggingPuClassifier(tree, trees, max_samples=size, oob_score=False, random_state=cell.seed)
            model.fit(rows, labels)
            return lambda new: model.predict_proba(new)[:, 1]

        return fit

    found = {n: held_out(bagged(n, _FEW), x, cell.labels, cell.seed) for n in _BAG_LEAVES}
    leaf = max(found, key=lambda n: roc_auc_score(cell.labels, found[n]))
    p, scores = bagged(leaf, _MANY)(x, cell.labels)(x_test), found[leaf]
    name = "pulearn bagging"
    corrected = plain_and_corrected(unbalanced(p, cell), unbalanced(scores, cell), cell.labels, name)
    return {**corrected, name: Answer(p, p > 0.5, p)}


def unbalanced(p: np.ndarray, cell: Cell) -> np.ndarray:
    """The probability of being labelled, from that in a bag with as many unlabelled as labelled rows."""
    odds = np.minimum(p, _LIMIT) / (1 - np.minimum(p, _LIMIT)) * cell.n_labelled / (len(cell.labels) - cell.n_labelled)
    return odds / (1 + odds)


def toolbox_nnpu(cell: Cell) -> dict[str, Answer]:
    import torch
    from pu_toolbox.estimators.risk.nnpu import NonNegativePUClassifier

    x, x_test = cell.dense

    def network(decay: float, epochs: int) -> Fit:
        def fit(rows: np.ndarray, labels: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
            torch.manual_seed(cell.seed)
            net = torch.nn.Sequential(
                torch.nn.Linear(rows.shape[1], 64), torch.nn.ReLU(), torch.nn.Linear(64, 64), torch.nn.ReLU(),
                torch.nn.Linear(64, 1),
            )  # fmt: skip
            optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, weight_decay=decay)
            model = NonNegativePUClassifier(
                net, class_prior=cell.prior, optimizer=optimizer, max_epochs=epochs, random_state=cell.seed
            )
            model.fit(rows, labels)
            return lambda new: np.asarray(model.decision_function(new), dtype=np.float64).ravel()

        return fit

    # One fold of the three: a network takes as long as all of boosting's fits.
    train, test = next(StratifiedKFold(FOLDS, shuffle=True, random_state=cell.seed).split(x, cell.labels))
    found = {decay: network(decay, 25)(x[train], cell.labels[train])(x[test]) for decay in _DECAYS}
    decay = max(found, key=lambda decay: roc_auc_score(cell.labels[test], found[decay]))
    scores = network(decay, 50)(x, cell.labels)(x_test)
    p = 1 / (1 + np.exp(-np.clip(scores + log_odds(cell.population_prior) - log_odds(cell.prior), -50, 50)))
    return {"pu-toolbox nnPU, true prior": Answer(scores, p > 0.5, p)}


def log_odds(p: float) -> float:
    return float(np.log(p) - np.log1p(-p))


def oracle(cell: Cell) -> dict[str, Answer]:
    x, x_test = cell.dense
    trees = [scikit(ExtraTreesClassifier(100, min_samples_leaf=2, random_state=cell.seed))]
    candidates = [
        (*best_of(fits, rows, cell.y, cell.seed), rows, new)
        for fits, rows, new in (
            (boosters(cell)[1:], cell.x, cell.x_test),
            (logistic(cell)[2:4], x, x_test),
            (trees, x, x_test),
        )
    ]
    fit, _, rows, new = max(candidates, key=lambda candidate: roc_auc_score(cell.y, candidate[1]))
    p = fit(rows, cell.y)(new)
    return {"oracle": Answer(p, p > 0.5, p)}


@dataclass(frozen=True)
class Family:
    """Methods that share one fit, and the package they need."""

    methods: tuple[str, ...]
    run: Callable[[Cell], dict[str, Answer]]
    package: str | None = None


def _both(name: str) -> tuple[str, str]:
    return name, f"{name}, Elkan-Noto"


FAMILIES: dict[str, Family] = {
    "boosting": Family(_both("P-vs-U boosting"), p_vs_u_boosting),
    "logistic": Family(_both("P-vs-U logistic"), p_vs_u_logistic),
    "elkan-noto": Family(("pulearn Elkan-Noto",), pulearn_elkan_noto, "pulearn"),
    "bagging": Family(_both("pulearn bagging"), pulearn_bagging, "pulearn"),
    "nnpu": Family(("pu-toolbox nnPU, true prior",), toolbox_nnpu, "pu_toolbox"),
    "oracle": Family(("oracle",), oracle),
}
