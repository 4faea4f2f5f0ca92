"""CIFAR-10 vehicles against animals from 1,000 labelled vehicles, from scratch, on one core: accuracy against minutes.

    PUNCE_DATA=... python benchmarks/cifar_scratch.py run [--recipe consistent] [--seed 0] [--epochs 6] [--seconds 600]
    PUNCE_DATA=... python benchmarks/cifar_scratch.py show      # a table of results/cifar_scratch.jsonl, and the figure

No image and no label but those of CIFAR-10 is used, and no true label in training. A run has two or three stages:

1. `patches`: the package's whitened patches, which nobody trains; a self-consistent head on them, cross-fitted in five
   folds, gives each unlabelled image a probability that no label of its own fold has shaped.
2. an AllConv of a quarter of the width behind a fixed whitening convolution, on images mirrored and shifted by up to
   2 pixels. `soft`: cross-entropy with these probabilities as targets. `punce`: the same and puNCE with row
   probabilities on the projections of two views. Scores are the mean over an image and its mirror image.
3. `consistent`: the `soft` network goes on with nnPU on images that are changed strongly (moved, recoloured, a hole
   in them), and with what the running mean of its own weights is sure of on the unchanged image, as in FixMatch
   (Sohn et al. 2020). The running mean is judged. (Tried first on seed 100, which is not reported.)

A fifth of the rows is held out of stages 2 and 3 and judges them (`held_out_risk`, the PU estimate of the error); test
accuracy is for the curve alone. One line of JSON an epoch with the CPU minutes spent so far; a repeated command resumes
after the last whole epoch. Checkpoints go to --work. PUNCE_PRECISION and the CPU decide the precision (docs/images.md).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import torch
from json_lines import add_lines, lines_of
from machine import RESULTS
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, conv2d, pad

from punce.data import PUSample, load, simulate_pu
from punce.encoders import AllConv
from punce.encoders.precision import fast_convolutions
from punce.losses import PuNCE
from punce.models.portfolio.heads import HEADS, HeadProblem
from punce.models.portfolio.patches import Patches
from punce.models.ridge import chances
from punce.risks import NNPU
from punce.risks.base import zero_one_risk
from punce.training.splits import PUStratifiedKFold, holdout_split

FILE = RESULTS / "cifar_scratch.jsonl"
FIGURE = Path(__file__).parents[1] / "docs" / "images" / "cifar_scratch.svg"
GOAL = 92
N_LABELLED, FOLDS, CHUNK = 1000, 5, 1000
BATCH, RATE, DECAY, SHIFT, WIDTH = 256, 2e-3, 5e-4, 2, 0.25
WEIGHT_OF_PUNCE = 0.2
LAST_EPOCHS, LAST_RATE, LAST_LABELLED = 8, 1e-3, 64
SURE, KEPT = 0.9, 0.99  # probability from which the running mean teaches, and how much of it a step keeps
CONTRAST, SHADE, HOLE = 0.4, 0.2, 8  # of a strong change
RECIPES = ("patches", "soft", "punce", "consistent")


# Stage 1: patches that nobody trained --------------------------------------------------------------------------------


def patch_features(x: Tensor, patches: Patches, folder: Path) -> np.ndarray:
    """Shape: (n, 3, 32, 32) -> (n, M). Resumable."""
    folder.mkdir(parents=True, exist_ok=True)
    for start in range(0, len(x), CHUNK):
        if (path := folder / f"{start:05d}.npy").is_file():
            continue
        before, found = time.process_time(), patches(x[start : start + CHUNK])
        with path.with_suffix(".tmp").open("wb") as file:
            np.save(file, found)
        path.with_suffix(".tmp").replace(path)
        path.with_suffix(".seconds").write_text(str(time.process_time() - before))
    return np.concatenate([np.load(folder / f"{start:05d}.npy") for start in range(0, len(x), CHUNK)])


def head_scores(features: np.ndarray, new: np.ndarray, is_p: np.ndarray, prior: float, seed: int) -> np.ndarray:
    """Scores of `new` by a self-consistent head on `features`."""
    nothing = np.zeros(len(is_p), dtype=np.int8)
    head = HEADS["self_consistent"](HeadProblem(features, is_p, nothing, np.ones(len(is_p)), prior, seed))
    return head.score(new)


def stage_one(sample: PUSample, x: Tensor, x_test: Tensor, seed: int, work: Path) -> dict[str, Any]:
    """Out-of-fold probabilities of the training rows, and test scores of a head on all of them."""
    before, patches = time.process_time(), Patches.fit(x, seed)
    spent, parts = time.process_time() - before, {"train": x, "test": x_test}
    train, test = (patch_features(rows, patches, work / f"patches-{seed}-{name}") for name, rows in parts.items())
    before = time.process_time()
    is_p, scores = sample.labels == 1, np.empty(len(train))
    for rest, fold in PUStratifiedKFold(FOLDS, random_state=seed).split(train, sample.labels):
        own = head_scores(train[rest], train[fold], is_p[rest], sample.prior, seed)
        scores[fold] = own / own.std()
    probability = is_p.astype(np.float64)
    probability[~is_p] = chances(2.0 * scores[~is_p], sample.prior)
    whole = head_scores(train, np.concatenate([train, test]), is_p, sample.prior, seed)
    cut = np.quantile(whole[: len(train)][~is_p], 1 - sample.prior)
    spent += time.process_time() - before
    return {"probability": probability, "test": whole[len(train) :] - cut, "scores": scores, "seconds": spent}


# Stage 2: a network on soft targets ----------------------------------------------------------------------------------


def whitening(x: Tensor, side: int, *, rows: int = 2000) -> tuple[Tensor, Tensor]:
    """Mean (D,) and whitening matrix (D, D) of side × side patches of some images; D = 3·side²."""
    some = torch.nn.functional.unfold(x[:rows], side, stride=side).transpose(1, 2).flatten(0, 1).double()
    mean = some.mean(0)
    values, vectors = torch.linalg.eigh((some - mean).T @ (some - mean) / len(some))
    return mean.float(), (vectors / (values + 1e-3).sqrt() @ vectors.T).float()


class Whitened(nn.Module):
    """An AllConv behind a fixed 2 × 2 whitening convolution, with a linear head. Shape: (b, 3, 32, 32) -> (b,)."""

    def __init__(self, train: Tensor) -> None:
        super().__init__()
        mean, matrix = whitening(train, 2)
        self.register_buffer("kernel", matrix.view(12, 3, 2, 2).clone())
        self.register_buffer("bias", -(matrix @ mean))
        self.encoder = AllConv(in_channels=12, width=WIDTH)
        self.head = nn.Linear(self.encoder.feature_size, 1)

    def features(self, x: Tensor) -> Tensor:
        """Shape: (b, 3, 32, 32) -> (b, D)."""
        return self.encoder.features(conv2d(pad(x, (0, 1, 0, 1), mode="replicate"), self.kernel, self.bias))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.features(x)).squeeze(1)


def moved(x: Tensor, generator: torch.Generator) -> Tensor:
    """Each image mirrored or not and shifted by up to SHIFT pixels."""
    wide = pad(x, (SHIFT,) * 4, mode="reflect")
    out, flips = torch.empty_like(x), torch.rand(len(x), generator=generator) < 0.5
    places = torch.randint(2 * SHIFT + 1, (len(x), 2), generator=generator)
    for down in range(2 * SHIFT + 1):
        for right in range(2 * SHIFT + 1):
            rows = ((places[:, 0] == down) & (places[:, 1] == right)).nonzero().squeeze(1)
            out[rows] = wide[rows, :, down : down + 32, right : right + 32]
    return torch.where(flips[:, None, None, None], out.flip(3), out)


def changed(x: Tensor, generator: torch.Generator) -> Tensor:
    """Moved, with another contrast and shade, and a grey square of up to 15 pixels somewhere."""
    x, n = moved(x, generator), len(x)
    mean = x.mean((1, 2, 3), keepdim=True)
    contrast, shade = (2 * torch.rand(n, k, 1, 1, generator=generator) - 1 for k in (1, 3))
    x = ((x - mean) * (1 + CONTRAST * contrast) + mean + SHADE * shade).clamp(0, 1)
    down, right = (torch.randint(32, (n, 1, 1), generator=generator) for _ in range(2))
    place = torch.arange(32)
    hole = ((place.view(1, 32, 1) - down).abs() < HOLE) & ((place.view(1, 1, 32) - right).abs() < HOLE)
    return torch.where(hole[:, None], mean, x)


@torch.no_grad()
def scored(model: Whitened, x: Tensor) -> Tensor:
    """Mean over an image and its mirror image. Shape: (n,)."""
    is_training = model.training
    model.eval()
    both = torch.cat([model(part) + model(part.flip(3)) for part in x.split(500)])
    model.train(is_training)
    return both / 2


def objective(
    model: Whitened, recipe: str, rows: dict[str, Tensor], generator: torch.Generator, prior: float
) -> Tensor:
    """Cross-entropy on soft targets; with puNCE the second view costs a second pass."""
    if recipe == "soft":
        return binary_cross_entropy_with_logits(model(moved(rows["x"], generator)), rows["target"])
    h = model.features(torch.cat([moved(rows["x"], generator) for _ in range(2)]))
    z = model.encoder.project(h).view(2, len(rows["x"]), -1)
    contrast = PuNCE(prior, weighting="posterior", own_view=0.5)(z, rows["labels"])
    risk = binary_cross_entropy_with_logits(model.head(h).squeeze(1), rows["target"].repeat(2))
    return risk + WEIGHT_OF_PUNCE * contrast


@dataclass(frozen=True)
class Scene:
    """The rows of one seed: all training images with their labels and soft targets, which are held out, the test."""

    x: Tensor
    labels: Tensor
    target: Tensor
    rows: Tensor
    held_out: Tensor
    x_test: Tensor
    truth: np.ndarray
    prior: float
    minutes: float
    """What the soft targets took."""

    @classmethod
    def of(cls, seed: int, work: Path) -> Scene:
        data = load("cifar10", download=False)
        sample = simulate_pu(data.train.y_true, N_LABELLED, "single_set", seed)
        x, x_test = (torch.from_numpy(part.X).float() / 255 for part in (data.train, data.test))
        truth = data.test.y_true == 1
        soft = _soft_targets(sample, x, x_test, truth, seed, work)
        target, labels = torch.from_numpy(soft["probability"]).float(), torch.from_numpy(sample.labels.astype(np.int64))
        rows, held_out = holdout_split(sample.labels, 0.2, seed)
        # A NumPy number in a checkpoint could not be read back.
        return cls(x, labels, target, rows, held_out, x_test, truth, sample.prior, float(soft["minutes"]))

    def batch(self, own: Tensor) -> dict[str, Tensor]:
        """The rows with these numbers."""
        return {"x": self.x[own], "target": self.target[own], "labels": self.labels[own]}


@dataclass(frozen=True)
class Plan:
    """What is trained, for how long, what came before, and where its checkpoint lies."""

    recipe: str
    seed: int
    epochs: int
    minutes: float
    path: Path


@dataclass(frozen=True)
class Trainee:
    """A network in training, and the running mean of its weights if that is what counts."""

    model: Whitened
    weights: torch.optim.Optimizer
    rate: torch.optim.lr_scheduler.LRScheduler
    mean: Whitened | None = None

    @property
    def parts(self) -> dict[str, Any]:
        """Everything a checkpoint holds."""
        parts = {"model": self.model, "weights": self.weights, "rate": self.rate}
        return parts if self.mean is None else {**parts, "mean": self.mean}

    def step(self, loss: Tensor) -> None:
        self.weights.zero_grad()
        loss.backward()
        self.weights.step()
        self.rate.step()
        if self.mean is not None:
            _follow(self.mean, self.model)


@torch.no_grad()
def _follow(mean: Whitened, model: Whitened) -> None:
    """The running mean after a step; the statistics of its normalisation are the model's."""
    for own, new in zip(mean.parameters(), model.parameters(), strict=True):
        own.lerp_(new, 1 - KEPT)
    for own, new in zip(mean.buffers(), model.buffers(), strict=True):
        own.copy_(new)


