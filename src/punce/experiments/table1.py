"""Table 1: contrastive losses, then a linear probe with nnPU, against the number of labels."""

from __future__ import annotations

from functools import partial

from punce.experiments.scales import Scale
from punce.experiments.tables import Experiment, Make, Place, row_ids

NETWORKS = ("mnist/mlp", "cifar10/resnet18")
LABELS = ("1k", "3k", "10k")
LOSSES = ("infonce", "dcl", "scl", "punce")


def places(scale: Scale) -> dict[Place, Make]:
    """Every loss at every number of labels that the scale has."""
    return {
        (f"{bench}/{encoder}/{n_p}", loss): partial(scale.contrastive, bench, encoder, loss, n_p)
        for bench, encoder in (network.split("/") for network in NETWORKS)
        for n_p in LABELS
        if scale.has(bench, n_p)
        for loss in LOSSES
    }


TABLE1 = Experiment(
    name="table1",
    title="Contrastive losses under a linear probe",
    kind="table",
    row_heads=("data", "encoder", "n_P"),
    column_head="pretraining loss",
    rows=row_ids(NETWORKS, LABELS),
    columns=LOSSES,
    places=places,
    paper="Table 1",
)
