"""Embeddings from file to page: time and peak memory of ``punce fit`` on matrices of 25 to 400 million numbers.

    python benchmarks/embeddings.py                        # all three sizes and results/embeddings.json (half an hour)
    python benchmarks/embeddings.py --sizes small --quick  # a hundredth of the rows: does it work? Writes nothing

Rows of two classes that differ along 8 of 30 latent directions, turned into D numbers by a random map, with noise; half
of them positive, 1,000 labelled. Each fit is a process of its own. A size that is measured replaces its old figures;
the others stay. Run it on cores that do nothing else.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from busy import fits
from machine import RESULTS, save

N_LABELLED = 1_000
_AT_ONCE = 50_000


@dataclass(frozen=True)
class Size:
    rows: int
    numbers: int
    seconds: float
    gigabytes: float | None = None


SIZES = {
    "small": Size(10_000, 2_560, 60),
    "medium": Size(100_000, 512, 300),
    "large": Size(1_000_000, 384, 1_200, 4.0),
}


def matrix(path: Path, size: Size) -> Path:
    """An .npz with `X` float32 and `label`, made part by part."""
    rng = np.random.default_rng(0)
    y = rng.random(size.rows) < 0.5
    shift = np.where(np.arange(30) < 8, 0.9, 0.0)
    turn = rng.normal(size=(30, size.numbers)).astype(np.float32) / 30**0.5
    x = np.empty((size.rows, size.numbers), dtype=np.float32)
    for k in range(0, size.rows, _AT_ONCE):
        own = y[k : k + _AT_ONCE]
        latent = rng.normal(size=(len(own), 30)) + own[:, None] * shift
        x[k : k + _AT_ONCE] = latent.astype(np.float32) @ turn
        x[k : k + _AT_ONCE] += 0.3 * rng.standard_normal((len(own), size.numbers), dtype=np.float32)
    label = np.zeros(size.rows, dtype=np.int8)
    label[rng.permutation(np.flatnonzero(y))[: min(N_LABELLED, size.rows // 10)]] = 1
    np.savez(path, X=x, label=label)
    return path


def measured(size: Size) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as work:
        data = matrix(Path(work) / "rows.npz", size)
        found = fits(data, Path(work))
        accuracy = json.loads((Path(work) / "run-0" / "metrics.json").read_text())
        at = time.strftime("%Y-%m-%d")
    goal = {"seconds": size.seconds, "gigabytes": size.gigabytes}
    return {"rows": size.rows, "numbers": size.numbers, **found, "goal": goal, "date": at, "said": accuracy.get("auc")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", nargs="*", choices=list(SIZES), default=list(SIZES))
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    path = RESULTS / "embeddings.json"
    known = json.loads(path.read_text())["sizes"] if path.exists() else {}
    for name in options.sizes:
        size = SIZES[name]
        if options.quick:
            size = Size(max(600, size.rows // 100), size.numbers, size.seconds, size.gigabytes)
        found = measured(size)
        print(name, json.dumps(found))
        if not options.quick:
            known[name] = found
            save("embeddings", {"sizes": known})


if __name__ == "__main__":
    main()
