"""The command the kill tests start, kill and start again: pretrain a tiny network on the embedded digits.

    python -m tests.runs.tiny FOLDER [--steps N] [--double] ...

Under torchrun it trains on every rank. It prints one JSON line with the sha256 of the final state of the encoder.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from punce.data import load, simulate_pu
from punce.encoders import Encoder
from punce.encoders.encoder import projector
from punce.errors import PunceError
from punce.losses import PuNCE
from punce.stages.pretrain import PretrainConfig, pretrain
from punce.storage import tensor_folder
from punce.training import collectives
from punce.views import Plan, View, digit

ROOT = Path(__file__).resolve().parent.parent.parent
BATCH = 96


class Tiny(Encoder):
    """Two layers with BatchNorm, and dropout: its masks come from torch's own generator, which must resume too."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Flatten(), nn.Linear(64, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Dropout(dropout), nn.Linear(24, 10)
        )
        self.projector = projector(10, 12, 8)
        self.online_head = nn.Linear(10, 1)


class DoubleView:
    """A view in float64, so that the order of sums over ranks is all that differs from one process."""

    def __init__(self, view: View) -> None:
        self._view = view

    def __repr__(self) -> str:
        return f"DoubleView({self._view!r})"

    def plan(self, *args: Any, **kwargs: Any) -> Plan:
        plan = self._view.plan(*args, **kwargs)

        class DoublePlan:
            def apply(self, x: Tensor, rows: Tensor) -> Tensor:
                return plan.apply(x, rows).double()

        return DoublePlan()

    def fit(self, X: Tensor) -> DoubleView:
        return self

    def clean(self, x: Tensor) -> Tensor:
        return self._view.clean(x).double()


def sha256_of(module: nn.Module) -> str:
    digest = hashlib.sha256()
    for name, value in sorted(module.state_dict().items()):
        digest.update(name.encode() + value.contiguous().numpy().tobytes())
    return digest.hexdigest()


def arguments(line: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--optimizer", default="adam")
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--dropout", type=float, default=0.2)
    parser.add_argument("--save-every", type=float, default=0.0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--double", action="store_true")
    parser.add_argument("--announce", action="store_true", help="write a line to stdout as each step begins")
    parser.add_argument("--die-at", type=int, help="the last rank kills itself with SIGKILL at this step, once")
    parser.add_argument("--linger", type=float, default=0.0, help="seconds by which every part of a save takes longer")
    parser.add_argument("--out", type=Path, help="where the first rank writes the weights")
    return parser.parse_args(line)


def train(options: argparse.Namespace, before_step: Callable[[int], None] | None = None) -> str:
    """The run; `before_step` is called with 1, 2, … as this process begins its steps. Returns the sha256."""
    torch.set_num_threads(options.threads)
    if options.linger:
        linger_in_saves(options.linger)
    torch.manual_seed(1 + collectives.rank())  # ranks draw different dropout masks, as real runs do
    train_part = load("digits").train
    X, sample = torch.from_numpy(train_part.X), simulate_pu(train_part.y_true, 60, seed=0)
    view: View = digit()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        encoder = Tiny(options.dropout)
    if options.double:
        encoder, view = encoder.double(), DoubleView(view)
    watch(encoder, before_step or following(options))
    config = PretrainConfig(options.epochs, BATCH, options.optimizer, options.lr, monitor_prior=sample.prior)
    folder, every = options.folder, options.save_every
    history = pretrain(encoder, view, X, sample.labels, PuNCE(sample.prior), config, folder=folder, save_every=every)
    if collectives.rank() == 0:
        if options.out is not None:
            save_file({k: v.contiguous() for k, v in encoder.state_dict().items()}, options.out)
        sys.stdout.write(json.dumps({"sha256": sha256_of(encoder), "history": history}) + "\n")
    return sha256_of(encoder)


def linger_in_saves(seconds: float) -> None:
    """Wait before each file of a checkpoint and each flush, as on a slow disk: a kill may then fall between any two."""
    for name in ("save_file", "_listed", "sync"):
        original = getattr(tensor_folder, name)

        def lingering(*args: Any, original: Callable[..., Any] = original) -> Any:
            time.sleep(seconds)
            return original(*args)

        setattr(tensor_folder, name, lingering)


def watch(encoder: Encoder, before_step: Callable[[int], None]) -> None:
    """Call back as each step begins; a forward hook leaves the training code alone."""
    numbers = count(1)

    def begin(module: nn.Module, inputs: object) -> None:
        if module.training:  # before the first step the stage tries whether the encoder reads the rows
            before_step(next(numbers))

    encoder.backbone.register_forward_pre_hook(begin)


def following(options: argparse.Namespace) -> Callable[[int], None]:
    """Say when a step begins, and die where the options ask for it."""

    def before_step(number: int) -> None:
        if options.announce:
            sys.stdout.write(f"step {number} of process {os.getpid()}\n")
            sys.stdout.flush()
        mark = options.folder / "died"
        if number == options.die_at and collectives.rank() == collectives.world_size() - 1 and not mark.exists():
            mark.parent.mkdir(parents=True, exist_ok=True)
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)

    return before_step


def main() -> None:
    options = arguments()
    try:
        with collectives.joined(timeout=60):
            train(options)
    except PunceError as error:
        sys.exit(f"punce: {error}")


if __name__ == "__main__":
    main()
