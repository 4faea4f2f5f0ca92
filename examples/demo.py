"""make demo: three contrastive losses on scikit-learn's digits, with 100 labelled odd digits and no labelled even one.

For each loss and each of a few labelled sets: pretrain a small network on two views, freeze it, train a linear layer
on its features with nnPU. The last row trains the same network on nnPU alone. Everything is judged twice: by what a
person without negatives can compute (held-out labelled and unlabelled rows), and by the true labels of the test part.
Neither reaches a training step. The settings below were picked by hand from a few tries with the test accuracy in view:
this shows how the parts fit together and compares nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from punce.data import Dataset, PUSample, load, simulate_pu
from punce.encoders import MLP, Encoder
from punce.finetune import FinetuneConfig, train_from_scratch
from punce.holdout import holdout_split
from punce.labels import Labels
from punce.losses import SCL, ContrastiveLoss, InfoNCE, PuNCE
from punce.metrics import pu_metrics, true_metrics
from punce.pretrain import PretrainConfig, pretrain
from punce.probe import LinearHead, ProbeConfig, extract_features, probe
from punce.risks import NNPU
from punce.views import VIEWS, View

LOSSES: dict[str, Callable[[float], ContrastiveLoss]] = {
    "InfoNCE": lambda prior: InfoNCE(),
    "SCL": lambda prior: SCL(),
    "puNCE": lambda prior: PuNCE(prior),
}
SCRATCH = "nnPU from scratch"
N_LABELLED = 100


@dataclass(frozen=True)
class Scale:
    """How much work: the demo, or the same in a second or two for the tests."""

    n_sets: int = 3
    width: float = 0.1
    epochs: int = 20
    probe_epochs: int = 200


QUICK = Scale(n_sets=1, width=0.01, epochs=2, probe_epochs=10)


@dataclass(frozen=True)
class Split:
    """One labelled set: what is trained on, what is held out of *every* stage, and the test part."""

    sample: PUSample
    X: Tensor
    labels: Labels
    held_out_rows: Tensor
    held_out_labels: Labels
    test_rows: Tensor


@dataclass(frozen=True)
class Result:
    """One trained classifier: its scores, and both judgements of it."""

    method: str
    positive: np.ndarray
    unlabelled: np.ndarray
    test: np.ndarray
    estimated_accuracy: float
    true_accuracy: float
    seconds: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a second or two of work; the numbers mean nothing")
    parser.add_argument("--out", type=Path, default=Path("demo-out"), help="folder for the picture")
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # small matrices: faster so, and the same numbers on every machine with this build
    run(QUICK if arguments.quick else Scale(), arguments.out, Console())


def run(scale: Scale, out: Path, console: Console) -> list[Result]:
    """Train, print the table, save the picture; the results, set after set."""
    digits = load("digits")
    introduce(console, digits, scale)
    results = []
    for seed in range(scale.n_sets):
        split = make_split(digits, seed)
        for result in compete(split, digits, scale, seed, console):
            results.append(result)
            _say(
                console,
                f"  labelled set {seed + 1}/{scale.n_sets}  {result.method:<17}  true test accuracy "
                f"{result.true_accuracy:.1%}  {result.seconds:4.1f} s",
            )
    console.print(summary(results, scale))
    explain(console, results)
    _say(console, f"Picture of puNCE's scores: {save_picture(results, digits, out)}")
    _say(console, f"Every number: {save_numbers(results, scale, out)}")
    return results


def make_split(digits: Dataset, seed: int) -> Split:
    """Label 100 odd digits at random and keep 20 % of labelled and unlabelled rows away from all training."""
    sample = simulate_pu(digits.train.y_true, N_LABELLED, seed=seed)
    X = torch.from_numpy(digits.train.X)
    train, held_out = holdout_split(sample.labels, 0.2, seed)
    labels, held_out_labels = sample.labels[train.numpy()], sample.labels[held_out.numpy()]
    return Split(sample, X[train], labels, X[held_out], held_out_labels, torch.from_numpy(digits.test.X))


def compete(split: Split, digits: Dataset, scale: Scale, seed: int, console: Console) -> Iterator[Result]:
    """Each method in turn on the same rows, labels and initial weights."""
    view = VIEWS["digit"]().fit(split.X)
    for method in (*LOSSES, SCRATCH):
        with console.status(f"{method}: training …"):
            start = time.perf_counter()
            torch.manual_seed(seed)
            encoder = MLP(in_features=64, width=scale.width)
            train = pretrain_and_probe if method in LOSSES else from_scratch
            head = train(method, encoder, view, split, scale, seed)
            seconds = time.perf_counter() - start
            yield judge(method, encoder, view, head, split, digits, seconds)


def pretrain_and_probe(method: str, encoder: Encoder, view: View, split: Split, scale: Scale, seed: int) -> LinearHead:
    """The paper's way: contrastive pretraining, then a linear layer on the frozen features."""
    prior = split.sample.prior
    config = PretrainConfig(epochs=scale.epochs, batch_size=256, lr=2e-3, monitor_prior=prior, seed=seed)
    pretrain(encoder, view, split.X, split.labels, LOSSES[method](prior), config)
    features = extract_features(encoder, view, split.X)
    # 80 labelled rows are too few to give up another fifth for choosing an epoch: take the last one.
    probe_config = ProbeConfig(epochs=scale.probe_epochs, validation_share=0.0, seed=seed)
    return probe(features, split.labels, NNPU(prior), probe_config, prior=prior)


