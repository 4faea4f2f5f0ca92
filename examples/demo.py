"""make demo: ``punce fit`` on scikit-learn's digits, with 100 labelled odd digits and no labelled even one.

The digits are written out as a folder of images, as a person would have them, and fitted with the defaults of
``punce fit``. Then the same for two more draws of 100 labels, and once for the paper's single pair (puNCE features, a
linear layer on nnPU). Each run estimates the number of unlabelled positives and its own accuracy from rows that the
judged model did not see. The truth stands beside each estimate: it is known because the labels are simulated. The
candidates of the first run follow, with what held-out labelled digits say of each: that decides how much it counts.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from rich.console import Console
from rich.table import Table

from punce.cli.report import comparison
from punce.data import Dataset, Part, PUSample, load, simulate_pu
from punce.experiments.true_metrics import true_metrics
from punce.product.fit import DataOptions, FitOutcome, ModelOptions, run_fit
from punce.report import ReportContent, write_report

N_LABELLED = 100
MARK = ".made-by-the-punce-demo"
PAIR = "puNCE + nnPU"
_MOST_SHOWN = 6  # candidates of each kind, in the terminal


@dataclass(frozen=True)
class Scale:
    """How much work: the demo, or the same in seconds for the tests."""

    draws: int = 3
    epochs: int | None = None
    pair_epochs: int = 30
    n_rows: int | None = None


QUICK = Scale(draws=1, epochs=1, pair_epochs=1, n_rows=400)


@dataclass(frozen=True)
class Result:
    """One run, judged twice. Accuracies are shares; the intervals are those of the estimates."""

    method: str
    command: str
    hidden: float
    hidden_low: float
    hidden_high: float
    true_hidden: int
    estimated_accuracy: float
    estimated_low: float
    estimated_high: float
    true_accuracy: float
    seconds: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few seconds of work; the numbers mean nothing")
    parser.add_argument("--out", type=Path, default=Path("demo-out"), help="folder for images, runs and pages")
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # small matrices: faster so, and the same numbers every time on one kind of processor
    run(arguments.out, QUICK if arguments.quick else Scale(), Console(highlight=False, soft_wrap=True))


def run(out: Path, scale: Scale, console: Console) -> list[Result]:
    """Write the images, fit the draws and the pair, print the tables, leave the page."""
    clear(out)
    digits = load("digits")
    digits = replace(digits, train=first_rows(digits.train, scale.n_rows))
    introduce(console, digits)
    results, ran = [], {}
    for draw in range(scale.draws):
        method, images = f"draw {draw + 1}", out / f"digits-{draw + 1}"
        write_images(digits, simulate_pu(digits.train.y_true, N_LABELLED, seed=draw), images)
        result, outcome = fit(
            method, ModelOptions(epochs=scale.epochs), images, out / f"run-{draw + 1}", digits, console
        )
        results.append(result)
        ran[method] = outcome.classifier.ran_
    pair = ModelOptions(loss="punce", risk="nnpu", epochs=scale.pair_epochs)
    results.append(fit(PAIR, pair, out / "digits-1", out / "pair", digits, console)[0])
    console.print(table(results))
    explain(console, results, out / "run-1")
    console.print(candidates(ran["draw 1"]))
    say_winner(console, ran["draw 1"], results[0].true_hidden / (len(digits.train) - N_LABELLED))
    save_numbers(results, ran["draw 1"], out / "results.json")
    save_page({"default": out / "run-1", PAIR: out / "pair"}, out / "report.html")
    console.print(f"\nEvery number: {out / 'results.json'}. Each run has a page of its own: {out}/RUN/report.html")
    console.print(f"[bold]The page to look at: {out / 'report.html'}[/bold]")
    return results


def clear(out: Path) -> None:
    """An earlier demo goes; a folder of anything else stays."""
    if out.exists() and any(out.iterdir()) and not (out / MARK).exists():
        sys.exit(f"{out} holds something else than an earlier demo; name another folder with --out")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    (out / MARK).touch()


def first_rows(part: Part, n_rows: int | None) -> Part:
    return replace(part, X=part.X[:n_rows], y_true=part.y_true[:n_rows])


def introduce(console: Console, digits: Dataset) -> None:
    n, hidden = len(digits.train), digits.train.n_positive - N_LABELLED
    console.print(
        "[bold]Which digits are odd?[/bold]\n"
        f"{n:,} images of 8 × 8 pixels: {N_LABELLED} odd ones are labelled, no even one is.\n"
        f"Of the other {n - N_LABELLED:,}, {hidden} are odd, too.\n"
    )


def write_images(digits: Dataset, sample: PUSample, folder: Path) -> None:
    """The training digits as PNG files in labelled/ and unlabelled/."""
    for part, label in (("labelled", 1), ("unlabelled", 0)):
        (folder / part).mkdir(parents=True)
        for i in np.flatnonzero(sample.labels == label):
            Image.fromarray(digits.train.X[i, 0]).save(folder / part / f"{i:04d}.png")


def fit(
    method: str, model: ModelOptions, images: Path, out: Path, digits: Dataset, console: Console
) -> tuple[Result, FitOutcome]:
    """What the command does, and both judgements of it."""
    options = "" if model.loss == "auto" else f" --loss {model.loss} --risk {model.risk}"
    epochs = "" if model.epochs is None else f" --epochs {model.epochs}"
    command = f"punce fit {images}{options}{epochs} --out {out}"
    console.print(f"[dim]$ {command}[/dim]")
    start = time.perf_counter()
    outcome = run_fit(DataOptions(path=str(images), label=None), model, out, say=lambda _: None)
    result = judge(method, command, outcome, digits, time.perf_counter() - start)
    console.print(
        f"  about {result.hidden:.0f} unlabelled digits are odd ({result.hidden_low:.0f} to {result.hidden_high:.0f}); "
        f"accuracy about {result.estimated_accuracy:.0%}   {result.seconds:.1f} s"
    )
    return result, outcome


def judge(method: str, command: str, outcome: FitOutcome, digits: Dataset, seconds: float) -> Result:
    """The estimate from held-out rows, and the truth on test rows, cut where the run cuts."""
    classifier, n_u = outcome.classifier, len(digits.train) - N_LABELLED
    estimate, prior = classifier.metrics_.population.accuracy, classifier.prior_
    truth = true_metrics(digits.test.y_true, classifier.decision_function(digits.test.X), -1e-12)
    hidden = (prior.value * n_u, prior.low * n_u, prior.high * n_u, digits.train.n_positive - N_LABELLED)
    return Result(
        method, command, *hidden, estimate.value, estimate.low, estimate.high, truth.accuracy, round(seconds, 1)
    )


def table(results: list[Result]) -> Table:
    """One line per run."""
    shown = Table(
        "fitted with", "unlabelled odd digits,\nestimated", "really", "accuracy, estimated\nwithout negatives",
        "true test\naccuracy", "seconds",
    )  # fmt: skip
    for column in shown.columns[1:]:
        column.justify = "right"
    for r in results:
        low, high = 100 * r.estimated_low, 100 * r.estimated_high
        hidden = f"{r.hidden:.0f} ({r.hidden_low:.0f} to {r.hidden_high:.0f})"
        estimate = f"{100 * r.estimated_accuracy:.1f} % ({low:.0f} to {high:.0f})"
        true = f"{100 * r.true_accuracy:.1f} %"
        shown.add_row(r.method, hidden, str(r.true_hidden), estimate, true, f"{r.seconds:.1f}")
    return shown


def explain(console: Console, results: list[Result], folder: Path) -> None:
    held_out = json.loads((folder / "metrics.json").read_text())["held_out"]
    holds = sum(r.hidden_low <= r.true_hidden <= r.hidden_high for r in results)
    claims = sum(r.estimated_low <= r.true_accuracy <= r.estimated_high for r in results)
    console.print(
        f"\nThe estimates of a draw use {held_out['labelled']} labelled and {held_out['unlabelled']:,} unlabelled "
        "digits, each scored by\nmodels that did not see it. The truth lies inside the interval of the odd digits "
        f"in {holds} of {len(results)} runs,\ninside that of the accuracy in {claims}. It can be shown because these "
        "labels are simulated; with your own\ndata only the estimates exist.\n"
    )


def candidates(ran: dict[str, Any]) -> Table:
    """What the first run tried, the heaviest of both kinds first."""
    shown = Table("features, head", "ranks held-out labelled\ndigits above unlabelled", "weight")
    for column in shown.columns[1:]:
        column.justify = "right"
    for kind in ("teachers", "members"):
        for name, weight in sorted(ran[kind].items(), key=lambda pair: -pair[1])[:_MOST_SHOWN]:
            shown.add_row(name, f"{100 * ran['held_out_auc'][name]:.1f} %", f"{weight:.2f}")
        shown.add_section()
    return shown


def say_winner(console: Console, ran: dict[str, Any], hidden_share: float) -> None:
    features: dict[str, float] = {}
    for name, weight in ran["members"].items():
        kind = name.split(",")[0]
        features[kind] = features.get(kind, 0.0) + weight
    parts = ", ".join(f"{kind} {share:.0%}" for kind, share in sorted(features.items(), key=lambda pair: -pair[1]))
    console.print(
        f"Above, the heads of draw 1 that teach; below, their students, whose weighted sum scores the digits.\n"
        f"Students by features: {parts}.\nThe unlabelled digits hold odd ones too: "
        f"even a perfect ranking puts a labelled digit above {1 - hidden_share / 2:.0%} of them, give or take chance."
    )


def save_numbers(results: list[Result], ran: dict[str, Any], path: Path) -> None:
    """The tables' numbers with what they were made with."""
    machine = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
    }
    content = {
        "command": "make demo",
        "machine": machine,
        "n_labelled": N_LABELLED,
        "results": [asdict(result) for result in results],
        **{
            kind: {name: {"auc": ran["held_out_auc"][name], "weight": w} for name, w in ran[kind].items()}
            for kind in ("teachers", "members")
        },
    }
    path.write_text(json.dumps(content, indent=1) + "\n")


def save_page(folders: dict[str, Path], page: Path) -> None:
    """The page of the first run, with a table of both ways on top."""
    contents = {method: ReportContent.read(folder / "report.json") for method, folder in folders.items()}
    write_report(replace(contents["default"], comparison=comparison(contents)), page)


if __name__ == "__main__":
    main()
