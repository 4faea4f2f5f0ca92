"""Table 3: after puNCE, train only the linear layer or everything. The MNIST rows are ours."""

from __future__ import annotations

from functools import partial

from punce.experiments.scales import Scale
from punce.experiments.tables import Experiment, Make, Place, row_ids

NETWORKS = ("cifar10/resnet18", "mnist/mlp")
LABELS = ("1k", "3k", "10k")


def places(scale: Scale) -> dict[Place, Make]:
    """Probe and fine-tune of the same puNCE encoder."""
    found: dict[Place, Make] = {}
    for bench, encoder in (network.split("/") for network in NETWORKS):
        for n_p in (n_p for n_p in LABELS if scale.has(bench, n_p)):
            make = partial(scale.contrastive, bench, encoder, "punce", n_p)
            found[f"{bench}/{encoder}/{n_p}", "lp"] = make
            found[f"{bench}/{encoder}/{n_p}", "ft"] = partial(make, transfer="finetune")
    return found


TABLE3 = Experiment(
    name="table3",
    title="Linear probe against fine-tuning after puNCE",
    kind="table",
    row_heads=("data", "encoder", "n_P"),
    column_head="transfer",
    rows=row_ids(NETWORKS, LABELS),
    columns=("lp", "ft"),
    places=places,
    paper="Table 3",
)
