"""The paper's tables and figures, and some it does not have, at three scales.

Add an experiment: one file that calls :func:`~punce.experiments.tables.network_experiment`, one line in
:data:`EXPERIMENTS`. ``tests/experiments/test_experiments.py`` finds it there.
"""

from __future__ import annotations

from punce.errors import InputError
from punce.experiments.ablation_losses import ABLATION_LOSSES
from punce.experiments.ablation_probing import ABLATION_PROBING
from punce.experiments.ablation_stability import ABLATION_STABILITY
from punce.experiments.biased_labels import BIASED_LABELS
from punce.experiments.figure1 import FIGURE1
from punce.experiments.prior_methods import PRIOR_METHODS
from punce.experiments.scenarios import SCENARIO_TABLE
from punce.experiments.seeds_spread import SEEDS_SPREAD
from punce.experiments.sensitivity_prior import SENSITIVITY_PRIOR
from punce.experiments.table1 import TABLE1
from punce.experiments.table2 import TABLE2
from punce.experiments.table3 import TABLE3
from punce.experiments.table4 import TABLE4
from punce.experiments.table5 import TABLE5
from punce.experiments.tables import Experiment
from punce.experiments.tsne import TSNE

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        TABLE1,
        TABLE2,
        TABLE3,
        TABLE4,
        TABLE5,
        FIGURE1,
        TSNE,
        ABLATION_LOSSES,
        ABLATION_PROBING,
        ABLATION_STABILITY,
        SENSITIVITY_PRIOR,
        PRIOR_METHODS,
        SCENARIO_TABLE,
        BIASED_LABELS,
        SEEDS_SPREAD,
    )
}


def find_experiments(names: list[str]) -> list[Experiment]:
    """The experiments of these names, in the order of the list; "all" is every one."""
    unknown = [name for name in names if name != "all" and name not in EXPERIMENTS]
    if unknown or not names:
        what = f"no table or figure is called {', '.join(unknown)}" if unknown else "name a table or figure"
        raise InputError(f"{what}; there are {', '.join(EXPERIMENTS)}, and all")
    chosen = EXPERIMENTS if "all" in names else dict.fromkeys(names)
    return [EXPERIMENTS[name] for name in chosen]


__all__ = ["EXPERIMENTS", "Experiment", "find_experiments"]
