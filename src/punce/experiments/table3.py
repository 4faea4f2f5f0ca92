"""Table 3: after puNCE, train only the linear layer or everything. The MNIST rows are ours."""

from punce.experiments.tables import network_experiment

TRANSFERS = {"lp": "probe", "ft": "finetune"}

TABLE3 = network_experiment(
    "table3",
    "Linear probe against fine-tuning after puNCE",
    lambda on, n_p, column: on.contrastive("punce", n_p, transfer=TRANSFERS[column]),
    networks=("cifar10/resnet18", "mnist/mlp"),
    rows=("1k", "3k", "10k"),
    columns=TRANSFERS,
    row_heads=("n_P",),
    column_head="transfer",
    paper="Table 3",
)
