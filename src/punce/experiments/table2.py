"""Table 2: puNCE with a linear probe against PU methods that train encoder and head together."""

from __future__ import annotations

from functools import partial

from punce.experiments.scales import Scale
from punce.experiments.tables import Experiment, Make, Place, row_ids

NETWORKS = ("cifar10/resnet18", "cifar10/allconv", "mnist/mlp")
LABELS = ("1k", "3k", "10k")
METHODS = ("pn", "pvu", "upu", "nnpu", "vpu", "selfpu", "punce")


def method(scale: Scale, bench: str, encoder: str, name: str, n_p: str) -> Make:
    """A PU method from scratch, or puNCE and a probe."""
    if name == "punce":
        return partial(scale.contrastive, bench, encoder, "punce", n_p)
    return partial(scale.joint, bench, encoder, name, n_p)


def places_of(scale: Scale, networks: tuple[str, ...]) -> dict[Place, Make]:
    """Every method on these networks at every number of labels that the scale has."""
    return {
        (f"{bench}/{encoder}/{name}", n_p): method(scale, bench, encoder, name, n_p)
        for bench, encoder in (network.split("/") for network in networks)
        for name in METHODS
        for n_p in LABELS
        if scale.has(bench, n_p)
    }


TABLE2 = Experiment(
    name="table2",
    title="PU learning methods",
    kind="table",
    row_heads=("data", "encoder", "method"),
    column_head="n_P",
    rows=row_ids(NETWORKS, METHODS),
    columns=LABELS,
    places=lambda scale: places_of(scale, NETWORKS),
    paper="Table 2",
    note="PN takes unlabelled rows for negatives, in the proportions of the data.",
)
