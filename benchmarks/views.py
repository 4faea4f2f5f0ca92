"""Speed of the image views against kornia's, their share of a pretraining step, and pictures of what they make.

    pip install -c constraints.txt -r benchmarks/requirements-views.txt
    PUNCE_DATA=... python benchmarks/views.py               # both tables and benchmarks/results/views.json
    PUNCE_DATA=... python benchmarks/views.py --pictures    # docs/images/views_mnist.png and views_cifar.png

The speed test runs the full SimCLR chain (resized crop, mirror image, colour jitter, greying, normalisation) on 512
CIFAR images, twice for two views, from uint8 to normalised float32. Implementations take turns in one process, so that
a slow moment of the machine hits all alike. Without CIFAR-10 under PUNCE_DATA the speed test uses random images.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from machine import save
from PIL import Image as Picture
from torch import Tensor

from punce.data import MissingFilesError, load
from punce.views import VIEWS, View

BATCH, WIDTH = 512, 0.25
IMAGES = Path(__file__).parent.parent / "docs" / "images"
Run = Callable[[], Any]


def images(name: str) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(load(name, split="train", download=False).X))


def cifar_or_random() -> tuple[Tensor, str]:
    try:
        return images("cifar10"), "CIFAR-10"
    except MissingFilesError:
        generator = torch.Generator().manual_seed(0)
        return torch.randint(256, (10_000, 3, 32, 32), dtype=torch.uint8, generator=generator), "random images"


def ours(X: Tensor, batch: Tensor) -> Run:
    view = VIEWS["cifar"]().fit(X)
    plan = view.plan(n_rows=len(X), seed=0, epoch=0)
    return lambda: plan.apply(X.index_select(0, batch), batch)


def kornias(X: Tensor, batch: Tensor, cropping: str) -> Run:
    """The same chain of kornia modules with the same settings, both views in one call, as fast as they go."""
    import kornia.augmentation as kornia

    view = VIEWS["cifar"]().fit(X)
    chain = torch.nn.Sequential(
        kornia.RandomResizedCrop((32, 32), scale=view.crop_scale, ratio=view.crop_ratio, cropping_mode=cropping),
        kornia.RandomHorizontalFlip(p=view.flip),
        kornia.ColorJitter(*view.jitter, p=view.jitter_probability),
        kornia.RandomGrayscale(p=view.grey),
        kornia.Normalize(torch.tensor(view.mean), torch.tensor(view.std)),
    )
    return lambda: chain((X.index_select(0, batch).float() / 255).repeat(2, 1, 1, 1))


def take_turns(runs: dict[str, Run], rounds: int) -> dict[str, list[float]]:
    """Seconds of every round of every run, in turns, after two rounds to warm up."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(rounds + 2):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            if turn >= 2:
                seconds[name].append(time.perf_counter() - start)
    return seconds


def compare(X: Tensor, rounds: int) -> dict[str, Any]:
    batch = torch.randperm(len(X), generator=torch.Generator().manual_seed(0))[:BATCH]
    runs = {"punce": ours(X, batch)}
    for cropping in ("slice", "resample"):  # kornia's default, and the one that is faster on several threads
        runs[f"kornia, {cropping}"] = kornias(X, batch, cropping)
    seconds = take_turns(runs, rounds)
    table = {
        name: {"best_ms": 1e3 * min(s), "median_ms": 1e3 * statistics.median(s), "images_per_s": BATCH / min(s)}
        for name, s in seconds.items()
    }
    return {
        "two_views_of_512": table,
        "times_faster": _times_faster(table, "best_ms"),
        "times_faster_median": _times_faster(table, "median_ms"),
    }


def _times_faster(table: dict[str, dict[str, float]], column: str) -> float:
    """Against the faster of kornia's two croppings."""
    return min(row[column] for name, row in table.items() if name != "punce") / table["punce"][column]


def pretraining_step(X: Tensor) -> dict[str, Run]:
    """A step of AllConv: draw the views, then forward, puNCE, backward and update; timed apart, in turns."""
    from punce.encoders import AllConv
    from punce.losses import PuNCE

    torch.manual_seed(0)
    encoder = AllConv(width=WIDTH).to(memory_format=torch.channels_last)
    optimiser = torch.optim.AdamW(encoder.parameters(), lr=1e-3)
    batch, labels, loss = torch.arange(BATCH), torch.zeros(BATCH, dtype=torch.int8), PuNCE(prior=0.4)
    labels[:20] = 1
    views = ours(X, batch)
    two = views()

    def network() -> None:
        optimiser.zero_grad()
        x = two.flatten(0, 1).contiguous(memory_format=torch.channels_last)
        loss(encoder(x).view(2, BATCH, -1), labels).backward()
        optimiser.step()

    return {"views": views, "network": network}


