"""The tool itself: a copy of a process that has used OpenMP does not wait for threads that it does not have."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from tests.copies import ROOT, Call, start_copy

_HUNG = -9


def trees() -> None:
    """What uses OpenMP, as ``punce prior`` does."""
    X = np.random.default_rng(0).normal(size=(2_000, 5))
    HistGradientBoostingClassifier(max_iter=5).fit(X, X[:, 0] > 0)


@pytest.mark.slow
def test_a_copy_of_a_process_that_has_used_openmp_ends() -> None:
    """Without its limit the copy hung, whatever the clock said; this was first taken for a fault of a wrong clock."""
    line = [sys.executable, "-m", "tests.faults.test_copies"]
    done = subprocess.run(line, cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "2"}, timeout=240)
    assert done.returncode == 0


def main() -> None:
    """Use OpenMP here, then in a copy; the exit code is the copy's."""
    trees()
    code = start_copy(Call("tests.faults.test_copies", "trees", []), str(ROOT), {}).ended(120.0)[0]
    raise SystemExit(1 if code == _HUNG else code)


if __name__ == "__main__":
    main()
