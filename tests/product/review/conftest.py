from __future__ import annotations

from pathlib import Path

import pytest

from .runs import finished_run, write_table


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A finished run on tmp_path/table.csv."""
    return finished_run(tmp_path / "run", write_table(tmp_path / "table.csv"))
