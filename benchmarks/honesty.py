"""How honest are the numbers a fit reports? Bias and coverage against the truth, on simulated scores and real tables.

    python benchmarks/honesty.py --simulated [--seconds 600]
    PUNCE_DATA=... python benchmarks/honesty.py --tables [--seconds 1800]
    python benchmarks/honesty.py --summary      # no new runs: results/honesty.json

One line of JSON per run goes to results/honesty.jsonl; what is there is not run again. A run draws labelled and
unlabelled rows, judges them as ``PUClassifier`` does, for every rule of the threshold, and compares what is reported
with what the same rule does to 40,000 fresh rows of known class (simulated) or to the test rows (tables).

Simulated scores are normal (or, for positives, Gumbel, a shape the calibration does not assume) with AUC 0.8 to 0.97
and 2,000 unlabelled rows; ``noise`` has the same scores for both classes. Tables are the six UCI sets, cut to
2,000 unlabelled rows. The target is the population in tables (``case_control`` in the simulation, where both are one).
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
from scipy.stats import norm

from punce.experiments.true_metrics import expected_calibration_error
from punce.judging.judgement import Judgement, judge
from punce.judging.ranking import auc_between
from punce.judging.used_prior import given_prior
from punce.labels import POSITIVE
from punce.priors import PriorEstimate, estimate_prior

RULES = ("accuracy", "f1", "precision=0.9", "recall=0.9")
N_LABELLED = (30, 100, 500)
PRIORS = (0.05, 0.2, 0.5, 0.8, 0.95)
SHAPES = ("normal 0.8", "normal 0.97", "gumbel 0.9", "noise")
SETS = ("spambase", "mushroom", "banknote", "landsat", "pageblocks", "shuttle")
FIVE = ("accuracy", "precision", "recall", "f1", "auc")
N_UNLABELLED = 2_000
N_FRESH = 40_000
N_KNOWN = 4  # seeds that are also run with the prior given: what is left then is the judging itself
LINES = RESULTS / "honesty.jsonl"


# Simulated scores ----------------------------------------------------------------------------------------------------


def scores_of(y: np.ndarray, shape: str, rng: np.random.Generator) -> np.ndarray:
    """Scores of rows of these classes."""
    if shape == "noise":
        return rng.normal(size=len(y))
    name, auc = shape.split()
    distance = np.sqrt(2) * norm.ppf(float(auc))
    positive = rng.normal(size=len(y)) if name == "normal" else rng.gumbel(-np.euler_gamma, np.sqrt(6) / np.pi, len(y))
    return np.where(y, positive + distance, rng.normal(size=len(y)))


def simulated(
    shape: str, n_labelled: int, prior: float, known: bool, seed: int, rules: tuple[str, ...] = RULES
) -> dict:
    """One draw: what is reported and what is true, for every rule."""
    rng = np.random.default_rng([seed, n_labelled, round(1000 * prior), SHAPES.index(shape)])
    y = np.concatenate([np.ones(n_labelled, dtype=bool), rng.random(N_UNLABELLED) < prior])
    scores, labels = scores_of(y, shape, rng), (np.arange(len(y)) < n_labelled).astype(np.int8)
    fresh_y = rng.random(N_FRESH) < prior
    fresh = scores_of(fresh_y, shape, rng)
    first = _prior(labels, scores, prior if known else None, seed)
    row: dict[str, Any] = {"prior": first.value, "low": first.low, "high": first.high, "true_prior": prior}
    for rule in rules:
        judged = _judged(scores, labels, first, rule, seed)
        row[rule] = compared(judged, judged.calibrator.probability(fresh), fresh, fresh_y)
    return row


def _prior(labels: np.ndarray, scores: np.ndarray, known: float | None, seed: int) -> PriorEstimate:
    if known is not None:
        return given_prior(known, labels, "case_control")
    return estimate_prior(None, labels, scores=scores, random_state=seed, scenario="case_control")


def _judged(scores: np.ndarray, labels: np.ndarray, first: PriorEstimate, rule: str, seed: int) -> Judgement:
    own = {"scenario": "case_control", "target": "population", "sees_more": False, "seed": seed}
    return judge(scores, labels, first, rule, labelled_share=float((labels == POSITIVE).mean()), **own)


def compared(judged: Any, probability: np.ndarray, scores: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Reported value, interval and truth of the five numbers; null where it says "cannot be estimated"."""
    called, hits = probability >= judged.threshold, (probability >= judged.threshold) & y
    truth = {
        "accuracy": (called == y).mean(),
        "precision": hits.sum() / called.sum() if called.any() else np.nan,
        "recall": hits.sum() / y.sum(),
        "f1": 2 * hits.sum() / (called.sum() + y.sum()),
        "auc": auc_between(scores[y], scores[~y]),
    }
    found = judged.metrics.five
    return {
        name: [None if np.isnan(v) else round(float(v), 5) for v in (e.value, e.low, e.high, truth[name])]
        for name, e in ((name, found[name]) for name in FIVE)
    }


