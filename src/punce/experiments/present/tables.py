"""A grid as tables: one in the paper's form, one with every number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from punce.experiments.present.grid import WITHOUT_NEGATIVES, Grid, Measured, columns_are_counts, name_of
from punce.experiments.present.markup import Cell, Table
from punce.experiments.present.numbers import (
    BEHIND,
    FAILED,
    MISSING,
    SOME_FAILED,
    interval,
    plain,
    seeds,
    signed,
    with_deviation,
)
from punce.experiments.present.paper_numbers import PaperFigure
from punce.experiments.tables import Place, shown
from punce.report.words import shorten

_LONGEST_ERROR = 200  # characters of an error in a note; the page shows more of it


def compact(grid: Grid) -> Table:
    """The table as the paper has it: accuracy by honest selection, the paper's own number in brackets."""
    experiment = grid.experiment
    has_paper = any(measured.paper for measured in grid.places.values())
    head = [Cell(name) for name in experiment.row_heads]
    head += [Cell(_column_name(grid, column), is_number=True) for column in experiment.columns]
    rows = grid.rows()
    body = [(*_row_cells(grid, row), *(_compact_cell(grid, (row, c)) for c in experiment.columns)) for row in rows]
    return Table(caption(grid), tuple(head), tuple(body), _notes(grid, has_paper), experiment.name, _n_group(grid))


def caption(grid: Grid) -> str:
    """What the table is, and at which scale."""
    paper = f" ({grid.experiment.paper})" if grid.experiment.paper else ""
    return f"{grid.experiment.title}{paper}, scale {grid.scale.name}"


def _column_name(grid: Grid, column: str) -> str:
    head = grid.experiment.column_head
    return f"{head} {shown(column)}" if columns_are_counts(grid.experiment) else shown(column)


def _row_cells(grid: Grid, row: str) -> tuple[Cell, ...]:
    names = [shown(part) for part in row.split("/")]
    if (used := grid.encoder_of(row)) is not None:
        where = grid.experiment.row_heads.index("encoder")
        names[where] = used if used == names[where] else f"{used} (the paper: {names[where]})"
    return tuple(Cell(name) for name in names)


def _compact_cell(grid: Grid, place: Place) -> Cell:
    measured = grid[place]
    text = with_deviation(measured.summary())
    if not measured.pu_selected and measured.failed:
        text = FAILED
    elif measured.failed:
        text += f" {SOME_FAILED}"
    # Failed seeds do not count as a low number, and a place with some failures is still compared.
    text += f" {BEHIND}" if grid.is_behind(place) else ""
    text += f" ({measured.paper.value:.2f})" if measured.paper else ""
    return Cell(text, is_number=True, is_best=grid.is_best(place))


def _notes(grid: Grid, has_paper: bool) -> tuple[str, ...]:
    chosen = grid.selection
    legend = [f"Test accuracy in per cent, {chosen.name}: mean ± standard deviation over seeds{_seed_words(grid)}."]
    legend += [chosen.words] if chosen is not WITHOUT_NEGATIVES else []
    legend += [grid.experiment.note] if grid.experiment.note else []
    legend += ["In brackets the paper's own number."] if has_paper else []
    legend += [_mark_words(grid)] if grid.standings else []
    shown_rows = [[grid[row, column] for column in grid.experiment.columns] for row in grid.rows()]
    has_gaps = any(not one.pu_selected and not one.failed for row in shown_rows for one in row)
    legend += ["– was not measured."] if has_gaps else []
    failures = [f"{SOME_FAILED} {_failure(place, seed, error)}" for place, seed, error in grid.failures()]
    return (" ".join(legend), *failures)


def _mark_words(grid: Grid) -> str:
    if not any(len(measured.pu_selected) > 1 for measured in grid.places.values()):
        return "Bold: the best of those compared; with one seed there is nothing to test with."
    left_out = any(one.left_out for one in grid.standings.values())
    return (
        "Bold: the best mean over the seeds that those compared have in common"
        f"{' (a place that lacks some of them is not called best)' if left_out else ''}; {BEHIND}: behind it by a "
        "paired t-test over the seeds that both have, at the 5 % level, Holm-corrected."
    )


