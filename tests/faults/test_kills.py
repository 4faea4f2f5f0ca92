"""A few kills of every command: ``make slow``. The long version is ``make test-faults`` (the marker faults)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.copies import ROOT
from tests.faults.scenes import SCENES

SHORT = ("fit table", "fit embedding network", "predict", "prior", "reproduce", "review --serve")


def disturbed(
    results: Path, names: tuple[str, ...], seconds: float, each: float, by: str = "kills"
) -> dict[str, dict[str, object]]:
    """Scene -> what was counted, by tests.faults in a process of its own, which is the one that is copied."""
    line = [sys.executable, "-m", "tests.faults", "--by", by, "--seconds", str(seconds), "--each", str(each)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "PUNCE_IMAGE_ENCODER": ""}
    subprocess.run([*line, "--results", str(results), "--only", *names], cwd=ROOT, env=environment, check=True)
    scenes: dict[str, dict[str, object]] = json.loads(results.read_text())["scenes"]
    return scenes


@pytest.mark.slow
@pytest.mark.parametrize("name", SHORT)
def test_a_few_kills_change_nothing(name: str, tmp_path: Path) -> None:
    counts = disturbed(tmp_path / "faults.json", (name,), seconds=1.0, each=8.0)[name]
    assert counts["broken"] == []
    assert counts["finished"]


@pytest.mark.faults
@pytest.mark.timeout(1800)
def test_many_kills_change_nothing() -> None:
    """Adds to benchmarks/results/faults.json; bounded by its seconds."""
    from tests.faults.__main__ import RESULTS

    scenes = disturbed(RESULTS, (*SCENES, "review --serve"), float(os.environ.get("PUNCE_FAULTS_SECONDS", "900")), 30.0)
    assert not [broken for counts in scenes.values() for broken in counts["broken"]]  # type: ignore[attr-defined]
