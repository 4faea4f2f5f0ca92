"""Beyond the paper: how far seeds spread, with more of them than the tables use."""

from __future__ import annotations

from punce.experiments.scales import Scale
from punce.experiments.table2 import method
from punce.experiments.tables import Experiment, Make, Place, row_ids

METHODS = ("nnpu", "punce")


def places(scale: Scale) -> dict[Place, Make]:
    """MNIST with 1k labels; labelled set, weights, batches and views all follow the seed."""
    return {(f"mnist/mlp/{name}", "1k"): method(scale, "mnist", "mlp", name, "1k") for name in METHODS}


SEEDS_SPREAD = Experiment(
    name="seeds_spread",
    title="Spread over seeds",
    kind="table",
    row_heads=("data", "encoder", "method"),
    column_head="n_P",
    rows=row_ids(["mnist/mlp"], METHODS),
    columns=("1k",),
    places=places,
    seeds={"paper": 10, "laptop": 5, "smoke": 3},
)
