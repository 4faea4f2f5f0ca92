"""Time and peak memory of fit, prior and predict by rows and by columns, and of the loss by views; others beside them.

    python benchmarks/scale.py [--most-rows 10000] [--most-columns 100] [--most-views 8192] [--seconds 600]
    python benchmarks/scale.py --most-rows 10000000 --most-columns 10000 --most-views 131072   # everything: hours

Rows are made up (two normal classes, three tenths positive, 200 labelled or a fifth of the rows if that is less). Every
line of results/scale.jsonl is one command or one call in a process of its own: wall seconds, start of Python included,
and the largest resident memory of any process in it. What is there is not run again. A method that takes longer than
--limit or needs more than three quarters of the machine's memory is not tried at larger sizes; the line says so.
pulearn and pu-toolbox get the same rows in memory; nnPU of pu-toolbox is told the true share. The summary is
results/scale.json, the figure docs/images/scale.svg.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from json_lines import add_lines, lines_of
from machine import RESULTS, save

ROWS = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
COLUMNS = (10, 100, 1_000, 10_000)
VIEWS = tuple(2**k for k in range(10, 18))
BATCH = 100_000  # rows, and fewer where they are wide
LINES = RESULTS / "scale.jsonl"
FIGURE = Path(__file__).parents[1] / "docs" / "images" / "scale.svg"
LARGE = "punce predict, large model"
TABLE = ("punce fit", "punce prior", "punce predict", LARGE, "pulearn bagging", "pulearn Elkan-Noto", "pu-toolbox nnPU")
LOSS = ("punce PuNCE", "plain masked SupCon", "pytorch-metric-learning SupConLoss", "lightly NTXentLoss")
_WATCH = """
import json, os, resource, subprocess, sys, time
most = int(0.75 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))  # what needs more fails, and only it
resource.setrlimit(resource.RLIMIT_AS, (most, most))
start = time.perf_counter()
try:
    done = subprocess.run(sys.argv[2:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=float(sys.argv[1]))
    said = done.stderr.decode().strip() or f"ended with {done.returncode}"
    failed = "" if done.returncode == 0 else said.splitlines()[-1][:200]
except subprocess.TimeoutExpired:
    failed = "took too long"
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps({"seconds": time.perf_counter() - start, "cpu_seconds": used.ru_utime + used.ru_stime,
                  "peak_mb": used.ru_maxrss / 1024, "failed": failed}))