def train(scene: Scene, recipe: str, seed: int, epochs: int, until: float, work: Path) -> Path | None:
    """Stage 2; the checkpoint of its last epoch, or None where time ran out."""
    per_epoch = len(scene.rows) // BATCH
    torch.manual_seed(seed)
    model = Whitened(scene.x)

    def batches(generator: torch.Generator) -> Iterator[Tensor]:
        order = torch.randperm(len(scene.rows), generator=generator)[: per_epoch * BATCH]
        return (scene.rows[step] for step in order.view(-1, BATCH))

    def loss(own: Tensor, generator: torch.Generator) -> Tensor:
        return objective(model, recipe, scene.batch(own), generator, scene.prior)

    plan = Plan(recipe, seed, epochs, scene.minutes, work / f"{recipe}-{seed}-{epochs}.pt")
    return run_epochs(scene, plan, _trainee(model, RATE, epochs * per_epoch), batches, loss, until)


def train_consistent(scene: Scene, seed: int, epochs: int, until: float, work: Path) -> None:
    """Stage 3, from the network of stage 2."""
    if (student := train(scene, "soft", seed, epochs, until, work)) is None:
        return
    labelled, unlabelled = (scene.rows[scene.labels[scene.rows] == kind] for kind in (1, 0))
    others = BATCH - LAST_LABELLED
    per_epoch, risk = len(unlabelled) // others, NNPU(scene.prior)
    kept = torch.load(student, weights_only=True)
    model = Whitened(scene.x)
    model.load_state_dict(kept["model"])
    mean = deepcopy(model).eval()

    def batches(generator: torch.Generator) -> Iterator[Tensor]:
        order = unlabelled[torch.randperm(len(unlabelled), generator=generator)[: per_epoch * others]]
        for part in order.view(-1, others):
            drawn = torch.randint(len(labelled), (LAST_LABELLED,), generator=generator)
            yield torch.cat([part, labelled[drawn]])

    def loss(own: Tensor, generator: torch.Generator) -> Tensor:
        is_mirrored = bool(torch.rand((), generator=generator) < 0.5)
        with torch.no_grad():
            says = mean(scene.x[own[:others]].flip(3) if is_mirrored else scene.x[own[:others]])
        found = model(changed(scene.x[own], generator))
        is_sure = (torch.sigmoid(says.abs()) > SURE).float()
        taught = binary_cross_entropy_with_logits(found[:others], (says > 0).float(), reduction="none")
        value: Tensor = risk(found, scene.labels[own]) + (taught * is_sure).mean()
        return value

    plan = Plan("consistent", seed, LAST_EPOCHS, kept["minutes"], work / f"consistent-{seed}-{epochs}.pt")
    trainee = _trainee(model, LAST_RATE, LAST_EPOCHS * per_epoch, mean)
    run_epochs(scene, plan, trainee, batches, loss, until)


