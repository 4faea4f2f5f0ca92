"""One table, three languages: Markdown, LaTeX (booktabs) and HTML. Every text is escaped for where it goes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

import jinja2
from markupsafe import Markup

from punce.report.page import page_environment
from punce.report.words import printable

_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "–": "--", "−": "$-$", "±": r"$\pm$", "π": r"$\pi$", "≥": r"$\geq$", "≤": r"$\leq$",
    "†": r"$^\dagger$", "‡": r"$^\ddagger$", "·": r"$\cdot$", "\u00a0": "~", "…": r"\ldots{}", "→": r"$\rightarrow$",
    "×": r"$\times$", "₁": "$_1$", "'": "'", '"': "''",
}  # fmt: skip
_NOT_ASCII = re.compile(r"[^\x20-\x7e]")


@dataclass(frozen=True)
class Cell:
    """A text, on which side of its column it stands, and whether it is the best of its group."""

    text: str
    is_number: bool = False
    is_best: bool = False


@dataclass(frozen=True)
class Table:
    """A table ready to be written: a caption, one line of headings, rows of equal length, and notes below."""

    caption: str
    head: tuple[Cell, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    label: str = ""
    n_group: int = 0
    """So many leading columns name a group of rows, such as data set and encoder."""

    def group(self, row: int) -> tuple[str, ...] | None:
        """The name of the group that begins with this row; None within a group."""
        name = tuple(cell.text for cell in self.rows[row][: self.n_group])
        return name if row == 0 or name != tuple(cell.text for cell in self.rows[row - 1][: self.n_group]) else None


def markdown(table: Table) -> str:
    """A pipe table with its notes; the caption is left to the text around it."""
    rule = [" ---: " if cell.is_number else " --- " for cell in table.head]
    lines = [_markdown_row(table.head), "|" + "|".join(rule) + "|", *(_markdown_row(row) for row in table.rows)]
    notes = [escape_markdown(note) for note in table.notes]
    return "\n".join(lines) + "\n" + "".join(f"\n{note}\n" for note in notes)


def _markdown_row(cells: tuple[Cell, ...]) -> str:
    texts = ["<br>".join(escape_markdown(line) for line in cell.text.split("\n")) for cell in cells]
    bold = [f"**{text}**" if cell.is_best else text for text, cell in zip(texts, cells, strict=True)]
    return "| " + " | ".join(bold) + " |"


def escape_markdown(text: str) -> str:
    """One line in which nothing is markup: no HTML, no emphasis, no link, no new column."""
    line = printable(text).replace("\r", " ").replace("\n", " ")
    # HTML first: Markdown passes tags through, and errors in a table come from anywhere.
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|])", r"\\\1", line)


def latex(table: Table) -> str:
    r"""A ``table`` environment for booktabs; ``\usepackage{booktabs}`` is all that it needs."""
    columns = "".join("r" if cell.is_number else "l" for cell in table.head)
    body = []
    for number, row in enumerate(table.rows):
        begins = table.group(number) is not None
        body += [r"\midrule"] if begins and number and table.n_group else []
        body.append(_latex_row(row if begins else (*[Cell("")] * table.n_group, *row[table.n_group :])))
    notes = [rf"\par\footnotesize {escape_latex(note)}" for note in table.notes]
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape_latex(table.caption)}}}",
        *([rf"\label{{tab:{table.label}}}"] if table.label else []),
        rf"\begin{{tabular}}{{@{{}}{columns}@{{}}}}",
        r"\toprule",
        _latex_row(table.head),
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
        *notes,
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _latex_row(cells: tuple[Cell, ...]) -> str:
    texts = [escape_latex(cell.text) for cell in cells]
    bold = [rf"\textbf{{{text}}}" if cell.is_best else text for text, cell in zip(texts, cells, strict=True)]
    return " & ".join(bold) + r" \\"


def escape_latex(text: str) -> str:
    """Text for any LaTeX engine: special characters escaped, signs as commands, other characters as their number."""
    line = printable(text).replace("\r", " ").replace("\n", " ")
    # Character by character, because one replacement must not escape what another has written.
    escaped = "".join(_LATEX.get(char, char) for char in line)
    return _NOT_ASCII.sub(lambda found: f"[U+{ord(found[0]):04X}]", escaped)


def html(table: Table) -> Markup:
    """A table element with its notes; classes are those of the report's style sheet."""
    return Markup(_template().render(table=table))


@cache
def _template() -> jinja2.Template:
    environment = page_environment("punce.experiments.present")
    environment.filters["printable"] = printable
    return environment.get_template("table.html")
