"""Tables: the default of PUClassifier against what else there is, on the six UCI sets.

    PUNCE_DATA=... python benchmarks/tabular.py [--seeds 0 1 2 3 4] [--seconds 450]
    python benchmarks/tabular.py --summary      # no new runs: results/tabular.json; benchmarks/pages.py makes the page

One line of JSON per (set, n_P, seed, method) goes to results/tabular.jsonl; what is there is not run again, so the
run can be cut into pieces with --seconds. The summary is printed and written to results/tabular.json at the end.

The training part is cut to 4,000 rows beside the labelled ones and the test part to 4,000. The test rows come from the
population, so the default decides with ``deploy_prior=prior_.population_prior`` at one half; every other method
decides with its own ``predict``. No method sees true labels except "oracle" (gradient boosting on all of them).
"true prior" methods are told the share of positives among the unlabelled rows; nobody else is.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from machine import RESULTS, save
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import OneHotEncoder

from punce.classifier import PUClassifier
from punce.data import TableEncoder, load, simulate_pu
from punce.experiments.true_metrics import expected_calibration_error
from punce.scenario import population_prior

SETS = ("spambase", "mushroom", "banknote", "landsat", "pageblocks", "shuttle")
N_LABELLED = (50, 200, 1000)
MOST_ROWS = 4_000
FEWEST_HIDDEN = 30  # positives that must be left among the unlabelled rows
LINES = RESULTS / "tabular.jsonl"
N_CELLS = 16  # 6 sets × 3 sizes, less the two sets with fewer than 1,030 positives
N_SEEDS = 5


@dataclass(frozen=True)
class Cell:
    """One simulated problem. `x` are encoded rows for methods that take matrices, `frame` the columns as they are."""

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
    def population_prior(self) -> float:
        n_p = int(self.labels.sum())
        return population_prior(self.prior, n_p, len(self.labels) - n_p, "single_set")


@dataclass(frozen=True)
class Answer:
    scores: np.ndarray
    called: np.ndarray
    probability: np.ndarray | None
    notes: dict[str, Any]


def make_cell(name: str, n_labelled: int, seed: int) -> Cell | None:
    data = load(name, download=False)
    rng = np.random.default_rng(seed)
    train = np.sort(rng.permutation(len(data.train))[: MOST_ROWS + n_labelled])
    test = np.sort(rng.permutation(len(data.test))[:MOST_ROWS])
    y = data.train.y_true[train]
    if y.sum() < n_labelled + FEWEST_HIDDEN:
        return None
    sample = simulate_pu(y, n_labelled, seed=seed)
    frame, frame_test = data.train.X.iloc[train].reset_index(drop=True), data.test.X.iloc[test].reset_index(drop=True)
    encoder = TableEncoder.fit(frame)
    encoded = encoder.transform(frame)
    x_test = encoder.transform(frame_test).values
    return Cell(
        frame, frame_test, encoded.values, x_test, encoded.categorical, sample.labels.astype(int), sample.prior, y,
        data.test.y_true[test], seed,
    )  # fmt: skip


def dense(cell: Cell) -> tuple[np.ndarray, np.ndarray]:
    """Scaled numbers and one-hot codes, for methods that know no categories."""
    if not cell.categorical.any():
        return cell.x, cell.x_test
    codes = OneHotEncoder(handle_unknown="ignore", sparse_output=False).fit(cell.x[:, cell.categorical])
    return tuple(  # type: ignore[return-value]
        np.concatenate([x[:, ~cell.categorical], codes.transform(x[:, cell.categorical])], axis=1).astype(np.float32)
        for x in (cell.x, cell.x_test)
    )


def punce_default(cell: Cell, prior: float | str) -> Answer:
    model = PUClassifier(prior=prior, random_state=cell.seed).fit(cell.frame, cell.labels)
    target = float(np.clip(model.prior_.population_prior, 1e-3, 1 - 1e-3))
    p = model.predict_proba(cell.frame_test, deploy_prior=target)[:, 1]
    notes = {"prior": model.prior_.value, "estimated_auc": model.metrics_.auc.value}
    notes["estimated_accuracy"] = model.metrics_.population.accuracy.value
    return Answer(model.decision_function(cell.frame_test), p > 0.5, p, notes)


def boosting(cell: Cell, target: np.ndarray) -> Answer:
    categorical = cell.categorical if cell.categorical.any() else None
    model = HistGradientBoostingClassifier(categorical_features=categorical, random_state=cell.seed)
    p = model.fit(cell.x, target).predict_proba(cell.x_test)[:, 1]
    return Answer(p, p > 0.5, p, {})


def elkan_noto(cell: Cell) -> Answer:
    from pulearn import ElkanotoPuClassifier

    x, x_test = dense(cell)
    forest = RandomForestClassifier(100, random_state=cell.seed)
    model = ElkanotoPuClassifier(forest, hold_out_ratio=0.2, random_state=cell.seed).fit(x, cell.labels)
    p = model.predict_proba(x_test)[:, 1]
    return Answer(p, model.predict(x_test) == 1, np.clip(p, 0, 1), {})


def bagging(cell: Cell) -> Answer:
    from pulearn import BaggingPuClassifier

    x, x_test = dense(cell)
    n_p = int(cell.labels.sum())
    model = BaggingPuClassifier(n_estimators=100, max_samples=n_p, random_state=cell.seed).fit(x, cell.labels)
    p = model.predict_proba(x_test)[:, 1]
    return Answer(p, model.predict(x_test) == 1, p, {})


def toolbox_nnpu(cell: Cell) -> Answer:
    from pu_toolbox.estimators.risk.nnpu import NonNegativePUClassifier

    x, x_test = dense(cell)
    torch.manual_seed(cell.seed)
    net = torch.nn.Sequential(
        torch.nn.Linear(x.shape[1], 64), torch.nn.ReLU(), torch.nn.Linear(64, 64), torch.nn.ReLU(),
        torch.nn.Linear(64, 1),
    )  # fmt: skip
    model = NonNegativePUClassifier(net, class_prior=cell.prior, max_epochs=50, random_state=cell.seed)
    model.fit(x, cell.labels)
    scores = np.asarray(model.decision_function(x_test)).ravel()
    return Answer(scores, scores > 0, 1 / (1 + np.exp(-scores)), {})


METHODS: dict[str, tuple[str | None, Callable[[Cell], Answer]]] = {
    "punce default": (None, lambda cell: punce_default(cell, "auto")),
    "punce default, true prior": (None, lambda cell: punce_default(cell, cell.prior)),
    "P-vs-U boosting": (None, lambda cell: boosting(cell, cell.labels)),
    "pulearn Elkan-Noto": ("pulearn", elkan_noto),
    "pulearn bagging": ("pulearn", bagging),
    "pu-toolbox nnPU, true prior": ("pu_toolbox", toolbox_nnpu),
    "oracle": (None, lambda cell: boosting(cell, cell.y)),
}
SEES_TRUTH = {"oracle"}
VARIANTS = {"punce default, true prior"}  # of a method, not a rival of it


def measure(cell: Cell, run: Callable[[Cell], Answer]) -> dict[str, Any]:
    start = time.process_time()  # processor time: other work on the machine does not count
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer = run(cell)
    seconds = time.process_time() - start
    p = answer.probability
    return {
        "auc": float(roc_auc_score(cell.y_test, answer.scores)),
        "accuracy": float((answer.called == (cell.y_test == 1)).mean()),
        "ece": None if p is None else expected_calibration_error(cell.y_test, np.clip(p, 0, 1)),
        "seconds": seconds,
        "true_prior": cell.prior,
        **answer.notes,
    }


def run(seeds: list[int], seconds: float) -> bool:
    """Run what is missing; False when time ran out."""
    done = {tuple(row[k] for k in ("set", "n_labelled", "seed", "method")) for row in lines()}
    missing = [name for name, (package, _) in METHODS.items() if package and importlib.util.find_spec(package) is None]
    stop = time.monotonic() + seconds
    for seed in seeds:
        for name in SETS:
            for n_labelled in N_LABELLED:
                wanted = [m for m in METHODS if m not in missing and (name, n_labelled, seed, m) not in done]
                cell = make_cell(name, n_labelled, seed) if wanted else None
                for method in wanted if cell is not None else []:
                    if time.monotonic() > stop:
                        return False
                    row = {"set": name, "n_labelled": n_labelled, "seed": seed, "method": method}
                    row.update(measure(cell, METHODS[method][1]))
                    with LINES.open("a") as file:
                        file.write(json.dumps(row) + "\n")
    return True


def lines() -> list[dict[str, Any]]:
    return [json.loads(line) for line in LINES.read_text().splitlines()] if LINES.exists() else []


def summary() -> dict[str, Any]:
    """Means over seeds per cell; how often each method is best or within two standard errors of the best."""
    table = pd.DataFrame(lines())
    full = table.groupby(["set", "n_labelled", "seed"])["method"].transform("nunique") == table["method"].nunique()
    table = table[full]  # seeds every method has finished
    order = [name for name in METHODS if name in set(table["method"])]
    blind = [name for name in order if name not in SEES_TRUTH]
    n_runs = len(table.groupby(["set", "n_labelled", "seed"]))
    result: dict[str, Any] = {"complete": n_runs >= N_CELLS * N_SEEDS, "problems": n_runs, "methods": {}, "cells": {}}
    result["seeds"] = sorted({int(seed) for seed in table["seed"]})
    for metric in ("auc", "accuracy"):
        wide = table.pivot_table(index=["set", "n_labelled", "seed"], columns="method", values=metric)
        result[f"within_noise_{metric}"] = {name: within_noise(wide[blind], name) for name in blind}
    for name in order:
        rows = table[table["method"] == name]
        result["methods"][name] = {k: float(rows[k].mean()) for k in ("auc", "accuracy", "ece", "seconds")}
    for (name, n_labelled), rows in table.groupby(["set", "n_labelled"], sort=False):
        result["cells"][f"{name} {n_labelled}"] = {
            method: {
                k: [float(part[k].mean()), float(part[k].std(ddof=1)) if len(part) > 1 else 0.0]
                for k in ("auc", "accuracy", "ece", "seconds")
            }
            for method, part in rows.groupby("method")
        }
    result["prior_error"] = prior_error(table)
    return result


def within_noise(wide: pd.DataFrame, name: str) -> list[str]:
    """Cells in which `name` is the best or its paired difference to the best is below two standard errors."""
    good = []
    for cell, rows in wide.groupby(level=[0, 1], sort=False):
        best = rows[[method for method in rows if method == name or method not in VARIANTS]].mean().idxmax()
        gap = rows[best] - rows[name]
        error = gap.std(ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else 0.0
        if gap.mean() <= max(2 * error, 0.001):  # a tenth of a point is no difference worth a method
            good.append(f"{cell[0]} {cell[1]}")
    return good


def prior_error(table: pd.DataFrame) -> dict[str, float]:
    """How far the default's own numbers are from the truth, without negatives."""
    rows = table[table["method"] == "punce default"]
    return {
        "prior": float((rows["prior"] - rows["true_prior"]).abs().mean()),
        "auc": float((rows["estimated_auc"] - rows["auc"]).abs().mean()),
        "accuracy": float((rows["estimated_accuracy"] - rows["accuracy"]).abs().mean()),
    }