def _trainee(model: Whitened, rate: float, steps: int, mean: Whitened | None = None) -> Trainee:
    weights = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=DECAY, fused=True)
    cycle = torch.optim.lr_scheduler.OneCycleLR(weights, rate, total_steps=steps, pct_start=0.2)
    return Trainee(model, weights, cycle, mean)


def run_epochs(
    scene: Scene,
    plan: Plan,
    trainee: Trainee,
    batches: Callable[[torch.Generator], Iterator[Tensor]],
    loss: Callable[[Tensor, torch.Generator], Tensor],
    until: float,
) -> Path | None:
    """Train, write a line and a checkpoint after every epoch; None where time ran out."""
    first, minutes = 0, plan.minutes
    if plan.path.is_file():
        kept = torch.load(plan.path, weights_only=True)
        for name, part in trainee.parts.items():
            part.load_state_dict(kept[name])
        first, minutes = kept["epoch"], kept["minutes"]
    before, networks = time.process_time(), [trainee.model] if trainee.mean is None else [trainee.model, trainee.mean]
    with ExitStack() as stack:
        precision, *_ = [stack.enter_context(fast_convolutions(network.encoder)) for network in networks]
        for epoch in range(first, plan.epochs):
            generator = torch.Generator().manual_seed(1000 * plan.seed + epoch)
            for own in batches(generator):
                if time.perf_counter() > until:
                    return None  # the epoch is done again by the next call
                trainee.step(loss(own, generator))
            minutes += (time.process_time() - before) / 60
            line = {"recipe": plan.recipe, "seed": plan.seed, "epochs": plan.epochs, "epoch": epoch + 1}
            write(line | {"precision": precision} | judged(trainee.mean or trainee.model, scene), minutes)
            before = time.process_time()
            state = {name: part.state_dict() for name, part in trainee.parts.items()}
            torch.save({**state, "epoch": epoch + 1, "minutes": minutes}, plan.path.with_suffix(".tmp"))
            plan.path.with_suffix(".tmp").replace(plan.path)
    return plan.path


