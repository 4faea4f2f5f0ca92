"""Questions that the paper does not ask, all on MNIST with an MLP."""

from punce.experiments.tables import Make, Network, network_experiment, row_ids

_TOLD = {
    "loss and probe": ("loss_prior", "risk_prior"),
    "loss": ("loss_prior",),
    "probe": ("risk_prior",),
    "nnpu": ("prior",),
}
"""Who is told the wrong prior: the arguments of a cell that hold it."""


def _wrong_prior(on: Network, where: str, error: str) -> Make | None:
    """The column is what is added to the true prior."""
    # "true" and not "true+0": the control must be the same cell as in the paper's tables.
    wrong = dict.fromkeys(_TOLD[where], "true" if error == "0" else f"true{error}")
    return on.method("nnpu" if where == "nnpu" else "punce", "1k", **wrong)


def _scenario(on: Network, row: str, method: str) -> Make | None:
    """The two scenarios differ in the prior, the more the more rows are labelled."""
    scenario, n_p = row.split("/")
    return on.method(method, n_p, scenario=scenario)


BEYOND = (
    network_experiment(
        "sensitivity_prior",
        "Accuracy when the prior is wrong",
        _wrong_prior,
        kind="curves",
        rows=tuple(_TOLD),
        columns=("-0.2", "-0.1", "0", "+0.1", "+0.2"),
        heads=("wrong in", "error of the prior"),
        control="0",
    ),
    network_experiment(
        "prior_methods",
        "Accuracy with an estimated prior",
        # The estimate is used in loss and probe; it is stored in the result's "prior".
        lambda on, method, loss: on.contrastive(loss, "1k", loss_prior=method, risk_prior=method),
        rows=("true", "bbe", "tedn", "dedpul", "km1", "km2", "pen_l1", "tice", "elkan_noto"),
        columns=("punce",),
        heads=("prior by", "pretraining loss"),
        seeds={"paper": 5, "laptop": 1, "smoke": 1},
        control="true",
    ),
    network_experiment(
        "scenarios",
        "One sample or two",
        _scenario,
        rows=row_ids(["single_set", "case_control"], ["1k", "10k"]),
        columns=("nnpu", "punce"),
        heads=("scenario", "n_P", "method"),
        control="single_set",
    ),
    network_experiment(
        "biased_labels",
        "Labels that prefer bright images",
        # At strength s a positive that is one deviation brighter is eˢ times as likely to be labelled.
        lambda on, method, strength: on.method(method, "1k", label_bias=float(strength)),
        kind="curves",
        rows=("nnpu", "scl", "punce"),
        columns=("0", "0.5", "1", "2"),
        heads=("method", "strength of the bias"),
        control="0",
    ),
    network_experiment(
        "seeds_spread",
        "Spread over seeds",
        Network.method,  # labelled set, weights, batches and views all follow the seed
        rows=("nnpu", "punce"),
        columns=("1k",),
        heads=("method", "n_P"),
        seeds={"paper": 10, "laptop": 5, "smoke": 3},  # more than the tables use
    ),
)
