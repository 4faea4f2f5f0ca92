"""The only module that talks to torch.distributed. Without a process group every function is the identity.

A loss or risk over the *global* batch needs three things: the rows of every rank, sums over every rank, and a mean
whose gradient survives DistributedDataParallel. DDP averages parameter gradients over ranks, so the gradient of a
global mean is scaled by the world size here, once (:func:`global_mean`), and nowhere else.

Every function must be called by every rank in the same order, forward and backward.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from punce.errors import InputError
from punce.training.signals import handled

_GLOO = ("gloo/", "Connection closed by peer", "Connection reset by peer")
_TORCHRUN = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


@contextmanager
def joined(timeout: float = 600.0) -> Iterator[None]:
    """Inside the block this process belongs to torchrun's group; afterwards to none, and the group's threads end.

    Ranks that end well wait for each other before they leave. A rank that fails leaves at once, so that its peers
    notice. Started without torchrun, or in a group that the caller made, this does nothing.
    """
    is_mine = not dist.is_initialized()  # a group that the caller made is the caller's to leave
    init_from_environment(timeout)
    is_mine = is_mine and dist.is_initialized()
    try:
        yield
        if is_mine:
            _wait_for_others()
    except BaseException as error:
        if is_mine:
            _release_frames(error)
        if is_mine and _is_lost_peer(error):
            raise ConnectionError("another rank ended or cannot be reached; its own line says why") from error
        raise
    finally:
        if is_mine:
            leave()


def init_from_environment(timeout: float = 600.0) -> None:
    """Join the process group that torchrun describes in the environment; started without torchrun, do nothing.

    Tensors on the CPU travel by gloo, those on GPUs (one per local rank) by nccl. A rank that waits longer than
    `timeout` seconds for the others gives up, so that a hung peer ends the run instead of holding it for ever. The
    group is left at exit; better, use :func:`joined`, which leaves it while no model of the script is alive any more.
    For restarts after a killed worker, run torchrun with TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1.
    """
    if dist.is_initialized() or _announced_ranks() == 1:
        return
    if missing := [name for name in _TORCHRUN if name not in os.environ]:
        raise InputError(
            f"WORLD_SIZE is {os.environ['WORLD_SIZE']} but {', '.join(missing)} is not set; start several ranks with "
            "torchrun --nproc-per-node=N, or unset WORLD_SIZE"
        )
    # Its functions have the group as a default argument. Imported later, as DDP does, they would hold it for ever.
    import torch.distributed.nn.functional

    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    # Both where there are GPUs: a head is trained on the CPU beside a GPU's encoder, and device="cpu" is a choice too.
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    # SIGTERM and Ctrl-C end the process at once, as the system does it. Ranks meet in C++, where a handler in Python
    # must wait: a rank whose peer died before it came could not be ended. Nothing is written yet, so nothing is left.
    with handled(signal.SIG_DFL, signal.SIGTERM, signal.SIGINT):
        dist.init_process_group(backend, timeout=timedelta(seconds=timeout))
    atexit.register(leave)


def _announced_ranks() -> int:
    """The number of ranks that the environment announces; 1 where it says nothing."""
    text = os.environ.get("WORLD_SIZE", "1").strip()
    if not text.isdecimal() or int(text) < 1:
        raise InputError(
            f"WORLD_SIZE is {text!r}, which is no number of ranks; start several ranks with torchrun "
            "--nproc-per-node=N, or unset WORLD_SIZE"
        )
    return int(text)


def leave() -> None:
    """Leave the process group, if there is one, and end its threads.

    gloo's threads may hold the last reference to a tensor when the interpreter ends. To free it they need the
    interpreter's lock, which ends them in the middle of C++ code: "terminate called without an active exception",
    and the process aborts after all work was done. They end with the group, and the group with its last user, so
    models under DistributedDataParallel that only wait for the garbage collector go first. The group must be the last:
    freed by its models it would be joined with the lock held, for which its threads may be waiting.
    """
    if dist.is_initialized():
        gc.collect()
        dist.destroy_process_group()


def _wait_for_others() -> None:
    """So that no rank closes its connections while another still reads from them.

    This rank's work is done: a peer that has died, or takes longer than the timeout (the first one writes the
    results), must not make it fail. So by gloo, with a tensor on the CPU: nccl's watchdog would end the process then.
    """
    if _has_cpu_backend():
        with suppress(RuntimeError):
            dist.all_reduce(torch.zeros(1))


def _is_lost_peer(error: BaseException) -> bool:
    """Whether an exchange failed because of another rank; gloo has no class of its own for that."""
    is_gloo = isinstance(error, RuntimeError) and any(mark in str(error) for mark in _GLOO)
    return is_gloo or isinstance(error, dist.DistError)


def _release_frames(error: BaseException) -> None:
    """Drop the local variables of the functions that failed; models among them would keep the process group alive."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:  # chains of exceptions may be circular
        seen.add(id(cause))
        traceback.clear_frames(cause.__traceback__)
        cause = cause.__cause__ or cause.__context__


