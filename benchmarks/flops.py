"""FLOPs of every cell of the paper's tables at ``--scale paper``, measured, and what they cost on an assumed GPU.

    python benchmarks/flops.py            # the tables and benchmarks/results/flops.json (a minute on one core)

Counted with `torch.utils.flop_counter`: matrix products and convolutions, forward and backward, a multiply-add as two.
BatchNorm, activations, augmentation, exponentials and the optimiser are not counted; on a GPU they take time, not
FLOPs, and are one reason why the sustained rate below is a fraction of the peak. A row's cost does not depend on its
batch, so encoders are counted on a few rows (twice, to check that) and scaled; the loss is quadratic in the batch and
is counted at its full size. The tensors that autograd keeps for the backward pass are added up in the same way.

Nothing here ran on a GPU: FLOPs are a property of the computation. Hours and money are FLOPs divided by assumptions.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from functools import cache
from typing import Any

import numpy as np
import torch
from machine import save
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from punce.encoders import MLP, AllConv, Encoder, ResNet18
from punce.experiments import EXPERIMENTS
from punce.experiments.cell import Cell
from punce.experiments.scales import find_scale
from punce.experiments.tables import shown
from punce.losses import PuNCE
from punce.training.batches import StratifiedBatches
from punce.training.products import onednn_is_faster
from punce.training.splits import holdout_split

ASSUMPTIONS = {"sustained TFLOP/s": 10.0, "USD per GPU hour": 2.0, "tokens of a sentence": 32}
SIZES = {"mnist": (60_000, 10_000), "cifar10": (50_000, 10_000)}  # training and test rows
ENCODERS: dict[str, tuple[Callable[[], Encoder], tuple[int, ...]]] = {
    "mlp": (lambda: MLP(784), (1, 28, 28)),
    "allconv": (AllConv, (3, 32, 32)),
    "resnet18": (ResNet18, (3, 32, 32)),
}
FEW = 4


# Measuring -------------------------------------------------------------------------------------------------------


def counted(work: Callable[[], Any]) -> int:
    """FLOPs of one call. In-place products, which the loss uses, are not among the counter's own formulas."""

    def accumulated_product(_: Any, a: tuple[int, int], b: tuple[int, int], *args: Any, **kwargs: Any) -> int:
        return 2 * a[0] * a[1] * b[1]

    formulas = {torch.ops.aten.addmm_: accumulated_product}
    onednn_is_faster()  # asked once in a process, by a product that must not be counted
    with FlopCounterMode(display=False, custom_mapping=formulas) as counter:
        work()
    return int(counter.get_total_flops())


def per_row(measure: Callable[[int], int]) -> int:
    """What one row adds to something linear in the rows."""
    few, more, most = (measure(n) for n in (FEW, 2 * FEW, 3 * FEW))
    if most - more != more - few:
        raise SystemExit(f"not linear in the rows: {few}, {more}, {most} for {FEW}, {2 * FEW}, {3 * FEW} rows")
    return (more - few) // FEW


def kept_bytes(forward: Callable[[], Tensor], model: nn.Module) -> int:
    """Bytes that autograd keeps for the backward pass, each storage once, the parameters left out."""
    parameters = {p.untyped_storage().data_ptr() for p in model.parameters()}
    kept: dict[int, tuple[int, Tensor]] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in parameters:
            kept[storage.data_ptr()] = (storage.nbytes(), tensor)  # held, so that no address is used twice
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        forward()
    return sum(size for size, _ in kept.values())


@cache
def row_costs(name: str) -> dict[str, int]:
    """Of one row: a contrastive view (with projector and online head), a joint step's row, features only, memory."""
    build, shape = ENCODERS[name]
    encoder = build().train()
    head = nn.Linear(encoder.feature_size, 1)

    def contrastive(n: int) -> Tensor:
        h = encoder.features(torch.rand(n, *shape))
        return encoder.project(h).sum() + encoder.monitor(h).sum()

    def joint(n: int) -> Tensor:
        return head(encoder.features(torch.rand(n, *shape))).sum()

    @torch.no_grad()
    def features(n: int) -> Tensor:
        return encoder.features(torch.rand(n, *shape))

    return {
        "contrastive": per_row(lambda n: counted(lambda: contrastive(n).backward())),
        "joint": per_row(lambda n: counted(lambda: joint(n).backward())),
        "features": per_row(lambda n: counted(lambda: features(n))),
        "kept_bytes": per_row(lambda n: kept_bytes(lambda: contrastive(n), encoder)),
        "projection": contrastive_size(encoder, shape),
    }


