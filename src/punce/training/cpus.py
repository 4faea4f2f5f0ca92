"""How many CPUs this process may use, and thread pools limited to what the work is worth.

OpenMP starts one thread per CPU of the machine. In a container with a quota, or beside another job, these threads spin
while they wait for each other: two fits of a small table at once took six times as long as one after the other.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

_CGROUPS = Path("/sys/fs/cgroup")
_OWN_CGROUP = Path("/proc/self/cgroup")
_SMALL = 1_000_000  # cells of a table; below this a second thread costs more than it saves


def usable_cpus(cgroups: Path = _CGROUPS, own_cgroup: Path = _OWN_CGROUP) -> int:
    """The least of the scheduler's affinity, the cgroup's quota and OMP_NUM_THREADS; at least 1."""
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limits = [affinity, _quota(cgroups, own_cgroup), _omp_num_threads()]
    return max(1, min(limit for limit in limits if limit is not None))


def threads_for(cells: int) -> int:
    """One thread for small tables, all usable CPUs for large ones."""
    return usable_cpus() if cells > _SMALL else 1


@contextmanager
def limited_threads(count: int) -> Iterator[None]:
    """Inside, OpenMP, BLAS and torch use at most `count` threads; afterwards what they used before."""
    torch = sys.modules.get("torch")  # who has not imported torch has no torch threads to limit
    before = torch.get_num_threads() if torch else count
    with _thread_pools(len(sys.modules)).limit(limits=count):
        try:
            if torch:
                torch.set_num_threads(count)
            yield
        finally:
            if torch:
                torch.set_num_threads(before)


@lru_cache(maxsize=1)
def _thread_pools(n_modules: int) -> Any:
    """The pools of this process. To find them takes 3 ms; new ones only come with new modules."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _quota(cgroups: Path, own: Path) -> int | None:
    """CPUs that the process's cgroups grant, rounded up; None without a quota. An outer group limits its inner ones."""
    paths = {kinds: Path(path.lstrip("/")) for _, kinds, path in _lines(own)}
    # Version 2 has an empty list of controllers, version 1 one line for each group of them.
    v1 = next((path for kinds, path in paths.items() if "cpu" in kinds.split(",")), Path())
    # Version 2 has one file with both numbers, version 1 has two files. A container may see its own group as the root.
    found = [_read(cgroups / folder / "cpu.max").split() for folder in _with_parents(paths.get("", Path()))]
    found += [
        [_read(cgroups / "cpu" / folder / f"cpu.cfs_{part}_us") for part in ("quota", "period")]
        for folder in _with_parents(v1)
    ]
    # "max", -1 and a missing file all mean: no quota
    granted = [int(two[0]) / int(two[1]) for two in found if len(two) == 2 and all(map(str.isdecimal, two))]
    return math.ceil(min(granted)) if granted else None


def _lines(own: Path) -> list[list[str]]:
    """Lines "4:cpu,cpuacct:/group" of /proc/self/cgroup in their three parts."""
    return [parts for line in _read(own).splitlines() if len(parts := line.split(":", 2)) == 3]


def _with_parents(folder: Path) -> list[Path]:
    return [folder, *folder.parents]


def _omp_num_threads() -> int | None:
    """The first number of OMP_NUM_THREADS, which may be a list with one entry per nesting level."""
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(first) if first.isdecimal() and int(first) > 0 else None


def _read(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""
