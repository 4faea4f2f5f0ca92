"""Figure 1: PU methods against the number of labels; Table 2's AllConv rows as curves. The MNIST curves are ours."""

from punce.experiments.table2 import LABELS, METHODS, make
from punce.experiments.tables import network_experiment

FIGURE1 = network_experiment(
    "figure1",
    "PU learning methods against the number of labels",
    make,
    kind="curves",
    networks=("cifar10/allconv", "mnist/mlp"),
    rows=METHODS,
    columns=LABELS,
    row_heads=("method",),
    column_head="n_P",
    paper="Figure 1",
)
