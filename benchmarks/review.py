"""Rows that people judge: do the intervals hold whatever the labelling was, and what do sixty verdicts bring?

    PUNCE_DATA=... python benchmarks/review.py [--seeds 0 1 2] [--seconds 800]            # coverage and width
    PUNCE_DATA=... python benchmarks/review.py --refit --seeds 0 [--seconds 800]           # after the refit
    python benchmarks/review.py --summary                                                  # results/review.json

What is done goes to results/review.jsonl and results/review_refit.jsonl, one line per fit; it is not run again.

Coverage: six UCI sets and MNIST (odd against even digits, as a table of 30 principal components), 3,000 unlabelled
rows, 100 labelled ones, chosen at random or with strong bias ("top:0.1": from the tenth of the positives with the
highest p̂; "power:10": proportional to p̂^10; see biased.py). The scores are those of small extra trees and a logistic
regression, which stand for PUClassifier at a hundredth of its time, with PUClassifier's prior, calibration and
threshold. Verdicts are the true classes. For every number of verdicts and every quantity the draw is made for, the 90 %
interval of each quantity is compared with the truth among the unlabelled rows, and its width with that of as many rows
drawn at random (Jeffreys intervals). "two rounds": half of the verdicts were drawn by other, noisier scores of the same
rows, as before a refit.

Refits: PUClassifier itself, 60 verdicts on drawn rows against 60 on random rows. Accuracy and AUC are true ones, over
unlabelled rows that neither judged, with scores by models that did not see the row.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from biased import MOST_UNLABELLED, SETS, oracle, problem, propensity
from json_lines import add_lines, lines_of
from machine import RESULTS, save
from scipy.special import logit
from scipy.stats import beta
from sklearn.decomposition import PCA
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from punce.classifier import PUClassifier
from punce.columns.dense import DenseColumns
from punce.data import TableEncoder, load, simulate_pu
from punce.judging.audit import Audit, Sample, agreed_share, audit
from punce.judging.estimates import Estimate
from punce.judging.judgement import judge
from punce.judging.sampling import QUANTITIES, draw, stratify
from punce.priors import estimate_prior

MECHANISMS = ("random", "top:0.1", "power:10")
VERDICTS = (30, 60, 120)
N_LABELLED = 100
N_COMPONENTS = 30
ALL_SETS = (*SETS, "mnist")
AIMS = ("share", "precision", "recall")
LINES, REFITS = RESULTS / "review.jsonl", RESULTS / "review_refit.jsonl"
KEYS = ["set", "mechanism", "seed"]


def rows_of(name: str, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """The rows of a set as a table, and their true classes."""
    if name != "mnist":
        return problem(name, N_LABELLED, seed)
    part = load(name, download=False).train
    rows = np.sort(np.random.default_rng(1000 + seed).permutation(len(part))[: MOST_UNLABELLED + N_LABELLED])
    pixels = np.asarray(part.X)[rows].reshape(len(rows), -1) / 255.0
    components = PCA(N_COMPONENTS, random_state=0).fit_transform(pixels)
    return pd.DataFrame(components).add_prefix("component"), part.y_true[rows].astype(int)


def labelled(name: str, mechanism: str, seed: int, p: np.ndarray, frame: pd.DataFrame, y: np.ndarray) -> np.ndarray:
    weights = propensity(mechanism, frame, y, p, seed)
    return simulate_pu(y, N_LABELLED, seed=seed, propensity=weights).labels.astype(int)


def small_scores(dense: np.ndarray, labels: np.ndarray, seed: int) -> np.ndarray:
    """The mean log-odds of two models of P against U, each row's by models that did not see it."""
    models = (
        ExtraTreesClassifier(20, min_samples_leaf=3, class_weight="balanced", random_state=seed),
        LogisticRegression(C=0.05, max_iter=60, tol=1e-3, class_weight="balanced"),
    )
    folds, scores = StratifiedKFold(3, shuffle=True, random_state=seed), np.zeros(len(labels))
    for model in models:
        own = logit(
            np.clip(cross_val_predict(model, dense, labels, cv=folds, method="predict_proba")[:, 1], 3e-3, 0.997)
        )
        scores += (own - np.median(own[labels == 0])) / own[labels == 0].std()
    return scores / len(models)


