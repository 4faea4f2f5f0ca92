"""The t-SNE figure: test features of InfoNCE, puNCE with 1k and puNCE with 3k labels. The MNIST row is ours."""

from punce.experiments.tables import network_experiment

PANELS = {"infonce": ("infonce", "1k"), "punce 1k": ("punce", "1k"), "punce 3k": ("punce", "3k")}

TSNE = network_experiment(
    "tsne",
    "t-SNE of test features",
    lambda on, _, panel: on.contrastive(*PANELS[panel], embedding=True),
    kind="scatter",
    networks=("cifar10/resnet18", "mnist/mlp"),
    columns=PANELS,
    column_head="pretraining",
    paper="Figure 3",
    seeds={"paper": 1, "laptop": 1, "smoke": 1},
)