# Tables --------------------------------------------------------------------------------------------------------------


def on_table(name: str, n_labelled: int, seed: int) -> dict[str, Any] | None:
    """One fit; the rules differ only in how its held-out scores are judged."""
    from punce.classifier import PUClassifier
    from punce.data import load, simulate_pu

    data, rng = load(name, download=False), np.random.default_rng(seed)
    train = np.sort(rng.permutation(len(data.train))[: N_UNLABELLED + n_labelled])
    y = data.train.y_true[train]
    if y.sum() < n_labelled + 30:
        return None
    sample = simulate_pu(y, n_labelled, seed=seed)
    frame, y_test = data.train.X.iloc[train].reset_index(drop=True), data.test.y_true == 1
    model = PUClassifier(random_state=seed).fit(frame, sample.labels)
    p_test = model.predict_proba(data.test.X)[:, 1]
    row: dict[str, Any] = {"prior": model.prior_.value, "low": model.prior_.low, "high": model.prior_.high}
    row |= {"true_prior": sample.prior, "ece": expected_calibration_error(y_test, p_test)}
    # Training does not depend on the rule: only the judging of its held-out scores is repeated.
    held_out, scores = np.asarray(model._route._model.out_of_fold_scores_), model._route.score(data.test.X)
    own = {"labelled_share": n_labelled / len(y), "scenario": "single_set", "target": "population"}
    for rule in RULES:
        judged = judge(held_out, sample.labels, model.first_prior_, rule, **own, sees_more=True, seed=seed)
        row[rule] = compared(judged, judged.calibrator.probability(scores), scores, y_test)
    return row


# Runs ----------------------------------------------------------------------------------------------------------------


def cells(kind: str, seeds: list[int]) -> Iterator[dict[str, Any]]:
    """Every run of a kind, seed by seed, so that a run that is cut short is balanced."""
    for seed in seeds:
        for n_labelled in N_LABELLED:
            if kind == "table":
                yield from ({"kind": kind, "set": name, "n_labelled": n_labelled, "seed": seed} for name in SETS)
                continue
            for shape in SHAPES:
                for prior in PRIORS:
                    for known in (False, True) if seed < N_KNOWN else (False,):
                        own = {"n_labelled": n_labelled, "true_prior": prior, "known": known, "seed": seed}
                        yield {"kind": kind, "set": shape, **own}


def run(kind: str, seeds: list[int], seconds: float) -> None:
    """Run what is missing until time is up."""
    done, stop = {key(line) for line in lines_of(LINES)}, time.monotonic() + seconds
    for cell in cells(kind, seeds):
        if key(cell) in done:
            continue
        if time.monotonic() > stop:
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if kind == "table":
                found = on_table(cell["set"], cell["n_labelled"], cell["seed"])
            else:
                found = simulated(*(cell[name] for name in ("set", "n_labelled", "true_prior", "known", "seed")))
        add_lines(LINES, {**cell, "found": found})


