"""Questions that the paper does not ask, most of them on MNIST with an MLP."""

from functools import partial

from punce.experiments.cell import Cell
from punce.experiments.paper import OBJECTIVES
from punce.experiments.protocol import FEW_LABELS, LABELS
from punce.experiments.tables import Experiment, Network

_TOLD = {
    "loss and probe": ("loss_prior", "risk_prior"),
    "loss": ("loss_prior",),
    "probe": ("risk_prior",),
    "nnpu": ("prior",),
}
"""Who is told the wrong prior: the arguments of a cell that hold it."""


def _wrong_prior(on: Network, where: str, error: str) -> Cell | None:
    """The column is what is added to the true prior."""
    # "true" and not "true+0": the control must be the same cell as in the paper's tables.
    wrong = dict.fromkeys(_TOLD[where], "true" if error == "0" else f"true{error}")
    return on.method("nnpu" if where == "nnpu" else "punce", "1k", **wrong)


def _scenario(on: Network, row: str, method: str) -> Cell | None:
    """The two scenarios differ in the prior, the more the more rows are labelled."""
    scenario, n_p = row.split("/")
    return on.method(method, n_p, scenario=scenario)


def _longer(on: Network, share: str, column: str) -> Cell | None:
    """Is it the loss or the schedule? The other columns are cells of Table 4."""
    return on.pnu("punce", share, times=5) if column == "punce 5x" else on.pnu(column, share)


_SIZES = ("20", "100", "300", "1k", "3k", "10k")
_HEADS = ("self_consistent", "logistic", "weighted_logistic")


def _counted(on: Network, method: str, n_p: str) -> Cell | None:
    """Where so many rows are labelled in truth: small scales label fewer than a place's name says."""
    cell, names = on.method(method, n_p), {**FEW_LABELS, **LABELS}
    return cell if cell is not None and (cell.data.n_labelled == names[n_p] or on.scale.name == "smoke") else None


def _head(on: Network, n_p: str, head: str, loss: str = "punce") -> Cell | None:
    return on.contrastive(loss, n_p) if head == "nnpu" else on.portfolio(loss, n_p, head)


_bad_labels = partial(Experiment, kind="curves", parts=("nnpu", "scl", "punce"))

BEYOND = (
    Experiment(
        name="sensitivity_prior",
        title="Accuracy when the prior is wrong",
        make=_wrong_prior,
        kind="curves",
        parts=tuple(_TOLD),
        columns=("-0.2", "-0.1", "0", "+0.1", "+0.2"),
        heads=("wrong in", "error of the prior"),
        control="0",
    ),
    Experiment(
        name="prior_methods",
        title="Accuracy with an estimated prior",
        # The estimate is used in loss and probe; it is stored in the result's "prior".
        make=lambda on, method, loss: on.contrastive(loss, "1k", loss_prior=method, risk_prior=method),
        parts=("true", "bbe", "tedn", "dedpul", "km1", "km2", "pen_l1", "tice", "elkan_noto", "combined", "roc"),
        columns=("punce",),
        heads=("prior by", "pretraining loss"),
        seeds={"smoke": 1},
        control="true",
    ),
    Experiment(
        name="scenarios",
        title="One sample or two",
        make=_scenario,
        parts=tuple(f"{scenario}/{n_p}" for scenario in ("single_set", "case_control") for n_p in ("1k", "3k", "10k")),
        columns=("nnpu", "punce"),
        heads=("scenario", "n_P", "method"),
        control="single_set",
    ),
    _bad_labels(
        name="biased_labels",
        title="Labels that prefer bright images",
        # At strength s a positive that is one deviation brighter is eˢ times as likely to be labelled.
        make=lambda on, method, strength: on.method(method, "1k", label_bias=float(strength)),
        columns=("0", "0.5", "1", "2"),
        heads=("method", "strength of the bias"),
        control="0",
    ),
    Experiment(
        name="row_probabilities",
        title="Positives alone: the prior for every row, or a probability for each",
        make=lambda on, n_p, loss: on.contrastive(loss, n_p),
        parts=("1k", "3k", "10k"),
        columns=("punce", "posterior pu"),
        heads=("n_P", "pretraining loss"),
        control="punce",
    ),
    Experiment(
        name="longer_pnu",
        title="Labels of both classes: the printed loss with five times the epochs",
        make=_longer,
        parts=("1%", "5%", "10%"),
        columns=("punce", "punce 5x", "posterior"),
        heads=("labelled", "pretraining loss"),
        seeds={"paper": 1, "laptop": 2, "laptop1": 1, "smoke": 1},
    ),
    Experiment(
        name="seeds_spread",
        title="Spread over seeds",
        make=Network.method,  # labelled set, weights, batches and views all follow the seed
        parts=("nnpu", "punce"),
        columns=("1k",),
        heads=("method", "n_P"),
        seeds={"paper": 10, "laptop1": 5, "laptop": 5, "smoke": 3},  # more than the tables use
    ),
    _bad_labels(
        name="wrong_labels",
        title="Negatives among the labelled rows",
        make=lambda on, method, share: on.method(method, "1k", label_noise=float(share.rstrip("%")) / 100),
        columns=("0%", "5%", "10%"),
        heads=("method", "wrong labels"),
        control="0%",
    ),
    Experiment(
        name="imbalance",
        title="Few positives in the population",
        make=lambda on, method, share: on.method(method, "100", positive_share=float(share.rstrip("%")) / 100),
        parts=("nnpu", "scl", "punce"),
        columns=("5%", "20%"),
        heads=("method", "share of positives"),
        note="100 labelled rows; both parts have this share of positives. Accuracy of a constant answer: 95 and 80.",
    ),
    Experiment(
        name="label_counts",
        title="Methods against the number of labels, from 20 on",
        make=_counted,
        kind="curves",
        parts=("nnpu", "infonce", "scl", "punce", "posterior pu"),
        columns=_SIZES,
        heads=("method", "n_P"),
    ),
    Experiment(
        name="heads",
        title="Heads of the portfolio against nnPU on puNCE features",
        make=_head,
        parts=_SIZES,
        columns=("nnpu", *_HEADS),
        heads=("n_P", "head"),
        control="nnpu",
    ),
    Experiment(
        name="losses_and_heads",
        title="Losses and heads together, 1k labels",
        make=lambda on, loss, head: _head(on, "1k", head, loss),
        networks=("cifar10/resnet18",),
        parts=("infonce", "scl", "punce", "posterior pu"),
        columns=("nnpu", "self_consistent", "weighted_logistic"),
        heads=("pretraining loss", "head"),
        control="nnpu",
    ),
    Experiment(
        name="larger_text",
        title="Few-shot fine-tuning on SST-2 with a larger encoder",
        # Settings of Table 5 at the same scale: they were chosen for the smaller encoder.
        make=lambda on, n, objective: on.few_shot(OBJECTIVES[objective], n),
        networks=("sst2/mpnet",),
        parts=("20", "100"),
        columns=tuple(OBJECTIVES),
        heads=("labelled", "objective"),
    ),
)