def scored(frame: pd.DataFrame, labels: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, Any]:
    """Scores, probabilities and calls of the unlabelled rows, and what PUClassifier would claim of them."""
    table = TableEncoder.fit(frame).transform(frame)
    dense = DenseColumns.fit(table.values, table.categorical).transform(table.values)
    scores = small_scores(dense, labels, seed)
    first = estimate_prior(None, labels, scores=scores, random_state=seed)
    asked: dict[str, Any] = {"scenario": "single_set", "target": "unlabelled", "sees_more": False, "seed": seed}
    judged = judge(scores, labels, first, "accuracy", labelled_share=float(labels.mean()), **asked)
    u = scores[labels == 0]
    probability = judged.calibrator.probability(u)
    return u, probability, probability >= judged.threshold, judged


def disturbed(scores: Any, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Other scores of the same rows: as those of a worse model, with the same calls in another order."""
    u, p, called, _ = scores
    noisy = u + 0.7 * u.std() * np.random.default_rng((seed, 2)).normal(size=len(u))
    order, by_score = np.argsort(noisy), np.argsort(u)
    other_p, other_called = np.empty_like(p), np.empty_like(called)
    other_p[order], other_called[order] = p[by_score], called[by_score]
    return noisy, other_p, other_called


def true_numbers(y: np.ndarray, called: np.ndarray) -> dict[str, float]:
    with np.errstate(invalid="ignore"):
        return {
            "share": float(y.mean()),
            "precision": float(y[called].mean()) if called.any() else float("nan"),
            "recall": float(called[y].mean()) if y.any() else float("nan"),
            "accuracy": float((y == called).mean()),
        }


def one_round(y: np.ndarray, scores: Any, aim: Any, n: int, seed: int, taken: np.ndarray) -> Sample:
    """Judged rows that are drawn by these scores; they are taken then."""
    score, p, called = scores[:3]
    strata = stratify(p, score, called, aim, n)
    rows = draw(strata, p, taken, np.zeros(len(strata.called), dtype=int), aim, n, seed)
    taken[rows] = True
    return Sample(strata, rows, y[rows])


def stratified(y: np.ndarray, scores: Any, aim: Any, n: int, seed: int, before: Any = None) -> Audit:
    """The audit after n verdicts; with other scores `before`, half of them were drawn by those."""
    taken = np.zeros(len(y), dtype=bool)
    rounds = (scores,) if before is None else (before, scores)
    samples = [one_round(y, one, aim, n // len(rounds), seed + 77 * k, taken) for k, one in enumerate(rounds)]
    return audit(samples, scores[2], scores[1], seed)


def at_random(y: np.ndarray, called: np.ndarray, n: int, seed: int) -> dict[str, Estimate]:
    """As many rows drawn at random, with Jeffreys intervals that hold the observed share."""
    rows = np.random.default_rng((seed, 1)).choice(len(y), n, replace=False)
    y, called = y[rows], called[rows]
    counts = {
        "share": (y.sum(), n),
        "precision": ((y & called).sum(), called.sum()),
        "recall": ((y & called).sum(), y.sum()),
        "accuracy": ((y == called).sum(), n),
    }
    found = {}
    for name, (hits, of) in counts.items():
        low, high = beta.ppf([0.05, 0.95], hits + 0.5, of - hits + 0.5)
        value = hits / of if of else np.nan
        found[name] = Estimate(value, float(np.fmin(low, value)), float(np.fmax(high, value)))
    return found


def line_of(how: str, n: int, aim: str, found: dict[str, Estimate], truth: dict[str, float]) -> dict[str, Any]:
    row: dict[str, Any] = {"how": how, "verdicts": n, "for": aim}
    for name in QUANTITIES:
        estimate = found[name]
        if np.isnan(estimate.low) or np.isnan(truth[name]):
            continue
        holds = estimate.low - 1e-9 <= truth[name] <= estimate.high + 1e-9
        row[name] = [round(estimate.value, 4), round(estimate.low, 4), round(estimate.high, 4), bool(holds)]
    return row


def cover(name: str, mechanism: str, seed: int, p: np.ndarray, frame: pd.DataFrame, y: np.ndarray) -> dict[str, Any]:
    labels = labelled(name, mechanism, seed, p, frame, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scores = scored(frame, labels, seed)
    hidden = y[labels == 0] == 1
    called, claimed = scores[2], scores[3]
    truth = true_numbers(hidden, called)
    found = []
    for n in VERDICTS:
        found.append(line_of("random rows", n, "", at_random(hidden, called, n, seed), truth))
        for aim in AIMS:
            if aim == "precision" and not called.any():
                continue
            by = stratified(hidden, scores, aim, n, seed)
            found.append(line_of("drawn", n, aim, {k: by.of(k) for k in QUANTITIES}, truth))
        both = stratified(hidden, scores, "share", n, seed, before=disturbed(scores, seed))
        found.append(line_of("two rounds", n, "share", {k: both.of(k) for k in QUANTITIES}, truth))
    said = claimed.metrics.unlabelled.accuracy
    return {
        "truth": truth,
        "claimed": {"share": claimed.prior.value, "accuracy": None if np.isnan(said.value) else said.value},
        "audits": found,
    }


# After the refit -----------------------------------------------------------------------------------------------------


def refit(name: str, mechanism: str, seed: int, p: np.ndarray, frame: pd.DataFrame, y: np.ndarray) -> dict[str, Any]:
    labels = labelled(name, mechanism, seed, p, frame, y)
    u = np.flatnonzero(labels == 0)
    hidden = y[u] == 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = PUClassifier(target="unlabelled", random_state=seed).fit(frame, labels)
        probability, score = before.scores_[u], before.decision_scores_[u]
        sample = one_round(hidden, (score, probability, score >= 0), "share", 60, seed, np.zeros(len(u), dtype=bool))
        drawn, audited = sample.rows, audit([sample], score >= 0, probability, seed)
        uniform = np.random.default_rng((seed, 1)).choice(len(u), 60, replace=False)
        prior = before.prior_
        claim = None if prior.reason else Estimate(prior.value, prior.low, prior.high)
        share = agreed_share(claim, audited.share)
        of_random = at_random(hidden, score >= 0, 60, seed)["share"]
        after = {
            "drawn": again(frame, labels, u, drawn, hidden, share, seed),
            "random rows": again(frame, labels, u, uniform, hidden, agreed_share(claim, of_random), seed),
        }
    rest = np.ones(len(u), dtype=bool)
    rest[np.concatenate([drawn, uniform])] = False
    said = before.metrics_.five["accuracy"]
    return {
        "before": quality(before, u, hidden, rest),
        **{how: quality(model, u, hidden, rest) for how, model in after.items()},
        "truth": true_numbers(hidden, score >= 0),
        "claimed_accuracy": None if np.isnan(said.value) else [said.value, said.low, said.high],
        "claimed_after": said_of(after["drawn"]),
        "truth_after": true_numbers(hidden, after["drawn"].decision_scores_[u] >= 0),
        "audited_accuracy": [audited.accuracy.value, audited.accuracy.low, audited.accuracy.high],
        "audited_share": [audited.share.value, audited.share.low, audited.share.high],
    }


def said_of(model: PUClassifier) -> list[float] | None:
    said = model.metrics_.five["accuracy"]
    return None if np.isnan(said.value) else [said.value, said.low, said.high]


def again(
    frame: pd.DataFrame,
    labels: np.ndarray,
    u: np.ndarray,
    rows: np.ndarray,
    hidden: np.ndarray,
    share: Estimate,
    seed: int,
) -> PUClassifier:
    """The fit with verdicts on these of the unlabelled rows, as punce fit --review does it."""
    y, judged = labels.copy(), np.zeros(len(labels), dtype=bool)
    y[u[rows]], judged[u[rows]] = np.where(hidden[rows], 1, -1), True
    value = float(np.clip(share.value, 0.001, 0.999))
    prior = (value, min(share.low, value), max(share.high, value))
    return PUClassifier(target="unlabelled", random_state=seed, prior=prior).fit(frame, y, judged=judged)


def quality(model: PUClassifier, u: np.ndarray, hidden: np.ndarray, rest: np.ndarray) -> dict[str, float]:
    score = model.decision_scores_[u][rest]
    return {
        "accuracy": float(((score >= 0) == hidden[rest]).mean()),
        "auc": float(roc_auc_score(hidden[rest], score)),
    }


# Running and reading -------------------------------------------------------------------------------------------------


def run(work: Any, file: Path, seeds: list[int], sets: list[str], mechanisms: list[str], seconds: float) -> None:
    """Run what is missing, as far as the time goes."""
    done = {tuple(row[key] for key in KEYS) for row in lines_of(file)}
    stop = time.monotonic() + seconds
    for seed, name in product(seeds, sets):
        missing = [mechanism for mechanism in mechanisms if (name, mechanism, seed) not in done]
        if not missing or time.monotonic() > stop:
            continue
        frame, y = rows_of(name, seed)
        p = oracle(frame, y)
        for mechanism in missing:
            if time.monotonic() > stop:
                return
            row = dict(zip(KEYS, (name, mechanism, seed), strict=True)) | work(name, mechanism, seed, p, frame, y)
            add_lines(file, row)


def flat(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """One line per interval."""
    found = []
    for row in rows:
        for one in row["audits"]:
            for name in QUANTITIES:
                if name in one:
                    value, low, high, holds = one[name]
                    of = {"how": one["how"], "verdicts": one["verdicts"], "for": one["for"], "quantity": name}
                    of |= {key: row[key] for key in KEYS}
                    found.append(of | {"held": holds, "width": high - low, "off": value - row["truth"][name]})
    return pd.DataFrame(found)


def summary(table: pd.DataFrame) -> dict[str, Any]:
    """Shares of intervals that hold the truth, and how much narrower they are than those of random rows."""
    keys = [*KEYS, "verdicts", "quantity"]
    drawn, plain = table[table["how"] == "drawn"], table[table["how"] == "random rows"][[*keys, "width"]]
    # The draw for the share is also the one for accuracy.
    aimed = drawn[drawn["for"] == drawn["quantity"].replace("accuracy", "share")]
    both = aimed.merge(plain, on=keys, suffixes=("", "_random"))
    return {
        "fits": int(table[KEYS].drop_duplicates().shape[0]),
        "seeds": sorted({int(seed) for seed in table["seed"]}),
        "coverage": {
            how: {by: shares(part, by) for by in ("mechanism", "verdicts", "quantity", "set")} | {"all": held(part)}
            for how, part in table.groupby("how")
        },
        "narrower": {by: narrower(both, by) for by in ("mechanism", "verdicts", "quantity", "set")}
        | {"all": widths(both)},
    }


def held(part: pd.DataFrame) -> list[float]:
    """The share of intervals that hold the truth, and of how many."""
    return [round(float(part["held"].mean()), 3), len(part)]


def shares(part: pd.DataFrame, by: str) -> dict[str, list[float]]:
    return {str(name): held(own) for name, own in part.groupby(by)}


def widths(both: pd.DataFrame) -> float:
    return round(float(1 - both["width"].mean() / both["width_random"].mean()), 3)


def narrower(both: pd.DataFrame, by: str) -> dict[str, float]:
    return {str(name): widths(own) for name, own in both.groupby(by)}


def refit_summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    found = {}
    for mechanism in MECHANISMS:
        own = [row for row in rows if row["mechanism"] == mechanism]
        if own:
            found[mechanism] = {
                how: {k: round(float(np.mean([row[how][k] for row in own])), 4) for k in ("accuracy", "auc")}
                for how in ("before", "drawn", "random rows")
            } | {"fits": len(own)}
            held = [r["audited_accuracy"][1] <= r["truth"]["accuracy"] <= r["audited_accuracy"][2] for r in own]
            found[mechanism]["audit_holds"] = [int(np.sum(held)), len(held)]
            said = [(r["claimed_after"], r["truth_after"]["accuracy"]) for r in own if r["claimed_after"]]
            found[mechanism]["said_after_holds"] = [sum(low <= y <= high for (_, low, high), y in said), len(said)]
    spam = [row for row in rows if row["set"] == "spambase" and row["mechanism"] == "top:0.1"]
    names = ("claimed_accuracy", "audited_accuracy", "truth", "claimed_after", "truth_after")
    return {"by_mechanism": found, "spambase_top": [{name: row[name] for name in ("seed", *names)} for row in spam]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--refit", action="store_true", help="the fits with verdicts, by PUClassifier itself")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(20)))
    parser.add_argument("--sets", nargs="+", choices=ALL_SETS, default=list(ALL_SETS))
    parser.add_argument("--mechanisms", nargs="+", choices=MECHANISMS, default=list(MECHANISMS))
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long; run again to go on")
    parser.add_argument("--summary", action="store_true", help="run nothing; write the summary")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if not arguments.summary:
        work, file = (refit, REFITS) if arguments.refit else (cover, LINES)
        run(work, file, arguments.seeds, arguments.sets, arguments.mechanisms, arguments.seconds)
    result = summary(flat(lines_of(LINES))) | {"refit": refit_summary(lines_of(REFITS))}
    print(json.dumps(result, indent=1))
    print(f"written to {save('review', result)}")


if __name__ == "__main__":
    main()