def share_of_step(X: Tensor, rounds: int) -> dict[str, Any]:
    seconds = take_turns(pretraining_step(X), rounds)
    shares = [v / (v + n) for v, n in zip(seconds["views"], seconds["network"], strict=True)]
    best = {name: 1e3 * min(s) for name, s in seconds.items()}
    return {
        "encoder": f"AllConv(width={WIDTH}), channels last, batch {BATCH}",
        "best_ms": best,
        "views_share": best["views"] / sum(best.values()),
        "views_share_median": statistics.median(shares),
    }


def picture(X: Tensor, view: View, rows: list[int], n_epochs: int, scale: int) -> Picture.Image:
    """A row of the picture for each image: the original, a gap, then the two views of `n_epochs` epochs."""
    batch = torch.tensor(rows)
    shown = [view.clean(X[batch])]
    for epoch in range(n_epochs):
        shown.extend(view.plan(n_rows=len(X), seed=0, epoch=epoch).apply(X[batch], batch))
    cells = [torch.nn.functional.pad(cell, (1, 1, 1, 1), value=1.0) for cell in shown]
    cells.insert(1, torch.ones_like(cells[0])[..., :4])
    strip = torch.cat(cells, dim=3)  # (rows, C, H, columns · W)
    whole = torch.cat(list(strip), dim=1).expand(3, -1, -1).permute(1, 2, 0)
    pixels = (whole * 255).round().to(torch.uint8).numpy()
    return Picture.fromarray(pixels).resize(
        (pixels.shape[1] * scale, pixels.shape[0] * scale), Picture.Resampling.NEAREST
    )


def save_pictures() -> None:
    IMAGES.mkdir(parents=True, exist_ok=True)
    plain = {"mean": (0.0,), "std": (1.0,)}
    for file, name, recipe, rows in (
        ("views_mnist.png", "mnist", "digit", [1, 5, 7, 9, 0, 13, 15, 17, 22, 4]),
        ("views_cifar.png", "cifar10", "cifar", list(range(10))),
    ):
        picture(images(name), VIEWS[recipe](**plain), rows, 5, 3).save(IMAGES / file, optimize=True)
        print(f"wrote docs/images/{file}")


def measure(rounds: int, thread_counts: list[int]) -> None:
    X, source = cifar_or_random()
    results = []
    for threads in thread_counts:
        torch.set_num_threads(threads)
        load_before = os.getloadavg()[0]
        results.append(
            {
                "threads": threads,
                "load_before": load_before,  # above the number of cores, threads wait for each other
                "speed": compare(X, rounds),
                "step": share_of_step(X, max(3, rounds // 4)),
            }
        )
        show(results[-1], source)
    path = save("views", {"source": source, "rounds": rounds, "runs": results})
    print(f"wrote benchmarks/results/{path.name}")


def show(result: dict[str, Any], source: str) -> None:
    speed, step = result["speed"], result["step"]
    print(f"two views of {BATCH} images ({source}), threads: {result['threads']}")
    for name, row in speed["two_views_of_512"].items():
        numbers = f"best {row['best_ms']:7.1f} ms   median {row['median_ms']:7.1f} ms"
        print(f"  {name:16s} {numbers}   {row['images_per_s']:8.0f} images/s")
    medians = f"by medians {speed['times_faster_median']:.1f}"
    print(f"  {speed['times_faster']:.1f} times faster than the faster kornia ({medians})")
    best, share = step["best_ms"], f"median of rounds {step['views_share_median']:.1%}"
    print(f"{step['encoder']}: views {best['views']:.0f} ms, network {best['network']:.0f} ms")
    print(f"  views take {step['views_share']:.1%} of a step ({share})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pictures", action="store_true", help="write the picture grids and stop")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--threads", type=int, nargs="+", default=sorted({1, torch.get_num_threads()}))
    arguments = parser.parse_args()
    if arguments.pictures:
        save_pictures()
    else:
        measure(arguments.rounds, arguments.threads)


if __name__ == "__main__":
    main()
