"""Where the row probabilities p_i of posterior puNCE should come from, how much own view to keep, and when to start.

    PUNCE_DATA=... PUNCE_FEATURES=... python benchmarks/row_probabilities.py [--sets mnist frozen] [--seeds 0 1 2]
    python benchmarks/row_probabilities.py --summary      # row_probabilities.json from the lines

`mnist`: 10,000 rows of odd/even, 1,000 or 100 labelled, MLP of a fifth of the width, 6 epochs of changed pixels.
`frozen`: 20,000 rows of CIFAR-10 vehicle/animal as two frozen ImageNet encoders see them, 200 labelled, MLP of a
twentieth, 8 epochs of noise and dropout. Labelled are positives alone (PU) or rows of both classes (PNU). One thing
changes at a time from p_i by class means, the default α and a start at the first step:

- source: `means` of the batch's classes; the `online` head beside the encoder, on detached features;
  `out of fold`, a self-consistent head on the rows as they are, cross-fitted before the start; `true`, the true labels
  (oracle: what perfect probabilities would bring);
- own view α, or by confidence: rows whose p_i is near one half keep theirs; start: steps before this epoch use InfoNCE.

A self-consistent head (PU) or logistic regression (PNU) on the features gives `accuracy`; `oracle_linear` is the same
regression on all true labels. One line of JSON a run; repeated commands skip what is done.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict, dataclass
from functools import cache, cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from json_lines import add_lines, lines_of
from machine import RESULTS, save
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from punce.data import Dataset, PUSample, load, simulate_pnu, simulate_pu
from punce.encoders import MLP
from punce.experiments.features import load_features
from punce.experiments.frozen import SOURCE, VIEW
from punce.losses import SCL, InfoNCE, PuNCE
from punce.losses.punce import OwnView
from punce.models.portfolio.heads import HEADS, HeadProblem
from punce.models.ridge import chances
from punce.risks import NNPU
from punce.stages.probe import extract_features
from punce.training.splits import PUStratifiedKFold
from punce.views import VIEWS, View

FILE = RESULTS / "row_probabilities.jsonl"
RATE, FOLDS = 1e-3, 5
Floats = npt.NDArray[np.float64]
NAMES = ("data", "n_labelled", "setting", "loss", "source", "own_view", "start")


@dataclass(frozen=True)
class Choice:
    """One way to weigh. `own_view` None is the loss's own default: 0 with positives alone, else 0.5."""

    data: str
    n_labelled: int
    setting: str
    loss: str = "posterior"
    source: str = "means"
    own_view: OwnView = None
    start: int = 0


def choices() -> list[Choice]:
    """Other losses, then one change at a time; fewer of them where labels are few."""
    found = []
    for data, n_labelled, alphas, starts in (
        ("mnist", 1_000, (0.0, 0.25, 0.5, 0.75), (1, 3)),
        ("mnist", 100, (0.75,), ()),
        ("frozen", 200, (0.75,), ()),
    ):
        for setting in ("pu", "pnu"):
            at = partial(Choice, data, n_labelled, setting)
            found += [at(loss=loss, source="none") for loss in ("infonce", "scl", "paper")]
            found += [at(source=source) for source in ("means", "online", "out of fold", "true")]
            found += [at(own_view=alpha) for alpha in (*alphas, "confidence")]
            found += [at(start=epoch) for epoch in starts]
    return found


@dataclass(frozen=True)
class Rows:
    """A set and how it is pretrained on. Shape: X (n, ...), X_test (m, ...), y_true (n,), y_test (m,) of {1, -1}."""

    X: Tensor
    y_true: npt.NDArray[np.int8]
    X_test: Tensor
    y_test: npt.NDArray[np.int8]
    view: View
    width: float
    epochs: int
    batch: int

    @cached_property
    def pixels(self) -> npt.NDArray[np.float32]:
        """The rows as a head on them sees them. Shape: (n, D)."""
        return self.view.clean(self.X).flatten(1).numpy()

    def encoder(self) -> MLP:
        return MLP(self.pixels.shape[1], width=self.width)


@cache
def rows_of(name: str) -> Rows:
    if name == "frozen":
        return _first(load_features(SOURCE), 20_000, VIEW, width=0.05, epochs=8, batch=512)
    return _first(load("mnist", download=False), 10_000, VIEWS["digit"](), width=0.2, epochs=6, batch=256)


def _first(data: Dataset, n: int, view: View, **training: Any) -> Rows:
    y, y_test = (np.where(part.y_true == 1, 1, -1).astype(np.int8) for part in (data.train, data.test))
    X, X_test = torch.from_numpy(data.train.X[:n]), torch.from_numpy(data.test.X)
    return Rows(X, y[:n], X_test, y_test, view, **training)


