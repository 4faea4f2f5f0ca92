"""``punce reproduce``: the paper's tables and figures, at a chosen scale, on one machine or a cluster."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from punce.cli.terminal import Terminal
    from punce.experiments.cell import Cell
    from punce.experiments.pools import InProcess
    from punce.experiments.scales import Scale

EXIT_INCOMPLETE = 4
_MOST_SEEDS, _LARGEST_SEED = 1000, 2**32 - 1
_SCALE = "smoke (tiny data, minutes for everything), digits, part, laptop (minutes per cell), frozen or paper."
_SEEDS = "How many seeds (5), or which: 0,3,4, or 3, for seed 3 alone."
_ONLY = "Only places with this part, such as mnist or 1k or punce,scl; repeatable."
_RESULTS = "Folder of the results; what is there is not done again."
_ONE_STEP = "One training step per cell: tries the whole path, numbers mean nothing."
_NO_RUN = "Run nothing; write tables, figures and page from the results there are."
_DOCS = "Also write the results as a Markdown document, such as docs/results.md."
_IDLE_BESIDE = {
    "--dry-run": ("--no-run", "--docs"),
    "--no-run": ("--one-step", "--jobs", "--cluster", "--seeds", "--only"),  # all results there are shown
    "--one-step": ("--docs",),  # its numbers mean nothing
    "--cluster": ("--jobs",),
}


def reproduce(
    tables: Annotated[list[str], typer.Argument(help="table1 … table5, figure1, tsne, …, or all.")],
    scale: Annotated[str, typer.Option(help=_SCALE)] = "smoke",
    seeds: Annotated[str | None, typer.Option(help=_SEEDS)] = None,
    jobs: Annotated[int, typer.Option(help="Cells at a time on this machine.")] = 1,
    cluster: Annotated[str | None, typer.Option(help="Address of a Dask scheduler, tcp://host:port.")] = None,
    only: Annotated[list[str] | None, typer.Option(help=_ONLY)] = None,
    results: Annotated[Path, typer.Option(help=_RESULTS)] = Path("results"),
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the cells, what exists and what is left.")] = False,
    one_step: Annotated[bool, typer.Option("--one-step", help=_ONE_STEP)] = False,
    no_run: Annotated[bool, typer.Option("--no-run", help=_NO_RUN)] = False,
    docs: Annotated[Path | None, typer.Option(help=_DOCS)] = None,
) -> None:
    """Run the experiments behind the paper's tables and figures. A repeated command computes only what is missing."""
    from punce.cli.terminal import Terminal
    from punce.errors import InputError, WriteError
    from punce.experiments import find_experiments
    from punce.experiments.plan import make_plan, require_cells, require_data
    from punce.experiments.runner import run_cells
    from punce.experiments.scales import find_scale
    from punce.experiments.store import ResultStore
    from punce.experiments.watching import MatrixProgress, show_plan
    from punce.storage.files import check_output, check_output_folder

    if jobs < 1:
        raise InputError(f"--jobs must be at least 1, got {jobs}")
    given = {"--jobs": jobs != 1, "--cluster": cluster, "--docs": docs, "--seeds": seeds, "--only": only}
    given |= {"--one-step": one_step, "--no-run": no_run, "--dry-run": dry_run}
    _refuse_idle([name for name, is_given in given.items() if is_given])
    check_output_folder(results, "--results")
    if docs is not None:
        check_output(docs)
    experiments, chosen = find_experiments(tables), find_scale(scale)
    if "all" not in tables:  # which is all that the scale has
        require_cells(experiments, chosen)
    store = ResultStore(results, f"{scale}-one-step" if one_step else scale)
    console = Terminal(stderr=True)
    with _damage_as_lines(console):
        plan = make_plan(experiments, chosen, store, seeds=_seeds(seeds), only=only or (), one_step=one_step)
        if dry_run:
            show_plan(Terminal(), plan, store, jobs)
            return
        to_do = [] if no_run else plan.to_do
        if cluster is None:
            require_data(to_do)
        failed = []
        if to_do:
            # A disk that cannot be written is one error, not one per cell.
            store.folder.mkdir(parents=True, exist_ok=True)
            with MatrixProgress(plan, store, console) as progress:
                failed = run_cells(to_do, store, _pool(jobs, cluster, chosen), progress).failed
        try:
            if not one_step:
                _present(results, scale, [experiment.name for experiment in experiments], docs, console)
        except WriteError as error:
            if not failed:
                raise
            _say(console, f"not all of the page is written: {error}")
        _stop_if_incomplete(console, failed, len(plan.cells))


