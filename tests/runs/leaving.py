"""A rank that ends while gloo still works, for the test of how ranks leave.

    RANK=0 WORLD_SIZE=2 MASTER_ADDR=... MASTER_PORT=... python -m tests.runs.leaving joined [--error|--terminated]

Hundreds of small sums are under way when the script ends. Their tensors belong to gloo's threads alone, which need the
interpreter to free them. With "forgotten" instead of "joined" the group is never left, and the process often aborted.
"""

from __future__ import annotations

import atexit
import sys
import time
from contextlib import suppress
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from punce.training import collectives
from punce.training.run import EXIT_TERMINATED

SUMS = 400


class PlannedError(Exception):
    """What the script is asked to fail with."""


def work() -> None:
    model = DistributedDataParallel(nn.Linear(4, 1))
    model.myself = [model]  # freed by the garbage collector only, as many a real model
    model(torch.ones(3, 4)).sum().backward()
    for _ in range(SUMS):
        dist.all_reduce(torch.ones(1000), async_op=True)
    if "--error" in sys.argv:
        raise PlannedError
    if "--terminated" in sys.argv:
        raise SystemExit(EXIT_TERMINATED)


def gloo_threads() -> list[str]:
    """Threads of this process that gloo made (on Linux, where they have names)."""
    names = []
    for path in Path("/proc/self/task").glob("*/comm"):
        with suppress(OSError):  # it ended meanwhile
            names.append(path.read_text().strip())
    return [name for name in names if "gloo" in name]


def gloo_threads_left() -> list[str]:
    """Those that stay: the kernel lists a thread for a moment longer than it can be waited for."""
    until = time.monotonic() + 2.0
    while gloo_threads() and time.monotonic() < until:
        time.sleep(0.01)
    return gloo_threads()


def main() -> None:
    torch.set_num_threads(1)
    if sys.argv[1] == "forgotten":
        collectives.init_from_environment(timeout=60)
        atexit.unregister(collectives.leave)
        work()
        return
    try:
        with collectives.joined(timeout=60):
            assert gloo_threads()
            work()
    finally:
        sys.stdout.write(f"threads left: {gloo_threads_left()}\n")


if __name__ == "__main__":
    main()
