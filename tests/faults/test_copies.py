"""The tool itself: a copy waits for no threads that it does not have, and hears Ctrl-C."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from tests.copies import ROOT, Call, command, start_copy

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


_IGNORING = """
import os, signal
from tests.copies import ROOT, Call, start_copy

signal.signal(signal.SIGINT, signal.SIG_IGN)
copy = start_copy(Call("tests.faults.test_copies", "wait", []), str(ROOT), {})
assert os.read(copy.out, 5) == b"ready"
copy.send(signal.SIGINT)
code, _, said = copy.ended(30.0)
assert (code, said) == (130, ""), (code, said)
"""


def wait() -> None:
    """A command that has begun, and has long to do."""
    from punce import cli

    def work(**_: object) -> None:
        os.write(1, b"ready")
        for _ in range(600):  # a signal just before one long sleep would not shorten it
            time.sleep(0.1)

    cli.app = work  # type: ignore[assignment]
    command()


def test_a_copy_hears_ctrl_c_where_the_copied_process_ignores_it() -> None:
    """As a shell's job in the background does: Ctrl-C was sent, not heard, and not counted."""
    done = subprocess.run([sys.executable, "-c", _IGNORING], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def main() -> None:
    """Use OpenMP here, then in a copy; the exit code is the copy's."""
    trees()
    code = start_copy(Call("tests.faults.test_copies", "trees", []), str(ROOT), {}).ended(120.0)[0]
    raise SystemExit(1 if code == _HUNG else code)


if __name__ == "__main__":
    main()
