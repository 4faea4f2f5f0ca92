"""When does puNCE's pull help? InfoNCE, SCL and the printed puNCE, with one thing changed at a time.

    PUNCE_DATA=... PUNCE_FEATURES=... python benchmarks/when_punce.py [--sets mnist frozen] [--seeds 0 1]
    python benchmarks/when_punce.py --summary      # when_punce.json from the lines

`mnist`: 10,000 rows of odd/even, MLP of a tenth of the width, 6 epochs. `frozen`: 20,000 rows of CIFAR-10
vehicle/animal as two frozen ImageNet encoders see them, MLP of a twentieth, 8 epochs. 300 positives are labelled. From
there one thing changes: the strength of the views, the width of the network, the number of labels, or the share of
positives in the population (rows are drawn so that their number stays the same).

A self-consistent head on the features gives `auc` and `accuracy` on the test rows. The AUC does not depend on the share
of positives among them, so it is what the page compares. One line of JSON a run; repeated commands skip what is done.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from json_lines import add_lines, lines_of
from machine import RESULTS, save
from row_probabilities import Choice, Rows, percent, pretrained, pu_scores
from sklearn.metrics import roc_auc_score

from punce.data import Dataset, load, simulate_pu
from punce.experiments import protocol
from punce.experiments.features import load_features
from punce.experiments.frozen import SOURCE
from punce.stages.probe import extract_features
from punce.views import Embedding, View

FILE = RESULTS / "when_punce.jsonl"
LOSSES = ("infonce", "scl", "paper")
_PIXELS = protocol.WEAK_DIGIT_VIEW
VIEWS: dict[str, dict[str, View]] = {
    "mnist": {
        "weak": replace(_PIXELS, crop_scale=(0.95, 1.0), degrees=2.0, zoom=(0.98, 1.02), shear=0.0),
        "usual": _PIXELS,
        "strong": protocol.DIGIT_VIEW,
    },
    "frozen": {
        "weak": Embedding(noise=0.02, dropout=0.05),
        "usual": Embedding(noise=0.1, dropout=0.2),
        "strong": Embedding(noise=0.3, dropout=0.6),
    },
}


@dataclass(frozen=True)
class Setting:
    """Where a loss is tried; the defaults are those of `mnist`."""

    data: str
    views: str = "usual"
    width: float = 0.1
    labels: int = 300
    share: float = 0.5
    epochs: int = 6


BASES = {"mnist": Setting("mnist"), "frozen": Setting("frozen", width=0.05, share=0.4, epochs=8)}
CHANGES: dict[str, dict[str, tuple[Any, ...]]] = {
    "mnist": {
        "views": ("weak", "strong"),
        "width": (0.02, 0.3),
        "labels": (50, 3000),
        "share": (0.1, 0.9),
    },
    "frozen": {
        "views": ("weak", "strong"),
        "width": (0.0125, 0.2),
        "labels": (50, 3000),
        "share": (0.1, 0.7),
    },
}


def settings(name: str) -> list[Setting]:
    """The base, then one change at a time."""
    base = BASES[name]
    return [base, *(replace(base, **{what: to}) for what, values in CHANGES[name].items() for to in values)]


@cache
def all_rows(name: str) -> Dataset:
    return load_features(SOURCE) if name == "frozen" else load("mnist", download=False)


def rows_of(setting: Setting, seed: int) -> Rows:
    """Rows with the wanted share of positives, drawn anew for each seed; the test part stays whole."""
    data, n = all_rows(setting.data), 20_000 if setting.data == "frozen" else 10_000
    y, y_test = (np.where(part.y_true == 1, 1, -1).astype(np.int8) for part in (data.train, data.test))
    rng, n_positive = np.random.default_rng((seed, 7)), round(setting.share * n)
    drawn = [rng.permutation(np.flatnonzero(y == sign))[:k] for sign, k in ((1, n_positive), (-1, n - n_positive))]
    rows = rng.permutation(np.concatenate(drawn))
    return Rows(
        torch.from_numpy(data.train.X[rows]),
        y[rows],
        torch.from_numpy(data.test.X),
        y_test,
        VIEWS[setting.data][setting.views],
        width=setting.width,
        epochs=setting.epochs,
        batch=512 if setting.data == "frozen" else 256,
    )


def run(setting: Setting, loss: str, seed: int) -> dict[str, Any]:
    rows = rows_of(setting, seed)
    sample = simulate_pu(rows.y_true == 1, setting.labels, seed=seed)
    before = time.process_time()
    encoder = pretrained(Choice(setting.data, setting.labels, "pu", loss, "none"), seed, rows, sample)
    spent = time.process_time() - before
    train, test = (extract_features(encoder, rows.view, X).numpy() for X in (rows.X, rows.X_test))
    scores = pu_scores(train, test, sample, seed)
    return {
        **asdict(setting),
        "loss": loss,
        "seed": seed,
        "auc": auc(scores, rows.y_test),
        "accuracy": percent(scores, rows.y_test),
        "cpu_seconds": round(spent, 1),
    }


def auc(scores: npt.NDArray[np.float64], y_true: npt.NDArray[np.int8]) -> float:
    return round(100 * float(roc_auc_score(y_true == 1, scores)), 2)


# Command -------------------------------------------------------------------------------------------------------------


def key(row: dict[str, Any]) -> tuple[Any, ...]:
    return (*(row[name] for name in asdict(BASES["mnist"])), row["loss"], row["seed"])


def summary() -> None:
    """For each setting the mean AUC of each loss, and puNCE's mean lead over the others of the same seeds."""
    found, out = {key(row): row for row in lines_of(FILE)}, []
    for setting in (one for name in BASES for one in settings(name)):
        at = tuple(asdict(setting).values())
        seeds = [seed for seed in range(100) if all((*at, loss, seed) in found for loss in LOSSES)]
        if not seeds:
            continue
        by_loss = {loss: np.array([found[*at, loss, seed]["auc"] for seed in seeds]) for loss in LOSSES}
        means = {loss: round(float(values.mean()), 2) for loss, values in by_loss.items()}
        lead = by_loss["paper"] - np.maximum(by_loss["infonce"], by_loss["scl"])
        out.append({**asdict(setting), "auc": means, "lead": [round(v, 2) for v in lead.tolist()]})
        print(out[-1])
    save("when_punce", {"settings": out, "bases": {name: asdict(base) for name, base in BASES.items()}})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", choices=tuple(BASES), default=list(BASES))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--summary", action="store_true")
    given = parser.parse_args()
    if given.summary:
        summary()
        return
    torch.set_num_threads(1)
    done = {key(row) for row in lines_of(FILE)}
    for seed in given.seeds:
        for setting in (one for name in given.sets for one in settings(name)):
            for loss in LOSSES:
                if (*asdict(setting).values(), loss, seed) not in done:
                    line = run(setting, loss, seed)
                    add_lines(FILE, line)
                    print(line, flush=True)


if __name__ == "__main__":
    main()
