"""Run a function on several real processes joined by gloo on the loopback interface, with bounded time.

A test names a module-level function ``f(rank, world) -> dict[str, Tensor]``; every rank writes its result to a file.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.nn.functional  # imported after the group was made it would keep it: see collectives.leave
from safetensors.torch import load_file, save_file
from torch import Tensor

import punce
from punce.training import collectives

ROOT = Path(__file__).resolve().parent.parent
RankFunction = Callable[[int, int], dict[str, Tensor]]


def run_ranks(world: int, function: RankFunction, folder: Path, timeout: float = 90.0) -> list[dict[str, Tensor]]:
    """What `function` returned on each of `world` ranks; fails with their output if one of them does."""
    name = f"{function.__module__}:{function.__qualname__}"
    package = Path(punce.__file__).resolve().parents[1]  # the one under test, whichever is installed
    path = os.pathsep.join([str(ROOT), str(package)])
    env = os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "PYTHONPATH": path}
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.ranks", name, str(rank), str(world), str(folder)],
            env=env,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(world)
    ]
    try:
        outputs = [process.communicate(timeout=timeout)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    failed = [out for process, out in zip(processes, outputs, strict=True) if process.returncode != 0]
    assert not failed, "\n".join(failed)
    return [load_file(folder / f"{rank}.safetensors") for rank in range(world)]


def _main(name: str, rank: int, world: int, folder: Path) -> None:
    torch.set_num_threads(1)
    module, function = name.split(":")
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=world)
    result: dict[str, Tensor] = getattr(importlib.import_module(module), function)(rank, world)
    save_file({key: value.detach().contiguous() for key, value in result.items()}, folder / f"{rank}.safetensors")
    dist.barrier()
    collectives.leave()


if __name__ == "__main__":
    _main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
