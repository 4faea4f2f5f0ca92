"""From stored results to tables, figures, one page, and ``docs/results.md``.

    write_all(Path("results"), "laptop", ["all"])                        # results/laptop/report/…
    write_docs(Path("results"), "laptop", Path("docs/results.md"))       # and docs/results/, results/summary.json, …

Everything written is a function of the result files alone: no date, no machine, no order of files.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from punce.experiments import EXPERIMENTS, find_experiments
from punce.experiments.present import tables
from punce.experiments.present.figures import Drawn, Picture, pictures
from punce.experiments.present.grid import Grid, Results
from punce.experiments.present.markup import html, latex, markdown
from punce.experiments.present.page import render_page
from punce.experiments.present.reading import hand_written
from punce.experiments.present.results_doc import APPENDIX, CLAIM_FIGURES, IMAGES, doc_appendix, render_doc
from punce.experiments.present.summary import summary_text
from punce.experiments.scales import SCALES, Scale, find_scale
from punce.storage.files import write_text


def write_all(
    results_dir: Path, scale: str, names: Sequence[str] = ("all",), out_dir: Path | None = None
) -> list[Path]:
    """Write the tables and figures of `names`, and the page of everything there is; returns the page's path.

    Into ``<results>/<scale>/report`` unless `out_dir` is given: ``<name>.md``, ``.tex`` and ``.html`` for each table,
    ``<name>.svg`` for each figure, and ``index.html``.
    """
    chosen, asked = find_scale(scale), find_experiments(list(names))
    grids, drawn = _measured(results_dir, chosen)
    out = out_dir if out_dir is not None else results_dir / scale / "report"
    for experiment in asked:
        _write_one(grids[experiment.name], drawn[experiment.name], out)
    page = out / "index.html"
    write_text(page, render_page(chosen, grids, drawn, hand_written(results_dir, chosen)))
    return [page]


def write_docs(results_dir: Path, scale: str, path: Path) -> list[Path]:
    """Write the document, its appendix, its figures and ``<results>/summary.json``; stale ones are removed."""
    text, appendix = build_docs(results_dir, scale)
    write_text(results_dir / "summary.json", build_summary(results_dir, scale))
    for stale in _possible_names() - appendix.keys():
        (path.parent / stale).unlink(missing_ok=True)
    for name, content in appendix.items():
        write_text(path.parent / name, content)
    write_text(path, text)
    return [path]


def _possible_names() -> set[Path]:
    """All that a document of any scale can have beside it. Other files in these folders are a person's own."""
    firsts = ("", *(f"{name}-" for name in SCALES))
    pages = {APPENDIX / "claims.md", APPENDIX / "how.md", *(APPENDIX / f"{first}tables.md" for first in firsts)}
    drawn = {IMAGES / f"{name}.svg" for name in CLAIM_FIGURES}
    return pages | drawn | {IMAGES / f"{first}{name}.svg" for first in firsts for name in EXPERIMENTS}


def build_docs(results_dir: Path, scale: str) -> tuple[str, dict[Path, str]]:
    """The document, and the pages and figures behind it by their path from it."""
    chosen = find_scale(scale)
    books = _books(results_dir, chosen)
    return render_doc(chosen, books, hand_written(results_dir, chosen)), doc_appendix(chosen, books)


def build_summary(results_dir: Path, scale: str) -> str:
    """Every number and every verdict behind the document, as JSON."""
    chosen = find_scale(scale)
    return summary_text(_books(results_dir, chosen))


def _books(results_dir: Path, scale: Scale) -> list[tuple[Scale, dict[str, Grid]]]:
    """The scale and those that stand on its page, each with its grids."""
    shown = [scale, *(SCALES[name] for name in scale.also if name in SCALES)]
    return [(one, _grids(results_dir, one)) for one in shown]


def _measured(results_dir: Path, scale: Scale) -> tuple[dict[str, Grid], Drawn]:
    """Every experiment, whichever was asked for: page and document show all that there is."""
    grids = _grids(results_dir, scale)
    return grids, {name: pictures(grid) for name, grid in grids.items()}


def _grids(results_dir: Path, scale: Scale) -> dict[str, Grid]:
    results = Results(results_dir, scale)
    return {name: results.grid(experiment) for name, experiment in EXPERIMENTS.items()}


def _write_one(grid: Grid, drawn: Sequence[Picture], out: Path) -> None:
    name, both = grid.experiment.name, (tables.compact(grid), tables.full(grid))
    write_text(out / f"{name}.md", "\n".join(f"### {table.caption}\n\n{markdown(table)}" for table in both))
    write_text(out / f"{name}.tex", "\n".join(latex(table) for table in both))
    write_text(out / f"{name}.html", "".join(f"{html(table)}\n" for table in both))
    for picture in drawn:
        write_text(out / f"{picture.name}.svg", picture.svg)


__all__ = ["build_docs", "build_summary", "write_all", "write_docs"]
