"""What page and document say around the tables: what this is, at which size it was run, and how to read it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from punce.errors import InputError, number_of
from punce.experiments.cell import Cell
from punce.experiments.present.grid import Grid
from punce.experiments.present.verdicts import Finding, Verdict
from punce.experiments.scales import Scale
from punce.experiments.tables import shown
from punce.stages.pretrain import PretrainConfig
from punce.stages.transfer import EpochConfig

TITLE = "Positive Unlabeled Contrastive Learning, reproduced"


_EPOCH = (
    "The paper's own numbers stand beside ours. In PU-selected columns the epoch was chosen without negatives; in "
    "oracle columns it was chosen with true test labels."
)
_SIZE = (
    "These runs are sized for a CPU. The paper trained its full networks for 200 epochs (MNIST) and 300 (CIFAR) in "
    "batches of 1024 and 2048. A claim that does not show here may show at full size."
)


def opening(scale: Scale, grids: Mapping[str, Grid]) -> list[str]:
    """What was run and what the numbers can and cannot say."""
    about = f"Scale {scale.name} ({scale.about})"
    sizes = "; ".join(_sizes(grids))
    own = f"{about}: {sizes}." if sizes else f"{about}."
    if scale.name == "paper":
        rate = scale.benches["mnist"].pretraining.config.lr
        return [_EPOCH, own, f"LARS runs at rate {rate:.1f} instead of the paper's 0.01; docs/paper.md says why."]
    if not scale.has_papers_rows:
        return [f"{own} It compares methods, not levels."]
    fairness = _unequal(grids) if scale.name == "laptop1" else _equal() if scale.name == "laptop" else []
    return [_EPOCH, _SIZE, own, *fairness]


def _sizes(grids: Mapping[str, Grid]) -> list[str]:
    """How each network was pretrained, from the cells themselves."""
    found: dict[str, None] = {}
    for grid in grids.values():
        for place in grid.all_places:
            cell = grid.cells.get(place)
            if cell is not None and cell.pretraining is not None and grid[place].by_seed:
                found[_size(cell)] = None
    return list(found)


def _size(cell: Cell) -> str:
    assert cell.pretraining is not None
    rows = f"{cell.data.n_train} rows of {cell.data.source}" if cell.data.n_train else cell.data.source
    width = f"{shown(cell.encoder.name)} at {cell.encoder.width:g} of the paper's width"
    config = cell.pretraining.config
    return f"{rows}, {width}, {number_of(config.epochs, 'epoch', 'epochs')}, batch {config.batch_size}"


# What favours whom ------------------------------------------------------------------------------------------------


def _equal() -> list[str]:
    return [
        "The views and the probe's length for MNIST were chosen for puNCE without true labels "
        "(benchmarks/mnist_tuning.py), and every loss used them. Methods from scratch had as many operations as two "
        "views of every row in every epoch of pretraining take. Their rates, and whether they train on views, were "
        "chosen by held-out P and U on a seed that no table uses (benchmarks/scale_choices.py)."
    ]


def _unequal(grids: Mapping[str, Grid]) -> list[str]:
    """What was chosen for puNCE, and how much more training the contrastive methods had."""
    tuned = (
        "The views, epochs and probe length for MNIST were chosen for puNCE, at 10k labels and seed 0, without true "
        "labels (benchmarks/mnist_tuning.py). Every loss then used the same settings."
    )
    measured = _epochs_by_method(grids["table2"]) if "table2" in grids else {}
    costs = [_cost(source, epochs) for source, epochs in measured.items() if {"punce", "nnpu"} <= epochs.keys()]
    apart = ["Methods did not train equally long.", *costs, "Training from scratch saw no augmented views."]
    return [tuned, " ".join(apart)] if costs else [tuned]


def _epochs_by_method(grid: Grid) -> dict[str, dict[str, int]]:
    """For how many epochs the network itself was trained, by data and method, where it was measured."""
    found: dict[str, dict[str, int]] = {}
    for (row, column), cell in grid.cells.items():
        if grid[row, column].by_seed:
            found.setdefault(cell.data.source, {})[row.rpartition("/")[2]] = _epochs(cell)
    return found


def _epochs(cell: Cell) -> int:
    config = cell.transfer.config if cell.pretraining is None else cell.pretraining.config
    assert isinstance(config, PretrainConfig | EpochConfig)
    return config.epochs


def _cost(source: str, epochs: Mapping[str, int]) -> str:
    """Passes through the network: two views of every row against one of four fifths of the rows, so "at least"."""
    contrastive = epochs["punce"]
    names: dict[int, list[str]] = {}  # methods by their number of epochs
    for method, number in epochs.items():
        if method != "punce":
            names.setdefault(number, []).append(shown(method))
    scratch = ", ".join(f"{number} ({', '.join(methods)})" for number, methods in names.items())
    return (
        f"On {source} contrastive losses had {contrastive} epochs of two views, which is at least "
        f"{2 * contrastive / epochs['nnpu']:.2g} times the operations of nnPU; from scratch the epochs were {scratch}."
    )


def tally(findings: Iterable[Finding]) -> str:
    """Of 40 claims 12 show, 5 show in part, …"""
    counted = Counter(finding.verdict for finding in findings)
    parts = [f"{counted[v]} {v.value[1 + (counted[v] != 1)]}" for v in Verdict if counted[v]]
    return f"Of {counted.total()} claims, " + ", ".join(parts) + "."


def hand_written(results: Path, scale: Scale) -> str:
    """``results/<scale>/reading.md``: commentary by a person, merged as it is; empty without one."""
    path = results / scale.name / "reading.md"
    try:
        return path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text: {error}") from None
