"""The paper's own numbers and slips, read from ``paper_numbers.toml``."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class PaperFigure:
    """An accuracy in per cent as printed, and the number behind its ±."""

    value: float
    plus_minus: float


def paper_figure(paper: str | None, row: str, column: str) -> PaperFigure | None:
    """The paper's number for a place of its table or plot; None where it prints none.

    Which ids are rows and which columns does not matter: ("mnist/mlp/1k", "punce") and ("mnist/mlp/punce", "1k") are
    one place.
    """
    table = plotted_table(paper) or paper or ""
    return all_figures(table).get(_place(row, column))


def slips(paper: str | None) -> tuple[str, ...]:
    """What to know about the paper's own table before comparing with it."""
    return tuple(_content()["slips"].get(paper, ()))


def plotted_table(paper: str | None) -> str | None:
    """The table whose numbers a figure shows; None for anything else."""
    table: str | None = _content()["plots"].get(paper)
    return table


@cache
def all_figures(table: str) -> dict[frozenset[str], PaperFigure]:
    """Every number of a table by the ids of its place; a dash is a place where the paper prints none."""
    # A table the file does not have is one empty line: a head without columns.
    head, *lines = _content()["tables"].get(table, " ").splitlines()
    found: dict[frozenset[str], PaperFigure] = {}
    for line in lines:
        row, *texts = line.split()
        for column, text in zip(head.split(), texts, strict=True):
            if text != "-":
                value, plus_minus = text.split("±")
                found[_place(row, column)] = PaperFigure(float(value), float(plus_minus))
    return found


def _place(row: str, column: str) -> frozenset[str]:
    return frozenset([*row.split("/"), column])


@cache
def _content() -> dict[str, Any]:
    return tomllib.loads((files(__package__) / "paper_numbers.toml").read_text(encoding="utf-8"))
