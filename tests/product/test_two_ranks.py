"""``punce fit`` under torchrun: two ranks end where one process does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.faults.scenes import SCENES

pytestmark = pytest.mark.slow
TWO = ["-m", "torch.distributed.run", "--nproc-per-node=2", "--master-addr=127.0.0.1"]


def fitted(name: str, inputs: Path, out: Path, *launcher: str) -> pd.DataFrame:
    """The ranked list of a fit, by row."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "PUNCE_PRECISION": "float32"}
    line = [sys.executable, *launcher, "-m", "punce", *SCENES[name].arguments(inputs, out)]
    done = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-2000:]
    return pd.read_parquet(out / "scores.parquet").sort_values("row")


@pytest.mark.parametrize("name", ["fit embedding network", "fit image network"])
def test_two_ranks_end_where_one_does(name: str, tmp_path: Path) -> None:
    (tmp_path / "inputs").mkdir()
    SCENES[name].inputs(tmp_path / "inputs")
    one = fitted(name, tmp_path / "inputs", tmp_path / "one")
    two = fitted(name, tmp_path / "inputs", tmp_path / "two", *TWO)
    assert np.array_equal(one["row"], two["row"])
    difference = np.abs(one["probability"].to_numpy() - two["probability"].to_numpy()).max()
    assert difference < 1e-3  # sums of two ranks are rounded elsewhere
    assert one["probability"].std() > 0.01  # they are not all the same
