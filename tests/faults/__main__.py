"""Disturb commands at random moments and look at what they leave; adds to benchmarks/results/faults.json.

    python -m tests.faults --seconds 1500 --until 200        # kills, until so many are counted
    python -m tests.faults --seconds 600 --by disks          # disks that are full at a random byte
    python -m tests.faults --seconds 60 --only "fit table"

Repeated calls add to the counts. The scene that had the least time so far is next.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from punce.storage.files import write_text
from tests.copies import ROOT, import_everything
from tests.faults.kills import BrokenPromiseError, Counts, Killing
from tests.faults.scenes import SCENES
from tests.faults.serving import SERVED, disturb_server
from tests.faults.starving import Starving
from tests.quick import make_quick

RESULTS = ROOT / "benchmarks" / "results" / "faults.json"
BY: dict[str, tuple[type[Killing], tuple[str, ...]]] = {
    "kills": (Killing, ("kills",)),
    "disks": (Starving, ("full_disks", "file_limits")),
}
"""Ways to disturb, and what they count."""
CANNOT = 77
"""Exit code where this machine does not allow it."""
_COUNTED = ("kills", "terminated", "interrupted", "full_disks", "file_limits", "finished", "spent")


class Disturbance:
    """Scenes to disturb in turn; what an undisturbed run leaves is made once for each."""

    def __init__(self, way: type[Killing], scratch: Path) -> None:
        self._way, self._scratch, self._begun = way, scratch, dict[str, Killing]()

    def disturb(self, name: str, seconds: float, seed: int) -> Counts:
        """Disturbed runs for some time, at least one; what was seen in them."""
        if name not in self._begun:
            folder = self._scratch / str(len(self._begun))
            folder.mkdir()
            self._begun[name] = self._way(SCENES[name], folder, seed)
        killing, until = self._begun[name], time.monotonic() + seconds
        killing.counts = Counts(seconds=killing.counts.seconds)
        while True:
            try:
                killing.one_run()
            except BrokenPromiseError as broken:
                killing.counts.broken.append(str(broken))
            if time.monotonic() > until:
                return killing.counts


# Results --------------------------------------------------------------------------------------------------------------


def load(file: Path) -> dict[str, Any]:
    """The results so far."""
    found: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {"scenes": {}}
    return found


def add(file: Path, name: str, counts: Counts) -> None:
    """Add counts to the file, and write it whole."""
    results = load(file)
    before = Counts(**results["scenes"].get(name, {}))
    for key in _COUNTED:
        setattr(before, key, getattr(before, key) + getattr(counts, key))
    before.moments = [a + b for a, b in zip(before.moments, counts.moments, strict=True)]
    before.seconds, before.broken = round(counts.seconds, 2), [*before.broken, *counts.broken]
    results["scenes"][name] = asdict(before)
    scenes = results["scenes"].values()
    total = {key: sum(one.get(key, 0) for one in scenes) for key in _COUNTED}
    results["total"] = total | {"broken": sum(len(one["broken"]) for one in scenes)}
    results["command"] = "python -m tests.faults --seconds 1500 --until 200 [--by disks]"
    write_text(file, json.dumps(dict(sorted(results.items())), indent=1) + "\n")


def counted(file: Path, keys: Sequence[str]) -> int:
    """How often all scenes were disturbed so far."""
    return sum(one.get(key, 0) for one in load(file)["scenes"].values() for key in keys)


def disturb_all(asked: argparse.Namespace, scratch: Path) -> None:
    """Disturb the scenes in turn, those with the least time so far first."""
    way, keys = BY[asked.by]
    until, scenes = time.monotonic() + asked.seconds, Disturbance(way, scratch)
    names = asked.only or [*SCENES, *([SERVED] if way is Killing else [])]
    while time.monotonic() < until and counted(asked.results, keys) < asked.until:
        before, started = load(asked.results)["scenes"], time.monotonic()
        name = min(names, key=lambda one: before.get(one, {}).get("spent", 0.0))
        work = disturb_server if name == SERVED else partial(scenes.disturb, name)
        counts = work(asked.each, before.get(name, {}).get("finished", 0))
        counts.spent = round(time.monotonic() - started, 1)
        add(asked.results, name, counts)
        number = sum(getattr(counts, key) for key in keys)
        sys.stdout.write(f"{name}: {number} {asked.by} in {counts.finished} runs, broken: {counts.broken}\n")
        sys.stdout.flush()


def main() -> None:
    """Read the arguments and disturb."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--by", choices=BY, default="kills")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--until", type=float, default=math.inf, help="stop when so many are in the results")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--each", type=float, default=25.0, help="seconds of one scene at a time")
    parser.add_argument("--results", type=Path, default=RESULTS)
    asked = parser.parse_args()
    import_everything()
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as scratch:
        make_quick(patch)
        try:
            disturb_all(asked, Path(scratch))
        except pytest.skip.Exception as reason:
            sys.stdout.write(f"skipped: {reason}\n")
            raise SystemExit(CANNOT) from None


if __name__ == "__main__":
    os.environ.update(OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo", PUNCE_IMAGE_ENCODER="")
    main()
