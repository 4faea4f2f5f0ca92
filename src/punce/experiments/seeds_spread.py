"""Beyond the paper: how far seeds spread, with more of them than the tables use."""

from punce.experiments.tables import Network, network_experiment

SEEDS_SPREAD = network_experiment(
    "seeds_spread",
    "Spread over seeds",
    Network.method,  # labelled set, weights, batches and views all follow the seed
    rows=("nnpu", "punce"),
    columns=("1k",),
    row_heads=("method",),
    column_head="n_P",
    seeds={"paper": 10, "laptop": 5, "smoke": 3},
)
