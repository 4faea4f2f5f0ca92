"""Time of a full pretraining step relative to the bare encoder's forward, backward and optimiser step.

    python benchmarks/step.py                  # both widths; the table and benchmarks/results/step.json
    python benchmarks/step.py --widths 0.2

The full step is that of `punce.stages.pretrain` itself: two views, encoder, puNCE, the online head and its risk,
checks, optimiser, history. The bare step runs the same encoder (projector included) on 2·batch ready-made views with
the sum of the projections as its loss, and the same optimiser. They take turns in one process, so that a slow moment of
the machine hits both alike; times are medians over the rounds, the ratio is the median of the rounds' ratios. Parts are
timed in the same rounds, by wrapping what the training loop calls.

With as many threads as cores, this needs a machine that does nothing else: where other processes want the cores, a
thread that is not running holds up the others at the end of every parallel loop, and the many small loops of views and
loss suffer more than the encoder's few large products. One thread has nobody to wait for. The load average is saved
beside every result for that reason.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from itertools import product
from statistics import median
from typing import Any, ClassVar

import numpy as np
import torch
from machine import save
from torch import Tensor

from punce.encoders import MLP
from punce.losses import PuNCE
from punce.risks import NNPU
from punce.stages.pretrain import PretrainConfig, pretrain
from punce.training.batches import StratifiedBatches
from punce.training.optim import LARS, build_optimizer
from punce.training.products import onednn_is_faster
from punce.training.run import Run
from punce.views import digit
from punce.views.image import ImagePlan

BATCH, BATCHES, PRIOR = 1024, 8, 0.49
WARM_UP = 2  # rounds left out


@dataclass(frozen=True)
class Case:
    """A network with the optimiser it is used with, and the goal for full / bare."""

    width: float
    config: PretrainConfig
    goal: float


def cases(epochs: int) -> list[Case]:
    """An epoch is 8 rounds; steps of the small network are ten times as fast, so it gets more."""
    return [
        Case(1.0, PretrainConfig.paper(epochs=epochs, batch_size=BATCH), 1.10),
        Case(0.2, PretrainConfig(epochs=4 * epochs, batch_size=BATCH), 1.25),
    ]


def images() -> tuple[Tensor, np.ndarray]:
    """MNIST-shaped rows: what a pixel holds does not change what a step costs."""
    n = BATCH * BATCHES
    generator = torch.Generator().manual_seed(0)
    X = torch.randint(0, 256, (n, 1, 28, 28), generator=generator, dtype=torch.uint8)
    labels = np.zeros(n, dtype=np.int8)
    labels[: n // 60] = 1  # n_P = 1000 of 60,000
    return X, labels


def bare_step(case: Case) -> Callable[[], None]:
    """Forward, backward and optimiser step of the encoder alone, as a function to time."""
    encoder = MLP(784, width=case.width).train()
    optimizer = build_optimizer(encoder, case.config.optimizer, case.config.lr, case.config.weight_decay)
    views = torch.rand(2 * BATCH, 784)

    def step() -> None:
        optimizer.zero_grad()
        encoder(views).sum().backward()
        optimizer.step()

    return step


class Stopwatch:
    """Adds up, for the step that is running, the time spent in each part."""

    PARTS: ClassVar[list[tuple[Any, str, str]]] = [
        (StratifiedBatches, "rows", "batches"),
        (ImagePlan, "apply", "views"),
        (MLP, "features", "encoder forward"),
        (MLP, "project", "encoder forward"),
        (PuNCE, "forward", "loss forward"),
        (NNPU, "forward", "monitor forward"),
        (NNPU, "value", "monitor forward"),
        (Run, "require_finite", "checks, history"),
        (Run, "log", "checks, history"),
        (Tensor, "backward", "backward"),
        (torch.optim.Adam, "step", "optimiser"),
        (LARS, "step", "optimiser"),
    ]

    def __init__(self) -> None:
        self.current: dict[str, float] = defaultdict(float)

    def lap(self) -> dict[str, float]:
        """The parts since the last call."""
        done, self.current = dict(self.current), defaultdict(float)
        return done

    @contextmanager
    def attached(self) -> Iterator[None]:
        originals = [(owner, name, getattr(owner, name)) for owner, name, _ in self.PARTS]
        for owner, name, part in self.PARTS:
            setattr(owner, name, self._timed(getattr(owner, name), part))
        try:
            yield
        finally:
            for owner, name, original in originals:
                setattr(owner, name, original)

    def _timed(self, function: Callable[..., Any], part: str) -> Callable[..., Any]:
        @wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            began = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                self.current[part] += time.perf_counter() - began

        return timed


def rounds_of(case: Case) -> list[tuple[dict[str, float], dict[str, float]]]:
    """(full, bare) of every round: seconds by part, and as a whole under "step"."""
    watch, bare, rounds = Stopwatch(), bare_step(case), []
    original = Run.steps

    def steps(run: Run) -> Iterator[int]:
        inner = original(run)
        while True:
            watch.lap()
            began = time.perf_counter()
            step = next(inner, None)  # also the bookkeeping after the step before
            if step is None:
                return
            yield step
            full = {"step": time.perf_counter() - began, **watch.lap()}
            began = time.perf_counter()
            bare()
            rounds.append((full, {"step": time.perf_counter() - began, **watch.lap()}))

    X, labels = images()
    Run.steps = steps  # type: ignore[method-assign]
    try:
        with watch.attached():
            pretrain(MLP(784, width=case.width), digit(), X, labels, PuNCE(PRIOR), case.config)
    finally:
        Run.steps = original  # type: ignore[method-assign]
    return rounds[WARM_UP:]


def measure(case: Case, threads: int) -> dict[str, Any]:
    torch.set_num_threads(threads)
    load = [os.getloadavg()[0]]
    rounds = rounds_of(case)
    load.append(os.getloadavg()[0])
    full, bare = ({k: median(r[i].get(k, 0.0) for r in rounds) for k in rounds[0][i]} for i in range(2))
    ratios = sorted(f["step"] / b["step"] for f, b in rounds)
    extra = {part: 1e3 * (seconds - bare.get(part, 0.0)) for part, seconds in full.items() if part != "step"}
    extra["rest"] = 1e3 * (full["step"] - bare["step"]) - sum(extra.values())
    return {
        "width": case.width,
        "optimizer": case.config.optimizer,
        "batch": BATCH,
        "threads": threads,
        "load_before_and_after": load,
        "rounds": len(rounds),
        "full_ms": 1e3 * full["step"],
        "bare_ms": 1e3 * bare["step"],
        "ratio": median(ratios),
        "ratio_quartiles": [ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]],
        "goal": case.goal,
        "extra_ms": extra,
    }


def show(result: dict[str, Any]) -> None:
    low, high = result["ratio_quartiles"]
    load = " to ".join(f"{value:.1f}" for value in result["load_before_and_after"])
    print(
        f"MLP of width {result['width']}, {result['optimizer']}, batch {BATCH}, {result['threads']} threads, "
        f"{result['rounds']} rounds, load {load}:"
    )
    print(
        f"  full {result['full_ms']:.1f} ms, bare {result['bare_ms']:.1f} ms, ratio {result['ratio']:.3f} "
        f"(quartiles {low:.3f}–{high:.3f}; goal at most {result['goal']}); full − bare by part:"
    )
    for part, extra in sorted(result["extra_ms"].items(), key=lambda item: -item[1]):
        print(f"    {part:18s} {extra:+8.2f} ms  {100 * extra / result['bare_ms']:+6.2f} %")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--widths", type=float, nargs="*")
    parser.add_argument("--threads", type=int, nargs="*", default=sorted({1, torch.get_num_threads()}))
    parser.add_argument("--epochs", type=int, default=2, help="of 8 rounds; four times as many for the small network")
    options = parser.parse_args()
    results = []
    for threads, case in product(options.threads, cases(options.epochs)):
        if not options.widths or case.width in options.widths:
            results.append(measure(case, threads))
            show(results[-1])
    if not options.widths:
        print(f"saved {save('step', {'results': results, 'faster_products': onednn_is_faster()})}")


if __name__ == "__main__":
    main()
