"""Beyond the paper: labels that are not drawn uniformly from the positives but prefer bright images."""

from __future__ import annotations

from functools import partial

from punce.experiments.scales import Scale
from punce.experiments.table2 import method
from punce.experiments.tables import Experiment, Make, Place, row_ids

STRENGTHS = ("0", "0.5", "1", "2")
METHODS = ("nnpu", "scl", "punce")


def places(scale: Scale) -> dict[Place, Make]:
    """MNIST with 1k labels; at strength s a positive one deviation brighter is eˢ times as likely to be labelled."""
    found: dict[Place, Make] = {}
    for strength in STRENGTHS:
        makes: dict[str, Make] = {
            "nnpu": method(scale, "mnist", "mlp", "nnpu", "1k"),
            "scl": partial(scale.contrastive, "mnist", "mlp", "scl", "1k"),
            "punce": method(scale, "mnist", "mlp", "punce", "1k"),
        }
        for name, make in makes.items():
            found[f"mnist/mlp/{name}", strength] = partial(make, label_bias=float(strength))
    return found


BIASED_LABELS = Experiment(
    name="biased_labels",
    title="Labels that prefer bright images",
    kind="curves",
    row_heads=("data", "encoder", "method"),
    column_head="strength of the bias",
    rows=row_ids(["mnist/mlp"], METHODS),
    columns=STRENGTHS,
    places=places,
    control="0",
)
