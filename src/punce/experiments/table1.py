"""Table 1: contrastive losses, then a linear probe with nnPU, against the number of labels."""

from punce.experiments.tables import network_experiment

NETWORKS = ("mnist/mlp", "cifar10/resnet18")
LABELS = ("1k", "3k", "10k")
LOSSES = ("infonce", "dcl", "scl", "punce")

TABLE1 = network_experiment(
    "table1",
    "Contrastive losses under a linear probe",
    lambda on, n_p, loss: on.contrastive(loss, n_p),
    networks=NETWORKS,
    rows=LABELS,
    columns=LOSSES,
    row_heads=("n_P",),
    column_head="pretraining loss",
    paper="Table 1",
)
