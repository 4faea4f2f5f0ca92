"""The paper's tables and figures, and some it does not have, at the scales of ``scales.py``.

Add an experiment: an :class:`~punce.experiments.tables.Experiment` in ``paper.py`` or ``beyond.py``.
``tests/experiments/test_experiments.py`` finds it.
"""

from __future__ import annotations

from punce.errors import InputError
from punce.experiments.beyond import BEYOND
from punce.experiments.paper import FIGURES, TABLES
from punce.experiments.tables import Experiment

EXPERIMENTS: dict[str, Experiment] = {experiment.name: experiment for experiment in (*TABLES, *FIGURES, *BEYOND)}


def find_experiments(names: list[str]) -> list[Experiment]:
    """The experiments of these names, in the order of the list; "all" is every one."""
    unknown = [name for name in names if name != "all" and name not in EXPERIMENTS]
    if unknown or not names:
        what = f"no table or figure is called {', '.join(unknown)}" if unknown else "name a table or figure"
        raise InputError(f"{what}; there are {', '.join(EXPERIMENTS)}, and all")
    chosen = EXPERIMENTS if "all" in names else dict.fromkeys(names)
    return [EXPERIMENTS[name] for name in chosen]


__all__ = ["EXPERIMENTS", "Experiment", "find_experiments"]
