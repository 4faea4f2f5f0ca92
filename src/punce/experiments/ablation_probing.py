"""Figure 4b: which risk to train the linear layer on, on top of puNCE features."""

from punce.experiments.table1 import LABELS, NETWORKS
from punce.experiments.tables import network_experiment

ABLATION_PROBING = network_experiment(
    "ablation_probing",
    "Risks for the linear probe on puNCE features",
    lambda on, risk, n_p: on.contrastive("punce", n_p, risk=risk),
    kind="curves",
    networks=NETWORKS,
    rows=("pn", "upu", "nnpu"),
    columns=LABELS,
    row_heads=("probing risk",),
    column_head="n_P",
    paper="Figure 4b",
    note=(
        "PN takes unlabelled rows for negatives and draws them and the labelled ones equally often; with the rows as "
        "they are (the PN of Table 2) it would call next to nothing positive at 1k."
    ),
)
