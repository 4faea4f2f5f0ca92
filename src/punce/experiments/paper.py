"""The paper's tables and figures. Where the paper has no MNIST rows or curves for one, those here are ours."""

from functools import partial

from punce.experiments.tables import Make, Network, network_experiment

LABELS = ("1k", "3k", "10k")
LOSSES = ("infonce", "dcl", "scl", "punce")
METHODS = ("pn", "pvu", "upu", "nnpu", "vpu", "selfpu", "punce")
MLP_AND_RESNET = ("mnist/mlp", "cifar10/resnet18")

TRANSFERS = {"lp": "probe", "ft": "finetune"}
OBJECTIVES = {"ce": None, "ce+scl": "scl", "ce+punce": "punce"}
PANELS = {"infonce": ("infonce", "1k"), "punce 1k": ("punce", "1k"), "punce 3k": ("punce", "3k")}

TABLES = (
    network_experiment(
        "table1",
        "Contrastive losses under a linear probe",
        lambda on, n_p, loss: on.contrastive(loss, n_p),
        networks=MLP_AND_RESNET,
        rows=LABELS,
        columns=LOSSES,
        heads=("n_P", "pretraining loss"),
        paper="Table 1",
    ),
    network_experiment(
        "table2",
        "PU learning methods",
        Network.method,
        networks=("cifar10/resnet18", "cifar10/allconv", "mnist/mlp"),
        rows=METHODS,
        columns=LABELS,
        heads=("method", "n_P"),
        paper="Table 2",
        note="PN takes unlabelled rows for negatives, in the proportions of the data.",
    ),
    network_experiment(
        "table3",
        "Linear probe against fine-tuning after puNCE",
        lambda on, n_p, column: on.contrastive("punce", n_p, transfer=TRANSFERS[column]),
        networks=("cifar10/resnet18", "mnist/mlp"),
        rows=LABELS,
        columns=TRANSFERS,
        heads=("n_P", "transfer"),
        paper="Table 3",
    ),
    network_experiment(
        "table4",
        "Labels of both classes (PNU) under a linear probe",
        lambda on, share, loss: on.pnu(loss, share),
        networks=("cifar10/allconv",),
        rows=("1%", "5%", "10%"),
        columns=("infonce", "scl", "punce"),
        heads=("labelled", "pretraining loss"),
        paper="Table 4",
    ),
    network_experiment(
        "table5",
        "Few-shot fine-tuning on SST-2",
        lambda on, n, objective: partial(on.scale.few_shot_cell, OBJECTIVES[objective], n),
        networks=("sst2/roberta",),
        rows=("20", "100", "1000"),
        columns=OBJECTIVES,
        heads=("labelled", "objective"),
        paper="Table 5",
    ),
)


def _stability(on: Network, risk: str, start: str) -> Make | None:
    """Both starts, trained equally long on the same risk with 1k labels."""
    epochs = on.scale.benches[on.bench].stability_epochs
    if start == "random":
        return on.joint(risk, "1k", epochs=epochs)
    return on.contrastive("punce", "1k", risk=risk, transfer="finetune", epochs=epochs)


FIGURES = (
    network_experiment(
        "figure1",
        "PU learning methods against the number of labels",
        Network.method,  # Table 2 as curves: the same cells
        kind="curves",
        networks=("cifar10/allconv", "mnist/mlp"),
        rows=METHODS,
        columns=LABELS,
        heads=("method", "n_P"),
        paper="Figure 1",
    ),
    network_experiment(
        "tsne",
        "t-SNE of test features",
        lambda on, _, panel: on.contrastive(*PANELS[panel], embedding=True),
        kind="scatter",
        networks=("cifar10/resnet18", "mnist/mlp"),
        columns=PANELS,
        heads=("pretraining",),
        paper="Figure 3",
        seeds=dict.fromkeys(("paper", "laptop", "smoke"), 1),  # a picture shows one seed
    ),
    network_experiment(
        "ablation_losses",
        "Contrastive losses against the number of labels",
        Network.contrastive,  # Table 1 as curves: the same cells
        kind="curves",
        networks=MLP_AND_RESNET,
        rows=LOSSES,
        columns=LABELS,
        heads=("pretraining loss", "n_P"),
        paper="Figure 4a",
    ),
    network_experiment(
        "ablation_probing",
        "Risks for the linear probe on puNCE features",
        lambda on, risk, n_p: on.contrastive("punce", n_p, risk=risk),
        kind="curves",
        networks=MLP_AND_RESNET,
        rows=("pn", "upu", "nnpu"),
        columns=LABELS,
        heads=("probing risk", "n_P"),
        paper="Figure 4b",
        note="PN takes unlabelled rows for negatives and draws them and the labelled ones equally often; with the rows "
        "as they are (the PN of Table 2) it would call next to nothing positive at 1k.",
    ),
    network_experiment(
        "ablation_stability",
        "Test accuracy while training on a PU risk",
        _stability,
        kind="epochs",
        networks=MLP_AND_RESNET,
        rows=("upu", "nnpu"),
        columns=("punce", "random"),
        heads=("risk", "start"),
        paper="Figure 4c",
    ),
)
