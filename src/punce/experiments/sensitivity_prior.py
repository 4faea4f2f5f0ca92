"""Beyond the paper: what a wrong π costs, in the loss, in the probe, in both, and in nnPU trained from scratch."""

from __future__ import annotations

from functools import partial

from punce.experiments.scales import Scale
from punce.experiments.tables import Experiment, Make, Place, row_ids

ERRORS = ("-0.2", "-0.1", "0", "+0.1", "+0.2")
WHERE = ("loss and probe", "loss", "probe", "nnpu")


def places(scale: Scale) -> dict[Place, Make]:
    """MNIST with 1k labels; the column is what is added to the true prior."""
    found: dict[Place, Make] = {}
    for error in ERRORS:
        told = "true" if error == "0" else f"true{error}"
        punce = partial(scale.contrastive, "mnist", "mlp", "punce", "1k")
        makes: dict[str, Make] = {
            "loss and probe": partial(punce, loss_prior=told, risk_prior=told),
            "loss": partial(punce, loss_prior=told),
            "probe": partial(punce, risk_prior=told),
            "nnpu": partial(scale.joint, "mnist", "mlp", "nnpu", "1k", prior=told),
        }
        found |= {(f"mnist/mlp/{where}", error): make for where, make in makes.items()}
    return found


SENSITIVITY_PRIOR = Experiment(
    name="sensitivity_prior",
    title="Accuracy when the prior is wrong",
    kind="curves",
    row_heads=("data", "encoder", "wrong in"),
    column_head="error of the prior",
    rows=row_ids(["mnist/mlp"], WHERE),
    columns=ERRORS,
    places=places,
    control="0",
)