def show(result: dict[str, Any]) -> None:
    cells = result["cells"]
    methods = list(result["methods"])
    for metric in ("auc", "accuracy", "ece"):
        print(f"\n{metric} (%), mean over seeds")
        print(" " * 17 + "  ".join(f"{name:>26}" for name in methods))
        for cell, found in cells.items():
            print(f"{cell:17}" + "  ".join(f"{100 * found[m][metric][0]:26.2f}" for m in methods))
        print(f"{'mean':17}" + "  ".join(f"{100 * result['methods'][m][metric]:26.2f}" for m in methods))
    print(f"{'seconds':17}" + "  ".join(f"{result['methods'][m]['seconds']:26.2f}" for m in methods))
    for metric in ("auc", "accuracy"):
        counts = {name: len(good) for name, good in result[f"within_noise_{metric}"].items()}
        print(f"best or within noise in {metric}, of {len(cells)} cells: {counts}")
    print(f"mean absolute error of the default's own estimates: {result['prior_error']}")


def markdown(result: dict[str, Any]) -> str:
    methods = list(result["methods"])
    n_cells = len(result["cells"])
    seeds = result["seeds"]
    head = "| | " + " | ".join(methods) + " |\n|---|" + "---|" * len(methods)
    rows = [
        f"| {cell} | "
        + " | ".join(f"{100 * found[m]['auc'][0]:.2f} / {100 * found[m]['accuracy'][0]:.1f}" for m in methods)
        for cell, found in result["cells"].items()
    ]
    means = {
        name: [f"{factor * result['methods'][m][key]:.{digits}f}" for m in methods]
        for name, key, factor, digits in (
            ("**mean AUC**", "auc", 100, 2),
            ("**mean accuracy**", "accuracy", 100, 2),
            ("**mean ECE**", "ece", 100, 2),
            ("**CPU seconds**", "seconds", 1, 1),
        )
    }
    good = {m: tuple(len(result[f"within_noise_{k}"].get(m, [])) for k in ("auc", "accuracy")) for m in methods}
    means["best or within noise"] = [
        "–" if m in SEES_TRUTH else f"{a} / {b} of {n_cells}" for m, (a, b) in good.items()
    ]
    body = "\n".join([*(f"{row} |" for row in rows), *(f"| {k} | {' | '.join(v)} |" for k, v in means.items())])
    error = result["prior_error"]
    done = "" if result["complete"] else " (the run is not complete: some sets have fewer seeds)"
    return f"""
AUC / accuracy on test rows in per cent, mean over seeds {seeds}{done}; `python benchmarks/tabular.py`, figures in
`benchmarks/results/tabular.json`. Rows are sets with the number of labelled positives; U is cut to 4,000 rows.

{head}
{body}

The default estimates the prior; methods with "true prior" are told it. The oracle is gradient boosting on all true
labels. pulearn's Elkan–Noto uses a random forest, its bagging 100 trees; pu-toolbox's nnPU has two layers of 64 and 50
epochs. Every rival decides with its own `predict`. "Within noise": the paired difference to the best method of the cell
is below two standard errors over seeds, or below 0.1 points (the oracle and our variant with the true prior do not
count). ECE has 15 bins.

The default's own estimates, made without negatives, have a mean absolute error of {error["prior"]:.3f} for the
prior, {error["auc"]:.3f} for AUC and {error["accuracy"]:.3f} for accuracy.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long; run again to go on")
    parser.add_argument("--summary", action="store_true", help="run nothing; write the summary")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if not arguments.summary:
        run(arguments.seeds, arguments.seconds)
    result = summary()
    show(result)
    print(f"\nwritten to {save('tabular', result)}" + ("" if result["complete"] else " (incomplete: run again)"))


if __name__ == "__main__":
    main()
