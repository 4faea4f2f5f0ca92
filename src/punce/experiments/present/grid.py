"""What was measured of a table: for every place the numbers by seed, what failed, and what was not run.

Reading changes nothing on disk, and nothing here depends on the order in which files were written.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

from punce.experiments.cell import Cell
from punce.experiments.features import upstream
from punce.experiments.present.paper_numbers import PaperFigure, paper_figure
from punce.experiments.present.statistics import BySeed, Standing, Summary, standing, summarise
from punce.experiments.scales import Scale
from punce.experiments.store import Record, ResultStore, parse
from punce.experiments.tables import Experiment, Place, shown

_COUNT = re.compile(r"[+-]?[\d.]+[k%]?")  # 1k, 5%, 20, +0.1


@dataclass(frozen=True)
class Selection:
    """How the epoch of a result was chosen: `name` heads a column; `words` is a sentence."""

    name: str
    words: str


WITHOUT_NEGATIVES = Selection("PU-selected", "PU-selected: the epoch was chosen without negatives.")
ON_TRAINING_LABELS = Selection(
    "chosen on training labels",
    "Labels of both classes were given (PNU); what was chosen, was chosen on labelled training rows.",
)
ON_VALIDATION_LABELS = Selection(
    "chosen on validation labels",
    "Labels of both classes were given (PNU); the step was chosen on the labels of one half of the dev set, and the "
    "accuracy is that of the other half.",
)


@dataclass(frozen=True)
class Measured:
    """One place of a table. `by_seed` holds results of the seeds that are done; the paper's number stands beside."""

    by_seed: Mapping[int, Mapping[str, Any]]
    failed: Mapping[int, str] = field(default_factory=dict)
    missing: tuple[int, ...] = ()
    paper: PaperFigure | None = None

    def numbers(self, name: str) -> dict[int, float]:
        """A finite number of the results by seed, where they have it."""
        return {seed: float(result[name]) for seed, result in self.by_seed.items() if is_number(result.get(name))}

    @property
    def pu_selected(self) -> dict[int, float]:
        """Test accuracy in per cent, epoch chosen without negatives, by seed."""
        return self.numbers("test_accuracy")

    def summary(self, name: str = "test_accuracy") -> Summary | None:
        """Over seeds; None when there is none."""
        values = self.numbers(name)
        return summarise([values[seed] for seed in sorted(values)]) if values else None


@dataclass(frozen=True)
class Grid:
    """A table of the paper as far as it was measured at one scale."""

    experiment: Experiment
    scale: Scale
    places: Mapping[Place, Measured]
    cells: Mapping[Place, Cell]
    """One cell of each place (the first seed's), for what it was made with."""

    def __getitem__(self, place: Place) -> Measured:
        paper = _papers(self.experiment, self.scale, place)
        return self.places.get(place, Measured({}, paper=paper))

    @property
    def all_places(self) -> list[Place]:
        """Every place in the order to show them, measured or not."""
        return list(product(self.experiment.rows, self.experiment.columns))

    @cached_property
    def selection(self) -> Selection:
        """The one way in which all results of the table were chosen."""
        found = {_selection_of(cell) for cell in self.cells.values()} or {WITHOUT_NEGATIVES}
        if len(found) > 1:  # a column of such a table would compare what cannot be compared
            raise AssertionError(f"one table with several ways to choose: {sorted(one.name for one in found)}")
        return found.pop()

    @property
    def is_shown(self) -> bool:
        """Whether there is anything to show, if only failures."""
        return not self.is_empty or any(self.failures())

    @property
    def is_empty(self) -> bool:
        """Whether no place has a number, other than those it is there to be compared with."""
        is_control = self.experiment.is_control
        return not any(measured.by_seed for place, measured in self.places.items() if not is_control(place))

    def rows(self) -> list[str]:
        """Row ids in order: those with anything to show, ours or the paper's."""
        shown_places = (place for place in self.all_places if place in self.places or self[place].paper is not None)
        return list(dict.fromkeys(row for row, _ in shown_places))

    def encoder_of(self, row: str) -> str | None:
        """The encoder that made a row's numbers; at a smaller scale it may be another than the paper's.

        None where rows name no encoder, or the scale has no cell in this row.
        """
        cell = next((cell for place, cell in self.cells.items() if place[0] == row), None)
        if cell is None or "encoder" not in self.experiment.row_heads:
            return None
        used, about = shown(cell.encoder.name), upstream(cell.data.source)
        return f"{used} on {about}" if about else used

    def failures(self) -> Iterator[tuple[Place, int, str]]:
        """(place, seed, error) in the table's order."""
        for place in self.all_places:
            for seed, error in sorted(self[place].failed.items()):
                yield place, seed, error

    def group_of(self, place: Place) -> tuple[str, str]:
        """Places of one group are alternatives for one task: what a reader compares.

        Where the columns are numbers of labels (or sizes of an error) the methods are in the rows, else in the columns.
        """
        row, column = place
        if columns_are_counts(self.experiment):
            return row.rpartition("/")[0], column
        return row, ""

    @cached_property
    def standings(self) -> dict[tuple[str, str], Standing]:
        """The best of each group with at least two measured members, and those behind it."""
        groups: dict[tuple[str, str], dict[Place, BySeed]] = {}
        for place in self.all_places:
            groups.setdefault(self.group_of(place), {})[place] = self[place].pu_selected
        found = {key: standing(group) for key, group in groups.items()}
        return {key: one for key, one in found.items() if one is not None}

    def is_best(self, place: Place) -> bool:
        """Whether its mean over the seeds of its group is the highest."""
        one = self.standings.get(self.group_of(place))
        return one is not None and place in one.best

    def is_behind(self, place: Place) -> bool:
        """Whether the test puts it behind the best of its group."""
        one = self.standings.get(self.group_of(place))
        return one is not None and place in one.behind


