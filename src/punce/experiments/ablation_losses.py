"""Figure 4a: contrastive losses against the number of labels; Table 1 as curves."""

from punce.experiments.table1 import LABELS, LOSSES, NETWORKS
from punce.experiments.tables import Network, network_experiment

ABLATION_LOSSES = network_experiment(
    "ablation_losses",
    "Contrastive losses against the number of labels",
    Network.contrastive,
    kind="curves",
    networks=NETWORKS,
    rows=LOSSES,
    columns=LABELS,
    row_heads=("pretraining loss",),
    column_head="n_P",
    paper="Figure 4a",
)
