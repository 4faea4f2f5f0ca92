"""Every figure the paper prints in Tables 1 to 5, with its ±, and the slips a reader of them meets.

*Positive Unlabeled Contrastive Learning* (Acharya et al.). Accuracies in per cent over five seeds; the paper never says
what its ± is. The figures that are plots (1, 4a) show numbers of Tables 2 and 1; the others have no printed number.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True)
class PaperFigure:
    """An accuracy in per cent as printed, and the number behind its ±."""

    value: float
    plus_minus: float


_TABLES = {
    "Table 1": """
                          infonce      dcl          scl          punce
        mnist/mlp/1k      94.15±0.15   94.32±0.42   94.24±0.09   94.70±0.19
        mnist/mlp/3k      94.84±0.25   95.09±0.36   95.82±0.18   96.01±0.21
        mnist/mlp/10k     95.15±0.05   95.45±0.08   98.29±0.08   98.27±0.11
        cifar10/resnet18/1k    96.33±0.14   96.21±0.11   97.42±0.07   97.59±0.17
        cifar10/resnet18/3k    96.51±0.06   96.49±0.03   97.66±0.04   97.87±0.04
        cifar10/resnet18/10k   96.58±0.04   96.50±0.02   97.70±0.07   97.95±0.02
    """,
    "Table 2": """
                                  1k           3k           10k
        cifar10/resnet18/pn       68.19±1.38   68.12±0.17   79.64±0.28
        cifar10/resnet18/pvu      88.39±0.15   90.16±0.19   93.54±0.21
        cifar10/resnet18/upu      87.94±0.54   89.53±0.12   92.37±0.35
        cifar10/resnet18/nnpu     88.69±0.08   89.46±0.22   91.58±0.21
        cifar10/resnet18/vpu      75.71±0.31   83.64±0.28   89.65±0.19
        cifar10/resnet18/punce    97.59±0.17   97.87±0.04   97.95±0.02
        cifar10/allconv/pvu       59.86±0.15   61.20±0.24   75.25±0.79
        cifar10/allconv/upu       86.93±0.28   88.22±0.83   90.26±1.60
        cifar10/allconv/nnpu      88.90±0.30   89.23±0.33   92.90±0.58
        cifar10/allconv/selfpu    89.68±0.22   90.77±0.21   -
        cifar10/allconv/vpu       87.84±0.47   89.45±0.39   93.38±0.02
        cifar10/allconv/punce     96.37±0.14   97.13±0.10   98.34±0.09
        mnist/mlp/pn              65.32±0.90   94.16±0.26   97.02±0.19
        mnist/mlp/pvu             91.10±0.91   93.71±0.91   95.31±0.48
        mnist/mlp/upu             91.14±0.87   93.84±0.16   96.43±0.20
        mnist/mlp/nnpu            91.83±0.79   95.53±0.29   97.18±0.12
        mnist/mlp/punce           94.70±0.19   96.01±0.21   98.27±0.11
    """,
    "Table 3": """
                               lp           ft
        cifar10/resnet18/1k    97.59±0.17   92.96±0.19
        cifar10/resnet18/3k    97.87±0.04   95.83±0.15
        cifar10/resnet18/10k   97.95±0.02   97.41±0.09
    """,
    "Table 4": """
                              infonce      scl          punce
        cifar10/allconv/1%    83.96±2.45   86.70±0.93   88.09±1.88
        cifar10/allconv/5%    93.92±0.43   96.16±0.06   96.14±0.34
        cifar10/allconv/10%   94.98±0.34   96.39±0.02   96.57±0.11
    """,
    "Table 5": """
                            ce           ce+scl       ce+punce
        sst2/roberta/20     85.92±2.11   88.18±3.30   91.15±1.75
        sst2/roberta/100    91.10±1.36   92.83±1.23   93.76±0.17
        sst2/roberta/1000   94.03±0.64   94.11±0.53   94.58±0.79
    """,
}

# Plots of numbers that a table prints.
_PLOTTED = {"Figure 1": "Table 2", "Figure 4a": "Table 1"}

SLIPS: dict[str, tuple[str, ...]] = {
    "Table 1": (
        "Its caption says that puNCE and SCL become equivalent in the fully supervised setting; that is true of the "
        "PNU form only.",
        "The introduction's improvements over InfoNCE of over 3 % with 20 % labels and over 2 % with 5 % are not in "
        "this table: it has 1.37 points at 10k (20 %) and no 5 % row.",
        "At 10k on MNIST SCL is ahead of puNCE (98.29 against 98.27) and both are bold.",
        "The head says animal / vehicle; the text makes vehicles the positive class.",
    ),
    "Table 2": (
        "PvU is the naive one in the AllConv rows (59.86, below the majority class's 60) and a weighted one in the "
        "ResNet18 rows, to judge by its accuracy.",
        "AllConv's 98.34 at 10k is above what full supervision gives that network, and above ResNet18's 97.95: "
        "treated as unreliable.",
    ),
    "Table 3": ("The drop at 1k is printed as 4.36; 97.59 − 92.96 is 4.63.",),
    "Table 4": ("The text calls it a figure. At 5 % SCL is ahead of puNCE (96.16 against 96.14) and both are bold.",),
    "Table 5": ("Text and caption say N = 10, the table says 20; 2.97 points are those of the row for 20.",),
}


def paper_figure(paper: str | None, row: str, column: str) -> PaperFigure | None:
    """The paper's number for a place of its table or plot; None where it prints none.

    Which ids are rows and which columns does not matter: ("mnist/mlp/1k", "punce") and ("mnist/mlp/punce", "1k") are
    one place.
    """
    table = _PLOTTED.get(paper or "", paper or "")
    return _figures(table).get(_place(row, column)) if table in _TABLES else None


def slips(paper: str | None) -> tuple[str, ...]:
    """What to know about the paper's own table before comparing with it."""
    return SLIPS.get(paper or "", ())


def plotted_table(paper: str | None) -> str | None:
    """The table whose numbers a figure shows; None for anything else."""
    return _PLOTTED.get(paper or "")


def all_figures(table: str) -> dict[frozenset[str], PaperFigure]:
    """Every number of a table by the ids of its place."""
    return dict(_figures(table))


def _place(row: str, column: str) -> frozenset[str]:
    return frozenset([*row.split("/"), column])


@cache
def _figures(table: str) -> dict[frozenset[str], PaperFigure]:
    head, *lines = _TABLES[table].strip().splitlines()
    found: dict[frozenset[str], PaperFigure] = {}
    for line in lines:
        row, *texts = line.split()
        for column, text in zip(head.split(), texts, strict=True):
            if text != "-":
                value, plus_minus = text.split("±")
                found[_place(row, column)] = PaperFigure(float(value), float(plus_minus))
    return found
