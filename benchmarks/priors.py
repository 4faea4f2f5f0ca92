"""Class-prior estimators on known shares: error, interval coverage and seconds, by set, share and number of labels.

    PUNCE_DATA=... python benchmarks/priors.py accuracy --minutes 7     # repeat until it says it is complete
    PUNCE_DATA=... python benchmarks/priors.py accuracy --slow --cells slow.jsonl   # the other estimators too
    PUNCE_DATA=... python benchmarks/priors.py representative           # the test of random labelling: alarms, power
    python benchmarks/priors.py simulated                               # scores of known overlap
    python benchmarks/priors.py speed                                   # the sizes of the speed goals
    python benchmarks/priors.py table                                   # print what there is

`accuracy`: the default and what it is made of (with --slow every estimator) on two-Gaussian mixtures, six UCI sets and
MNIST; shares 0.05 to 0.9, 100 and 1000 labelled rows where the set has so many positives, seeds that took no part in
choosing any default. The settings of `combined` and `roc` were chosen on other draws of the six UCI sets and of five
tables that are not here (open_tables.DESIGN), with a look at `simulated`; the other three sets had no part in them. One
JSON line a cell is added to --cells, so a run can be killed and repeated. `--quick` takes one seed and two shares.
MNIST (odd against even) is seen through features of a short label-free pretraining (`mnist_features`).
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import resource
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from json_lines import add_lines, lines_of
from machine import RESULTS, save
from prior_summary import summarise
from scipy.stats import norm

from punce.data import biased_propensity, load
from punce.priors import PRIORS, PriorEstimate, PriorWarning, Sample, estimate_prior
from punce.priors.cautions import area_under_curve, top_region
from punce.priors.crossfit import default_classifier, out_of_fold
from punce.priors.estimate import run_one
from punce.priors.features import as_rows

UCI = ("banknote", "mushroom", "spambase", "landsat", "pageblocks", "shuttle")
GAPS = {"gaussians 4 apart": 4.0, "gaussians 2 apart": 2.0}
SETS = (*GAPS, *UCI, "mnist")
SHARES, QUICK_SHARES = (0.05, 0.3, 0.6, 0.9), (0.05, 0.6)
LABELLED = (100, 1000)
SEEDS = tuple(range(100, 105))
MOST_UNLABELLED, LEAST_UNLABELLED = 2000, 400
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {}) for name in PRIORS},
    "bbe, the paper's bound": ("bbe", {"penalty": "hoeffding"}),
    "tice, as published": ("tice", {"rule": "bound"}),
    "dedpul, EM": ("dedpul", {"share": "em"}),
}
QUICK_VARIANTS = ("combined", "bbe", "roc", "dedpul")
CACHE = Path(tempfile.gettempdir()) / "punce-priors"


# --- Rows of known classes -------------------------------------------------------------------------------------------


@functools.cache
def full_set(name: str) -> tuple[Any, np.ndarray]:
    """All rows of a set and who is positive."""
    if name == "mnist":
        return mnist_features()
    data = load(name)
    X = pd.concat([data.train.X, data.test.X], ignore_index=True)
    return X, np.concatenate([data.train.y_true, data.test.y_true]) == 1


def mnist_features(rows: int = 15_000, epochs: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """50 principal components of features pretrained with InfoNCE, which uses no label, on the first rows of MNIST.

    Because no label takes part, one pretraining serves every cell and nothing is flattered.
    """
    data = load("mnist").train
    path = CACHE / f"mnist-infonce-{rows}-{epochs}.npy"
    if not path.exists():
        CACHE.mkdir(exist_ok=True)
        np.save(path, _pretrained(data.X[:rows], epochs))
    return np.load(path, allow_pickle=False), data.y_true[:rows] == 1


def _pretrained(images: np.ndarray, epochs: int) -> np.ndarray:
    import torch
    from sklearn.decomposition import PCA

    from punce.encoders import MLP
    from punce.losses import InfoNCE
    from punce.stages.pretrain import PretrainConfig, pretrain
    from punce.stages.probe import extract_features
    from punce.views import VIEWS

    torch.manual_seed(0)
    X, view, encoder = torch.from_numpy(images), VIEWS["digit"](), MLP(width=0.1)
    pretrain(
        encoder, view, X, np.zeros(len(X), dtype=np.int8), InfoNCE(), PretrainConfig(epochs=epochs, batch_size=512)
    )
    return PCA(50, random_state=0).fit_transform(extract_features(encoder, view, X).numpy()).astype(np.float32)


def draw(name: str, share: float, n_p: int, seed: int) -> tuple[Any, np.ndarray, float] | None:
    """Rows, labels and the true share of one cell; None where the set has too few rows."""
    rng = np.random.default_rng([seed, SETS.index(name), round(1000 * share), n_p])
    if name in GAPS:
        return _gaussians(GAPS[name], share, n_p, rng)
    X, is_positive = full_set(name)
    positive, negative = (rng.permutation(np.flatnonzero(side)) for side in (is_positive, ~is_positive))
    n_u = int(min(MOST_UNLABELLED, (len(positive) - n_p) / share, len(negative) / (1 - share)))
    if n_u < LEAST_UNLABELLED:
        return None
    hidden = round(share * n_u)
    rows = np.concatenate([positive[: n_p + hidden], negative[: n_u - hidden]])
    labels = np.concatenate([np.ones(n_p, np.int8), np.zeros(n_u, np.int8)])
    order = rng.permutation(len(rows))
    return _take(X, rows[order]), labels[order], hidden / n_u


def _gaussians(gap: float, share: float, n_p: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, float]:
    hidden = round(share * MOST_UNLABELLED)
    X = rng.normal(size=(n_p + MOST_UNLABELLED, 2))
    X[: n_p + hidden, 0] += gap
    return X, np.concatenate([np.ones(n_p), np.zeros(MOST_UNLABELLED)]), hidden / MOST_UNLABELLED


def _take(X: Any, rows: np.ndarray) -> Any:
    return X.iloc[rows].reset_index(drop=True) if hasattr(X, "iloc") else X[rows]


# --- Accuracy --------------------------------------------------------------------------------------------------------


def cells(quick: bool) -> Iterator[tuple[str, float, int, int]]:
    for seed in SEEDS[:1] if quick else SEEDS:
        for name in SETS:
            for n_p in LABELLED:
                for share in QUICK_SHARES if quick else SHARES:
                    yield name, share, n_p, seed


def measure(name: str, share: float, n_p: int, seed: int, variants: Iterable[str]) -> dict[str, Any]:
    """One cell: every estimator on the same rows and the same out-of-fold scores, to which `combined` adds its own."""
    cell = {"set": name, "share": share, "n_p": n_p, "seed": seed}
    drawn = draw(name, share, n_p, seed)
    if drawn is None:
        return {**cell, "infeasible": True}
    X, labels, truth = drawn
    sample = Sample(X, labels == 1, seed=seed)
    start = time.perf_counter()
    _ = sample.fitted
    cell |= {"truth": truth, "n_u": int((labels == 0).sum()), "seconds_scores": time.perf_counter() - start}
    region = top_region(sample.scores)
    cell["suspicious"] = bool(region is not None and region.suspicious)
    cell["found"], cell["cannot"] = {}, []
    for variant in variants:
        method, options = VARIANTS[variant]
        e = run_one(PRIORS[method](**options), method, sample, "single_set", 0)
        cell["found"][variant] = [e.value, e.low, e.high, e.diagnostics["seconds"]]
        cell["cannot"] += [variant] if e.reason else []
    return cell


def run_accuracy(path: Path, quick: bool, slow: bool, minutes: float) -> bool:
    """Measure what is missing; True when nothing is."""
    path.parent.mkdir(exist_ok=True)
    done = {(c["set"], c["share"], c["n_p"], c["seed"]) for c in lines_of(path)}
    start = time.monotonic()
    for cell in cells(quick):
        if cell in done:
            continue
        if time.monotonic() - start > 60 * minutes:
            return False
        add_lines(path, measure(*cell, VARIANTS if slow else QUICK_VARIANTS))
    return True


def separability() -> dict[str, float]:
    """AUC of gradient boosting on all true labels, out of fold: a property of the set, not of any estimator."""
    found = {}
    for name in SETS:
        if name in GAPS:
            X, y, _ = _gaussians(GAPS[name], 0.5, 0, np.random.default_rng(0))
            y = np.arange(len(X)) < len(X) // 2
        else:
            X, y = full_set(name)
        chosen = np.random.default_rng(0).permutation(len(y))[:4000]
        rows = as_rows(_take(X, chosen)).for_trees
        scores = out_of_fold(rows.values, y[chosen], default_classifier(rows, 0), 0, repeats=1).scores
        found[name] = area_under_curve(scores[y[chosen]], scores[~y[chosen]])
    return found


# --- Scores of known overlap ------------------------------------------------------------------------------------------


def run_simulated(draws: int = 10) -> list[dict[str, Any]]:
    """The default on scores of two unit normal distributions, where no learner adds its own noise."""
    rows = []
    for n_p, auc, share in itertools.product(
        (30, 100, 500), (0.75, 0.85, 0.92, 0.97, 0.99), (0.05, 0.2, 0.5, 0.8, 0.95)
    ):
        found = [_on_scores(n_p, auc, share, seed) for seed in range(draws)]
        errors = [e.value - share for e in found if not e.reason]
        row = {"n_p": n_p, "auc": auc, "share": share, "draws": draws}
        row["covered"] = float(np.mean([e.low <= share <= e.high for e in found]))
        rows.append({**row, "bias": float(np.mean(errors)) if errors else None, "known": len(errors) / draws})
        print(rows[-1], flush=True)
    return rows


def _on_scores(n_p: int, auc: float, share: float, seed: int) -> PriorEstimate:
    rng = np.random.default_rng([seed, n_p, round(1000 * auc), round(1000 * share)])
    is_positive = np.arange(n_p + MOST_UNLABELLED) < n_p + round(share * MOST_UNLABELLED)
    scores = rng.normal(size=len(is_positive)) + np.sqrt(2.0) * norm.ppf(auc) * is_positive
    return estimate_prior(None, np.arange(len(scores)) < n_p, scores=scores, random_state=seed)


# --- The test of random labelling ------------------------------------------------------------------------------------


def run_representative(seeds: int = 4) -> list[dict[str, Any]]:
    """How often biased labelling is noticed, and what it does to the default estimate. True share 0.5."""
    rows = []
    for name in ("gaussians 4 apart", "mushroom", "landsat", "spambase", "mnist"):
        for n_p in (100, 500):
            for strength in (0.0, 1.0, 2.0):
                found = [_biased(name, n_p, strength, seed) for seed in range(seeds)]
                flags, values = zip(*found, strict=True)
                row = {"set": name, "n_p": n_p, "strength": strength, "noticed": float(np.mean(flags))}
                rows.append({**row, "mean_bbe": float(np.mean(values)), "truth": 0.5})
                print(rows[-1], flush=True)
    return rows


def _biased(name: str, n_p: int, strength: float, seed: int) -> tuple[bool, float]:
    """Positives are labelled with weights exp(strength · score), the score their first principal component."""
    drawn = draw(name, 0.5, n_p, seed)
    assert drawn is not None
    X, labels, truth = drawn
    rng = np.random.default_rng(seed)
    is_positive = _positives(name, n_p, seed)
    points = as_rows(X).for_kernels(np.arange(len(labels)))[is_positive]
    # A Gaussian's separating axis is the first; bias along the other one is what separability cannot excuse.
    score = points[:, 1] if name in GAPS else _first_component(points)
    weights = biased_propensity(score, strength)
    chosen = rng.choice(np.flatnonzero(is_positive), n_p, replace=False, p=weights / weights.sum())
    is_p = np.zeros(len(labels), dtype=bool)
    is_p[chosen] = True
    sample = Sample(X, is_p, seed=seed)
    region = top_region(sample.scores)
    value = estimate_prior(None, is_p, "bbe", scores=sample.fitted.scores, random_state=seed).value
    return bool(region is not None and region.suspicious), value


def _positives(name: str, n_p: int, seed: int) -> np.ndarray:
    """Who is positive among the rows of `draw(name, 0.5, n_p, seed)`: drawn again with the classes as features."""
    rng = np.random.default_rng([seed, SETS.index(name), 500, n_p])
    if name in GAPS:
        return np.arange(n_p + MOST_UNLABELLED) < n_p + MOST_UNLABELLED // 2
    _, is_positive = full_set(name)
    positive, negative = (rng.permutation(np.flatnonzero(side)) for side in (is_positive, ~is_positive))
    n_u = int(min(MOST_UNLABELLED, (len(positive) - n_p) / 0.5, len(negative) / 0.5))
    hidden = round(0.5 * n_u)
    flags = np.arange(n_p + n_u) < n_p + hidden
    return flags[rng.permutation(len(flags))]


def _first_component(points: np.ndarray) -> np.ndarray:
    u, s, _ = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)
    return u[:, 0] * s[0]


# --- Speed -----------------------------------------------------------------------------------------------------------


def run_speed() -> dict[str, Any]:
    """Seconds at the sizes of the goals, and the process's peak memory after each."""
    rng = np.random.default_rng(0)
    result: dict[str, Any] = {}

    def timed(what: str, goal: float, run: Callable[[], Any]) -> None:
        start = time.perf_counter()
        run()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        result[what] = {"seconds": time.perf_counter() - start, "goal": goal, "peak_mb": round(peak)}
        print(f"{what}: {result[what]['seconds']:.2f} s (goal {goal:g}), peak {peak:.0f} MB", flush=True)

    million = np.concatenate([rng.normal(2, 1, 300_000), rng.normal(0, 1, 700_000)])
    labels = (np.arange(1_000_000) < 100_000).astype(np.int8)
    timed("bbe, 1,000,000 scores", 1, lambda: estimate_prior(None, labels, "bbe", scores=million))
    timed("combined, 1,000,000 scores", 3, lambda: estimate_prior(None, labels, scores=million))
    X, y = _table_of(4000, 2000, rng)
    timed("km2, 2 x 2,000 rows", 10, lambda: estimate_prior(X, y, "km2"))
    X, y = _table_of(50_000, 5000, rng)
    timed("out-of-fold scores, 50,000 rows", 60, lambda: _scores(X, y))
    scores = _scores(X, y)
    timed("dedpul, 50,000 rows, given scores", 60, lambda: estimate_prior(None, y, "dedpul", scores=scores))
    for method in ("tice", "pen_l1", "tedn"):
        timed(f"{method}, 50,000 rows", 60, functools.partial(estimate_prior, X, y, method))
    timed("all estimators, 50,000 rows", 180, lambda: estimate_prior(X, y, "all"))
    return result


