"""Beyond the paper: π not given but estimated, by each method, and used in both loss and probe."""

from __future__ import annotations

from functools import partial

from punce.experiments.scales import Scale
from punce.experiments.tables import Experiment, Make, Place, row_ids

METHODS = ("true", "bbe", "tedn", "dedpul", "km1", "km2", "pen_l1", "tice", "elkan_noto")


def places(scale: Scale) -> dict[Place, Make]:
    """MNIST with 1k labels. The estimate itself is in the result's "prior"."""
    punce = partial(scale.contrastive, "mnist", "mlp", "punce", "1k")
    return {
        (f"mnist/mlp/{method}", "punce"): partial(punce, loss_prior=method, risk_prior=method) for method in METHODS
    }


PRIOR_METHODS = Experiment(
    name="prior_methods",
    title="Accuracy with an estimated prior",
    kind="table",
    row_heads=("data", "encoder", "prior by"),
    column_head="pretraining loss",
    rows=row_ids(["mnist/mlp"], METHODS),
    columns=("punce",),
    places=places,
    seeds={"paper": 5, "laptop": 1, "smoke": 1},
    control="true",
)
