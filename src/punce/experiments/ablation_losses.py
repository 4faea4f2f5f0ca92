"""Figure 4a: contrastive losses against the number of labels; Table 1 as curves."""

from __future__ import annotations

from punce.experiments.scales import Scale
from punce.experiments.table1 import LABELS, LOSSES, NETWORKS
from punce.experiments.table1 import places as table1_places
from punce.experiments.tables import Experiment, Make, Place, row_ids


def places(scale: Scale) -> dict[Place, Make]:
    """Table 1's cells, with a row for each loss."""
    turned: dict[Place, Make] = {}
    for (row, loss), make in table1_places(scale).items():
        network, n_p = row.rsplit("/", 1)
        turned[f"{network}/{loss}", n_p] = make
    return turned


ABLATION_LOSSES = Experiment(
    name="ablation_losses",
    title="Contrastive losses against the number of labels",
    kind="curves",
    row_heads=("data", "encoder", "pretraining loss"),
    column_head="n_P",
    rows=row_ids(NETWORKS, LOSSES),
    columns=LABELS,
    places=places,
    paper="Figure 4a",
)
