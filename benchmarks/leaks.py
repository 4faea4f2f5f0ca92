"""Columns that give the label away: false alarms on honest tables, and planted columns that are found.

    PUNCE_DATA=... python benchmarks/leaks.py [--seeds 0 1 2] [--seconds 600]

Six UCI sets. Honest tables have their natural share of positives among the unlabelled rows, or 5 % or 2 %; planted ones
their natural share and one of seven kinds of columns that only labelling could have filled in. The search for columns
runs as in a fit, but on out-of-fold scores of one boosting model instead of the ensemble's, which take longer. Lines go
to results/leaks.jsonl; what is there is not run again. The summary is results/leaks.json.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
from json_lines import add_lines, lines_of
from machine import RESULTS, save

from punce.columns.bins import Bins
from punce.data import TableEncoder, load
from punce.judging.joint_leaks import QuickModel, find_joint_leak, most_hidden

SETS = ("spambase", "mushroom", "banknote", "landsat", "pageblocks", "shuttle")
N_LABELLED = (30, 100, 500)
SHARES = (None, 0.05, 0.02)
PLANTED = ("single", "missing", "partial", "dirty", "number", "product", "difference")
MOST_UNLABELLED = 3_000
LINES = RESULTS / "leaks.jsonl"


def sample(name: str, n_labelled: int, share: float | None, seed: int) -> tuple[pd.DataFrame, np.ndarray, float]:
    """Columns, labels, and the true share of positives among the unlabelled rows."""
    part = load(name, download=False).train
    y, rng = np.asarray(part.y_true).astype(bool), np.random.default_rng(seed)
    positive, negative = (rng.permutation(np.flatnonzero(side)) for side in (y, ~y))
    n_labelled = min(n_labelled, len(positive) // 2)
    hidden = positive[n_labelled:]
    unlabelled = rng.permutation(np.concatenate([hidden, negative]))[:MOST_UNLABELLED]
    if share is not None:
        size = min(MOST_UNLABELLED, len(negative))
        unlabelled = np.concatenate([hidden[: round(share * size)], negative[: size - round(share * size)]])
    rows = np.concatenate([positive[:n_labelled], unlabelled])
    labels = np.repeat([1, 0], [n_labelled, len(unlabelled)])
    return part.X.iloc[rows].reset_index(drop=True), labels, float(y[unlabelled].mean())


def plant(frame: pd.DataFrame, labels: np.ndarray, kind: str, seed: int) -> tuple[pd.DataFrame, set[str]]:
    """The table with columns that give the label away, and their names."""
    rng, is_p, n = np.random.default_rng(seed + 7), labels == 1, len(labels)
    a, b = rng.normal(size=n), rng.normal(size=n)
    opened = rng.uniform(0, 1000, n)
    new: dict[str, np.ndarray] = {
        "single": {"review": np.where(is_p, a + 4, a)},
        "missing": {"reviewed": np.where(is_p, a, np.nan)},
        "partial": {"reviewed": np.where(is_p & (rng.random(n) < 0.7), a, np.nan)},
        "dirty": {"reviewed": np.where(is_p | (rng.random(n) < 0.01), a, np.nan)},
        "number": {"case": np.argsort(np.argsort(~is_p, kind="stable"), kind="stable") * 3.0 + 1000},
        "product": {"a": a, "b": np.where((a * b > 0) == is_p, b, -b)},
        "difference": {
            "opened": opened,
            "closed": opened + np.where(is_p, rng.uniform(0, 60, n), rng.uniform(150, 1000, n)),
        },
    }[kind]
    return frame.assign(**new), set(new)


def run(name: str, n_labelled: int, share: float | None, kind: str | None, seed: int) -> dict[str, Any]:
    frame, labels, true_share = sample(name, n_labelled, share, seed)
    frame, planted = (frame, set()) if kind is None else plant(frame, labels, kind, seed)
    encoder = TableEncoder.fit(frame)
    values = encoder.transform(frame).values
    binned = Bins.fit(values, encoder.categorical).transform(values)
    scores = QuickModel(binned, labels == 1, encoder.outputs, seed + 1).out_of_fold(())
    leak = find_joint_leak(lambda rows: binned[rows], labels, encoder.outputs, scores, seed)
    found = set(leak.columns) if leak else set()
    return {
        "share": true_share,
        "bound": most_hidden(scores, labels == 1),
        "columns": sorted(found),
        "said": "nothing" if not found else "exactly" if found == planted else "some" if found & planted else "others",
    }


def cells(seeds: list[int]) -> list[tuple[Any, ...]]:
    honest = [(name, n, share, None, seed) for name in SETS for n in N_LABELLED for share in SHARES for seed in seeds]
    planted = [(name, n, None, kind, seed) for name in SETS for n in N_LABELLED for kind in PLANTED for seed in seeds]
    return sorted(honest + planted, key=lambda cell: cell[-1])


def summary(lines: list[dict[str, Any]]) -> dict[str, Any]:
    honest = [line for line in lines if line["planted"] is None]
    found: dict[str, Any] = {}
    for kind in PLANTED:
        for n in N_LABELLED:
            said = Counter(line["said"] for line in lines if (line["planted"], line["n_labelled"]) == (kind, n))
            found.setdefault(kind, {})[str(n)] = dict(said)
    return {
        "honest": {
            "tables": len(honest),
            "false_alarms": sum(line["said"] != "nothing" for line in honest),
            "bound_holds": float(np.mean([line["bound"] >= line["share"] for line in honest])),
        },
        "planted": found,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--seconds", type=float, default=3600.0)
    asked = parser.parse_args()
    names = ("set", "n_labelled", "asked_share", "planted", "seed")
    lines = lines_of(LINES)
    done, end = {tuple(line[name] for name in names) for line in lines}, time.monotonic() + asked.seconds
    for cell in cells(asked.seeds):
        if cell in done or time.monotonic() > end:
            continue
        lines.append({**dict(zip(names, cell, strict=True)), **run(*cell)})
        add_lines(LINES, lines[-1])
    save("leaks", summary(lines))
    print(json.dumps(summary(lines), indent=1))


if __name__ == "__main__":
    main()