def _soft_targets(sample: PUSample, x: Tensor, x_test: Tensor, truth: np.ndarray, seed: int, work: Path) -> Any:
    """Stage 1, from the work folder if it is there."""
    path = work / f"patches-{seed}.npz"
    if not path.is_file():
        found = stage_one(sample, x, x_test, seed, work)
        # Chunks of an earlier call count too.
        chunks = sum(float(file.read_text()) for file in work.glob(f"patches-{seed}-*/*.seconds"))
        minutes = (chunks + found.pop("seconds")) / 60
        with path.with_suffix(".tmp").open("wb") as file:
            np.savez(file, **found, minutes=minutes)
        path.with_suffix(".tmp").replace(path)
        accuracy = 100 * float(((found["test"] > 0) == truth).mean())
        write({"recipe": "patches", "seed": seed, "test_accuracy": accuracy}, minutes)
    return np.load(path)


def judged(model: Whitened, scene: Scene) -> dict[str, float]:
    """The held-out PU risk, which may choose, and the test accuracy, which may not."""
    own = scene.held_out
    risk = zero_one_risk(scored(model, scene.x[own]), scene.labels[own], scene.prior, 0.0)
    accuracy = 100 * float(((scored(model, scene.x_test) > 0).numpy() == scene.truth).mean())
    return {"held_out_risk": round(float(risk), 5), "test_accuracy": accuracy}