"""


@dataclass(frozen=True)
class Cell:
    method: str
    size: int
    """Rows, columns or views."""
    along: str

    @property
    def shape(self) -> tuple[int, int]:
        return (self.size, COLUMNS[0]) if self.along == "rows" else (ROWS[0], self.size)

    def key(self) -> dict[str, Any]:
        return {"method": self.method, "along": self.along, "size": self.size}


def cells(arguments: argparse.Namespace) -> Iterator[Cell]:
    """The cheap sizes of every method first."""
    limits = (("rows", ROWS, arguments.most_rows), ("columns", COLUMNS, arguments.most_columns))
    for along, sizes, most in limits:
        for size in sizes:
            methods = (method for method in TABLE if method != LARGE or along == "rows")
            yield from (Cell(method, size, along) for method in methods if size <= most)
    for size in VIEWS:
        yield from (Cell(method, size, "views") for method in LOSS if size <= arguments.most_views)


# --- The rows ---------------------------------------------------------------------------------------------------------


def batches(n: int, d: int, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows and classes, a batch at a time: every fifth column tells the classes apart a little."""
    rng, left = np.random.default_rng(seed), n
    shift = np.where(np.arange(d) % 5 == 0, 1.0, 0.0)
    while left:
        size = min(left, max(1, BATCH * COLUMNS[0] // d))
        y = rng.random(size) < 0.3
        yield (rng.normal(size=(size, d)) + y[:, None] * shift).astype(np.float32), y
        left -= size


def write_rows(path: Path, n: int, d: int, seed: int) -> Path:
    if path.exists():
        return path
    to_label = min(200, n // 5)
    schema = pa.schema([*((f"x{j}", pa.float32()) for j in range(d)), ("label", pa.int8())])
    with pq.ParquetWriter(path, schema) as writer:
        for x, y in batches(n, d, seed):
            labelled = y & (np.cumsum(y) <= to_label)
            to_label -= int(labelled.sum())
            columns = [*(pa.array(x[:, j]) for j in range(d)), pa.array(labelled.astype(np.int8))]
            writer.write_table(pa.table(columns, schema=schema))
    return path


# --- One cell ---------------------------------------------------------------------------------------------------------


def command(cell: Cell, folder: Path) -> list[str]:
    python = [sys.executable, "-m", "punce"]
    if cell.along == "views":
        return [sys.executable, __file__, "--one", cell.method, "--size", str(cell.size)]
    n, d = cell.shape
    file = str(write_rows(folder / f"{n}x{d}.parquet", n, d, seed=0))
    name, _, job = cell.method.partition(" ")
    if name != "punce":
        return [sys.executable, __file__, "--one", cell.method, "--file", file]
    if job == "fit":
        return [*python, "fit", file, "--label", "label", "--out", str(folder / f"run-{n}x{d}-{time.time_ns()}")]
    if job == "prior":
        return [*python, "prior", file, "--label", "label", "--method", "combined"]
    model = fitted_model(folder, ROWS[2] if cell.method == LARGE else ROWS[0], d)
    return [*python, "predict", str(model), file, "--out", str(folder / "scores.parquet")]


def fitted_model(folder: Path, n: int, d: int) -> Path:
    """A model of the table of this size."""
    run = folder / f"model-{n}x{d}"
    if not run.exists():
        file = write_rows(folder / f"{n}x{d}.parquet", n, d, seed=0)
        line = [
            sys.executable,
            "-m",
            "punce",
            "fit",
            str(file),
            "--label",
            "label",
            "--prior",
            "0.2",
            "--out",
            str(run),
        ]
        subprocess.run(line, check=True, stdout=subprocess.DEVNULL)
    return run


def run(cell: Cell, folder: Path, limit: float) -> dict[str, Any]:
    line = [sys.executable, "-c", _WATCH, str(limit), *command(cell, folder)]
    return {**cell.key(), **json.loads(subprocess.run(line, capture_output=True, text=True, check=True).stdout)}


def run_one(method: str, file: str | None, size: int | None) -> None:
    """What another library, or a loss, does; called in a process of its own."""
    if size is not None:
        _loss_step(method, size)
        return
    assert file is not None
    table = pq.read_table(file)
    labels = table.column("label").to_numpy().astype(np.int64)
    x = np.column_stack([table.column(k).to_numpy() for k in range(table.num_columns - 1)])
    _fit_other(method, x, labels)


def _fit_other(method: str, x: np.ndarray, labels: np.ndarray) -> None:
    if method == "pulearn bagging":
        from pulearn import BaggingPuClassifier

        model: Any = BaggingPuClassifier(n_estimators=100, max_samples=int(labels.sum()), random_state=0)
    elif method == "pulearn Elkan-Noto":
        from pulearn import ElkanotoPuClassifier
        from sklearn.ensemble import RandomForestClassifier

        model = ElkanotoPuClassifier(RandomForestClassifier(100, random_state=0), 0.2, 0)
    else:
        import torch
        from pu_toolbox.estimators.risk.nnpu import NonNegativePUClassifier

        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(x.shape[1], 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
        optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
        model = NonNegativePUClassifier(net, class_prior=0.3, optimizer=optimizer, max_epochs=50, random_state=0)
    model.fit(x, labels)


def _loss_step(method: str, n_views: int) -> None:
    import torch
    from loss_speed import IMPLEMENTATIONS, TEMPERATURE, batch, step

    if method == "lightly NTXentLoss":
        from lightly_loss import ntxent

        loss = ntxent(TEMPERATURE)
        step(lambda z, labels: loss(z[0], z[1]), *batch(n_views))
        return
    torch.manual_seed(0)
    step(IMPLEMENTATIONS[method](), *batch(n_views))


# --- All cells --------------------------------------------------------------------------------------------------------


def is_hopeless(cell: Cell, done: list[dict[str, Any]]) -> bool:
    """A smaller size failed or took too long."""
    same = [line for line in done if (line["method"], line["along"]) == (cell.method, cell.along)]
    return any(line["failed"] and line["size"] <= cell.size for line in same)


def summary(done: list[dict[str, Any]]) -> dict[str, Any]:
    """Seconds and memory by size, and where memory grows faster than the size."""
    curves: dict[str, Any] = {}
    for line in sorted(done, key=lambda line: line["size"]):
        curve = curves.setdefault(f"{line['method']}, by {line['along']}", {})
        curve[str(line["size"])] = {name: line[name] for name in ("seconds", "cpu_seconds", "peak_mb", "failed")}
    return {"curves": curves, "lines": len(done)}


def draw(done: list[dict[str, Any]]) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "punce"
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(12, 6.5), constrained_layout=True)
    for column, along in enumerate(("rows", "columns", "views")):
        for row, (field, name) in enumerate((("cpu_seconds", "CPU seconds"), ("peak_mb", "peak memory, MB"))):
            axis = axes[row, column]
            for method in LOSS if along == "views" else TABLE:
                points = sorted(
                    (x["size"], x[field])
                    for x in done
                    if x["method"] == method and x["along"] == along and not x["failed"]
                )
                if points:
                    axis.plot(
                        *zip(*points, strict=True), marker="o", label=method, lw=2 if method.startswith("punce") else 1
                    )
            axis.set(xscale="log", yscale="log", xlabel=along, ylabel=name)
            axis.grid(alpha=0.3)
            if row == 0:
                axis.legend(fontsize=7)
    figure.savefig(FIGURE, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most-rows", type=int, default=10_000)
    parser.add_argument("--most-columns", type=int, default=100)
    parser.add_argument("--most-views", type=int, default=8_192)
    parser.add_argument("--seconds", type=float, default=600, help="start no cell after so many")
    parser.add_argument("--limit", type=float, default=900, help="seconds for one cell")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "punce-scale", help="for the rows")
    for name, kind in (("--one", str), ("--file", str), ("--size", int)):
        parser.add_argument(name, type=kind, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        run_one(arguments.one, arguments.file, arguments.size)
        return
    arguments.folder.mkdir(parents=True, exist_ok=True)
    start, done = time.monotonic(), lines_of(LINES)
    for cell in cells(arguments):
        known = any(cell.key().items() <= line.items() for line in done)
        if known or is_hopeless(cell, done) or time.monotonic() - start > arguments.seconds:
            continue
        done.append(run(cell, arguments.folder, arguments.limit))
        add_lines(LINES, done[-1])
        print(json.dumps(done[-1]), flush=True)
    draw(done)
    print("saved", save("scale", summary(done)).name)


if __name__ == "__main__":
    main()