def run(choice: Choice, seed: int) -> dict[str, Any]:
    rows, is_pu = rows_of(choice.data), choice.setting == "pu"
    sample = (simulate_pu if is_pu else simulate_pnu)(rows.y_true == 1, choice.n_labelled, seed=seed)
    before = time.process_time()
    encoder = pretrained(choice, seed, rows, sample)
    spent = time.process_time() - before
    train, test = (extract_features(encoder, rows.view, X).numpy() for X in (rows.X, rows.X_test))
    scores = pu_scores(train, test, sample, seed) if is_pu else pn_scores(train, test, sample.labels)
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
    encoder, labels = rows.encoder(), torch.from_numpy(sample.labels.astype(np.int64))
    fixed = fixed_probabilities(choice.source, rows, sample, seed)
    steps = torch.optim.Adam(encoder.parameters(), lr=RATE)
    for epoch in range(rows.epochs):
        order = torch.randperm(len(rows.X), generator=torch.Generator().manual_seed(1000 * seed + epoch))
        plan = rows.view.plan(len(rows.X), seed, epoch, X=rows.X)
        for at in range(0, len(order) - rows.batch + 1, rows.batch):
            batch = order[at : at + rows.batch]
            h = encoder.features(plan.apply(rows.X[batch], torch.arange(at, at + rows.batch)).flatten(0, 1))
            z, scores = encoder.project(h).view(2, rows.batch, -1), encoder.monitor(h)
            given = None if fixed is None else fixed[batch]
            if choice.source == "online":
                given = scores.detach().view(2, rows.batch).mean(0).sigmoid()
            loss = contrastive(choice, epoch, sample.prior, z, labels[batch], given)
            steps.zero_grad()
            (loss + head_loss(scores, labels[batch].repeat(2), sample)).backward()
            steps.step()
    return encoder.eval()


def head_loss(scores: Tensor, labels: Tensor, sample: PUSample) -> Tensor:
    """Of the online head: the nnPU risk, or cross-entropy on the rows with a label of either class."""
    if sample.setting == "pu":
        return NNPU(sample.prior)(scores, labels)
    known = labels != 0
    return binary_cross_entropy_with_logits(scores[known], (labels[known] == 1).to(scores.dtype)).nan_to_num(0.0)


def contrastive(
    choice: Choice, epoch: int, prior: float, z: Tensor, labels: Tensor, probabilities: Tensor | None
) -> Tensor:
    if choice.loss == "infonce" or epoch < choice.start:
        return InfoNCE()(z)
    if choice.loss == "scl":
        return SCL()(z, labels)
    if choice.loss == "paper":
        return PuNCE(prior)(z, labels)
    return PuNCE(prior, weighting="posterior", own_view=choice.own_view)(z, labels, probabilities)


def fixed_probabilities(source: str, rows: Rows, sample: PUSample, seed: int) -> Tensor | None:
    """p_i that do not change in training, where the source gives such. Shape: (n,)."""
    if source == "true":
        return torch.from_numpy((rows.y_true == 1).astype(np.float64))
    if source != "out of fold":
        return None
    x, labels, scores = rows.pixels, sample.labels, np.empty(len(rows.X))
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


def summary() -> None:
    """Means over seeds of every choice, and the mean difference from the default of the same seeds."""
    out = []
    for choice in choices():
        own = by_seed(choice)
        default = by_seed(Choice(choice.data, choice.n_labelled, choice.setting))
        pairs = [(own[seed], default[seed]) for seed in sorted(own.keys() & default.keys())]
        if pairs:
            out.append({**asdict(choice), **_means(pairs), "seeds": len(pairs)})
            print(out[-1])
    save("row_probabilities", {"choices": out})


def by_seed(choice: Choice) -> dict[int, dict[str, Any]]:
    wanted = tuple(asdict(choice).values())
    return {row["seed"]: row for row in lines_of(FILE) if tuple(row[name] for name in NAMES) == wanted}


def _means(pairs: list[tuple[dict[str, Any], dict[str, Any]]]) -> dict[str, Any]:
    ahead = [own["accuracy"] - default["accuracy"] for own, default in pairs]
    means = {name: round(float(np.mean([own[name] for own, _ in pairs])), 2) for name in ("accuracy", "oracle_linear")}
    deviation = round(float(np.std(ahead, ddof=1)), 2) if len(ahead) > 1 else None
    return {**means, "ahead_of_means": round(float(np.mean(ahead)), 2), "its_deviation": deviation}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", choices=("mnist", "frozen"), default=["mnist", "frozen"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--summary", action="store_true")
    given = parser.parse_args()
    if given.summary:
        summary()
        return
    done = {(*(row[name] for name in NAMES), row["seed"]) for row in lines_of(FILE)}
    wanted = [(choice, seed) for seed in given.seeds for choice in choices() if choice.data in given.sets]
    for choice, seed in wanted:
        if (*asdict(choice).values(), seed) not in done:
            line = run(choice, seed)
            add_lines(FILE, line)
            print(line, flush=True)


if __name__ == "__main__":
    main()
