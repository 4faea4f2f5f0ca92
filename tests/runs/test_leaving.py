"""However a rank ends, gloo's threads end before the interpreter does: one that outlives it aborts the process."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.runs.killing import free_port
from tests.runs.tiny import ROOT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")


def two_ranks_end(*arguments: str) -> list[tuple[int, str]]:
    """Exit code and output of both."""
    common = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    common |= {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    ranks = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.runs.leaving", *arguments],
            cwd=ROOT,
            env=os.environ | common | {"RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(2)
    ]
    outputs = [rank.communicate(timeout=100)[0] for rank in ranks]
    return [(rank.returncode, output) for rank, output in zip(ranks, outputs, strict=True)]


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((), 0),
        pytest.param(("--error",), 1, marks=pytest.mark.slow),
        pytest.param(("--terminated",), 143, marks=pytest.mark.slow),
    ],
)
def test_no_thread_of_gloo_outlives_the_group(arguments: tuple[str, ...], code: int) -> None:
    for seen, output in two_ranks_end("joined", *arguments):
        assert seen == code, output
        assert "threads left: []" in output
        assert ("PlannedError" in output) == (code == 1)
