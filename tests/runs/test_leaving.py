"""However a rank ends, gloo's threads end before the interpreter does: one that outlives it aborts the process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

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


_WAITS = """
import signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as the command line does
import torch.distributed.nn.functional
from punce.training.collectives import init_from_environment
print("meeting", flush=True)
init_from_environment()
"""


@pytest.mark.slow
def test_a_rank_whose_peer_never_comes_can_be_ended() -> None:
    """Ranks meet in C++, where a handler in Python waits as long as the rank does."""
    port = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    line = [sys.executable, "-c", _WAITS]
    with subprocess.Popen(line, cwd=ROOT, env=os.environ | port, stdout=subprocess.PIPE, text=True) as rank:
        assert rank.stdout is not None
        assert rank.stdout.readline() == "meeting\n"
        time.sleep(1.0)
        rank.send_signal(signal.SIGTERM)
        try:
            assert rank.wait(20) in (143, -signal.SIGTERM)
        finally:
            rank.kill()
