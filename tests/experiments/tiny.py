"""Cells of a second or less, and runners to start as processes of their own.

    python -m tests.experiments.tiny RESULTS [--jobs 2] [--cells 6]

runs the first cells of :func:`cells` and prints a line of JSON for every cell that ended: its name and its status.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from punce.experiments.attempt import Report
from punce.experiments.cell import Cell
from punce.experiments.pools import InProcess, Workers
from punce.experiments.runner import run_cells
from punce.experiments.scales import SCALES
from punce.experiments.store import ResultStore

SMOKE = SCALES["smoke"]


def punce(seed: int = 0, **changes: object) -> Cell:
    return SMOKE.contrastive("mnist", "mlp", "punce", "1k", seed, **changes)  # type: ignore[arg-type]


def infonce(n_p: str = "1k", seed: int = 0) -> Cell:
    return SMOKE.contrastive("mnist", "mlp", "infonce", n_p, seed)


def joint(method: str = "nnpu", seed: int = 0, n_p: str = "1k") -> Cell:
    return SMOKE.joint("mnist", "mlp", method, n_p, seed)


def cells() -> list[Cell]:
    """Twelve cells with seven encoders: some share one, some need none."""
    found = [punce(seed) for seed in range(3)] + [punce(seed, transfer="finetune") for seed in range(3)]
    found += [infonce("1k"), infonce("3k"), punce(0, risk="upu")]
    return [*found, joint("nnpu"), joint("upu"), joint("vpu")]


class Told:
    """A watcher that remembers, and writes every end to a stream if it has one."""

    def __init__(self, stream: object = None) -> None:
        self.ends: list[tuple[str, str]] = []
        self._stream = stream

    def __call__(self, cell: Cell, report: Report) -> None:
        self.ends.append((cell.name, report.status))
        if self._stream is not None:
            print(json.dumps([report.status, cell.name]), file=self._stream, flush=True)  # type: ignore[call-overload]


def numbers(results: Path, chosen: list[Cell]) -> dict[str, object]:
    """Everything in the results that must not depend on who made them."""
    store = ResultStore(results, "smoke")
    found = {}
    for cell in chosen:
        record = store.read(cell)
        assert record is not None, cell.describe()
        assert record.is_done, record.error
        found[cell.name] = record.result
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("results", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--cells", type=int, default=12)
    options = parser.parse_args()
    pool = InProcess() if options.jobs == 1 else Workers(options.jobs, 1)
    run_cells(cells()[: options.cells], ResultStore(options.results, "smoke"), pool, Told(sys.stdout))


if __name__ == "__main__":
    main()
