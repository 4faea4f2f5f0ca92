"""Where the row probabilities p_i of posterior puNCE should come from, how much own view to keep, and when to start.

    PUNCE_DATA=... python benchmarks/row_probabilities.py [--seeds 0 1 2] [--seconds 600]
    PUNCE_DATA=... python benchmarks/row_probabilities.py --summary      # row_probabilities.json from the lines

10,000 rows of MNIST odd/even, MLP of a fifth of the width, 6 epochs; 1,000 labelled rows: positives (PU), or of both
classes (PNU). One thing changes at a time from p_i by class means, the default α and a start at the first step:

- source: `means` of the batch's classes; the `online` head beside the encoder, on detached features;
  `out of fold`, a self-consistent head on the pixels, cross-fitted before the start; `true`, the true labels (oracle);
- own view α; start: steps before this epoch use InfoNCE.

A self-consistent head (PU) or logistic regression (PNU) on the features gives `accuracy`; `oracle_linear` is the same
regression on all true labels. One line of JSON a run; repeated commands skip what is done.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from machine import RESULTS, save
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from punce.data import PUSample, load, simulate_pnu, simulate_pu
from punce.encoders import MLP
from punce.losses import InfoNCE, PuNCE
from punce.models.portfolio.heads import HEADS, HeadProblem
from punce.models.portfolio.ridge import chances
from punce.risks import NNPU
from punce.stages.probe import extract_features
from punce.training.splits import PUStratifiedKFold
from punce.views import VIEWS

FILE = RESULTS / "row_probabilities.jsonl"
ROWS, N_LABELLED, WIDTH, EPOCHS, BATCH, RATE, FOLDS = 10_000, 1_000, 0.2, 6, 256, 1e-3, 5
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Choice:
    """One way to weigh. `own_view` None is the loss's own default: 0 with positives alone, else 0.5."""

    setting: str
    loss: str = "posterior"
    source: str = "means"
    own_view: float | None = None
    start: int = 0


def choices() -> list[Choice]:
    """The losses of the paper, then one change at a time."""
    found = []
    for setting in ("pu", "pnu"):
        found += [Choice(setting, loss=loss, source="none") for loss in ("infonce", "paper")]
        found += [Choice(setting, source=source) for source in ("means", "online", "out of fold", "true")]
        found += [Choice(setting, own_view=alpha) for alpha in (0.0, 0.25, 0.5, 0.75)]
        found += [Choice(setting, start=epoch) for epoch in (1, 3)]
    return found


@dataclass(frozen=True)
class Rows:
    """Shape: X (n, 784), X_test (m, 784), y_true (n,), y_test (m,) of {1, -1}."""

    X: Tensor
    y_true: npt.NDArray[np.int8]
    X_test: Tensor
    y_test: npt.NDArray[np.int8]


def mnist_rows() -> Rows:
    data = load("mnist", download=False)
    y, y_test = (np.where(part.y_true == 1, 1, -1).astype(np.int8) for part in (data.train, data.test))
    return Rows(torch.from_numpy(data.train.X[:ROWS]), y[:ROWS], torch.from_numpy(data.test.X), y_test)


def run(choice: Choice, seed: int, rows: Rows) -> dict[str, Any]:
    draw = simulate_pu if choice.setting == "pu" else simulate_pnu
    sample = draw((rows.y_true == 1).astype(np.int8), N_LABELLED, seed=seed)
    before = time.process_time()
    encoder = pretrained(choice, seed, rows, sample)
    spent, view = time.process_time() - before, VIEWS["digit"]()
    train, test = (extract_features(encoder, view, X).numpy() for X in (rows.X, rows.X_test))
    scores = pu_scores(train, test, sample, seed) if choice.setting == "pu" else pn_scores(train, test, sample.labels)
    return {
        **asdict(choice),
        "seed": seed,
        "accuracy": percent(scores, rows.y_test),
        "oracle_linear": percent(pn_scores(train, test, rows.y_true), rows.y_test),
        "cpu_seconds": round(spent, 1),
    }


def percent(scores: Floats, y_true: npt.NDArray[np.int8]) -> float:
    return round(100 * float(((scores > 0) == (y_true == 1)).mean()), 2)


