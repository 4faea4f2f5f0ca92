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
