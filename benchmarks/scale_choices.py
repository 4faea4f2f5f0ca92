"""What the scales of the experiments chose by held-out rows of a seed of its own: size, rates, views, vPU's batches.

    PUNCE_DATA=... PUNCE_FEATURES=... python benchmarks/scale_choices.py --encoders FOLDER    # what has no result yet
    python benchmarks/scale_choices.py --show                                                 # the table, no training

``part`` (10,000 rows of MNIST) has all of them. Of ``laptop`` (all rows of MNIST, CIFAR-10 with AllConv) and ``frozen``
(features of CIFAR-10) vPU is here: half a batch of labelled rows lets it memorise them within the first epoch, so that
the shares of the data (None) are tried too. Seed 100 stands in no table. `criterion` is the held-out PU estimate of the
zero-one risk (vPU: its held-out variational loss), and decides. `oracle_accuracy` of the test rows stands beside it;
nothing is chosen by it. One seed: differences below a point of risk are chance. Results are added to
benchmarks/results/scale_choices.json one by one.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from machine import RESULTS, save

from punce.experiments.cell import Cell
from punce.experiments.run_cell import run_cell
from punce.experiments.scale import Scale
from punce.experiments.scales import SCALES

NAME, SEED = "scale_choices", 100
PART, LAPTOP, FROZEN = SCALES["part"], SCALES["laptop"], SCALES["frozen"]
ON, CIFAR, PIXELS = ("mnist", "mlp"), ("cifar10", "resnet18"), ("cifar10", "allconv")


def pretrained(loss: str, width: float, epochs: int, rate: float) -> Cell:
    cell = PART.contrastive(*ON, loss, "1k", SEED)
    assert cell.pretraining is not None
    config = replace(cell.pretraining.config, epochs=epochs, lr=rate)
    return replace(
        cell,
        encoder=replace(cell.encoder, width=width),
        pretraining=replace(cell.pretraining, config=config),
    )


def scratch(method: str, scale: Scale = PART, on: tuple[str, str] = ON, **changes: Any) -> Cell:
    cell = scale.joint(*on, method, "1k", SEED)
    return replace(cell, transfer=replace(cell.transfer, config=replace(cell.transfer.config, **changes)))  # type: ignore[arg-type]


def vpu(
    scale: Scale, rates: Sequence[float], shares: Sequence[float | None], on: tuple[str, str] = ON
) -> dict[str, Callable[[], Cell]]:
    """By its rate and by the share of labelled rows in a batch; None is that of the data."""
    return {
        f"rate {rate:g}, labelled share {share}": partial(scratch, "vpu", scale, on, lr=rate, labelled_share=share)
        for share in shares
        for rate in rates
    }


CHOICES: dict[str, dict[str, Callable[[], Cell]]] = {
    "size of the contrastive cells": {
        "width 0.05, 15 epochs, 1e-3": lambda: pretrained("punce", 0.05, 15, 1e-3),
        "width 0.05, 15 epochs, 3e-3": lambda: pretrained("punce", 0.05, 15, 3e-3),
    },
    "nnPU": {f"views {on}": lambda on=on: scratch("nnpu", augment=on) for on in (False, True)},
    "uPU": {f"views {on}": lambda on=on: scratch("upu", augment=on) for on in (False, True)},
    "vPU": {f"rate {rate:g}": lambda rate=rate: scratch("vpu", lr=rate) for rate in (1e-4, 3e-4, 1e-3)},
    "vPU, shares of the data": vpu(PART, (1e-4, 3e-4, 1e-3, 3e-3, 1e-2), (None,)),
    "vPU, all rows": vpu(LAPTOP, (1e-5, 3e-5, 1e-4, 3e-4, 1e-3), (0.5, None)) | vpu(LAPTOP, (3e-3,), (None,)),
    "nnPU, CIFAR": {f"views {on}": lambda on=on: scratch("nnpu", LAPTOP, PIXELS, augment=on) for on in (False, True)},
    "vPU, CIFAR": vpu(LAPTOP, (1e-4, 3e-4, 1e-3, 3e-3), (None,), on=PIXELS) | vpu(LAPTOP, (1e-4,), (0.5,), on=PIXELS),
    "vPU, frozen features": vpu(FROZEN, (3e-5, 1e-4, 3e-4, 1e-3), (0.5, None), on=CIFAR)
    | vpu(FROZEN, (3e-3,), (None,), on=CIFAR),
}


def measured(cell: Cell, encoders: Path) -> dict[str, Any]:
    outcome = run_cell(cell, encoders)
    result = outcome.result
    return {
        "criterion": result.get("held_out_pu_risk", result.get("held_out_variational")),
        "oracle_accuracy": result["test_accuracy"],
        "seconds": outcome.seconds,
        "key": cell.key,
    }


def stored() -> dict[str, Any]:
    path = RESULTS / f"{NAME}.json"
    return dict(json.loads(path.read_text())["choices"]) if path.exists() else {}


def show(found: dict[str, Any]) -> None:
    for choice, variants in found.items():
        best = min(variants, key=lambda name: variants[name]["criterion"])
        for name, row in variants.items():
            mark = "chosen" if name == best else ""
            print(f"{choice}: {name}: {row['criterion']:.4f}, test {row['oracle_accuracy']:.2f} {mark}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoders", type=Path, help="where pretrained encoders are kept")
    parser.add_argument("--show", action="store_true")
    arguments = parser.parse_args()
    found = stored()
    for choice, variants in CHOICES.items() if not arguments.show else ():
        for name, make in variants.items():
            if name not in found.setdefault(choice, {}):
                found[choice][name] = measured(make(), arguments.encoders)
                save(NAME, {"seed": SEED, "choices": found})
    show(found)


if __name__ == "__main__":
    main()