def pretrained(choice: Choice, seed: int, rows: Rows, sample: PUSample) -> MLP:
    """The encoder after a plain loop of our own: here the loss gets the rows' probabilities from outside."""
    torch.manual_seed(seed)
    encoder, view, labels = MLP(width=WIDTH), VIEWS["digit"](), torch.from_numpy(sample.labels.astype(np.int64))
    fixed = fixed_probabilities(choice.source, rows, sample, seed)
    steps = torch.optim.Adam(encoder.parameters(), lr=RATE)
    monitor = NNPU(sample.prior)
    for epoch in range(EPOCHS):
        order = torch.randperm(ROWS, generator=torch.Generator().manual_seed(1000 * seed + epoch))
        plan, at = view.plan(ROWS, seed, epoch, X=rows.X), 0
        for batch in order[: ROWS // BATCH * BATCH].view(-1, BATCH):
            two = plan.apply(rows.X[batch], torch.arange(at, at + BATCH))
            h = encoder.features(two.flatten(0, 1))
            z, scores = encoder.project(h).view(2, BATCH, -1), encoder.monitor(h)
            given = None if fixed is None else fixed[batch]
            if choice.source == "online":
                given = scores.detach().view(2, BATCH).mean(0).sigmoid()
            loss = contrastive(choice, epoch, sample.prior, z, labels[batch], given)
            loss = loss + monitor(scores, labels[batch].clamp_min(0).repeat(2))
            steps.zero_grad()
            loss.backward()
            steps.step()
            at += BATCH
    return encoder.eval()


def contrastive(
    choice: Choice, epoch: int, prior: float, z: Tensor, labels: Tensor, probabilities: Tensor | None
) -> Tensor:
    if choice.loss == "infonce" or epoch < choice.start:
        return InfoNCE()(z)
    if choice.loss == "paper":
        return PuNCE(prior)(z, labels)
    return PuNCE(prior, weighting="posterior", own_view=choice.own_view)(z, labels, probabilities)


def fixed_probabilities(source: str, rows: Rows, sample: PUSample, seed: int) -> Tensor | None:
    """p_i that do not change in training, where the source gives such. Shape: (n,)."""
    if source == "true":
        return torch.from_numpy((rows.y_true == 1).astype(np.float64))
    if source != "out of fold":
        return None
    x, labels = rows.X.flatten(1).numpy().astype(np.float32) / 255, sample.labels
    scores = np.empty(ROWS)
    for rest, fold in PUStratifiedKFold(FOLDS, random_state=seed).split(x, np.maximum(labels, 0)):
        own = head_scores(x[rest], x[fold], labels[rest], sample.prior, seed)
        scores[fold] = own / own.std()
    return torch.from_numpy(chances(2.0 * scores, sample.prior))


def head_scores(x: Any, new: Any, labels: npt.NDArray[np.int8], prior: float, seed: int) -> Floats:
    """Scores of `new` by a self-consistent head on `x`."""
    truths = np.where(labels < 0, labels, 0).astype(np.int8)
    problem = HeadProblem(x, labels == 1, truths, np.ones(len(labels)), prior, seed)
    return np.asarray(HEADS["self_consistent"](problem).score(new), dtype=np.float64)


def pu_scores(train: Any, test: Any, sample: PUSample, seed: int) -> Floats:
    """Positive where more than the share π of the unlabelled rows lies below."""
    both = head_scores(train, np.concatenate([train, test]), sample.labels, sample.prior, seed)
    unlabelled = both[: len(train)][sample.labels == 0]
    return both[len(train) :] - np.quantile(unlabelled, 1 - sample.prior)


def pn_scores(train: Any, test: Any, labels: npt.NDArray[np.int8]) -> Floats:
    """Logistic regression on the rows with a label of either class."""
    known = labels != 0
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300, C=0.1)).fit(train[known], labels[known])
    return np.asarray(model.decision_function(test))


def lines() -> list[dict[str, Any]]:
    return [json.loads(line) for line in FILE.read_text().splitlines()] if FILE.exists() else []


def summary() -> None:
    """Means over seeds of every choice, and the mean difference from the default of the same seeds."""
    done, out = lines(), []
    default = {(row["setting"], row["seed"]): row["accuracy"] for row in done if is_default(row)}
    for choice in choices():
        own = [row for row in done if all(row[name] == value for name, value in asdict(choice).items())]
        if not own:
            continue
        ahead = [row["accuracy"] - default[row["setting"], row["seed"]] for row in own]
        means = {name: round(float(np.mean([row[name] for row in own])), 2) for name in ("accuracy", "oracle_linear")}
        spread = round(float(np.std(ahead, ddof=1)), 2) if len(ahead) > 1 else None
        difference = {"ahead_of_means": round(float(np.mean(ahead)), 2), "its_deviation": spread}
        out.append({**asdict(choice), **means, **difference, "seeds": len(own)})
        print(out[-1])
    save("row_probabilities", {"rows": ROWS, "n_labelled": N_LABELLED, "epochs": EPOCHS, "choices": out})


def is_default(row: dict[str, Any]) -> bool:
    return all(row[name] == value for name, value in asdict(Choice(row["setting"])).items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--summary", action="store_true")
    given = parser.parse_args()
    if given.summary:
        summary()
        return
    rows, until = mnist_rows(), time.monotonic() + given.seconds
    done = {tuple(row[name] for name in (*asdict(Choice("pu")), "seed")) for row in lines()}
    for seed in given.seeds:
        for choice in choices():
            if (*asdict(choice).values(), seed) in done or time.monotonic() > until:
                continue
            line = run(choice, seed, rows)
            with FILE.open("a") as file:
                file.write(json.dumps(line) + "\n")
            print(line, flush=True)


if __name__ == "__main__":
    main()