@torch.no_grad()
def contrastive_size(encoder: Encoder, shape: tuple[int, ...]) -> int:
    return int(encoder(torch.rand(FEW, *shape)).shape[1])


@cache
def loss_cost(batch_rows: int, projection: int) -> int:
    """FLOPs of puNCE, forward and backward, on 2·batch_rows views at once; the other losses differ by O(b·d)."""
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(2, batch_rows, projection, generator=generator).requires_grad_()
    labels = torch.zeros(batch_rows, dtype=torch.int8)
    labels[: batch_rows // 50] = 1
    return counted(lambda: PuNCE(0.4)(z, labels).backward())


@cache
def sentence_cost() -> int:
    """FLOPs of one sentence through RoBERTa-base, forward and backward, on tensors without data."""
    from transformers import RobertaConfig, RobertaModel

    with torch.device("meta"):
        model = RobertaModel(RobertaConfig(), add_pooling_layer=False)
        ids = torch.zeros(2, int(ASSUMPTIONS["tokens of a sentence"]), dtype=torch.long)
        return counted(lambda: model(input_ids=ids).last_hidden_state.sum().backward()) // 2


# Adding up -------------------------------------------------------------------------------------------------------


def labels_of(cell: Cell) -> np.ndarray:
    labels = np.zeros(SIZES[cell.data.source][0], dtype=np.int8)
    labels[: cell.data.n_labelled] = 1
    return labels


def pretraining_step(cell: Cell) -> dict[str, float]:
    """FLOPs of one step, steps, and the memory that one step keeps."""
    assert cell.pretraining is not None
    spec, row = cell.pretraining.config, row_costs(cell.encoder.name)
    batches = StratifiedBatches(labels_of(cell), spec.batch_size, 0, spec.min_labelled)
    return {
        "views": 2 * spec.batch_size,
        "encoder": 2 * spec.batch_size * row["contrastive"],
        "loss": loss_cost(spec.batch_size, row["projection"]),
        "steps": spec.epochs * batches.per_epoch,
        "kept_bytes": 2 * spec.batch_size * row["kept_bytes"],
    }


def pretraining(cell: Cell) -> float:
    """FLOPs of a cell's pretraining, which other cells may share; 0 without one."""
    if cell.pretraining is None:
        return 0.0
    step = pretraining_step(cell)
    return step["steps"] * (step["encoder"] + step["loss"])


def transfer(cell: Cell) -> float:
    """FLOPs of what follows pretraining or stands alone; linear layers and sklearn's models are not counted."""
    settings, kind = asdict(cell.transfer.config), cell.transfer.kind
    if kind == "fewshot":
        return _few_shot(settings)
    row, (n, n_test) = row_costs(cell.encoder.name), SIZES[cell.data.source]
    if kind in ("probe", "head"):
        return float((n + n_test) * row["features"])
    if cell.transfer.rates:  # every rate is tried, after a probe for the head at which they begin
        one = replace(cell, transfer=replace(cell.transfer, rates=(), start=None))
        return len(cell.transfer.rates) * transfer(one) + n * row["features"]
    epochs, batch = int(settings["epochs"]), int(settings["batch_size"])  # type: ignore[arg-type]
    labels = labels_of(cell)
    train, held_out = holdout_split(labels, settings["validation_share"], 0)  # type: ignore[arg-type]
    share = settings["labelled_share"] if isinstance(settings["labelled_share"], float) else None
    trained = StratifiedBatches(labels[train.numpy()], batch, 0, 1, share).per_epoch * batch
    watched = (len(held_out) + n_test) * row["features"]
    passes = {"selfpu": 2 * row["joint"] + 2 * row["features"], "vpu": 2 * row["joint"]}.get(kind, row["joint"])
    return float(epochs * (trained * passes + watched * (2 if kind == "selfpu" else 1)))


def _few_shot(settings: dict[str, Any]) -> float:
    """Two views of every row of every step; validation is a tenth of that and left out.

    Cross-entropy alone has no term for unlabelled rows, and the stage does not compute them.
    """
    share = 1.0 if settings["loss"] is not None else float(settings["labelled_share"])
    return float(int(settings.get("steps", 0)) * share * int(settings["batch_size"]) * 2 * sentence_cost())


def total(cells: Iterable[Cell]) -> tuple[float, int, int]:
    """FLOPs, cells and encoders; cells and encoders that several places share count once."""
    cells = {cell.key: cell for cell in cells}
    encoders = {cell.encoder_name: cell for cell in cells.values() if cell.pretraining is not None}
    spent = sum(pretraining(cell) for cell in encoders.values()) + sum(transfer(cell) for cell in cells.values())
    return spent, len(cells), len(encoders)


# Reporting -------------------------------------------------------------------------------------------------------


def measured() -> dict[str, Any]:
    scale = find_scale("paper")
    cells = {name: [c for some in e.cells(scale).values() for c in some] for name, e in EXPERIMENTS.items()}
    everything = [cell for some in cells.values() for cell in some]
    return {
        "assumptions": ASSUMPTIONS,
        "per_row": {name: row_costs(name) for name in ENCODERS},
        "sentence": sentence_cost(),
        "pretraining": pretraining_rows(everything),
        "transfer": transfer_rows(everything),
        "experiments": {name: summary(total(some)) for name, some in cells.items()},
        "everything": summary(total(everything)),
    }


def summary(spent: tuple[float, int, int]) -> dict[str, float]:
    flops, n_cells, n_encoders = spent
    return {"cells": n_cells, "encoders": n_encoders, "pflop": round(flops / 1e15, 3)}


def pretraining_rows(cells: list[Cell]) -> dict[str, dict[str, float]]:
    """By data set and encoder; the number of labels changes nothing that shows."""
    found: dict[str, dict[str, float]] = {}
    for cell in cells:
        name = f"{cell.data.source}/{cell.encoder.name}"
        if cell.pretraining is not None and name not in found:
            found[name] = {**pretraining_step(cell), "pflop": round(pretraining(cell) / 1e15, 3)}
    return found


def transfer_rows(cells: list[Cell]) -> dict[str, dict[str, float]]:
    """By data set, encoder and kind: the dearest cell of each."""
    found: dict[str, dict[str, float]] = {}
    for cell in cells:
        name = f"{cell.data.source}/{cell.encoder.name}/{cell.transfer.kind}"
        pflop = round(transfer(cell) / 1e15, 4)
        if pflop > found.get(name, {}).get("pflop", -1.0):
            found[name] = {"pflop": pflop}
    return found


def hours(pflop: float, assumptions: dict[str, float]) -> float:
    return pflop * 1e15 / (assumptions["sustained TFLOP/s"] * 1e12) / 3600


def tables(result: dict[str, Any]) -> str:
    """The Markdown tables of docs/training.md; the file also has what follows pretraining, which costs less."""
    return "\n\n".join([_pretraining_table(result), _experiment_table(result)])


def _markdown(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _name(place: str) -> str:
    return ", ".join(shown(part) for part in place.split("/"))


def _pretraining_table(result: dict[str, Any]) -> str:
    head = [
        "pretraining",
        "views a step",
        "TFLOP a step",
        "of which the loss",
        "steps",
        "PFLOP",
        "GPU hours",
        "kept, GB",
    ]
    rows = [
        [
            _name(name),
            f"{step['views']:,}",
            f"{(step['encoder'] + step['loss']) / 1e12:.2f}",
            f"{100 * step['loss'] / (step['encoder'] + step['loss']):.1f} %",
            f"{step['steps']:,}",
            f"{step['pflop']:.1f}",
            f"{hours(step['pflop'], result['assumptions']):.2f}",
            f"{step['kept_bytes'] / 1e9:.1f}",
        ]
        for name, step in result["pretraining"].items()
    ]
    return _markdown(head, rows)


def _experiment_table(result: dict[str, Any]) -> str:
    price = result["assumptions"]["USD per GPU hour"]
    named = {**result["experiments"], "all of them, shared cells once": result["everything"]}
    rows = [
        [
            f"`{name}`" if name in result["experiments"] else f"**{name}**",
            f"{one['cells']}",
            f"{(spent := hours(one['pflop'], result['assumptions'])):,.1f}",
            f"{spent * price:,.0f}",
        ]
        for name, one in named.items()
    ]
    return _markdown(["experiment, all seeds", "cells", "GPU hours", "USD"], rows)


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()  # no options; refuses others and answers --help
    torch.set_num_threads(1)
    result = measured()
    save("flops", result)
    print(tables(result))


if __name__ == "__main__":
    main()
