"""Fuzz every reader and the model loader; counts go to benchmarks/results/fuzz.json, and repeated calls add to them.

    python -m tests.attacks.fuzz --seconds 600                      # hypothesis, those with the least time so far first
    python -m tests.attacks.fuzz --seconds 600 --engine atheris     # guided by coverage; needs the package atheris
    python -m tests.attacks.fuzz --only t.csv model --seconds 60 --found found

An input must be read or refused with one line for a person. Anything else is a defect: its input is kept in --found,
and goes to tests/attacks/corpus once it is mended. Each chunk runs in a process of its own with bounded memory and time
for each input, so that a crash of the interpreter is counted too.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "fuzz.json"
SECONDS_AN_INPUT = 20
MEMORY = 1536 << 20  # bytes beyond what is in use when fuzzing begins
_COPIES = 40
_CHUNK = 30.0  # seconds


@dataclass
class Tally:
    """What happened to the inputs of one target; `grown_mb` is by how much the memory of the process grew at most."""

    inputs: int = 0
    read: int = 0
    refused: int = 0
    seconds: float = 0.0
    slowest_seconds: float = 0.0
    grown_mb: int = 0
    defects: dict[str, int] = field(default_factory=dict)

    def add(self, other: Tally) -> None:
        """Count another chunk."""
        self.inputs, self.read = self.inputs + other.inputs, self.read + other.read
        self.refused, self.seconds = self.refused + other.refused, round(self.seconds + other.seconds, 1)
        self.slowest_seconds = round(max(self.slowest_seconds, other.slowest_seconds), 3)
        self.grown_mb = max(self.grown_mb, other.grown_mb)
        for name, count in other.defects.items():
            self.defects[name] = self.defects.get(name, 0) + count


class Runner:
    """Hands inputs to one target and tallies; `found` takes the inputs of defects."""

    def __init__(self, target: Any, folder: Path, found: Path) -> None:
        self.target, self.found, self.tally = target, found, Tally()
        self.path, self.report = folder / "in" / target.name, folder / "tally.json"
        self.path.parent.mkdir()
        self._memory = _resident()
        signal.signal(signal.SIGALRM, _too_long)

    def __call__(self, content: bytes) -> None:
        """One input. It is on disk before it is used: it stays there if the interpreter dies."""
        self.path.write_bytes(content)
        started = time.monotonic()
        signal.alarm(SECONDS_AN_INPUT)
        try:
            accepted = self.target.accepts(self.path)
            self.tally.read, self.tally.refused = self.tally.read + accepted, self.tally.refused + (not accepted)
        except Exception as error:
            self._keep(content, error)
        finally:
            signal.alarm(0)
        self.tally.inputs += 1
        self.tally.slowest_seconds = max(self.tally.slowest_seconds, time.monotonic() - started)
        if self.tally.inputs % 100 == 0:
            self.save()

    def _keep(self, content: bytes, error: Exception) -> None:
        last = traceback.extract_tb(error.__traceback__)
        own = [f for f in last if "/punce/" in f.filename] or last
        where = f"{Path(own[-1].filename).name}:{own[-1].name}"
        name = f"{type(error).__name__} in {where}: {str(error)[:80]}"
        if name not in self.tally.defects:
            keep(self.found, self.target.name, content, name)
        self.tally.defects[name] = self.tally.defects.get(name, 0) + 1

    def save(self) -> None:
        """The tally so far, for the process that started this one."""
        self.tally.grown_mb = (_resident() - self._memory) >> 20
        self.report.write_text(json.dumps(asdict(self.tally)))


def keep(found: Path, target: str, content: bytes, name: str) -> None:
    """Put the input of a defect aside, with what happened."""
    folder = found / target
    folder.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256(content).hexdigest()[:12]
    (folder / digest).write_bytes(content)
    (folder / f"{digest}.why").write_text(name + "\n")


def _resident() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _too_long(*_: Any) -> None:
    raise TimeoutError(f"more than {SECONDS_AN_INPUT} s")


def _bound_memory() -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))


# Engines --------------------------------------------------------------------------------------------------------------


def by_hypothesis(run: Runner, seconds: float, number: int) -> None:
    """Good files with a few changes; each is followed by copies with bytes changed at random, which are cheaper."""
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as with_seed

    from tests.attacks.changes import changed, spoilt

    seeds, until = run.target.seeds(run.path.parent.parent), time.monotonic() + seconds
    rng = random.Random(number)
    options: dict[str, Any] = {"database": None, "deadline": None, "phases": [Phase.generate]}
    options["suppress_health_check"] = list(HealthCheck)

    def one(content: bytes) -> None:
        run(content)
        for _ in range(_COPIES if time.monotonic() < until else 0):
            run(spoilt(content, rng))

    while time.monotonic() < until:
        inner = settings(max_examples=200, **options)(given(changed(seeds, run.target.words))(one))
        with_seed(number)(inner)()
        number += 1
    run.save()


def by_atheris(run: Runner, seconds: float, number: int) -> None:
    """Inputs that reach new code; the process ends in here."""
    import atheris

    corpus = run.path.parent.parent / "corpus"
    corpus.mkdir()
    for k, content in enumerate(run.target.seeds(run.path.parent.parent)):
        (corpus / f"seed-{k}").write_bytes(content)
    options = [f"-max_total_time={int(seconds)}", f"-seed={number + 1}", "-max_len=300000", "-rss_limit_mb=0"]
    atheris.Setup([sys.argv[0], *options, "-verbosity=0", "-print_final_stats=0", str(corpus)], run)
    atheris.Fuzz()


ENGINES: dict[str, Callable[[Runner, float, int], None]] = {"hypothesis": by_hypothesis, "atheris": by_atheris}


def work(engine: str, name: str, folder: Path, found: Path, seconds: float, number: int) -> None:
    """What the process of one chunk does."""
    if engine == "atheris":
        import atheris

        with atheris.instrument_imports(include=["punce"]):
            from tests.attacks.targets import TARGETS
    else:
        from tests.attacks.targets import TARGETS
    import torch

    torch.set_num_threads(1)
    run = Runner(TARGETS[name], folder, found)
    _bound_memory()
    ENGINES[engine](run, seconds, number)


def chunk(engine: str, name: str, found: Path, seconds: float, number: int) -> Tally:
    """Some seconds of inputs in a process of their own."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        line = [sys.executable, "-m", __spec__.name, "--engine", engine, "--found", str(found)]
        line += ["--work", name, scratch, str(seconds), str(number)]
        ended = subprocess.run(line, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        report = folder / "tally.json"
        tally = Tally(**json.loads(report.read_text())) if report.exists() else Tally()
        if ended.returncode:
            last = folder / "in" / name
            what = f"the process ended with {ended.returncode}: {ended.stderr.strip()[-200:]}"
            keep(found, name, last.read_bytes() if last.exists() else b"", what)
            tally.defects[what] = 1
        return tally


def fuzz(engine: str, names: list[str], seconds: float, found: Path) -> None:
    """Chunk after chunk; the target with the fewest seconds of work is next."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        results = load()
        tallies = {name: Tally(**results["targets"].get(name, {}).get(engine, {})) for name in names}
        name = min(names, key=lambda one: tallies[one].seconds)
        tally, given = tallies[name], min(_CHUNK, until - time.monotonic() + 1)
        done = chunk(engine, name, found, given, tally.inputs)
        done.seconds = given
        tally.add(done)
        results["targets"].setdefault(name, {})[engine] = asdict(tally)
        save(results)
        sys.stdout.write(f"{name}: {done.inputs:,} inputs, {len(done.defects)} kinds of defects\n")
        sys.stdout.flush()


def load() -> dict[str, Any]:
    """The results so far."""
    found: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"targets": {}}
    return found


def save(results: dict[str, Any]) -> None:
    """Write them, with the sum."""
    both = [tally for engines in results["targets"].values() for tally in engines.values()]
    total = {name: sum(tally[name] for tally in both) for name in ("inputs", "read", "refused")}
    total["defects"] = sum(sum(tally["defects"].values()) for tally in both)
    command = "python -m tests.attacks.fuzz --seconds 600 [--engine atheris]"
    content = {"command": command, "total": total, "targets": dict(sorted(results["targets"].items()))}
    temporary = RESULTS.with_suffix(".tmp")
    temporary.write_text(json.dumps(content, indent=1) + "\n")
    temporary.replace(RESULTS)


def main() -> None:
    """Read the arguments and fuzz."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=ENGINES, default="hypothesis")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--found", type=Path, default=Path(tempfile.gettempdir()) / "punce-fuzz")
    parser.add_argument("--work", nargs=4, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.work:
        name, folder, seconds, number = asked.work
        work(asked.engine, name, Path(folder), asked.found, float(seconds), int(number))
        return
    from tests.attacks.targets import TARGETS

    fuzz(asked.engine, asked.only or list(TARGETS), asked.seconds, asked.found.absolute())


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"
    main()