def _seed_words(grid: Grid) -> str:
    numbers = sorted({len(measured.pu_selected) for measured in grid.places.values() if measured.pu_selected})
    if len(numbers) > 1:
        return f" ({numbers[0]} to {numbers[-1]} seeds)"
    return f" ({seeds(numbers[0])})" if numbers else ""


def _failure(place: Place, seed: int, error: str) -> str:
    return f"{name_of(*place)}, seed {seed} failed: {shorten(' '.join(error.split()), _LONGEST_ERROR)}"


def _n_group(grid: Grid) -> int:
    """All row heads but the last name a group."""
    return len(grid.experiment.row_heads) - 1


# Every number ----------------------------------------------------------------------------------------------------


def full(grid: Grid) -> Table:
    """One line per place: spread and interval, both ways of choosing the epoch, the paper, the difference."""
    told = _tells_prior(grid)
    chosen = grid.selection
    numbers = ["seeds", chosen.name, "standard deviation", "standard error", "95 % interval", "oracle", "AUC"]
    numbers += ["linear layer on true labels", "the paper", "ours − paper", *(["prior told (true)"] if told else [])]
    head = [Cell(name) for name in (*grid.experiment.row_heads, grid.experiment.column_head)]
    head += [Cell(name, is_number=True) for name in numbers]
    rows: list[tuple[Cell, ...]] = []
    for row, column in grid.all_places:
        measured = grid[row, column]
        if measured.by_seed or measured.failed:
            values = [*_numbers(measured), *([_told(measured)] if told else [])]
            cells = tuple(Cell(text, is_number=True) for text in values)
            rows.append((*_row_cells(grid, row), Cell(shown(column)), *cells))
    notes = (
        f"{chosen.words} Oracle: chosen by true test labels, which users do not have, so that it must "
        "not be compared with the paper's numbers. The interval is Student's t over seeds.",
    )
    name = f"{grid.experiment.name}-full"
    return Table(f"{caption(grid)}: every number", tuple(head), tuple(rows), notes, name, _n_group(grid))


def _numbers(measured: Measured) -> list[str]:
    pu, auc = measured.summary(), measured.summary("auc")
    ceiling = measured.summary("oracle_linear_accuracy")
    return [
        _seeds(measured),
        plain(pu.mean if pu else None),
        plain(pu.deviation if pu else None),
        plain(pu.error if pu else None),
        interval(pu.low, pu.high) if pu else MISSING,
        with_deviation(measured.summary("oracle_accuracy")),
        plain(auc.mean if auc else None, 4),
        with_deviation(ceiling),
        _paper(measured.paper),
        signed(pu.mean - measured.paper.value) if pu and measured.paper else MISSING,
    ]


def _seeds(measured: Measured) -> str:
    done, failed, missing = len(measured.pu_selected), len(measured.failed), len(measured.missing)
    words = [f"{failed} failed"] if failed else []
    words += [f"{missing} not run"] if missing else []
    return f"{done} ({', '.join(words)})" if words else str(done)


def _paper(figure: PaperFigure | None) -> str:
    return MISSING if figure is None else f"{figure.value:.2f} ± {figure.plus_minus:.2f}"


def _priors(measured: Measured) -> list[Mapping[str, Any]]:
    found = [result.get("prior") for _, result in sorted(measured.by_seed.items())]
    return [prior for prior in found if isinstance(prior, Mapping)]


def _tells_prior(grid: Grid) -> bool:
    """Whether any algorithm was told another prior than the true one."""
    return any(_told_values(prior) - {prior.get("true")} for m in grid.places.values() for prior in _priors(m))


def _told_values(prior: Mapping[str, Any]) -> set[float]:
    return {value for name in ("loss", "risk") if isinstance(value := prior.get(name), int | float)}


def _told(measured: Measured) -> str:
    """Means over seeds of what the loss and the risk were told, and of the truth."""
    priors = _priors(measured)
    # Loss and risk are mostly told the same: then it stands there once.
    loss, risk, true = ([p[name] for p in priors if p.get(name) is not None] for name in ("loss", "risk", "true"))
    told = list(dict.fromkeys(f"{sum(values) / len(values):.3f}" for values in (loss, risk) if values))
    return f"{' / '.join(told)} ({sum(true) / len(true):.3f})" if told and true else MISSING
