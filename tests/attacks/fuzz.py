"""Fuzz every reader and the model loader; counts go to benchmarks/results/fuzz.json.

    python -m tests.attacks.fuzz --seconds 600                      # hypothesis, those with the least time so far first
    python -m tests.attacks.fuzz --seconds 600 --engine atheris     # guided by coverage; needs the package atheris
    python -m tests.attacks.fuzz --only t.csv model --seconds 60 --found found

An input must be read or refused with one line for a person. Anything else is a defect: its input is kept in --found,
and goes to tests/attacks/corpus once it is mended. Each chunk runs in a process of its own with bounded memory and time
for each input, so that a crash of the interpreter is counted too. These processes are copies of one that has imported
everything, because importing takes as long as thousands of inputs.

Repeated calls add to the counts of the same code: a tally names the last commit that changed `src`. One of another
commit is begun anew, not added to.
"""

from __future__ import annotations

import argparse
import gc
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
MOST_INPUTS = 20_000  # of one process: MEMORY bounds addresses, of which Arrow's allocator takes some with every input
_COPIES = 40
_PATIENCE = 300.0  # seconds beyond those of a chunk: good files are made first, and the machine may be busy


@dataclass
class Tally:
    """What happened to the inputs of one target; `grown_mb` is by how much the memory of the process grew at most."""

    code: str = ""
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
        self.seeds = target.seeds(folder)  # before memory is bounded: some are models that are fitted now
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

    until = time.monotonic() + seconds
    rng = random.Random(number)
    options: dict[str, Any] = {"database": None, "deadline": None, "phases": [Phase.generate]}
    options["suppress_health_check"] = list(HealthCheck)

    def one(content: bytes) -> None:
        run(content)
        for _ in range(_COPIES if time.monotonic() < until else 0):
            run(spoilt(content, rng))

    while time.monotonic() < until and run.tally.inputs < MOST_INPUTS:
        inner = settings(max_examples=200, **options)(given(changed(run.seeds, run.target.words))(one))
        with_seed(number)(inner)()
        number += 1
    run.save()


def by_atheris(run: Runner, seconds: float, number: int) -> None:
    """Inputs that reach new code; the process ends in here."""
    import atheris

    corpus = run.path.parent.parent / "corpus"
    corpus.mkdir()
    for k, content in enumerate(run.seeds):
        (corpus / f"seed-{k}").write_bytes(content)
    options = [f"-max_total_time={int(seconds)}", f"-seed={number + 1}", "-max_len=300000", "-rss_limit_mb=0"]
    atheris.Setup([sys.argv[0], *options, "-verbosity=0", "-print_final_stats=0", str(corpus)], run)
    atheris.Fuzz()


ENGINES: dict[str, Callable[[Runner, float, int], None]] = {"hypothesis": by_hypothesis, "atheris": by_atheris}


def targets(engine: str) -> dict[str, Any]:
    """Every target by its name; for atheris the package is imported with what tells it which code was reached."""
    if engine != "atheris":
        from tests.attacks.targets import TARGETS

        return TARGETS
    import atheris

    with atheris.instrument_imports(include=["punce"]):
        from tests.attacks.targets import TARGETS
    return TARGETS


def work(engine: str, name: str, folder: str, found: str, seconds: float, number: int) -> None:
    """What the process of one chunk does."""
    import torch

    torch.set_num_threads(1)
    tempfile.tempdir = folder  # which is removed however this process ends
    run = Runner(targets(engine)[name], Path(folder), Path(found))
    _bound_memory()
    ENGINES[engine](run, seconds, number)


def chunk(engine: str, name: str, found: Path, seconds: float, number: int) -> Tally:
    """Some seconds of inputs in a process of their own."""
    from tests.copies import Call, start_copy

    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        call = Call("tests.attacks.fuzz", "work", [engine, name, scratch, str(found), seconds, number])
        code, _, said = start_copy(call, str(ROOT), {}).ended(seconds + _PATIENCE)
        report = folder / "tally.json"
        tally = Tally(**json.loads(report.read_text())) if report.exists() else Tally()
        if code:
            last = folder / "in" / name
            what = f"the process ended with {code}: {said.strip()[-200:]}"
            keep(found, name, last.read_bytes() if last.exists() else b"", what)
            tally.defects[what] = 1
        return tally


def state() -> str:
    """The last commit that changed the package; a plus says that there are changes besides."""
    commit, changed = _git("log", "-1", "--format=%h", "--", "src"), _git("status", "--porcelain", "--", "src")
    return commit + ("+" if changed else "")


def _git(*arguments: str) -> str:
    line = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(line, capture_output=True, text=True, check=True).stdout.strip()


def tally_of(results: dict[str, Any], name: str, engine: str, code: str) -> Tally:
    """What was counted before with this code; a new tally if it was another."""
    kept = Tally(**results["targets"].get(name, {}).get(engine, {}))
    return kept if kept.code == code else Tally(code)


def fuzz(engine: str, names: list[str], seconds: float, found: Path, each: float) -> None:
    """Chunk after chunk; the target with the fewest seconds of work is next."""
    until, code = time.monotonic() + seconds, state()
    while time.monotonic() < until:
        results = load()
        tallies = {name: tally_of(results, name, engine, code) for name in names}
        name = min(names, key=lambda one: tallies[one].seconds)
        tally, given = tallies[name], min(each, until - time.monotonic() + 1)
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
    total["forms"] = len(results["targets"])
    command = "python -m tests.attacks.fuzz --seconds 600 [--engine atheris]"
    kept = {name: results[name] for name in ("earlier",) if name in results}  # of code before the last mends
    content = {"command": command, "total": total, "targets": dict(sorted(results["targets"].items())), **kept}
    temporary = RESULTS.with_suffix(".tmp")
    temporary.write_text(json.dumps(content, indent=1) + "\n")
    temporary.replace(RESULTS)


def main() -> None:
    """Read the arguments and fuzz."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=ENGINES, default="hypothesis")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--each", type=float, default=30.0, help="seconds of one target at a time")
    parser.add_argument("--found", type=Path, default=Path(tempfile.gettempdir()) / "punce-fuzz")
    asked = parser.parse_args()
    every, found = targets(asked.engine), asked.found.absolute()
    gc.freeze()  # copies share what was imported; a collection would touch, and so copy, all of it
    fuzz(asked.engine, asked.only or list(every), asked.seconds, found, asked.each)


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"
    main()
