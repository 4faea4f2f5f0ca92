"""Break the code on purpose, one place at a time: the tests must notice every break.

    make mutants                                   # all of tests/mutants.toml, about a quarter of an hour
    python -m tests.mutants --only losses --jobs 2

Each break is applied to a copy of `src`, and the default tests named beside it run against that copy. A break that no
test notices ("survived") means that a test is missing. The list and its outcome go to benchmarks/results/mutants.json.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "benchmarks" / "results" / "mutants.json"
_SECONDS = 600  # a break may also make a loop endless; that counts as noticed


@dataclass(frozen=True)
class Mutant:
    """One break: in `file`, `old` (which stands there exactly once) becomes `new`; `tests` should notice."""

    file: str
    old: str
    new: str
    breaks: str
    tests: list[str]

    def apply(self, src: Path) -> None:
        """Write the broken file below a copy of `src`."""
        path = src / self.file
        text = path.read_text()
        if (count := text.count(self.old)) != 1:
            raise SystemExit(f"{self.file}: {self.old!r} stands there {count} times, not once; mend tests/mutants.toml")
        path.write_text(text.replace(self.old, self.new))


def mutants(only: str = "") -> list[Mutant]:
    """The list, or those whose file or description contains `only`."""
    with Path(__file__).with_suffix(".toml").open("rb") as file:
        listed = [Mutant(**entry) for entry in tomllib.load(file)["mutant"]]
    return [mutant for mutant in listed if only in f"{mutant.file} {mutant.breaks}"]


@contextmanager
def copy_of_src(mutant: Mutant | None) -> Iterator[Path]:
    """A copy of `src` with the break in it."""
    with tempfile.TemporaryDirectory(prefix="punce-mutant-") as folder:
        src = Path(folder) / "src"
        shutil.copytree(ROOT / "src", src, ignore=shutil.ignore_patterns("__pycache__"))
        if mutant is not None:
            mutant.apply(src)
        yield src


def run_tests(mutant: Mutant, *, broken: bool) -> bool:
    """Whether the mutant's tests pass, with the break or without."""
    with copy_of_src(mutant if broken else None) as src:
        environment = {**os.environ, "PYTHONPATH": str(src), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *mutant.tests]
        try:
            done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            return False
    if done.returncode not in (0, 1):  # 1: tests ran and some failed; 2 is also an import that no longer works
        if done.returncode == 2 and "error" in done.stdout.lower():
            return False
        raise SystemExit(f"pytest could not run {mutant.tests}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.returncode == 0


def main() -> int:
    """Run all and tell which survived."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="part of the file's name or of the description")
    parser.add_argument("--jobs", type=int, default=2)
    chosen = mutants((arguments := parser.parse_args()).only)
    named = sorted({test for mutant in chosen for test in mutant.tests})
    if not run_tests(Mutant("", "", "", "nothing", named), broken=False):
        raise SystemExit("the named tests fail without any break: mend that first")
    with ThreadPoolExecutor(arguments.jobs) as pool:
        outcomes = list(pool.map(_noticed, chosen))
    rows = [
        {"file": mutant.file, "breaks": mutant.breaks, "noticed": noticed, "tests": mutant.tests}
        for mutant, noticed in zip(chosen, outcomes, strict=True)
    ]
    if not arguments.only:
        RESULT.write_text(json.dumps({"command": "make mutants", "mutants": rows}, indent=1) + "\n")
    survived = [row for row in rows if not row["noticed"]]
    sys.stdout.write(f"{len(rows) - len(survived)} of {len(rows)} breaks were noticed\n")
    return 1 if survived else 0


def _noticed(mutant: Mutant) -> bool:
    noticed = not run_tests(mutant, broken=True)
    sys.stdout.write(f"{'noticed ' if noticed else 'SURVIVED'}  {mutant.file}: {mutant.breaks}\n")
    sys.stdout.flush()
    return noticed


if __name__ == "__main__":
    sys.exit(main())
