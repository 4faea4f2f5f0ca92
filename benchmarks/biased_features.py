"""The labelling check on images, texts and embeddings: false alarms, and how much strong bias it notices.

    pip install --no-deps wordllama==0.4.0.post1
    PUNCE_DATA=... python benchmarks/biased_features.py --frozen FOLDER [--seeds 20 21] [--seconds 1800]
    python benchmarks/biased_features.py --summary      # no new runs: results/biased_features.json

As benchmarks/biased.py, with its mechanisms, on rows that have no columns: pixels of digits and of MNIST, frozen
features of CIFAR-10 (mobilenetv2_train.npy in FOLDER, made by frozen_features.py), static vectors of SMS messages and
of SST-2's sentences. What the check sees are 30 leading directions, as in a fit. To save time, scores come from a ridge
regression on these and on random waves of them, cross-fitted, instead of the portfolio; prior, calibration, quality and
check are those of a fit. "oracle" is a logistic regression on all true labels. "cifar:classes" and "mnist:classes" draw
one to six of the ten classes as positives: rows of many groups, of which none need be a class.

The limit of the gap was set on seeds 0 to 3 of digits, MNIST and CIFAR-10 (with the other encoder), and on seeds 100 to
105 of the sets of drawn classes. With that limit, seeds 10 to 19 had 6 per cent of false alarms, so it was raised from
1.8 to 1.9. Seeds 20 and above are reported.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from biased import FEWEST_HIDDEN, KEYS, MOST_UNLABELLED, N_LABELLED, STRONG, propensity, share
from json_lines import add_lines, lines_of
from machine import RESULTS, save
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from punce.data import load, simulate_pu
from punce.encoders.static import StaticVectors
from punce.judging.judgement import judge_fit
from punce.models.portfolio.directions import Directions
from punce.models.portfolio.model import LOOKED_AT
from punce.models.sentences import SentenceVectors
from punce.priors import estimate_prior

SETS = ("cifar", "cifar:classes", "digits", "mnist", "mnist:classes", "sms_spam", "sst2_sentence")
MECHANISMS = ("random", "power:10", "top:0.33", "cluster:20", "column:20")
LINES = RESULTS / "biased_features.jsonl"
WAVES = 600


@cache
def rows_of(name: str, frozen: Path) -> np.ndarray:
    """All training rows as numbers. Shape: (n, D)."""
    if name == "cifar":
        features: np.ndarray = np.load(frozen / "mobilenetv2_train.npy")
        return features
    part = load(name, download=False).train
    if name in ("digits", "mnist"):
        return np.asarray(part.X).reshape(len(part), -1)
    return SentenceVectors(StaticVectors()).fit(list(part.X)).vectors(list(part.X))


def problem(name: str, n_labelled: int, seed: int, frozen: Path) -> tuple[np.ndarray, np.ndarray]:
    """Leading directions of some rows, of unit spread, and which rows are positive."""
    base, _, is_drawn = name.partition(":")
    x, rng = rows_of(base, frozen), np.random.default_rng(1000 + seed)
    chosen = np.sort(rng.permutation(len(x))[: MOST_UNLABELLED + n_labelled])
    classes = tuple(int(k) for k in rng.permutation(10)[: rng.integers(1, 7)]) if is_drawn else None
    named = {"cifar": "cifar10"}.get(base, base)
    y = np.asarray(load(named, positive=classes, download=False).train.y_true)[chosen]
    directions = Directions.fit(x[chosen], seed)(x[chosen])[:, :LOOKED_AT].astype(np.float64)
    return directions / directions.std(axis=0), (y == 1).astype(int)


def scores_of(x: np.ndarray, labels: np.ndarray, seed: int) -> np.ndarray:
    """Ridge regression of P against U on the directions and on random waves, each row by folds that lack it."""
    rng = np.random.default_rng(seed)
    waves = np.cos(x @ rng.normal(size=(x.shape[1], WAVES)) / np.sqrt(2 * x.shape[1]) + rng.random(WAVES) * 2 * np.pi)
    columns = np.concatenate([4.0 * np.sqrt(2.0 / WAVES) * waves, x / np.sqrt(x.shape[1])], axis=1)
    scores = np.zeros(len(labels))
    for train, test in StratifiedKFold(5, shuffle=True, random_state=seed).split(x, labels):
        weights = np.where(labels[train] == 1, 0.5 / labels[train].mean(), 0.5 / (1.0 - labels[train].mean()))
        a = columns[train]
        products = (a * weights[:, None]).T @ a + 30.0 * np.eye(a.shape[1])
        scores[test] = columns[test] @ np.linalg.solve(products, a.T @ (weights * (2.0 * labels[train] - 1.0)))
    return scores


def measure(x: np.ndarray, y: np.ndarray, labels: np.ndarray, seed: int) -> dict[str, Any]:
    """What a fit would say of these labels, as they are and with labelling="biased", beside the truth."""
    scores, hidden = scores_of(x, labels, seed), labels == 0
    first = estimate_prior(None, labels, scores=scores, random_state=seed)
    found: dict[str, Any] = {"true_prior": float(y[hidden].mean())}
    for labelling in ("random", "biased"):
        judged, check = judge_fit(
            scores,
            labels.astype(np.int8),
            first,
            "accuracy",
            labelling=labelling,
            features=x.astype(np.float32).__getitem__,
            are_directions=True,
            shares=(float(labels.mean()), 0.0),
            scenario="single_set",
            target="unlabelled",
            sees_more=False,
            seed=seed,
        )
        called = judged.calibrator.probability(scores) >= judged.threshold
        said = judged.metrics.five["accuracy"]
        found[labelling] = {
            "true_accuracy": float((called[hidden] == (y[hidden] == 1)).mean()),
            "said": [None if np.isnan(value) else float(value) for value in (said.value, said.low, said.high)],
            "prior": [judged.prior.value, judged.prior.low, judged.prior.high],
        }
        found |= {name: float(getattr(check, name)) for name in ("evidence", "gap", "share")}
        found["fires"] = bool(check.fires)
    return found


def run(seeds: list[int], frozen: Path, seconds: float) -> None:
    """Run what is missing, as far as the time goes."""
    done = {tuple(line[key] for key in KEYS[1:]) for line in lines_of(LINES)}
    stop = time.monotonic() + seconds
    for seed, name, n_labelled in product(seeds, SETS, N_LABELLED):
        missing = [m for m in MECHANISMS if (name, m, n_labelled, seed) not in done]
        x, y = problem(name, n_labelled, seed, frozen) if missing else (np.zeros(0), np.zeros(0))
        if y.sum() < n_labelled + FEWEST_HIDDEN:
            continue
        p = cross_val_predict(LogisticRegression(C=0.05, max_iter=200), x, y, cv=3, method="predict_proba")[:, 1]
        for mechanism in missing:
            if time.monotonic() > stop:
                return
            weights = propensity(mechanism, pd.DataFrame(x), y, p, seed)
            labels = simulate_pu(y, n_labelled, seed=seed, propensity=weights).labels.astype(int)
            row = dict(zip(KEYS[1:], (name, mechanism, n_labelled, seed), strict=True))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                row |= measure(x, y, labels, seed)
            add_lines(LINES, row)


def summary(found: list[dict[str, Any]]) -> dict[str, Any]:
    """By set: false alarms, strong bias noticed, what labelling="biased" changes, and whether intervals hold."""
    table = pd.DataFrame(
        {
            **{key: line[key] for key in (*KEYS[1:], "fires")},
            "said": line["random"]["said"][0],
            "true": line["random"]["true_accuracy"],
            "holds": holds(line["random"]),
            "biased": line["biased"]["true_accuracy"],
        }
        for line in found
    )
    table["is_random"] = table["mechanism"] == "random"
    table["strong"] = ~table["is_random"] & (table["said"].astype(float) - table["true"] > STRONG)
    parts = {"all": table} | {str(name): own for name, own in table.groupby("set")}
    return {"runs": len(table), "seeds": sorted({int(s) for s in table["seed"]})} | {
        name: numbers(own) for name, own in parts.items()
    }


def holds(said: dict[str, Any]) -> bool | None:
    _, low, high = said["said"]
    return None if low is None else bool(low <= said["true_accuracy"] <= high)


def numbers(table: pd.DataFrame) -> dict[str, Any]:
    strong, noticed = table[table["strong"]], table[table["fires"] & ~table["is_random"]]
    return {
        "false_alarms": share(table["fires"][table["is_random"]]),
        "strong_noticed": {str(n): share(strong["fires"][strong["n_labelled"] == n]) for n in N_LABELLED},
        "noticed_held": share(noticed["holds"].dropna().astype(bool)),
        "true_accuracy": {
            kind: [round(float(own[labelling].mean()), 4) for labelling in ("true", "biased")] if len(own) else None
            for kind, own in (("random", table[table["is_random"]]), ("strong", strong))
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frozen", type=Path, default=Path())
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(20, 30)))
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long; run again to go on")
    parser.add_argument("--summary", action="store_true", help="run nothing; write the summary")
    arguments = parser.parse_args()
    if not arguments.summary:
        run(arguments.seeds, arguments.frozen, arguments.seconds)
    result = summary(lines_of(LINES))
    print(json.dumps(result, indent=1))
    print(f"written to {save('biased_features', result)}")


if __name__ == "__main__":
    main()
