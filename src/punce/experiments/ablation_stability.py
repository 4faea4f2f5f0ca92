"""Figure 4c: test accuracy over the epochs of PU training, starting from puNCE's encoder or from random weights."""

from __future__ import annotations

from functools import partial

from punce.experiments.scales import Scale
from punce.experiments.table1 import NETWORKS
from punce.experiments.tables import Experiment, Make, Place, row_ids

RISKS = ("upu", "nnpu")
STARTS = ("punce", "random")


def places(scale: Scale) -> dict[Place, Make]:
    """Both starts, trained equally long on the same risk with 1k labels."""
    found: dict[Place, Make] = {}
    for bench, encoder in (network.split("/") for network in NETWORKS):
        epochs = scale.benches[bench].stability_epochs
        for risk in RISKS:
            row = f"{bench}/{encoder}/{risk}"
            pretrained = partial(scale.contrastive, bench, encoder, "punce", "1k", risk=risk)
            found[row, "punce"] = partial(pretrained, transfer="finetune", epochs=epochs)
            found[row, "random"] = partial(scale.joint, bench, encoder, risk, "1k", epochs=epochs)
    return found


ABLATION_STABILITY = Experiment(
    name="ablation_stability",
    title="Test accuracy while training on a PU risk",
    kind="epochs",
    row_heads=("data", "encoder", "risk"),
    column_head="start",
    rows=row_ids(NETWORKS, RISKS),
    columns=STARTS,
    places=places,
    paper="Figure 4c",
)
