"""make demo: ``punce fit`` on scikit-learn's digits, with 100 labelled odd digits and no labelled even one.

The digits are written out as a folder of images, as a person would have them, and fitted four times: pretrained with
InfoNCE, SCL and puNCE, and with nnPU from scratch. Each run estimates the share of hidden positives by itself and
leaves a run folder with a page; one more page compares them. Everything is judged twice: by what a person without
negatives can compute (rows held out of all training), and by the true labels of the test part, which exist because the
labels are simulated and which nothing else sees.

Loss and number of epochs apart, every run takes the defaults of ``punce fit``. The defaults would train for 100 epochs;
30 is what fits four runs into a minute, and comes from an earlier version of this demo, whose settings were picked with
the test accuracy in view.
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

LOSSES = {"InfoNCE": "infonce", "SCL": "scl", "puNCE": "punce", "nnPU from scratch": None}
N_LABELLED = 100
MARK = ".made-by-the-punce-demo"


@dataclass(frozen=True)
class Scale:
    """How much work: the demo, or the same in seconds for the tests."""

    epochs: int = 30
    n_rows: int | None = None


QUICK = Scale(epochs=2, n_rows=400)


@dataclass(frozen=True)
class Result:
    """One run, judged twice. Both accuracies are shares; the interval is that of the estimate."""

    method: str
    command: str
    hidden: float
    hidden_low: float
    hidden_high: float
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
    torch.set_num_threads(1)  # small matrices: faster so, and the same numbers on every machine with this build
    run(arguments.out, QUICK if arguments.quick else Scale(), Console(highlight=False, soft_wrap=True))


def run(out: Path, scale: Scale, console: Console) -> list[Result]:
    """Write the images, fit four times, print the table, leave the page."""
    clear(out)
    digits = load("digits")
    digits = replace(digits, train=first_rows(digits.train, scale.n_rows))
    sample = simulate_pu(digits.train.y_true, N_LABELLED, seed=0)
    introduce(console, digits)
    write_images(digits, sample, out / "digits")
    results, folders = [], {}
    for method, loss in LOSSES.items():
        folders[method] = out / (loss or "scratch")
        result = fit(method, loss, out / "digits", folders[method], scale.epochs, digits, console)
        say(console, result)
        results.append(result)
    console.print(table(results))
    explain(console, folders["puNCE"])
    save_numbers(results, scale, sample.prior, out / "results.json")
    save_page(folders, out / "report.html")
    console.print(f"Every number: {out / 'results.json'}. Each run has a page of its own: {out}/RUN/report.html")
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
        f"Among the other {n - N_LABELLED:,}, {hidden} odd digits hide.\n"
    )


def write_images(digits: Dataset, sample: PUSample, folder: Path) -> None:
    """The training digits as PNG files in labelled/ and unlabelled/."""
    for part, label in (("labelled", 1), ("unlabelled", 0)):
        (folder / part).mkdir(parents=True)
        for i in np.flatnonzero(sample.labels == label):
            Image.fromarray(digits.train.X[i, 0]).save(folder / part / f"{i:04d}.png")


def fit(
    method: str, loss: str | None, images: Path, out: Path, epochs: int, digits: Dataset, console: Console
) -> Result:
    """What the command does, and both judgements of it."""
    command = f"punce fit {images} --loss {loss or 'none'} --epochs {epochs} --out {out}"
    console.print(f"[dim]$ {command}[/dim]")
    start = time.perf_counter()
    source, model = DataOptions(path=str(images), label=None), ModelOptions(loss=loss, epochs=epochs)
    outcome = run_fit(source, model, out, say=lambda _: None)
    seconds = time.perf_counter() - start
    return judge(method, command, outcome, digits, seconds)


def judge(method: str, command: str, outcome: FitOutcome, digits: Dataset, seconds: float) -> Result:
    """The estimate from held-out rows, and the truth on test rows, cut where the run cuts."""
    classifier, n_u = outcome.classifier, len(digits.train) - N_LABELLED
    estimate, prior = classifier.metrics_.population.accuracy, classifier.prior_
    truth = true_metrics(digits.test.y_true, classifier.decision_function(digits.test.X), -1e-12)
    hidden = (prior.value * n_u, prior.low * n_u, prior.high * n_u)
    return Result(
        method, command, *hidden, estimate.value, estimate.low, estimate.high, truth.accuracy, round(seconds, 1)
    )


def say(console: Console, result: Result) -> None:
    console.print(
        f"  about {result.hidden:.0f} odd digits hide ({result.hidden_low:.0f} to {result.hidden_high:.0f}); "
        f"accuracy about {result.estimated_accuracy:.0%}   {result.seconds:.1f} s"
    )


def table(results: list[Result]) -> Table:
    """One line per run."""
    shown = Table("trained with", "accuracy, estimated\nwithout negatives", "true test\naccuracy", "seconds")
    for column in shown.columns[1:]:
        column.justify = "right"
    for r in results:
        low, high = 100 * r.estimated_low, 100 * r.estimated_high
        estimate = f"{100 * r.estimated_accuracy:.1f} % ({low:.0f} to {high:.0f})"
        shown.add_row(r.method, estimate, f"{100 * r.true_accuracy:.1f} %", f"{r.seconds:.1f}")
    return shown


def explain(console: Console, folder: Path) -> None:
    held_out = json.loads((folder / "metrics.json").read_text())["held_out"]
    console.print(
        f"\nThe estimate uses {held_out['labelled']} labelled and {held_out['unlabelled']} unlabelled digits held out "
        "of all training,\nso it is rough: see its interval. The true accuracy can be shown because these labels are\n"
        "simulated; with your own data only the estimate exists.\n"
    )


def save_numbers(results: list[Result], scale: Scale, prior: float, path: Path) -> None:
    """The table's numbers with what they were made with."""
    machine = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
    }
    content = {
        "command": "make demo",
        "machine": machine,
        "epochs": scale.epochs,
        "n_labelled": N_LABELLED,
        "true_prior": prior,
        "results": [asdict(result) for result in results],
    }
    path.write_text(json.dumps(content, indent=1) + "\n")


def save_page(folders: dict[str, Path], page: Path) -> None:
    """puNCE's page, with a table of all runs on top."""
    contents = {method: ReportContent.read(folder / "report.json") for method, folder in folders.items()}
    write_report(replace(contents["puNCE"], comparison=comparison(contents)), page)


if __name__ == "__main__":
    main()
