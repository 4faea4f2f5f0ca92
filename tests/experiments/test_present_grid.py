"""What is read back from result files: done, failed, missing, damaged, and seeds beyond those asked for."""

from __future__ import annotations

from pathlib import Path

from punce.experiments import EXPERIMENTS
from punce.experiments.cell import Cell
from punce.experiments.present import tables
from punce.experiments.present.figures import pictures
from punce.experiments.present.grid import Grid, Results
from punce.experiments.present.markup import Table
from punce.experiments.scales import find_scale
from punce.experiments.store import ResultStore

from .synthetic import fill, level, result, write

LAPTOP = find_scale("laptop1")
STORED = Path(__file__).parents[2] / "results"
PUNCE_1K = ("mnist/mlp/1k", "punce")


def grid_of(results: Path, name: str = "table1") -> Grid:
    return Results(results, LAPTOP).grid(EXPERIMENTS[name])


def cell_text(table: Table, row: tuple[str, ...], column: str) -> str:
    at = [cell.text for cell in table.head].index(column)
    return next(cells[at].text for cells in table.rows if tuple(cell.text for cell in cells[: len(row)]) == row)


MNIST_1K = ("PU MNIST (odd/even)", "MLP", "1k")


def test_an_empty_folder_gives_an_empty_grid_with_the_papers_numbers(tmp_path: Path) -> None:
    grid = grid_of(tmp_path)
    assert grid.is_empty
    assert grid[PUNCE_1K].missing == (0, 1, 2)
    assert cell_text(tables.compact(grid), MNIST_1K, "puNCE") == "– (94.70)"
    assert not tables.full(grid).rows


def test_numbers_by_seed_and_what_follows(tmp_path: Path) -> None:
    values = {0: 94.0, 1: 95.0, 2: 96.0}
    fill(tmp_path, ["table1"], value=lambda cell: values[cell.seed])
    grid = grid_of(tmp_path)
    assert grid[PUNCE_1K].pu_selected == values
    full = tables.full(grid)
    row = (*MNIST_1K, "puNCE")
    assert cell_text(full, row, "PU-selected") == "95.00"
    assert cell_text(full, row, "standard deviation") == "1.00"
    assert cell_text(full, row, "standard error") == "0.58"
    assert cell_text(full, row, "95 % interval") == "92.52 to 97.48"
    assert cell_text(full, row, "oracle") == "95.40 ± 1.00"
    assert cell_text(full, row, "the paper") == "94.70 ± 0.19"
    assert cell_text(full, row, "ours − paper") == "+0.30"


def test_tables_with_labels_of_both_classes_say_on_which_labels_was_chosen(tmp_path: Path) -> None:
    fill(tmp_path, ["table4", "table5"])
    for name, column in {"table4": "chosen on training labels", "table5": "chosen on validation labels"}.items():
        grid = grid_of(tmp_path, name)
        assert column in [cell.text for cell in tables.full(grid).head]
        assert column in tables.compact(grid).notes[0]
        assert "PU-selected" not in str(tables.full(grid)) + str(tables.compact(grid))


def test_an_encoder_that_stands_in_for_the_papers_is_named(tmp_path: Path) -> None:
    few_shot = tables.compact(grid_of(tmp_path, "table5"))
    assert {row[1].text for row in few_shot.rows} == {"MiniLM-L6 (the paper: RoBERTa)"}
    paper = Results(tmp_path, find_scale("paper")).grid(EXPERIMENTS["table5"])
    assert {row[1].text for row in tables.compact(paper).rows} == {"RoBERTa"}


def test_a_figure_says_which_encoder_stands_in_for_the_papers() -> None:
    frozen = Results(STORED, find_scale("frozen")).grid(EXPERIMENTS["table3"])
    (figure,) = pictures(frozen)
    assert "In place of ResNet18: MLP on frozen EfficientNet-Lite0" in figure.caption
    (figure,) = pictures(Results(STORED, find_scale("laptop")).grid(EXPERIMENTS["table3"]))
    assert "In place of" not in figure.caption


def test_seeds_beyond_those_asked_for_count(tmp_path: Path) -> None:
    fill(tmp_path, ["table1"], seeds=[0, 4])
    measured = grid_of(tmp_path)[PUNCE_1K]
    assert sorted(measured.pu_selected) == [0, 4]
    assert measured.missing == (1, 2)


def test_failures_are_named_and_left_out_of_the_mean(tmp_path: Path) -> None:
    cells = fill(tmp_path, ["table1"], value=lambda cell: 90.0 + cell.seed)
    store = ResultStore(tmp_path, "laptop1")
    places = EXPERIMENTS["table1"].cells(LAPTOP)
    write(store, places[PUNCE_1K][2], None, "OutOfMemory:\n  no room | for *this*")
    for cell in places["mnist/mlp/1k", "scl"]:
        write(store, cell, None, "diverged")
    grid = grid_of(tmp_path)
    compact = tables.compact(grid)
    assert cell_text(compact, MNIST_1K, "puNCE") == "90.50 ± 0.71 ‡ (94.70)"
    assert cell_text(compact, MNIST_1K, "SCL") == "failed (94.24)"
    assert any(note.endswith("puNCE, seed 2 failed: OutOfMemory: no room | for *this*") for note in compact.notes)
    assert cell_text(tables.full(grid), (*MNIST_1K, "SCL"), "seeds") == "0 (3 failed)"
    assert len(cells) == 12 * 3 + 4  # 3k and 10k of CIFAR are not at this scale


