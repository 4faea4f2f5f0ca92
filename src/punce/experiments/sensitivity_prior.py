"""Beyond the paper: what a wrong π costs, in the loss, in the probe, in both, and in nnPU trained from scratch."""

from punce.experiments.tables import Make, Network, network_experiment

TOLD = {
    "loss and probe": ("loss_prior", "risk_prior"),
    "loss": ("loss_prior",),
    "probe": ("risk_prior",),
    "nnpu": ("prior",),
}


def make(on: Network, where: str, error: str) -> Make | None:
    """MNIST with 1k labels; the column is what is added to the true prior."""
    wrong = dict.fromkeys(TOLD[where], "true" if error == "0" else f"true{error}")
    return on.method("nnpu" if where == "nnpu" else "punce", "1k", **wrong)


SENSITIVITY_PRIOR = network_experiment(
    "sensitivity_prior",
    "Accuracy when the prior is wrong",
    make,
    kind="curves",
    rows=tuple(TOLD),
    columns=("-0.2", "-0.1", "0", "+0.1", "+0.2"),
    row_heads=("wrong in",),
    column_head="error of the prior",
    control="0",
)