def from_scratch(method: str, encoder: Encoder, view: View, split: Split, scale: Scale, seed: int) -> LinearHead:
    """The classic way: the same network, nnPU from the first step, as many augmented rows as the two views are."""
    prior = split.sample.prior
    config = FinetuneConfig(
        epochs=2 * scale.epochs, batch_size=256, lr=2e-3, augment=True, validation_share=0.0, seed=seed
    )
    return train_from_scratch(encoder, view, split.X, split.labels, NNPU(prior), config, prior=prior)


def judge(
    method: str, encoder: Encoder, view: View, head: LinearHead, split: Split, digits: Dataset, seconds: float
) -> Result:
    """Score held-out and test rows; a positive score means odd."""
    held_out, test = (head(extract_features(encoder, view, X)).numpy() for X in (split.held_out_rows, split.test_rows))
    positive, unlabelled = held_out[split.held_out_labels == 1], held_out[split.held_out_labels == 0]
    estimated = pu_metrics(positive, unlabelled, split.sample.prior).population.accuracy.value
    true = true_metrics(digits.test.y_true, test).accuracy
    return Result(method, positive, unlabelled, test, estimated, true, seconds)


def introduce(console: Console, digits: Dataset, scale: Scale) -> None:
    n, hidden = len(digits.train), digits.train.n_positive - N_LABELLED
    _say(
        console,
        "[bold]Which digits are odd?[/bold]",
        f"{n:,} images of 8 × 8 pixels: {N_LABELLED} odd ones are labelled, no even one is.",
        f"Among the other {n - N_LABELLED:,}, {hidden} odd digits hide. Labelled sets drawn at random: {scale.n_sets}.",
        "",
    )


def _say(console: Console, *lines: str) -> None:
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True)


def summary(results: list[Result], scale: Scale) -> Table:
    """Mean and standard deviation over the labelled sets."""
    table = Table(title=f"mean ± standard deviation over {scale.n_sets} labelled sets", title_justify="left")
    for column in ("trained with", "accuracy, estimated\nwithout negatives", "true test\naccuracy", "seconds\neach"):
        table.add_column(column, justify="left" if column == "trained with" else "right")
    for method in (*LOSSES, SCRATCH):
        own = [result for result in results if result.method == method]
        estimated, true = ([getattr(r, f"{kind}_accuracy") for r in own] for kind in ("estimated", "true"))
        seconds = np.median([result.seconds for result in own])  # the first one also pays for loading libraries
        table.add_row(method, _percent(estimated), _percent(true), f"{seconds:.1f}")
    return table


def _percent(shares: list[float]) -> str:
    return f"{100 * np.mean(shares):.1f} ± {100 * np.std(shares, ddof=min(1, len(shares) - 1)):.1f} %"


def explain(console: Console, results: list[Result]) -> None:
    n_p, n_u = len(results[0].positive), len(results[0].unlabelled)
    _say(
        console,
        "",
        f"The estimate uses {n_p} labelled and {n_u} unlabelled digits held out of all training,",
        "so each is rough. The true accuracy can be shown because these labels are simulated;",
        "with your own data only the estimate exists.",
    )


def save_picture(results: list[Result], digits: Dataset, out: Path) -> Path:
    """Two histograms of one puNCE classifier's scores: what a person sees, and what is true."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    chosen = next(result for result in results if result.method == "puNCE")
    is_odd = digits.test.y_true == 1
    panels = (
        ("What you can see: held-out rows", {"labelled": chosen.positive, "unlabelled": chosen.unlabelled}),
        ("What is true: test rows", {"odd": chosen.test[is_odd], "even": chosen.test[~is_odd]}),
    )
    everything = np.concatenate([scores for _, groups in panels for scores in groups.values()])
    bins = np.linspace(everything.min(), everything.max(), 23)
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), sharex=True, layout="constrained")
    for axis, (title, groups) in zip(axes, panels, strict=True):
        for (name, scores), colour in zip(groups.items(), ("tab:orange", "tab:blue"), strict=True):
            axis.hist(scores, bins, density=True, alpha=0.6, color=colour, label=f"{name} ({len(scores)})")
        axis.axvline(0.0, color="black", linewidth=0.8)
        axis.set(title=title, xlabel="score (positive: called odd)", yticks=[])
        axis.margins(y=0.35)  # room for the legend
        axis.legend(loc="upper left")
    out.mkdir(parents=True, exist_ok=True)
    path = out / "scores.png"
    figure.savefig(path, dpi=130)
    plt.close(figure)
    return path


def save_numbers(results: list[Result], scale: Scale, out: Path) -> Path:
    """The table's numbers, one entry per classifier, with what they were made with."""
    names = ("method", "estimated_accuracy", "true_accuracy", "seconds")
    content = {
        "command": "make demo",
        "machine": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "cores": os.cpu_count(),
            "threads": torch.get_num_threads(),
        },
        "scale": asdict(scale),
        "results": [{name: getattr(result, name) for name in names} for result in results],
    }
    path = out / "results.json"
    path.write_text(json.dumps(content, indent=1) + "\n")
    return path


if __name__ == "__main__":
    main()