def _selection_of(cell: Cell) -> Selection:
    if cell.data.setting != "pnu":
        return WITHOUT_NEGATIVES
    return ON_VALIDATION_LABELS if cell.transfer.kind == "fewshot" else ON_TRAINING_LABELS


def columns_are_counts(experiment: Experiment) -> bool:
    """Whether the columns are numbers of labels or sizes of something, or there is only one: methods are rows then."""
    return len(experiment.columns) == 1 or all(_COUNT.fullmatch(column) for column in experiment.columns)


def name_of(*ids: str) -> str:
    """Ids of rows and columns for a reader: "mnist/mlp/1k" and "punce" are "PU MNIST (odd/even), MLP, 1k, puNCE"."""
    return ", ".join(shown(part) for one in ids for part in one.split("/"))


class Results:
    """The records of one scale, read once; grids of any experiment from them."""

    def __init__(self, results: Path, scale: Scale) -> None:
        self.store, self.scale = ResultStore(results, scale.name), scale
        self._records: dict[str, Record] = {}
        self._damaged: dict[str, str] = {}
        # All files at once: tables share cells, and a file is read once.
        for path in sorted(self.store.folder.glob("*.json")):
            self._read(path)

    def _read(self, path: Path) -> None:
        try:
            record = parse(path.read_text(encoding="utf-8"))
        except ValueError as error:  # also what is no UTF-8
            self._damaged[path.name] = f"{path.name} cannot be read: {error}"
        else:
            self._records[record.key] = record

    @cached_property
    def seeds(self) -> list[int]:
        """Every seed that any record has."""
        return sorted({seed for r in self._records.values() if isinstance(seed := r.config.get("seed"), int)})

    def grid(self, experiment: Experiment) -> Grid:
        """What is there of an experiment: the seeds the scale asks for and any others that were run."""
        # Seeds beyond the scale's count too: a person ran them with --seeds to narrow the intervals.
        asked = experiment.cells(self.scale)
        others = experiment.cells(self.scale, self.seeds) if self.seeds else {}
        places: dict[Place, Measured] = {}
        for place, cells in asked.items():
            wanted = [cell.seed for cell in cells]
            extra = [cell for cell in others.get(place, []) if cell.seed not in wanted]
            places[place] = self._measured([*cells, *extra], wanted, _papers(experiment, self.scale, place))
        return Grid(experiment, self.scale, places, {place: cells[0] for place, cells in asked.items()})

    def _measured(self, cells: list[Cell], wanted: list[int], paper: PaperFigure | None) -> Measured:
        done: dict[int, Mapping[str, Any]] = {}
        failed: dict[int, str] = {}
        for cell in sorted(cells, key=lambda cell: cell.seed):
            record = self._records.get(cell.key)
            damaged = self._damaged.get(f"{cell.name}.json")
            if record is not None and record.is_done:
                done[cell.seed] = record.result
            elif record is not None:
                failed[cell.seed] = record.error or "no error was recorded"
            elif damaged is not None:
                failed[cell.seed] = damaged
        missing = tuple(seed for seed in wanted if seed not in done and seed not in failed)
        return Measured(done, failed, missing, paper)


def _papers(experiment: Experiment, scale: Scale, place: Place) -> PaperFigure | None:
    """The paper's number for a place, where the scale has the paper's rows."""
    return paper_figure(experiment.paper, *place) if scale.has_papers_rows else None


def is_number(value: Any) -> bool:
    """A finite number, not a truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
