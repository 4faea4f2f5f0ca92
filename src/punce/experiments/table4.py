"""Table 4: a few labels of both classes (PNU); cross-entropy on the labelled rows downstream."""

from __future__ import annotations

from functools import partial

from punce.experiments.scales import Scale
from punce.experiments.tables import Experiment, Make, Place, row_ids

SHARES = ("1%", "5%", "10%")
LOSSES = ("infonce", "scl", "punce")


def places(scale: Scale) -> dict[Place, Make]:
    """Every loss at every share of labelled rows."""
    return {
        (f"cifar10/allconv/{share}", loss): partial(scale.pnu, "cifar10", "allconv", loss, share)
        for share in SHARES
        if scale.has("cifar10", share)
        for loss in LOSSES
    }


TABLE4 = Experiment(
    name="table4",
    title="Labels of both classes (PNU) under a linear probe",
    kind="table",
    row_heads=("data", "encoder", "labelled"),
    column_head="pretraining loss",
    rows=row_ids(["cifar10/allconv"], SHARES),
    columns=LOSSES,
    places=places,
    paper="Table 4",
)
