"""What labelled negatives add to labelled positives and unlabelled rows, and whether they ever hurt.

    PUNCE_DATA=... python benchmarks/negatives.py [--sets spambase ...] [--seconds 800]
    python benchmarks/negatives.py --summary      # no new runs: results/negatives.json

One line of JSON per fit goes to results/negatives.jsonl; what is there is not run again. Each fit is the default
PUClassifier on 100 labelled positives and 2,000 other rows (sms_spam: all; mnist: 4,000), of which 0, 10, 50 or 200
negatives drawn at random are labelled. For one seed the rows and the labelled positives are the same for every number
of negatives. Quality is measured on test rows of known class, and compared with what the fit says of itself. Seed 0
was looked at while the method was made, and is left out.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from json_lines import add_lines, lines_of
from machine import RESULTS, save

from punce.classifier import PUClassifier
from punce.data import load, simulate_pu
from punce.judging.ranking import auc_between
from punce.labels import NEGATIVE, UNLABELLED

TABLES = ("spambase", "mushroom", "banknote", "landsat", "pageblocks", "shuttle")
SETS = (*TABLES, "sms_spam", "mnist")
N_NEGATIVES = (0, 10, 50, 200)
N_LABELLED, N_OTHERS, N_SEEDS = 100, 2_000, 5
N_OTHERS_OF = {"sms_spam": 10_000, "mnist": 4_000}
OPTIONS: dict[str, dict[str, Any]] = {}  # of the classifier, where a set needs other ones than the default
LINES = RESULTS / "negatives.jsonl"


def rows_of(X: Any, rows: np.ndarray) -> Any:
    """Some rows of a frame, of a list of texts or of an array."""
    if isinstance(X, pd.DataFrame):
        return X.iloc[rows].reset_index(drop=True)
    return [X[row] for row in rows] if isinstance(X, list) else X[rows]


def one_fit(name: str, n_negatives: int, seed: int) -> dict[str, Any]:
    """Fit with some negatives labelled; measured on test rows, and what the fit claims."""
    data, rng = load(name, download=False), np.random.default_rng(seed)
    train = np.sort(rng.permutation(len(data.train))[: N_OTHERS_OF.get(name, N_OTHERS) + N_LABELLED])
    y = data.train.y_true[train]
    labels = simulate_pu(y, N_LABELLED, seed=seed).labels.copy()
    labels[rng.permutation(np.flatnonzero((labels == UNLABELLED) & (y == 0)))[:n_negatives]] = NEGATIVE
    model = PUClassifier(random_state=seed, **OPTIONS.get(name, {})).fit(rows_of(data.train.X, train), labels)
    is_p, probability = data.test.y_true == 1, model.predict_proba(data.test.X)[:, 1]
    scores, said = model.decision_function(data.test.X), model.metrics_.five["accuracy"]
    return {
        "auc": auc_between(scores[is_p], scores[~is_p]),
        "accuracy": float(((probability >= model.threshold_) == is_p).mean()),
        "said": [None if np.isnan(number) else number for number in (said.value, said.low, said.high)],
        "basis": getattr(model.metrics_, "basis", ""),
        "prior": [model.prior_.value, model.prior_.low, model.prior_.high],
        "true_prior": float((y[labels == UNLABELLED] == 1).mean()),
    }


def cells(sets: list[str]) -> Iterator[dict[str, Any]]:
    """Seed by seed, so that a run that is cut short is balanced."""
    for seed in range(1, 1 + N_SEEDS):
        for name in sets:
            yield from ({"set": name, "n_negatives": n, "seed": seed} for n in N_NEGATIVES)


def run(sets: list[str], seconds: float) -> None:
    """Run what is missing until time is up."""
    done, stop = {key(line) for line in lines_of(LINES)}, time.monotonic() + seconds
    for cell in cells(sets):
        if key(cell) in done:
            continue
        if time.monotonic() > stop:
            return
        start = time.monotonic()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = one_fit(cell["set"], cell["n_negatives"], cell["seed"])
        add_lines(LINES, {**cell, **found, "seconds": round(time.monotonic() - start, 1)})


def key(cell: dict[str, Any]) -> tuple[Any, ...]:
    return cell["set"], cell["n_negatives"], cell["seed"]


def summary() -> dict[str, Any]:
    """By set and number of negatives: AUC and accuracy, what was gained (paired by seed), error and coverage."""
    table = pd.DataFrame(lines_of(LINES))
    without = table[table["n_negatives"] == 0].set_index(["set", "seed"])
    found: dict[str, Any] = {"fits": len(table)}
    for (name, n), part in table.groupby(["set", "n_negatives"]):
        base = without.reindex(pd.MultiIndex.from_frame(part[["set", "seed"]]))
        found.setdefault(str(name), {})[str(n)] = {
            "seeds": len(part),
            **{measure: _gain(part[measure].to_numpy(), base[measure].to_numpy()) for measure in ("auc", "accuracy")},
            "prior": _prior_error(part),
            "accuracy said": _said(part),
        }
    return found


def _gain(values: np.ndarray, base: np.ndarray) -> dict[str, float | None]:
    """The mean, and what was gained over no negatives; one seed has no standard error."""
    gains = 100 * (values - base)
    error = round(float(np.std(gains, ddof=1) / np.sqrt(len(gains))), 2) if len(gains) > 1 else None
    shown = {"mean": round(100 * float(values.mean()), 2), "gain, points": round(float(gains.mean()), 2)}
    return {**shown, "standard error of it": error}


def _prior_error(part: pd.DataFrame) -> dict[str, float]:
    value, low, high = np.array(part["prior"].tolist()).T
    true = part["true_prior"].to_numpy()
    errors = {"bias": float((value - true).mean()), "covered": float(((low <= true) & (true <= high)).mean())}
    return {name: round(number, 3) for name, number in errors.items()}


def _said(part: pd.DataFrame) -> dict[str, Any]:
    said = np.array(part["said"].tolist(), dtype=np.float64)
    stated, true = ~np.isnan(said[:, 0]), part["accuracy"].to_numpy()
    if not stated.any():
        return {"stated": 0.0}
    value, low, high = said[stated].T
    covered = (low <= true[stated]) & (true[stated] <= high)
    numbers = {
        "bias, points": 100 * float((value - true[stated]).mean()),
        "covered": float(covered.mean()),
        "width": float((high - low).mean()),
        "stated": float(stated.mean()),
    }
    return {**{name: round(number, 3) for name, number in numbers.items()}, "basis": sorted(set(part["basis"]))}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--seconds", type=float, default=800)
    parser.add_argument("--summary", action="store_true")
    options = parser.parse_args()
    if not options.summary:
        run(options.sets, options.seconds)
    save("negatives", summary())
