"""Time and memory of ``punce fit`` on a quiet and on a busy machine, and of commands that only answer.

    python benchmarks/busy.py            # the table and benchmarks/results/busy.json (about a quarter of an hour)
    python benchmarks/busy.py --quick    # small tables, to see that it works; writes nothing

Every fit is a process of its own, from command to page. The same table is fitted alone, two and four times at once,
beside a process that spins, beside another OpenMP job, under a one-CPU affinity and under a one-CPU quota (a cgroup,
which needs root; said to be unmeasured where it cannot be made). Run it on cores that do nothing else.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from machine import save

_PUNCE = [sys.executable, "-m", "punce"]
_SPIN = [sys.executable, "-c", "while True: pass"]
# Many short parallel loops: what spins against others when every job starts a thread per core.
_OPENMP_JOB = """
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
x = np.random.default_rng(0).normal(size=(3000, 9))
while True:
    HistGradientBoostingClassifier(max_iter=50).fit(x, x[:, 0] > 0)
"""
_CGROUP_V1, _CGROUP_V2 = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")


def table(path: Path, rows: int, columns: int, labelled: float = 0.4) -> Path:
    """A third of the rows is positive; a share of those is labelled."""
    rng = np.random.default_rng(0)
    y = rng.random(rows) < 0.3
    x = rng.normal(size=(rows, columns))
    x[y, : min(columns, 5)] += 1.2
    frame = pd.DataFrame(x.round(4), columns=[f"f{k}" for k in range(columns)])
    frame.insert(0, "label", (y & (rng.random(rows) < labelled)).astype(int))
    frame.to_csv(path, index=False)
    return path


def start(data: Path, out: Path, before: Callable[[], None] | None = None) -> subprocess.Popen[bytes]:
    shutil.rmtree(out, ignore_errors=True)
    command = [*_PUNCE, "fit", str(data), "--label", "label", "--out", str(out)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=before)


def fits(data: Path, work: Path, count: int = 1, before: Callable[[], None] | None = None) -> dict[str, Any]:
    """`count` fits at once: seconds of the slowest, CPU seconds and peak memory of one."""
    began = time.monotonic()
    running = [start(data, work / f"run-{k}", before) for k in range(count)]
    seconds, usage = [], []
    for process in running:
        assert process.stderr is not None
        said = process.stderr.read().decode()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)  # so that Popen does not wait for it again
        if process.returncode:
            raise SystemExit(f"punce fit ended with {process.returncode}: {said[-500:]}")
        seconds.append(time.monotonic() - began)
        usage.append(used)
    return {
        "fits": count,
        "seconds": round(max(seconds), 2),
        "cpu_seconds": round(max(used.ru_utime + used.ru_stime for used in usage), 2),
        "peak_gb": round(max(used.ru_maxrss for used in usage) * 1024 / 1e9, 2),
        "said_progress": "left" in said,
    }


@contextlib.contextmanager
def beside(command: list[str]) -> Iterator[None]:
    process = subprocess.Popen(command)
    time.sleep(5.0)  # until it has imported what it needs
    try:
        yield
    finally:
        process.kill()
        process.wait()


def one_cpu() -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


@contextlib.contextmanager
def one_cpu_quota() -> Iterator[Callable[[], None]]:
    """A cgroup with the time of one CPU; gives what a child calls to enter it. OSError where that is not allowed."""
    version_2 = (_CGROUP_V2 / "cgroup.controllers").exists()
    group = (_CGROUP_V2 if version_2 else _CGROUP_V1) / f"punce-busy-{os.getpid()}"
    group.mkdir()
    try:
        if version_2:
            (group / "cpu.max").write_text("100000 100000")
        else:
            (group / "cpu.cfs_period_us").write_text("100000")
            (group / "cpu.cfs_quota_us").write_text("100000")
        yield lambda: (group / "cgroup.procs").write_text(str(os.getpid())) and None
    finally:
        group.rmdir()


def answers(data: Path, rounds: int) -> dict[str, float]:
    """Seconds until a command that trains nothing has answered, the best of some rounds."""
    commands = {
        "--help": ["--help"],
        "wrong file name": ["fit", "nowhere.csv", "--label", "label"],
        "bad option": ["fit", str(data), "--label", "label", "--loss", "nonsense"],
        "dry run": ["fit", str(data), "--label", "label", "--dry-run"],
    }
    best = {}
    for name, arguments in commands.items():
        times = []
        for _ in range(rounds):
            began = time.monotonic()
            subprocess.run([*_PUNCE, *arguments], capture_output=True, check=False, cwd=data.parent)
            times.append(time.monotonic() - began)
        best[name] = round(min(times), 2)
    return best


def small_fits(data: Path, work: Path, rounds: int) -> dict[str, Any]:
    """The same fit in every kind of company; seconds are the median of the rounds."""

    def repeated(count: int = 1, before: Callable[[], None] | None = None) -> dict[str, Any]:
        found = sorted((fits(data, work, count, before) for _ in range(rounds)), key=lambda one: one["seconds"])
        return found[len(found) // 2]

    results = {"alone": repeated(), "two at once": repeated(2), "four at once": repeated(4)}
    with beside(_SPIN):
        results["beside a spinning process"] = repeated()
    with beside([sys.executable, "-c", _OPENMP_JOB]):
        results["beside an OpenMP job"] = repeated()
    results["one CPU by affinity"] = repeated(before=one_cpu)
    try:
        with one_cpu_quota() as enter:
            results["one CPU by quota"] = repeated(before=enter)
    except OSError as error:
        results["one CPU by quota"] = {"not measured": str(error)}
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small tables; nothing is written")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    small, wide, long = (
        ((200, 5), (60, 1200), (60_000, 3)) if options.quick else ((3000, 10), (400, 10_000), (10**6, 5))
    )
    rounds = 1 if options.quick else options.rounds
    os.environ.pop("OMP_NUM_THREADS", None)  # as a user starts it
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        data = table(work / "small.csv", *small)
        result: dict[str, Any] = {"answers_seconds": answers(data, rounds)}
        result["small"] = {"rows": small[0], "columns": small[1], "rounds": rounds, **small_fits(data, work, rounds)}
        for kind, size, labelled in (("wide", wide, 0.4), ("long", long, 0.05)):
            big = table(work / f"{kind}.csv", *size, labelled)
            result[kind] = {"rows": size[0], "columns": size[1], **fits(big, work)}
    result["load_average"] = os.getloadavg()
    print(json.dumps(result, indent=1))
    if not options.quick:
        print(save("busy", result))


if __name__ == "__main__":
    main()
