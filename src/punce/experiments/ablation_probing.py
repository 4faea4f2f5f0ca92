"""Figure 4b: which risk to train the linear layer on, on top of puNCE features."""

from __future__ import annotations

from functools import partial

from punce.experiments.scales import Scale
from punce.experiments.table1 import LABELS, NETWORKS
from punce.experiments.tables import Experiment, Make, Place, row_ids

RISKS = ("pn", "upu", "nnpu")


def places(scale: Scale) -> dict[Place, Make]:
    """The same puNCE encoder under every risk."""
    return {
        (f"{bench}/{encoder}/{risk}", n_p): partial(scale.contrastive, bench, encoder, "punce", n_p, risk=risk)
        for bench, encoder in (network.split("/") for network in NETWORKS)
        for risk in RISKS
        for n_p in LABELS
        if scale.has(bench, n_p)
    }


ABLATION_PROBING = Experiment(
    name="ablation_probing",
    title="Risks for the linear probe on puNCE features",
    kind="curves",
    row_heads=("data", "encoder", "probing risk"),
    column_head="n_P",
    rows=row_ids(NETWORKS, RISKS),
    columns=LABELS,
    places=places,
    paper="Figure 4b",
    note=(
        "PN takes unlabelled rows for negatives and draws them and the labelled ones equally often; with the rows as "
        "they are (the PN of Table 2) it would call next to nothing positive at 1k."
    ),
)