def key(cell: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(cell.get(name) for name in ("kind", "set", "n_labelled", "true_prior", "known", "seed"))


# Summary -------------------------------------------------------------------------------------------------------------


def summary() -> dict[str, Any]:
    """Bias in points, coverage and share stated: by kind and n_P and rule, and the worst single group of each."""
    table = pd.DataFrame(_long(lines_of(LINES)))
    noise, rest = table[table["set"] == "noise"], table[table["set"] != "noise"]
    groups = {"normal and gumbel scores, prior estimated": rest[(rest["kind"] == "simulated") & ~rest["known"]]}
    groups["normal and gumbel scores, prior given"] = rest[(rest["kind"] == "simulated") & rest["known"]]
    for shape in SHAPES[:-1]:
        groups[f"{shape} scores, prior estimated"] = rest[(rest["set"] == shape) & ~rest["known"]]
    groups["useless scores, prior given"] = noise[noise["known"]]
    groups["tables"] = rest[rest["kind"] == "table"]
    result: dict[str, Any] = {
        "runs": len({key(line) for line in lines_of(LINES)}),
        "useless scores, prior estimated: share of numbers stated": {
            name: float(part["stated"].mean()) for name, part in noise[~noise["known"]].groupby("metric")
        },
    }
    for title, part in groups.items():
        result[title] = {
            f"{n} labelled, {metric}": {
                **_figures(own),
                "by rule": {rule: _figures(some) for rule, some in own.groupby("rule")},
                "by prior": {f"{p:g}": _figures(some) for p, some in own.groupby("asked_prior")},
            }
            for (n, metric), own in part.groupby(["n_labelled", "metric"])
        }
    return result


def _long(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for line in rows:
        for rule in RULES if line["found"] else ():
            for metric in FIVE:
                value, low, high, true = line["found"][rule][metric]
                stated = value is not None and true is not None
                yield {
                    **{name: line[name] for name in ("kind", "set", "n_labelled", "seed")},
                    "known": bool(line.get("known")),
                    "asked_prior": line.get("true_prior", 0.0),
                    "rule": rule,
                    "metric": metric,
                    "stated": value is not None,
                    "error": value - true if stated else np.nan,
                    "covered": float(low <= true <= high) if stated else np.nan,
                }


def _figures(part: pd.DataFrame) -> dict[str, float]:
    errors = part["error"].dropna()
    return {
        "bias, points": round(100 * float(errors.mean()), 2),
        "standard error of it": round(100 * float(errors.std() / np.sqrt(max(1, len(errors)))), 2),
        "coverage": round(float(part["covered"].mean()), 3),
        "stated": round(float(part["stated"].mean()), 3),
    }


def show(result: dict[str, Any]) -> None:
    print({name: value for name, value in result.items() if not isinstance(value, dict)})
    print("useless:", result["useless scores, prior estimated: share of numbers stated"])
    for title, part in result.items():
        if not isinstance(part, dict) or title.startswith("useless scores, prior estimated"):
            continue
        print(f"\n{title}: bias in points (± its error), coverage of 90 % intervals, share stated")
        for name, figures in part.items():
            own = {k: v for k, v in figures.items() if not isinstance(v, dict)}
            by = {k: v["bias, points"] for k, v in {**figures["by rule"], **figures["by prior"]}.items()}
            print(f"  {name:24} {own['bias, points']:6.2f} ± {own['standard error of it']:.2f}  {own['coverage']:.2f}  "
                  f"{own['stated']:.2f}   {by}")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulated", action="store_true")
    parser.add_argument("--tables", action="store_true")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(10)))
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long; run again to go on")
    parser.add_argument("--summary", action="store_true", help="run nothing; write the summary")
    arguments = parser.parse_args()
    for kind, wanted in (("simulated", arguments.simulated), ("table", arguments.tables)):
        if wanted:
            run(kind, arguments.seeds, arguments.seconds)
    result = summary()
    show(result)
    print(f"\nwritten to {save('honesty', result)}")


if __name__ == "__main__":
    main()
