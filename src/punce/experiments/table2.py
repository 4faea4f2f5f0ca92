"""Table 2: puNCE with a linear probe against PU methods that train encoder and head together."""

from punce.experiments.tables import Make, Network, network_experiment

LABELS = ("1k", "3k", "10k")
METHODS = ("pn", "pvu", "upu", "nnpu", "vpu", "selfpu", "punce")


def make(on: Network, method: str, n_p: str) -> Make | None:
    """The same cells for the table and for Figure 1."""
    return on.method(method, n_p)


TABLE2 = network_experiment(
    "table2",
    "PU learning methods",
    make,
    networks=("cifar10/resnet18", "cifar10/allconv", "mnist/mlp"),
    rows=METHODS,
    columns=LABELS,
    row_heads=("method",),
    column_head="n_P",
    paper="Table 2",
    note="PN takes unlabelled rows for negatives, in the proportions of the data.",
)
