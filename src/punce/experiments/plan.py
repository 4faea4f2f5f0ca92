"""Which cells a command asks for: experiments, a scale, seeds, and a filter; and what of it exists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from punce.data import find_benchmark
from punce.datasets.benchmarks import MissingFilesError, locate
from punce.datasets.generated_text import GENERATED_TEXT
from punce.errors import InputError
from punce.experiments.cell import Cell, TextConfig
from punce.experiments.features import base_of, is_features, require_features
from punce.experiments.scale import Scale
from punce.experiments.scales import SCALES
from punce.experiments.sources import GENERATED
from punce.experiments.store import ResultStore
from punce.experiments.tables import Experiment, Place
from punce.stages.pretrain import PretrainConfig
from punce.stages.selfpu import SelfPUConfig
from punce.stages.transfer import EpochConfig


@dataclass(frozen=True)
class Plan:
    """The cells of a command, each once, in the order of the tables."""

    cells: tuple[Cell, ...]
    done: tuple[Cell, ...]
    failed: tuple[Cell, ...]

    @property
    def to_do(self) -> list[Cell]:
        """Cells without a result; those that failed are tried again."""
        done = set(self.done)
        return [cell for cell in self.cells if cell not in done]


def make_plan(
    experiments: Sequence[Experiment],
    scale: Scale,
    store: ResultStore,
    *,
    seeds: Sequence[int] | None = None,
    only: Sequence[str] = (),
    one_step: bool = False,
) -> Plan:
    """The cells behind the places that `only` leaves, and which of them have a result."""
    places = {(e.name, place): cells for e in experiments for place, cells in e.cells(scale, seeds).items()}
    _require_known(only, places, scale)
    wanted: dict[Cell, None] = {}
    for (name, place), cells in places.items():
        if matches(name, place, only):
            wanted.update(dict.fromkeys(as_one_step(cell) if one_step else cell for cell in cells))
    if not wanted:
        raise InputError(
            f"no cell of scale {scale.name} is left by --only {' --only '.join(only)}: each part is there, but no "
            "place has them all"
        )
    records = {cell: store.read(cell) for cell in wanted}
    done = tuple(cell for cell, record in records.items() if record is not None and record.is_done)
    failed = tuple(cell for cell, record in records.items() if record is not None and not record.is_done)
    return Plan(tuple(wanted), done, failed)


def require_cells(experiments: Sequence[Experiment], scale: Scale) -> None:
    """Refuse a scale that does not have all of these experiments: the others alone would be run without notice."""
    absent = [experiment.name for experiment in experiments if not experiment.cells(scale)]
    if absent:
        others = [name for name, other in SCALES.items() if all(experiment.cells(other) for experiment in experiments)]
        raise InputError(f"scale {scale.name} has no cell of {', '.join(absent)}; --scale can be {', '.join(others)}")


def matches(name: str, place: Place, only: Sequence[str]) -> bool:
    """Whether every filter names a part of the place: ``mnist``, ``1k``, or alternatives as ``punce,scl``."""
    return all(_parts(name, place) & set(_alternatives(text)) for text in only)


def _parts(name: str, place: Place) -> set[str]:
    row, column = place
    return {name, *row.split("/"), column}


def _alternatives(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


def _require_known(only: Sequence[str], places: Iterable[tuple[str, Place]], scale: Scale) -> None:
    """Refuse filters with a part that no place has: a typing error would leave out cells without notice."""
    known = {part for name, place in places for part in _parts(name, place)}
    unknown = [part for text in only for part in _alternatives(text) if part not in known]
    if unknown:
        named = ", ".join(map(repr, unknown))
        raise InputError(f"--only: scale {scale.name} has nothing called {named}; there are {', '.join(sorted(known))}")


def as_one_step(cell: Cell) -> Cell:
    """The same cell with a single step in every stage: as many rows as a batch holds, one epoch.

    For trying the whole path of a scale that takes days; its numbers mean nothing and its name is another.
    """
    pretraining, config = cell.pretraining, cell.transfer.config
    if isinstance(config, TextConfig):
        return replace(cell, transfer=replace(cell.transfer, config=replace(config, steps=1, evaluate_every=1)))
    if isinstance(config, SelfPUConfig):  # it picks its trusted rows before the one step
        config = replace(config, epochs=1, select_from=0, select_until=0)
    elif isinstance(config, EpochConfig):
        config = replace(config, epochs=1)
    batches = config if pretraining is None else pretraining.config
    assert isinstance(batches, PretrainConfig | EpochConfig)
    size = batches.batch_size
    # At most a tenth of the one batch, so that unlabelled rows remain; at least 20, so that the held-out part has some.
    labelled = max(20, min(cell.data.n_labelled, size // 10))
    return replace(
        cell,
        data=replace(cell.data, n_labelled=labelled, n_train=size, n_test=min(cell.data.n_test or 500, 500)),
        pretraining=pretraining and replace(pretraining, config=replace(pretraining.config, epochs=1)),
        transfer=replace(cell.transfer, config=config),
    )


def require_data(cells: Sequence[Cell]) -> None:
    """Refuse to start cells whose files are not there, saying how to get them."""
    # Before any worker starts: each of hundreds of cells would fail for the same reason.
    sources = {cell.data.source for cell in cells} - {GENERATED, GENERATED_TEXT}
    for source in sorted(sources):
        if is_features(source):
            require_features(source)
        try:
            locate(find_benchmark(base_of(source)), download=False)
        except MissingFilesError as error:
            raise InputError(f"get the data first with: punce data {base_of(source)} ({error})") from None