def test_a_damaged_file_is_a_failure_and_is_left_alone(tmp_path: Path) -> None:
    fill(tmp_path, ["table1"])
    path = ResultStore(tmp_path, "laptop1").path(EXPERIMENTS["table1"].cells(LAPTOP)[PUNCE_1K][0])
    path.write_bytes(b"\xff{")
    grid = grid_of(tmp_path)
    assert "cannot be read" in grid[PUNCE_1K].failed[0]
    assert path.read_bytes() == b"\xff{"


def test_a_number_that_is_none_counts_as_missing(tmp_path: Path) -> None:
    cells = EXPERIMENTS["table1"].cells(LAPTOP)[PUNCE_1K]
    store = ResultStore(tmp_path, "laptop1")
    write(store, cells[0], {**result(cells[0]), "oracle_accuracy": None, "auc": "0.97"})
    grid = grid_of(tmp_path)
    assert grid[PUNCE_1K].numbers("oracle_accuracy") == {}
    assert cell_text(tables.full(grid), (*MNIST_1K, "puNCE"), "oracle") == "–"


def test_methods_are_compared_wherever_they_stand(tmp_path: Path) -> None:
    """In the columns of Table 1, in the rows of Table 2."""
    fill(tmp_path, ["table1", "table2"])
    first, second = grid_of(tmp_path, "table1"), grid_of(tmp_path, "table2")
    assert first.is_best(PUNCE_1K)
    assert first.is_behind(("mnist/mlp/1k", "infonce"))
    assert second.is_best(("mnist/mlp/punce", "1k"))
    assert second.is_behind(("mnist/mlp/nnpu", "1k"))
    assert not second.is_behind(("cifar10/resnet18/nnpu", "1k"))  # one seed
    assert second.is_best(("cifar10/resnet18/punce", "1k"))


def test_more_seeds_of_one_method_make_no_other_one_behind(tmp_path: Path) -> None:
    """puNCE has five seeds at 1k, SCL three: SCL leads on all that both have."""
    levels = {"punce": [95.0, 95.0, 95.01, 99.0, 99.0], "scl": [96.0, 96.01, 96.0]}

    def value(cell: Cell) -> float:
        loss = cell.pretraining.loss if cell.pretraining else ""
        return levels[loss][cell.seed] if loss in levels else 80.0 + 0.1 * cell.seed

    fill(tmp_path, ["table1", "seeds_spread"], value=value)
    grid = grid_of(tmp_path)
    assert len(grid[PUNCE_1K].pu_selected) == 5
    assert grid.is_best(("mnist/mlp/1k", "scl"))
    assert grid.is_behind(PUNCE_1K)
    assert not grid.is_behind(("mnist/mlp/1k", "scl"))
    legend = tables.compact(grid).notes[0]
    assert "over the seeds that those compared have in common;" in legend


def test_the_legend_says_when_someone_lacks_seeds(tmp_path: Path) -> None:
    fill(tmp_path, ["table1"])
    store = ResultStore(tmp_path, "laptop1")
    for cell in EXPERIMENTS["table1"].cells(LAPTOP)["mnist/mlp/1k", "dcl"][1:]:
        write(store, cell, None, "diverged")
    assert "(a place that lacks some of them is not called best)" in tables.compact(grid_of(tmp_path)).notes[0]


def test_one_seed_shows_no_spread_and_no_mark(tmp_path: Path) -> None:
    fill(tmp_path, ["table1"], seeds=[0])
    compact = tables.compact(grid_of(tmp_path))
    texts = [cell.text for row in compact.rows for cell in row]
    assert not [text for text in texts if "±" in text or "†" in text]
    assert "with one seed there is nothing to test with" in compact.notes[0]


def test_a_prior_that_was_told_wrong_is_shown(tmp_path: Path) -> None:
    fill(tmp_path, ["sensitivity_prior", "table1"])
    head = [cell.text for cell in tables.full(grid_of(tmp_path, "sensitivity_prior")).head]
    assert head[-1] == "prior told (true)"
    full = tables.full(grid_of(tmp_path, "sensitivity_prior"))
    assert cell_text(full, ("PU MNIST (odd/even)", "MLP", "probe", "+0.1"), head[-1]) == "0.490 / 0.390 (0.490)"
    assert "prior told (true)" not in [cell.text for cell in tables.full(grid_of(tmp_path)).head]


def test_the_invented_levels_are_ordered() -> None:
    """The tests above rest on this."""
    cells = EXPERIMENTS["table1"].cells(LAPTOP)
    assert (
        level(cells[PUNCE_1K][0]) > level(cells["mnist/mlp/1k", "scl"][0]) > level(cells["mnist/mlp/1k", "infonce"][0])
    )
