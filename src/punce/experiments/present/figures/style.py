"""How every figure looks, and how it becomes text that does not change from one run to the next.

Colours are those of Okabe & Ito, which people with any colour vision can tell apart; every series has a marker and a
line style of its own as well, so that figures survive a grey printer. Ink, lines and ground are four fixed colours,
which :func:`for_page` turns into variables that follow a reader's dark mode.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

INK, QUIET, GRID, GROUND = "#16161a", "#5c5c63", "#dedfda", "#ffffff"
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#777777")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", (0, (5, 1.5)), (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5)), (0, (3, 1)), (0, (8, 2)), (0, (2, 2)))

# One method keeps one place in the palette through all figures.
PLACES = {
    "punce": 0, "infonce": 1, "scl": 2, "dcl": 3,
    "nnpu": 1, "upu": 2, "vpu": 3, "selfpu": 4, "pvu": 5, "pn": 6,
}  # fmt: skip

_DARK = {INK: "#ececee", QUIET: "#a9abb2", GRID: "#3a3c41", GROUND: "#1e1f22"}
_SETTINGS: dict[Any, Any] = {  # matplotlib types each name as a literal
    "svg.hashsalt": "punce",  # ids of clip paths: random without it
    "svg.fonttype": "none",  # text stays text: searchable, and read aloud
    "text.parse_math": False,  # a dollar sign in a name is a dollar sign
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # ships with matplotlib, so sizes are the same everywhere
    "font.size": 10.0,
    "axes.edgecolor": QUIET,
    "axes.labelcolor": INK,
    "axes.titlesize": 10.5,
    "axes.titlecolor": INK,
    "axes.facecolor": GROUND,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "figure.facecolor": GROUND,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "legend.labelcolor": INK,
    "lines.linewidth": 1.9,
    "lines.markersize": 5.5,
    "text.color": INK,
    "xtick.color": QUIET,
    "xtick.labelcolor": INK,
    "ytick.color": QUIET,
    "ytick.labelcolor": INK,
}


def places_of(names: Sequence[str]) -> list[int]:
    """A place in the palette for each series of a panel, none given twice.

    A known method has its own place, unless another of the panel took it before; the others get what is free.
    """
    if len(names) > len(PALETTE):
        raise ValueError(f"a panel can tell {len(PALETTE)} series apart, got {len(names)}: {list(names)}")
    own = [PLACES.get("".join(filter(str.isalnum, name.lower()))) for name in names]
    free = (place for place in range(len(PALETTE)) if place not in own)
    return [next(free) if place is None or place in own[:order] else place for order, place in enumerate(own)]


@contextmanager
def drawing() -> Iterator[None]:
    """Settings for making a figure; nothing outside of the block is touched, and no user style leaks in."""
    with mpl.rc_context():
        mpl.rcdefaults()  # a matplotlibrc of the user would change the bytes
        mpl.rcParams.update(_SETTINGS)
        yield


def panels(number: int, *, columns: int = 2, width: float = 4.2, height: float = 3.3) -> tuple[Figure, list[Axes]]:
    """A figure with panels in rows of `columns`; what is left over stays empty. No pyplot: nothing global to close."""
    across = min(number, columns)
    down = -(-number // across)
    figure = Figure(figsize=(width * across, height * down), layout="constrained")
    axes: list[Axes] = list(figure.subplots(down, across, squeeze=False).flat)
    for unused in axes[number:]:
        unused.set_axis_off()
    return figure, axes[:number]


def as_svg(figure: Figure) -> str:
    """The figure as SVG text: the same bytes for the same numbers (no date, no version, fixed ids)."""
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    lines = text.getvalue().splitlines()  # matplotlib leaves spaces at line ends, which editors and hooks remove
    return "\n".join(line.rstrip() for line in lines) + "\n"


def for_page(svg: str) -> str:
    """The same picture with colours that follow the reader's light or dark mode."""
    names = {INK: "--ink", QUIET: "--quiet", GRID: "--grid", GROUND: "--ground"}
    for colour, name in names.items():
        svg = svg.replace(colour, f"var({name})")
    light = "".join(f"{name}:{colour};" for colour, name in names.items())
    dark = "".join(f"{name}:{_DARK[colour]};" for colour, name in names.items())
    style = f"<style>:root{{{light}}}@media (prefers-color-scheme:dark){{:root{{{dark}}}}}</style>"
    # The style goes inside the svg element: an image in a page does not see the page's own style sheet.
    head, tag, rest = svg.partition("<svg")
    opening, bracket, body = rest.partition(">")
    return f"{head}{tag}{opening}{bracket}{style}{body}"