def _table_of(n: int, n_p: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """20 columns, half the rows positive."""
    X = rng.normal(size=(n, 20))
    X[: n // 2, :3] += 2.0
    return X, (np.arange(n) < n_p).astype(np.int8)


def _scores(X: np.ndarray, labels: np.ndarray) -> np.ndarray:
    sample = Sample(X, labels == 1)
    return sample.fitted.scores


# --- Results ---------------------------------------------------------------------------------------------------------


def show(result: dict[str, Any]) -> None:
    accuracy = result.get("accuracy")
    if accuracy is None:
        return
    frame = pd.DataFrame(accuracy["estimators"]).T
    print(f"\n{accuracy['cells']} cells; separable: {', '.join(accuracy['separable'])}")
    print(frame.to_string(float_format=lambda x: f"{x:.3f}"))
    print("\nmean absolute error by set")
    print(pd.DataFrame(accuracy["mae_by_set"]).T[list(frame.index)].to_string(float_format=lambda x: f"{x:.3f}"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["accuracy", "simulated", "representative", "speed", "table"])
    parser.add_argument("--quick", action="store_true", help="one seed, two shares")
    parser.add_argument("--slow", action="store_true", help="every estimator, about five times as long")
    parser.add_argument("--minutes", type=float, default=60.0, help="stop after so long; run again to go on")
    parser.add_argument("--cells", type=Path, default=CACHE / "cells.jsonl", help="one JSON line per finished cell")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", PriorWarning)
    found: dict[str, Any] = {}
    if arguments.part == "accuracy":
        complete = run_accuracy(arguments.cells, arguments.quick, arguments.slow, arguments.minutes)
        found["accuracy"] = summarise(lines_of(arguments.cells), separability())
        found["accuracy"]["complete"] = complete and not arguments.quick
        print("complete" if complete else "stopped by --minutes: run again to go on")
    elif arguments.part == "simulated":
        found["simulated"] = run_simulated()
    elif arguments.part == "representative":
        found["representative"] = run_representative()
    elif arguments.part == "speed":
        found["speed"] = run_speed()
    path = RESULTS / "priors.json"
    result: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    result.pop("machine", None)
    if found:
        save("priors", result | found)
    show(result | found)


if __name__ == "__main__":
    main()
