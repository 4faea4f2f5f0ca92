"""Time and extra peak memory of the contrastive loss, forward and backward, against other implementations.

    pip install --no-deps -r benchmarks/requirements-peers.txt
    python benchmarks/loss_speed.py                       # the table and benchmarks/results/loss_speed.json
    python benchmarks/loss_speed.py --sizes 2048 4096
    python benchmarks/loss_speed.py --sizes 8192 32768 --out loss_speed_large      # results/loss_speed_large.json
    python benchmarks/loss_speed.py --sizes 2048 4096 8192 16384 --rounds 5 --out loss_speed_amd   # on a CPU of AMD

All implementations see the same unit rows (d = 128, temperature 0.5). Times are the best of interleaved rounds in one
process, so that a slow moment of the machine hits all alike; memory is measured in a process of its own for each.
Only ratios within one run mean anything. An implementation that would need more memory than there is, as its need at
the size before says (it grows with the square), is left out and has no time.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from machine import save
from torch import Tensor

from punce.encoders.precision import has_bfloat16
from punce.losses import InfoNCE, PuNCE
from punce.training.products import fast_products

D, TEMPERATURE, PRIOR = 128, 0.5, 0.4
SIZES = [2048, 4096, 8192, 16384]
MEMORY_ONLY_SIZES = [32768, 65536]
Implementation = Callable[[Tensor, Tensor], Tensor]  # z (2, b, d), labels (b,) -> loss


def ours_infonce(z: Tensor, labels: Tensor) -> Tensor:
    return InfoNCE(TEMPERATURE)(z, labels)


def ours_punce(z: Tensor, labels: Tensor) -> Tensor:
    return PuNCE(PRIOR, TEMPERATURE)(z, labels)


def plain_masked_supcon(z: Tensor, labels: Tensor) -> Tensor:
    """The usual way: full similarity matrix, a mask of partners, exp, sums (labelled rows share a class)."""
    views = F.normalize(z.flatten(0, 1), dim=1)
    n, b = len(views), z.shape[1]
    group = torch.where(labels == 1, -1, torch.arange(b)).repeat(2)
    same = (group[:, None] == group[None, :]).float()
    others = 1 - torch.eye(n)
    same = same * others
    logits = views @ views.T / TEMPERATURE
    logits = logits - logits.max(1, keepdim=True).values.detach()
    log_p = logits - torch.log((logits.exp() * others).sum(1, keepdim=True))
    return -((same * log_p).sum(1) / same.sum(1)).mean()


def cross_entropy(z: Tensor, labels: Tensor) -> Tensor:
    """InfoNCE through F.cross_entropy on the similarity matrix."""
    views = F.normalize(z.flatten(0, 1), dim=1)
    n, b = len(views), z.shape[1]
    logits = (views @ views.T / TEMPERATURE).fill_diagonal_(-math.inf)
    return F.cross_entropy(logits, (torch.arange(n) + b) % n)


def metric_learning_supcon() -> Implementation:
    from pytorch_metric_learning.losses import SupConLoss

    loss = SupConLoss(temperature=TEMPERATURE)

    def supcon(z: Tensor, labels: Tensor) -> Tensor:
        b = z.shape[1]
        group = torch.where(labels == 1, b, torch.arange(b)).repeat(2)
        return loss(z.flatten(0, 1), group)

    return supcon


def lightly_ntxent() -> Implementation:
    from lightly_loss import ntxent

    loss = ntxent(TEMPERATURE)
    return lambda z, labels: loss(z[0], z[1])


IMPLEMENTATIONS: dict[str, Callable[[], Implementation]] = {
    "punce InfoNCE": lambda: ours_infonce,
    "punce PuNCE": lambda: ours_punce,
    "plain masked SupCon": lambda: plain_masked_supcon,
    "F.cross_entropy": lambda: cross_entropy,
    "torch.compile(F.cross_entropy)": lambda: torch.compile(cross_entropy),
    "pytorch-metric-learning SupConLoss": metric_learning_supcon,
    "lightly NTXentLoss": lightly_ntxent,
}


def batch(n_views: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(2, n_views // 2, D, generator=generator, requires_grad=True)
    return z, (torch.rand(n_views // 2, generator=generator) < 0.02).long()


def step(implementation: Implementation, z: Tensor, labels: Tensor) -> None:
    z.grad = None
    implementation(z, labels).backward()  # type: ignore[no-untyped-call]


def interleaved_times(n_views: int, rounds: int, names: Sequence[str]) -> dict[str, float]:
    """Best seconds of each implementation over `rounds` rounds in which every one has its turn."""
    z, labels = batch(n_views)
    ready = {name: IMPLEMENTATIONS[name]() for name in names}
    best = dict.fromkeys(ready, math.inf)
    for round_ in range(rounds + 1):
        for name, implementation in ready.items():
            start = time.perf_counter()
            step(implementation, z, labels)
            if round_ > 0:  # the first round warms up and compiles
                best[name] = min(best[name], time.perf_counter() - start)
    return best


def that_fit(n_views: int, memory: dict[int, dict[str, float]]) -> list[str]:
    """The implementations that have the memory for so many views, as far as a smaller size tells."""
    smaller = [n for n in memory if n < n_views]
    if not smaller:
        return list(IMPLEMENTATIONS)
    before, most = max(smaller), 0.8 * _meminfo("MemAvailable") / 1024
    grown = {name: megabytes * (n_views / before) ** 2 for name, megabytes in memory[before].items()}
    return [name for name in IMPLEMENTATIONS if name.startswith("punce") or grown.get(name, math.inf) < most]


def _meminfo(field: str) -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field))


def extra_memory(name: str, n_views: int) -> float:
    """MB above the level before the step, at the highest point of a step; in a process of its own."""
    command = [sys.executable, __file__, "--memory-of", name, "--sizes", str(n_views)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    return float(done.stdout.split()[-1]) if done.returncode == 0 else math.nan


def print_extra_memory(name: str, n_views: int) -> None:
    implementation = IMPLEMENTATIONS[name]()
    z, labels = batch(n_views)
    step(implementation, *batch(256))
    if "compile" in name:
        step(implementation, z, labels)
    z.grad = torch.zeros_like(z)  # the gradient itself is not extra
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # reset the high-water mark
    before = _status("VmRSS")
    implementation(z, labels).backward()  # type: ignore[no-untyped-call]
    print((_status("VmHWM") - before) / 1024)


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1])
    raise OSError(f"{field} is not in /proc/self/status: memory can be measured on Linux only")


def limits(n_views: int) -> dict[str, float]:
    """What the arithmetic alone costs here: the GEMMs and the exponentials of one forward and backward pass.

    The GEMMs as the loss computes them, as torch does by itself, and in bfloat16 with the largest error of a similarity
    that its rounding causes.
    """
    tile = 1024
    a, out = F.normalize(torch.randn(tile, D), dim=1), torch.empty(tile, tile)
    half, half_out = a.bfloat16(), out.bfloat16()
    torch_gemm, exp = _best(lambda: torch.mm(a, a.T, out=out)), _best(lambda: torch.exp(out, out=out.clone()))
    with fast_products():
        gemm = _best(lambda: torch.mm(a, a.T, out=out))
    half_gemm = _best(lambda: torch.mm(half, half.T, out=half_out))
    tiles = (n_views / tile) ** 2
    return {
        "gemm_seconds": 2.0 * tiles * gemm,
        "torch_gemm_seconds": 2.0 * tiles * torch_gemm,
        "exp_seconds": 1.0 * tiles * exp,
        "bfloat16_gemm_seconds": 2.0 * tiles * half_gemm,
        "bfloat16_largest_error": float((half_out.float() - a @ a.T).abs().max()),
        "cpu_has_bfloat16": float(has_bfloat16()),
    }


def _best(f: Callable[[], Any], rounds: int = 20) -> float:
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        f()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def goals(times: dict[int, dict[str, float]], memory: dict[int, dict[str, float]]) -> dict[str, Any]:
    ours, at = "punce PuNCE", 8192
    rivals = ["plain masked SupCon", "pytorch-metric-learning SupConLoss"]
    result: dict[str, Any] = {}
    if at in times:
        result["times faster at 8192"] = {r: times[at][r] / times[at][ours] for r in rivals}
        result["share of their memory at 8192"] = {r: memory[at][ours] / memory[at][r] for r in rivals}
    if 65536 in memory:
        result["MB at 65536 views"] = memory[65536][ours]
    sizes = sorted(memory)
    result["memory growth when views double"] = {
        str(b): memory[b][ours] / memory[a][ours] for a, b in pairwise(sizes) if b == 2 * a
    }
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of views")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", help="name of the result file; by default only a run of all sizes is saved")
    parser.add_argument("--memory-of", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory_of:
        print_extra_memory(arguments.memory_of, arguments.sizes[0])
        return
    times: dict[int, dict[str, float]] = {}
    memory: dict[int, dict[str, float]] = {}
    for n in arguments.sizes:
        names = that_fit(n, memory)
        times[n] = interleaved_times(n, arguments.rounds, names)
        memory[n] = {name: extra_memory(name, n) for name in names}
        _print_table(n, times[n], memory[n])
    if arguments.sizes == SIZES:
        for n in MEMORY_ONLY_SIZES:
            memory[n] = {name: extra_memory(name, n) for name in ("punce InfoNCE", "punce PuNCE")}
            print(f"{n} views: extra memory {memory[n]['punce PuNCE']:.0f} MB")
    result = {
        "setting": {"d": D, "temperature": TEMPERATURE, "forward_and_backward": True, "rounds": arguments.rounds},
        "seconds": times,
        "extra_memory_mb": memory,
        "arithmetic_limit": {n: limits(n) for n in arguments.sizes},
        "goals": goals(times, memory),
    }
    print(json.dumps(result["goals"], indent=1))
    if arguments.out or arguments.sizes == SIZES:
        print("saved", save(arguments.out or "loss_speed", result).name)


def _print_table(n: int, seconds: dict[str, float], megabytes: dict[str, float]) -> None:
    print(f"\n{n} views{'':30}      ms   × ours       MB")
    for name in seconds:
        ratio = seconds[name] / seconds["punce PuNCE"]
        print(f"{name:38}{1000 * seconds[name]:9.1f} {ratio:8.1f} {megabytes[name]:8.0f}", flush=True)


if __name__ == "__main__":
    main()