def world_size() -> int:
    """Number of ranks; 1 without a process group."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """This process's rank; 0 without a process group."""
    return dist.get_rank() if world_size() > 1 else 0


@dataclass(frozen=True)
class GatheredRows:
    """The rows of every rank in rank order, and where this rank's own rows lie among them."""

    rows: Tensor
    start: int
    stop: int

    @property
    def is_local(self) -> bool:
        """Whether this rank holds every row."""
        return self.start == 0 and self.stop == len(self.rows)


def gather_rows(x: Tensor) -> GatheredRows:
    """Concatenate `x` over ranks without gradient. Ranks may hold different numbers of rows, also none."""
    x = x.detach()
    if world_size() == 1:
        return GatheredRows(x, 0, len(x))
    counts = _row_counts(x)
    # gloo gathers equal shapes only, so every rank pads to the longest and the padding is cut off again.
    padded = x.new_zeros((max(counts), *x.shape[1:]))
    padded[: len(x)] = x
    parts = [torch.empty_like(padded) for _ in counts]
    dist.all_gather(parts, padded)
    start = sum(counts[: rank()])
    rows = torch.cat([part[:count] for part, count in zip(parts, counts, strict=True)])
    return GatheredRows(rows, start, start + len(x))


def _row_counts(x: Tensor) -> list[int]:
    mine = torch.tensor([len(x)], device=x.device)
    counts = [torch.empty_like(mine) for _ in range(world_size())]
    dist.all_gather(counts, mine)
    return [int(count) for count in counts]


def global_count(n: int, device: torch.device) -> int:
    """Sum of an integer over ranks."""
    if world_size() == 1:
        return n
    total = torch.tensor(n, device=device)
    dist.all_reduce(total)
    return int(total)


def any_rank(*flags: bool) -> tuple[bool, ...]:
    """Whether each flag is set on some rank, so that all can act on it at the same step. One message for all flags."""
    if world_size() == 1:
        return flags
    counts = torch.tensor(flags, dtype=torch.int64, device=_device())
    dist.all_reduce(counts)
    return tuple(count > 0 for count in counts.tolist())


def stack_over_ranks(x: Tensor) -> Tensor:
    """A small tensor of every rank, all of one shape, on the CPU. Shape: (...) -> (world size, ...)."""
    return gather_rows(x.to(_device())[None]).rows.cpu() if world_size() > 1 else x.cpu()[None]


def _device() -> torch.device:
    """Where small tensors travel from: the CPU, unless the caller made a group that has nccl alone."""
    return torch.device("cpu") if _has_cpu_backend() else torch.device("cuda", torch.cuda.current_device())


def _has_cpu_backend() -> bool:
    """Whether the group takes tensors on the CPU. Its backends are named by device: "cpu:gloo,cuda:nccl"."""
    return any(part.startswith("cpu:") for part in dist.get_backend_config().split(","))


def global_sum(x: Tensor) -> Tensor:
    """Sum of `x` over ranks; the gradient that reaches each rank is the sum of every rank's gradient."""
    if world_size() == 1:
        return x
    summed: Tensor = _GlobalSum.apply(x)  # type: ignore[no-untyped-call]
    return summed


def global_mean(x: Tensor) -> Tensor:
    """Mean over the entries of `x` on every rank: the same value everywhere, the right gradient under DDP.

    The gradient is world_size / n_global, which DDP's average over ranks turns into that of the global mean.
    """
    if world_size() == 1:
        return x.mean()
    mean: Tensor = _GlobalMean.apply(x)  # type: ignore[no-untyped-call]
    return mean


class _GlobalSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        total = x.detach().clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        total = grad.contiguous().clone()
        dist.all_reduce(total)
        return total


class _GlobalMean(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        sum_and_count = torch.stack([x.detach().sum(), x.new_tensor(float(x.numel()))])
        dist.all_reduce(sum_and_count)
        total, count = sum_and_count.unbind()
        if not count:  # on every rank, so that all stop here
            raise InputError("no rank holds a row: the batch is empty")
        ctx.shape = x.shape
        ctx.scale = world_size() / float(count)  # DDP divides by the world size once more
        return total / count

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        scale: float = ctx.scale
        return (grad * scale).expand(ctx.shape)
