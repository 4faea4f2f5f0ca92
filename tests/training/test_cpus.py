from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
from threadpoolctl import threadpool_info

from punce.training.cpus import limited_threads, threads_for, usable_cpus


@pytest.fixture(autouse=True)
def _eight_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)


def _cpus(folder: Path, files: dict[str, str], own: str = "") -> int:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "own").write_text(own)
    return usable_cpus(folder, folder / "own")


@pytest.mark.parametrize(
    ("files", "own", "expected"),
    [
        ({}, "", 8),
        ({"cpu.max": "max 100000\n"}, "0::/\n", 8),
        ({"cpu.max": "150000 100000\n"}, "0::/\n", 2),
        ({"cpu.max": "max 100000\n", "jobs/one/cpu.max": "100000 100000\n"}, "0::/jobs/one\n", 1),
        ({"jobs/cpu.max": "300000 100000", "jobs/one/cpu.max": "max 100000"}, "0::/jobs/one\n", 3),
        ({"cpu.max": "400000 100000"}, "0::/not/seen/from/the/container\n", 4),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, "1:cpu,cpuacct:/\n", 8),
        ({"cpu/a/cpu.cfs_quota_us": "50000\n", "cpu/a/cpu.cfs_period_us": "100000\n"}, "1:cpu:/a\n", 1),
    ],
)
def test_the_quota_of_either_version_counts(files: dict[str, str], own: str, expected: int, tmp_path: Path) -> None:
    assert _cpus(tmp_path, files, own) == expected


@pytest.mark.parametrize(("set_to", "expected"), [("3", 3), ("2,1", 2), ("", 8), ("zero", 8), ("64", 8)])
def test_omp_num_threads_counts(set_to: str, expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", set_to)
    assert _cpus(tmp_path, {}) == expected


def test_small_work_gets_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    assert threads_for(3000 * 10) == 1
    assert threads_for(10**8) == usable_cpus()


def test_threads_are_limited_inside_and_as_before_outside() -> None:
    def counts() -> list[int]:
        return [torch.get_num_threads(), *(pool["num_threads"] for pool in threadpool_info())]

    with limited_threads(2):
        before = counts()
        with limited_threads(1):
            assert set(counts()) == {1}
        assert counts() == before
        assert torch.get_num_threads() == 2
