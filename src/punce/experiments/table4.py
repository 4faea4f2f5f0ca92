"""Table 4: a few labels of both classes (PNU); cross-entropy on the labelled rows downstream."""

from punce.experiments.tables import network_experiment

TABLE4 = network_experiment(
    "table4",
    "Labels of both classes (PNU) under a linear probe",
    lambda on, share, loss: on.pnu(loss, share),
    networks=("cifar10/allconv",),
    rows=("1%", "5%", "10%"),
    columns=("infonce", "scl", "punce"),
    row_heads=("labelled",),
    column_head="pretraining loss",
    paper="Table 4",
)
