"""The paper's tables and figures. Where the paper has no MNIST rows or curves for one, those here are ours."""

from functools import partial

from punce.experiments.cell import Cell
from punce.experiments.tables import Experiment, Network

LABELS = ("1k", "3k", "10k")
LOSSES = ("infonce", "dcl", "scl", "punce")
METHODS = ("pn", "pnb", "pvu", "upu", "nnpu", "vpu", "selfpu", "punce")
MLP_AND_RESNET = ("mnist/mlp", "cifar10/resnet18")

TRANSFERS = {"lp": "probe", "ft": "finetune"}
OBJECTIVES = {"ce": None, "ce+scl": "scl", "ce+punce": "punce"}
PANELS = {"infonce": ("infonce", "1k"), "punce 1k": ("punce", "1k"), "punce 3k": ("punce", "3k")}


def _both_classes(on: Network, share: str, loss: str) -> Cell | None:
    # Where next to no row is unlabelled every form of puNCE is SCL.
    return None if share == "99%" and loss in ("punce", "posterior") else on.pnu(loss, share)


TABLES = (
    Experiment(
        name="table1",
        title="Contrastive losses under a linear probe",
        make=lambda on, n_p, loss: on.contrastive(loss, n_p),
        networks=MLP_AND_RESNET,
        parts=LABELS,
        columns=LOSSES,
        heads=("n_P", "pretraining loss"),
        paper="Table 1",
    ),
    Experiment(
        name="table2",
        title="PU learning methods",
        make=Network.method,
        networks=("cifar10/resnet18", "cifar10/allconv", "mnist/mlp"),
        parts=METHODS,
        columns=LABELS,
        heads=("method", "n_P"),
        paper="Table 2",
        note="PN takes unlabelled rows for negatives, in the proportions of the data. With balanced batches it draws "
        "P and U equally often, as the paper's PN must have done.",
    ),
    Experiment(
        name="table3",
        title="Linear probe against fine-tuning after puNCE",
        make=lambda on, n_p, column: on.contrastive("punce", n_p, transfer=TRANSFERS[column]),
        networks=("cifar10/resnet18", "mnist/mlp"),
        parts=LABELS,
        columns=tuple(TRANSFERS),
        heads=("n_P", "transfer"),
        paper="Table 3",
    ),
    Experiment(
        name="table4",
        title="Labels of both classes (PNU) under a linear probe",
        make=_both_classes,
        networks=("cifar10/allconv", "mnist/mlp"),
        parts=("1%", "5%", "10%", "99%"),
        columns=("infonce", "scl", "punce", "posterior"),
        heads=("labelled", "pretraining loss"),
        paper="Table 4",
        note="Row probabilities (ours) are PuNCE(weighting='posterior'). 99 % stands for full supervision.",
    ),
    Experiment(
        name="table5",
        title="Few-shot fine-tuning on SST-2",
        make=lambda on, n, objective: on.few_shot(OBJECTIVES[objective], n),
        networks=("sst2/roberta",),
        parts=("20", "100", "1000"),
        columns=tuple(OBJECTIVES),
        heads=("labelled", "objective"),
        paper="Table 5",
    ),
)


def _stability(on: Network, risk: str, start: str) -> Cell | None:
    """Both starts, trained equally long at the same rate on the same risk with 1k labels."""
    bench = on.scale.benches.get(on.bench)
    if bench is None:
        return None
    schedule = {"epochs": bench.stability_epochs, "rate": bench.stability_rate}
    if start == "random":
        return on.joint(risk, "1k", **schedule)
    return on.contrastive("punce", "1k", risk=risk, transfer="finetune", **schedule)


def _linear_stability(on: Network, risk: str, start: str) -> Cell | None:
    return on.untrained(risk, "1k") if start == "random" else on.contrastive("punce", "1k", risk=risk)


_against_labels = partial(Experiment, kind="curves", networks=MLP_AND_RESNET, columns=LABELS)
_by_epochs = partial(
    Experiment,
    kind="epochs",
    networks=MLP_AND_RESNET,
    parts=("upu", "nnpu"),
    columns=("punce", "random"),
    paper="Figure 4c",
)

FIGURES = (
    _against_labels(
        name="figure1",
        title="PU learning methods against the number of labels",
        make=Network.method,  # Table 2 as curves: the same cells
        networks=("cifar10/allconv", "mnist/mlp"),
        parts=tuple(method for method in METHODS if method != "pnb"),  # seven curves are as many as a panel can show
        heads=("method", "n_P"),
        paper="Figure 1",
    ),
    Experiment(
        name="tsne",
        title="t-SNE of test features",
        make=lambda on, _, panel: on.contrastive(*PANELS[panel], embedding=True),
        kind="scatter",
        networks=("cifar10/resnet18", "mnist/mlp"),
        columns=tuple(PANELS),
        heads=("pretraining",),
        paper="Figure 3",
        seeds={"laptop1": 1, "smoke": 1},  # a picture shows one seed; the claim about neighbours uses all
    ),
    _against_labels(
        name="ablation_losses",
        title="Contrastive losses against the number of labels",
        make=Network.contrastive,  # Table 1 as curves: the same cells
        parts=LOSSES,
        heads=("pretraining loss", "n_P"),
        paper="Figure 4a",
    ),
    _against_labels(
        name="ablation_probing",
        title="Risks for the linear probe on puNCE features",
        make=lambda on, risk, n_p: on.contrastive("punce", n_p, risk=risk),
        parts=("pn", "upu", "nnpu"),
        heads=("probing risk", "n_P"),
        paper="Figure 4b",
        note="PN takes unlabelled rows for negatives and draws them and the labelled ones equally often; with the rows "
        "as they are (the PN of Table 2) it would call next to nothing positive at 1k.",
    ),
    _by_epochs(
        name="ablation_stability",
        title="Test accuracy while training on a PU risk",
        make=_stability,
        heads=("risk", "start"),
    ),
    _by_epochs(
        name="stability_probe",
        title="Test accuracy while training a linear layer on a PU risk",
        make=_linear_stability,
        heads=("risk", "encoder"),
        control="punce",
        note="The other reading of Figure 4c, whose file is called lp_stable: the encoder stays as it is, pretrained "
        "or with random weights.",
    ),
)