@contextmanager
def _damage_as_lines(console: Terminal) -> Iterator[None]:
    """Inside, what a warning says of a damaged result is a line for a person, once for each file."""
    from punce.experiments.store import StoreWarning

    told: set[str] = set()
    with warnings.catch_warnings():
        usual = warnings.showwarning

        def show(message: Warning | str, *args: Any, **more: Any) -> None:
            if not isinstance(message, StoreWarning):
                usual(message, *args, **more)
            elif str(message) not in told:
                told.add(str(message))
                _say(console, str(message))

        warnings.showwarning = show
        warnings.simplefilter("always", StoreWarning)
        yield


def _refuse_idle(given: list[str]) -> None:
    """Refuse an option that has no effect beside another one that is given."""
    from punce.errors import InputError

    for name, idle in _IDLE_BESIDE.items():
        if name in given and (without := [other for other in idle if other in given]):
            have = "has" if len(without) == 1 else "have"
            raise InputError(f"{', '.join(without)} {have} no effect beside {name}; leave out one or the other")


def _stop_if_incomplete(console: Terminal, failed: list[tuple[Cell, str]], total: int) -> None:
    from punce.errors import number_of

    if not failed:
        return
    _say(console, f"{len(failed)} of {number_of(total, 'cell', 'cells')} failed; the same command tries them again:")
    for cell, error in failed:
        _say(console, f"  {cell.name}  {cell.describe()}: {error}")
    raise typer.Exit(EXIT_INCOMPLETE)


def _say(console: Terminal, text: str) -> None:
    console.print(text, highlight=False, soft_wrap=True, markup=False)


def _seeds(text: str | None) -> list[int] | None:
    from punce.errors import InputError

    if text is None:
        return None
    try:
        numbers = [int(part) for part in text.removesuffix(",").split(",")]
    except ValueError:
        raise InputError(f"--seeds is a number of seeds (5) or a list (0,3,4 or 3,), got {text!r}") from None
    is_count = "," not in text
    if is_count and numbers[0] > _MOST_SEEDS:
        raise InputError(f"--seeds {text} is more than {_MOST_SEEDS} seeds; seed {text} alone is --seeds {text},")
    if is_count:
        numbers = list(range(numbers[0]))
    if not numbers or min(numbers) < 0:
        raise InputError(f"--seeds needs at least one seed, and none below 0, got {text!r}")
    if max(numbers) > _LARGEST_SEED:  # each of its cells would fail, and stand in the tables as failed
        raise InputError(f"--seeds: a seed is at most {_LARGEST_SEED}, got {max(numbers)}")
    return numbers


def _pool(jobs: int, cluster: str | None, scale: Scale) -> InProcess:
    from punce.experiments.pools import Cluster, InProcess, Workers

    if cluster is not None:
        return Cluster(cluster)
    return InProcess() if jobs == 1 else Workers(jobs, scale.threads)


def _present(results: Path, scale: str, names: list[str], docs: Path | None, console: Terminal) -> None:
    from punce.experiments.present import write_all, write_docs

    written = [*write_all(results, scale, names), *(write_docs(results, scale, docs) if docs is not None else [])]
    for path in written:
        _say(console, f"written: {path}")
