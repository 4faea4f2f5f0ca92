"""Beyond the paper: labels taken out of one sample (single_set) against labels collected separately (case_control)."""

from __future__ import annotations

from functools import partial

from punce.experiments.scales import Scale
from punce.experiments.table2 import method
from punce.experiments.tables import Experiment, Make, Place, row_ids

SCENARIOS = ("single_set", "case_control")
METHODS = ("nnpu", "punce")
LABELS = ("1k", "10k")


def places(scale: Scale) -> dict[Place, Make]:
    """MNIST; the two differ in the prior, the more the more rows are labelled."""
    return {
        (f"mnist/mlp/{scenario}/{n_p}", name): partial(method(scale, "mnist", "mlp", name, n_p), scenario=scenario)
        for scenario in SCENARIOS
        for n_p in LABELS
        for name in METHODS
    }


SCENARIO_TABLE = Experiment(
    name="scenarios",
    title="One sample or two",
    kind="table",
    row_heads=("data", "encoder", "scenario", "n_P"),
    column_head="method",
    rows=row_ids(["mnist/mlp"], SCENARIOS, LABELS),
    columns=METHODS,
    places=places,
    control="single_set",
)
