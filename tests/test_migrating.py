"""The page for people who come from other tools: its blocks run in order, and lead to something that works."""

from __future__ import annotations

import importlib.util
import re
from typing import Any

import pytest
import torch

from punce.experiments.true_metrics import true_metrics
from tests.quick import quick_tables  # noqa: F401  a fixture
from tests.test_docs import ROOT, blocks

PAGE = ROOT / "docs" / "migrating.md"


def missing(block: str) -> list[str]:
    """Packages that a block imports and that are not here."""
    named = set(re.findall(r"^(?:from|import) (\w+)", block, flags=re.MULTILINE))
    return sorted(name for name in named if importlib.util.find_spec(name) is None)


@pytest.mark.usefixtures("quick_tables")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_the_blocks_of_the_page_run_in_order() -> None:
    namespace: dict[str, Any] = {"__name__": "migrating", "torch": torch}
    skipped = []
    for number, block in enumerate(blocks(PAGE, "python")):
        if found := missing(block):
            skipped += found
            own = torch.nn.Linear(30, 1)  # what a later block goes on with
            namespace |= {"network": own, "optimizer": torch.optim.Adam(own.parameters(), lr=1e-2)}
            continue
        exec(compile(block, f"block {number} of {PAGE.name}", "exec"), namespace)
    assert set(skipped) <= {"pulearn", "pu_toolbox"}
    truth, labels = namespace["truth"].to_numpy(), namespace["labels"]
    unlabelled = labels == 0
    ours = true_metrics(truth[unlabelled], namespace["probability"][unlabelled], threshold=0.5)
    script = true_metrics(truth[unlabelled], namespace["probability_of_being_labelled"][unlabelled], threshold=0.5)
    assert ours.accuracy > max(0.85, script.accuracy)
    assert namespace["share"].low < namespace["sample"].prior < namespace["share"].high
    assert float(namespace["value"].detach()) < 0.5


def test_names_in_the_tables_exist() -> None:
    from punce import scenario
    from punce.priors import PRIORS
    from punce.risks import RISKS

    text = PAGE.read_text()
    assert hasattr(scenario, "prior_from_population")
    assert set(re.findall(r'method="(\w+)"', text)) - {"all", "predict_proba"} <= set(PRIORS)
    assert set(re.findall(r'risk="(\w+)"', text)) - {"selfpu"} <= set(RISKS)
