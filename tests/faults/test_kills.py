"""A few kills of every command: ``make slow``. The long version, a campaign, is part of ``make test-faults``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.copies import ROOT
from tests.faults.__main__ import CANNOT, RESULTS
from tests.faults.scenes import SCENES

SHORT = ("fit table", "fit embedding network", "predict", "prior", "reproduce", "review --serve")


def disturbed(
    results: Path, names: tuple[str, ...], seconds: float, each: float, by: str = "kills"
) -> dict[str, dict[str, object]]:
    """Scene -> what was counted, by tests.faults in a process of its own, which is the one that is copied."""
    line = [sys.executable, "-m", "tests.faults", "--by", by, "--seconds", str(seconds), "--each", str(each)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "PUNCE_IMAGE_ENCODER": ""}
    done = subprocess.run([*line, "--results", str(results), "--only", *names], cwd=ROOT, env=environment)
    if done.returncode == CANNOT:
        pytest.skip("small disks cannot be mounted here: that needs root")
    done.check_returncode()
    scenes: dict[str, dict[str, object]] = json.loads(results.read_text())["scenes"]
    return scenes


@pytest.mark.slow
@pytest.mark.parametrize("name", SHORT)
def test_a_few_kills_change_nothing(name: str, tmp_path: Path) -> None:
    counts = disturbed(tmp_path / "faults.json", (name,), seconds=1.0, each=8.0)[name]
    assert counts["broken"] == []
    assert counts["finished"]


@pytest.mark.slow
@pytest.mark.parametrize(("number", "name"), [(signal.SIGTERM, "terminated"), (signal.SIGINT, "interrupted")])
@pytest.mark.faults
def test_a_page_that_is_told_to_end_is_counted(number: signal.Signals, name: str) -> None:
    """In a process of its own, which is the one that is copied; it ignores Ctrl-C, as a job in the background does."""
    line = [sys.executable, "-c", _TOLD_TO_END, str(int(number)), name]
    done = subprocess.run(line, cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


_TOLD_TO_END = """
import signal, sys
from tests.copies import import_everything
from tests.faults import serving

signal.signal(signal.SIGINT, signal.SIG_IGN)
serving.random_signal = lambda rng: signal.Signals(int(sys.argv[1]))
import_everything()
counts = serving.disturb_server(0.1, 0)
assert not counts.broken, counts
assert getattr(counts, sys.argv[2]) == 6, counts
"""


@pytest.mark.faults
@pytest.mark.campaign
@pytest.mark.timeout(1800)
def test_many_kills_change_nothing() -> None:
    """Adds to benchmarks/results/faults.json; bounded by its seconds."""
    scenes = disturbed(RESULTS, (*SCENES, "review --serve"), float(os.environ.get("PUNCE_FAULTS_SECONDS", "900")), 30.0)
    assert not [broken for counts in scenes.values() for broken in counts["broken"]]  # type: ignore[attr-defined]
