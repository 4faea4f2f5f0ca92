"""Beyond the paper: labels taken out of one sample (single_set) against labels collected separately (case_control)."""

from punce.experiments.tables import Make, Network, network_experiment, row_ids


def make(on: Network, row: str, method: str) -> Make | None:
    """MNIST; the two differ in the prior, the more the more rows are labelled."""
    scenario, n_p = row.split("/")
    return on.method(method, n_p, scenario=scenario)


SCENARIO_TABLE = network_experiment(
    "scenarios",
    "One sample or two",
    make,
    rows=row_ids(["single_set", "case_control"], ["1k", "10k"]),
    columns=("nnpu", "punce"),
    row_heads=("scenario", "n_P"),
    column_head="method",
    control="single_set",
)