def write(line: dict[str, Any], minutes: float) -> None:
    """Append a line of results."""
    done = {**line, "n_labelled": N_LABELLED, "cpu_minutes": round(minutes, 2)}
    add_lines(FILE, done)
    print(done, flush=True)


def show() -> None:
    """All lines, by recipe and minutes, and the figure of docs/images.md."""
    lines = sorted(
        lines_of(FILE),
        key=lambda line: (line["recipe"], line["seed"], line.get("epochs", 0), line["cpu_minutes"]),
    )
    for line in lines:
        print(f"{line['recipe']:10} seed {line['seed']} {line['cpu_minutes']:6.1f} min {line['test_accuracy']:.2f} %")
    _draw(lines)


def _draw(lines: list[dict[str, Any]]) -> None:
    """Accuracy by minutes: a line for each run, a colour for each recipe."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "punce"
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4), constrained_layout=True)
    colours, named = {recipe: f"C{k}" for k, recipe in enumerate(RECIPES)}, set()
    for (recipe, *_), run in groupby(lines, key=lambda line: (line["recipe"], line["seed"], line.get("epochs"))):
        points = [(line["cpu_minutes"], line["test_accuracy"]) for line in run]
        axes.plot(*zip(*points, strict=True), "o-", color=colours[recipe], label=None if recipe in named else recipe)
        named.add(recipe)
    axes.axhline(GOAL, color="grey", linestyle=":", label=f"goal {GOAL} %")
    axes.set(xlabel="CPU minutes on one core, all stages before included", ylabel="test accuracy, per cent")
    axes.legend()
    figure.savefig(FIGURE, metadata={"Date": None})
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "show"))
    parser.add_argument("--recipe", choices=RECIPES, default="consistent")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--work", type=Path, default=Path("runs/cifar_scratch"))
    given = parser.parse_args()
    if given.what == "show":
        show()
        return
    torch.set_num_threads(1)
    given.work.mkdir(parents=True, exist_ok=True)
    until, scene = time.perf_counter() + given.seconds, Scene.of(given.seed, given.work)
    if given.recipe == "consistent":
        train_consistent(scene, given.seed, given.epochs, until, given.work)
    elif given.recipe != "patches":
        train(scene, given.recipe, given.seed, given.epochs, until, given.work)


if __name__ == "__main__":
    main()
