"""docs/training.md says what benchmarks/results/flops.json says, and its script runs."""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from punce.datasets.dataset import Dataset, Part
from punce.encoders import ResNet18
from punce.experiments import EXPERIMENTS
from punce.experiments.scales import find_scale

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "training.md"


@pytest.fixture
def flops(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    yield importlib.import_module("flops")
    for name in ("flops", "machine"):
        sys.modules.pop(name, None)


@pytest.fixture
def committed() -> dict[str, Any]:
    return dict(json.loads((ROOT / "benchmarks" / "results" / "flops.json").read_text()))


def test_the_tables_of_the_page_are_those_of_the_file(flops: ModuleType, committed: dict[str, Any]) -> None:
    between = PAGE.read_text().split("<!-- flops -->")[1].split("<!-- end of flops -->")[0]
    assert between.strip("\n") == flops.tables(committed)


def test_the_assumptions_of_the_page_are_those_of_the_file(committed: dict[str, Any]) -> None:
    text = " ".join(PAGE.read_text().split())
    assumed = committed["assumptions"]
    assert f"{assumed['sustained TFLOP/s']:g} TFLOP/s sustained" in text
    assert f"{assumed['USD per GPU hour']:g} USD for a GPU hour" in text
    assert f"sentences of {assumed['tokens of a sentence']} tokens" in text


def test_the_file_is_about_the_cells_there_are(flops: ModuleType, committed: dict[str, Any]) -> None:
    """Steps, cells and FLOPs from today's scale and the committed costs of a row."""
    scale = find_scale("paper")
    cells = {name: [c for some in e.cells(scale).values() for c in some] for name, e in EXPERIMENTS.items()}
    assert set(committed["experiments"]) == set(EXPERIMENTS)
    for name, some in cells.items():
        assert committed["experiments"][name]["cells"] == len({cell.key for cell in some})
    cell = next(cell for cell in cells["table1"] if cell.data.source == "mnist")
    step = committed["pretraining"]["mnist/mlp"]
    assert cell.pretraining is not None
    assert step["steps"] == cell.pretraining.config.epochs * round(60_000 / cell.pretraining.config.batch_size)
    assert step["encoder"] == 2 * cell.pretraining.config.batch_size * committed["per_row"]["mlp"]["contrastive"]
    assert step["pflop"] == pytest.approx(step["steps"] * (step["encoder"] + step["loss"]) / 1e15, abs=1e-3)


def test_counting_agrees_with_arithmetic(flops: ModuleType) -> None:
    """An MLP by hand, and the loss: half of the products forward, twice that backward, and what is computed again."""
    weights = 784 * 5000 + 5000 * 5000 + 5000 * 50
    assert flops.row_costs("mlp")["features"] == 2 * weights
    assert flops.row_costs("mlp")["joint"] == 3 * 2 * (weights + 50) - 2 * 784 * 5000  # no gradient of the input
    small = flops.loss_cost(256, 16)
    whole = 2 * 512 * 512 * 16
    assert small == 2 * whole  # one tile, on the diagonal: a product forward, one backward


def test_work_that_is_not_linear_is_refused(flops: ModuleType) -> None:
    with pytest.raises(SystemExit, match="not linear"):
        flops.per_row(lambda n: n * n)


@pytest.mark.slow
def test_the_script_of_the_page_trains(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    block = next(block for block in blocks if "joined()" in block)
    rng = np.random.default_rng(0)
    rows = Part(rng.integers(0, 256, (1200, 3, 32, 32), dtype=np.uint8), np.repeat([1, 0], [1100, 100]).astype(np.int8))
    monkeypatch.setattr("punce.data.load", lambda name: Dataset(name, "image", "all", rows, rows))
    monkeypatch.setattr("punce.encoders.ResNet18", lambda: ResNet18(width=0.02))
    monkeypatch.chdir(tmp_path)
    script = block.replace("epochs=300, batch_size=2048", "epochs=1, batch_size=300")
    assert script != block
    namespace: dict[str, Any] = {}
    with torch.random.fork_rng():
        exec(compile(script, "training.md", "exec"), namespace)
    assert list((tmp_path / "run").iterdir())
    assert not namespace["encoder"].training
