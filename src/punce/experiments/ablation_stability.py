"""Figure 4c: test accuracy over the epochs of PU training, starting from puNCE's encoder or from random weights."""

from punce.experiments.table1 import NETWORKS
from punce.experiments.tables import Make, Network, network_experiment


def make(on: Network, risk: str, start: str) -> Make | None:
    """Both starts, trained equally long on the same risk with 1k labels."""
    epochs = on.scale.benches[on.bench].stability_epochs
    if start == "random":
        return on.joint(risk, "1k", epochs=epochs)
    return on.contrastive("punce", "1k", risk=risk, transfer="finetune", epochs=epochs)


ABLATION_STABILITY = network_experiment(
    "ablation_stability",
    "Test accuracy while training on a PU risk",
    make,
    kind="epochs",
    networks=NETWORKS,
    rows=("upu", "nnpu"),
    columns=("punce", "random"),
    row_heads=("risk",),
    column_head="start",
    paper="Figure 4c",
)
