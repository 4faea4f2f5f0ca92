"""A command that is told to end leaves the exit code that docs/using.md names, and no temporary file."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.faults.scenes import many_rows
from tests.models.stored.write import HERE

pytestmark = pytest.mark.faults

_SLOWLY = """
import sys, time
from punce.product import predict
score = predict.Found.score
predict.Found.score = lambda self, batch: (time.sleep(0.2), score(self, batch))[1]
from punce.cli import main
sys.argv = ["punce", *sys.argv[1:]]
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_predict_that_is_told_to_end(tmp_path: Path, number: int, code: int) -> None:
    many_rows(tmp_path)
    out = tmp_path / "out"
    out.mkdir()
    arguments = ["predict", HERE / "table", tmp_path / "rows.csv", "--out", out / "scores.csv", "--batch-rows", "500"]
    line = [sys.executable, "-c", _SLOWLY, *map(str, arguments)]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        until = time.monotonic() + 60
        while not list(out.iterdir()) and time.monotonic() < until:
            time.sleep(0.01)
        process.send_signal(number)
        said = process.communicate(timeout=60)[1]
    assert process.returncode in (code, -number if number == signal.SIGINT else code)
    assert "Traceback" not in said
    assert list(out.iterdir()) == []


_HIDDEN = """
import os, signal, sys
import numpy as np
from numpy._core import _internal
from punce import cli

def interrupted(spec):
    os.kill(os.getpid(), int(sys.argv[1]))

_internal._dtype_from_pep3118 = interrupted
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's job in the background does not have
cli.app = lambda **_: np.asarray(memoryview(np.zeros(2, dtype="f8,u4")))
cli.main()
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_that_compiled_code_turns_into_its_own_error(number: int, code: int) -> None:
    """numpy replaces whatever is raised while it reads the format of a buffer by a ValueError."""
    line = [sys.executable, "-c", _HIDDEN, str(int(number))]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")


_EARLY = """
import os, signal
from punce import cli

signal.signal(signal.SIGINT, signal.default_int_handler)
cli.app = lambda **_: os.kill(os.getpid(), signal.SIGINT)
cli.main()
"""


def test_ctrl_c_before_typer_can_take_it_is_no_traceback() -> None:
    """typer puts the commands together, for some milliseconds, before it begins to catch Ctrl-C."""
    done = subprocess.run([sys.executable, "-c", _EARLY], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
