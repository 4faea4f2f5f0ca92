"""Figure 1: PU methods against the number of labels; Table 2's AllConv rows as curves. The MNIST curves are ours."""

from __future__ import annotations

from punce.experiments.table2 import LABELS, METHODS, places_of
from punce.experiments.tables import Experiment, row_ids

NETWORKS = ("cifar10/allconv", "mnist/mlp")

FIGURE1 = Experiment(
    name="figure1",
    title="PU learning methods against the number of labels",
    kind="curves",
    row_heads=("data", "encoder", "method"),
    column_head="n_P",
    rows=row_ids(NETWORKS, METHODS),
    columns=LABELS,
    places=lambda scale: places_of(scale, NETWORKS),
    paper="Figure 1",
)
