"""Beyond the paper: π not given but estimated, by each method, and used in both loss and probe."""

from punce.experiments.tables import network_experiment

PRIOR_METHODS = network_experiment(
    "prior_methods",
    "Accuracy with an estimated prior",
    # MNIST with 1k labels. The estimate itself is in the result's "prior".
    lambda on, method, loss: on.contrastive(loss, "1k", loss_prior=method, risk_prior=method),
    rows=("true", "bbe", "tedn", "dedpul", "km1", "km2", "pen_l1", "tice", "elkan_noto"),
    columns=("punce",),
    row_heads=("prior by",),
    column_head="pretraining loss",
    seeds={"paper": 5, "laptop": 1, "smoke": 1},
    control="true",
)
