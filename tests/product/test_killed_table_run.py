"""A table run that is killed with kill -9, repeated, and ends in the same bytes."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from punce.errors import InputError
from punce.product.fit import DataOptions, ModelOptions, run_fit
from punce.storage.files import locked

pytestmark = [pytest.mark.usefixtures("quick_tables"), pytest.mark.faults]  # 13 steps; the killed process has as many
_SLOWLY = """
import sys, time
import pytest
from tests.quick import make_quick
make_quick(pytest.MonkeyPatch())
from punce.models.tabular.steps import Steps
store = Steps._store
def slowly(self, name, arrays):  # a kill must meet the run between two steps, and within one
    store(self, name, arrays)
    time.sleep(0.1)
Steps._store = slowly
from punce.cli import main
main()
"""


def _table(path: Path, n: int = 120) -> Path:
    rng = np.random.default_rng(0)
    y = rng.random(n) < 0.4
    frame = pd.DataFrame(rng.normal(size=(n, 3)) + 1.5 * y[:, None], columns=["a", "b", "c"])
    frame.assign(label=(y & (rng.random(n) < 0.6)).astype(int)).to_csv(path, index=False)
    return path


def _command(table: Path, out: Path) -> list[str]:
    return [sys.executable, "-c", _SLOWLY, "fit", str(table), "--label", "label", "--prior", "0.3", "--out", str(out)]


def _run(table: Path, out: Path) -> Path:
    run_fit(DataOptions(str(table), "label"), ModelOptions(prior=0.3), out, say=lambda _: None)
    return out


def _digest(run: Path) -> str:
    return hashlib.sha256((run / "model" / "model.safetensors").read_bytes()).hexdigest()


def _kill_after(steps: int, table: Path, out: Path) -> None:
    """Start the run and kill it once `steps` steps are stored."""
    process = subprocess.Popen(_command(table, out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while len(list((out / "work").glob("[a-z]*"))) < steps:
            assert process.poll() is None, "the run ended before it was killed"
            time.sleep(0.005)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()


def test_a_killed_run_resumes_and_ends_in_the_same_bytes(tmp_path: Path) -> None:
    table = _table(tmp_path / "rows.csv")
    _kill_after(6, table, tmp_path / "killed")
    assert not (tmp_path / "killed" / "report.html").exists()
    assert _digest(_run(table, tmp_path / "killed")) == _digest(_run(table, tmp_path / "whole"))
    assert not (tmp_path / "killed" / "work").exists()


@pytest.mark.slow
def test_many_kills_end_in_the_same_bytes(tmp_path: Path) -> None:
    table = _table(tmp_path / "rows.csv")
    for steps in (1, 3, 5, 7, 8, 10, 12):
        _kill_after(steps, table, tmp_path / "killed")
    assert _digest(_run(table, tmp_path / "killed")) == _digest(_run(table, tmp_path / "whole"))


def test_two_fits_cannot_share_a_folder(tmp_path: Path) -> None:
    table, out = _table(tmp_path / "rows.csv"), tmp_path / "run"
    with locked(out / ".lock") as is_alone:
        assert is_alone
        with pytest.raises(InputError, match="another process is fitting"):
            _run(table, out)
    assert (_run(table, out) / "report.html").exists()


def test_a_folder_of_other_files_gets_no_lock_file(tmp_path: Path) -> None:
    table, out = _table(tmp_path / "rows.csv"), tmp_path / "mine"
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="holds no punce run"):
        _run(table, out)
    assert [entry.name for entry in out.iterdir()] == ["notes.txt"]
