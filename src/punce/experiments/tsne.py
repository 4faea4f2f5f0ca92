"""The t-SNE figure: test features of InfoNCE, puNCE with 1k and puNCE with 3k labels. The MNIST row is ours."""

from __future__ import annotations

from functools import partial

from punce.experiments.scales import Scale
from punce.experiments.tables import Experiment, Make, Place

NETWORKS = ("cifar10/resnet18", "mnist/mlp")
PANELS = {"infonce": ("infonce", "1k"), "punce 1k": ("punce", "1k"), "punce 3k": ("punce", "3k")}


def places(scale: Scale) -> dict[Place, Make]:
    """The panels that the scale has labels for."""
    return {
        (f"{bench}/{encoder}", panel): partial(scale.contrastive, bench, encoder, loss, n_p, embedding=True)
        for bench, encoder in (network.split("/") for network in NETWORKS)
        for panel, (loss, n_p) in PANELS.items()
        if scale.has(bench, n_p)
    }


TSNE = Experiment(
    name="tsne",
    title="t-SNE of test features",
    kind="scatter",
    row_heads=("data", "encoder"),
    column_head="pretraining",
    rows=NETWORKS,
    columns=tuple(PANELS),
    places=places,
    paper="Figure 3",
    seeds={"paper": 1, "laptop": 1, "smoke": 1},
)
