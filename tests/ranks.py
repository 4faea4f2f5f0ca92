"""Run a function on several real processes joined by gloo on the loopback interface, with bounded time.

A test names a module-level function ``f(rank, world) -> dict[str, Tensor]``; every rank writes its result to a file.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
from safetensors.torch import load_file, save_file
from torch import Tensor

from punce.training import collectives
from tests.copies import Call, run_copies

RankFunction = Callable[[int, int], dict[str, Tensor]]


def run_ranks(world: int, function: RankFunction, folder: Path, timeout: float = 90.0) -> list[dict[str, Tensor]]:
    """What `function` returned on each of `world` ranks; fails with their output if one of them does."""
    name = [function.__module__, function.__qualname__]
    calls = [Call(__name__, "rank_main", [*name, rank, world, str(folder)]) for rank in range(world)]
    failed = [done.stdout + done.stderr for done in run_copies(calls, timeout=timeout) if done.returncode != 0]
    assert not failed, "\n".join(failed)
    return [load_file(folder / f"{rank}.safetensors") for rank in range(world)]


def rank_main(module: str, function: str, rank: int, world: int, folder: str) -> None:
    """What each process runs."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=world)
    result: dict[str, Tensor] = getattr(importlib.import_module(module), function)(rank, world)
    file = Path(folder) / f"{rank}.safetensors"
    save_file({key: value.detach().contiguous() for key, value in result.items()}, file)
    dist.barrier()
    collectives.leave()
