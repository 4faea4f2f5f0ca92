"""Which optimiser, schedule, temperature, views and probe suit puNCE on MNIST odd/even, chosen without a true label.

    PUNCE_DATA=... python benchmarks/mnist_tuning.py                      # every variation that has no result yet
    PUNCE_DATA=... python benchmarks/mnist_tuning.py --only base '30 epochs'   # these
    PUNCE_DATA=... python benchmarks/mnist_tuning.py --show               # the table, without training

A fifth of P and U is kept out of pretraining and of the probe; the variation is chosen by the probe's PU estimate of
the zero-one risk there (ties: by the AUC corrected for the positives among U). `oracle_accuracy` is the test accuracy,
printed beside it so that a reader can see how good such a choice is; nothing is chosen by it. CPU-sized: MLP of width
0.2, one seed. Results are added to benchmarks/results/mnist_tuning.json one by one.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from machine import RESULTS, save

from punce.data import Dataset, load, simulate_pu
from punce.encoders import MLP
from punce.judging.ranking import auc_between
from punce.losses import PuNCE
from punce.risks import NNPU
from punce.risks.base import zero_one_risk
from punce.stages.pretrain import PretrainConfig, pretrain
from punce.stages.probe import LinearHead, ProbeConfig, extract_features, probe
from punce.training.splits import holdout_split
from punce.views import VIEWS

NAME = "mnist_tuning"
WIDTH, SEED = 0.2, 0


@dataclass(frozen=True)
class Variation:
    """What differs from the base recipe: Adam 1e-3, 15 epochs of batches of 1024, temperature 0.5, `digit` views."""

    pretrain: dict[str, Any] = field(default_factory=dict)
    view: dict[str, Any] = field(default_factory=dict)
    temperature: float = 0.5


STRONGER_VIEWS = {"degrees": 20.0, "shift": 0.1, "shear": 15.0, "zoom": (0.75, 1.25), "crop_scale": (0.4, 1.0)}
WEAKER_VIEWS = {"degrees": 10.0, "shift": 0.05, "shear": 5.0, "zoom": (0.9, 1.1), "crop_scale": (0.7, 1.0)}
VARIATIONS = {
    "base": Variation(),
    "LARS 1.0, the paper's optimiser": Variation({"optimizer": "lars", "lr": 1.0}),
    "LARS 4.0": Variation({"optimizer": "lars", "lr": 4.0}),
    "Adam 2e-3": Variation({"lr": 2e-3}),
    "batch 512": Variation({"batch_size": 512}),
    "temperature 0.2": Variation(temperature=0.2),
    "temperature 1.0": Variation(temperature=1.0),
    "stronger views": Variation(view=STRONGER_VIEWS),
    "weaker views": Variation(view=WEAKER_VIEWS),
    "30 epochs": Variation({"epochs": 30}),
    "weaker views, temperature 1.0": Variation(view=WEAKER_VIEWS, temperature=1.0),
    "weaker views, batch 512": Variation({"batch_size": 512}, view=WEAKER_VIEWS),
    "weaker views, 30 epochs": Variation({"epochs": 30}, view=WEAKER_VIEWS),
}
PROBES: dict[str, dict[str, Any]] = {
    "rate 1e-3": {"lr": 1e-3},
    "weight decay 1e-3": {"weight_decay": 1e-3},
    "200 epochs": {"epochs": 200},
    "batches as the data are": {"labelled_share": None},
}
"""Other ways to train the linear layer: Adam 1e-2, 60 epochs, a quarter of each batch labelled is the base."""


def run(variation: Variation, data: Dataset, n_labelled: int) -> dict[str, Any]:
    sample = simulate_pu(data.train.y_true, n_labelled, seed=SEED)
    train, held_out = holdout_split(sample.labels, 0.2, SEED)
    X, labels = torch.from_numpy(data.train.X), sample.labels
    view = VIEWS["digit"](**variation.view)
    config = PretrainConfig(**{"monitor_prior": sample.prior, "seed": SEED, **variation.pretrain})
    torch.manual_seed(SEED)
    encoder, start = MLP(width=WIDTH), time.perf_counter()
    loss = PuNCE(sample.prior, variation.temperature)
    pretrain(encoder, view, X[train], labels[train.numpy()], loss, config, progress=True)
    seconds = round(time.perf_counter() - start, 1)
    features = extract_features(encoder, view, X)
    test = extract_features(encoder, view, torch.from_numpy(data.test.X))
    is_odd = torch.from_numpy(data.test.y_true == 1)

    def judged(settings: dict[str, Any]) -> dict[str, float]:
        # All that is left trains the probe: its epoch is the last, so the held-out rows are used once, by the choice.
        stage = ProbeConfig(**{"validation_share": 0.0, "seed": SEED, **settings})
        head = probe(features[train], labels[train.numpy()], NNPU(sample.prior), stage, prior=sample.prior)
        found = judge(head, features[held_out], torch.from_numpy(labels[held_out.numpy()]), sample.prior)
        return {**found, "oracle_accuracy": 100 * float(((head(test) > 0) == is_odd).float().mean())}

    return {
        **judged({}),
        "probes": {name: judged(settings) for name, settings in PROBES.items()},
        "seconds": seconds,
        "config": {**asdict(config), "view": asdict(view), "temperature": variation.temperature},
    }


def judge(head: LinearHead, features: torch.Tensor, labels: torch.Tensor, prior: float) -> dict[str, float]:
    """What held-out P and U say: the zero-one risk under U's mix, and the AUC of positives against negatives."""
    scores = head(features)
    auc_pu = auc_between(scores[labels == 1].numpy(), scores[labels == 0].numpy())
    return {
        "held_out_pu_risk": zero_one_risk(scores, labels, prior),
        "held_out_auc": (auc_pu - prior / 2) / (1 - prior),
    }


def results() -> dict[str, Any]:
    path = RESULTS / f"{NAME}.json"
    return json.loads(path.read_text())["n_labelled"] if path.exists() else {}


def table(n_labelled: int) -> str:
    rows = results().get(str(n_labelled), {})
    lines = [f"{n_labelled:,} labelled{'':23} {'PU risk':>8} {'PU AUC':>8} {'oracle':>8} {'seconds':>8}"]
    for name, row in sorted(rows.items(), key=lambda item: (item[1]["held_out_pu_risk"], -item[1]["held_out_auc"])):
        numbers = f"{row['held_out_pu_risk']:8.4f} {row['held_out_auc']:8.4f} {row['oracle_accuracy']:8.2f}"
        lines.append(f"{name:38} {numbers} {row['seconds']:8.0f}")
        for probed, found in row.get("probes", {}).items():
            numbers = f"{found['held_out_pu_risk']:8.4f} {found['held_out_auc']:8.4f} {found['oracle_accuracy']:8.2f}"
            lines.append(f"  probe: {probed:29} {numbers}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(VARIATIONS), default=list(VARIATIONS))
    parser.add_argument("--n-labelled", type=int, default=10_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--show", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    key = str(arguments.n_labelled)
    data = load("mnist", download=False)
    for name in [] if arguments.show else arguments.only:
        if name in results().get(key, {}):
            continue
        row = run(VARIATIONS[name], data, arguments.n_labelled)
        # Read again just before writing, so that what another process found meanwhile stays.
        known = results()
        known[key] = known.get(key, {}) | {name: row}
        save(NAME, {"data": "mnist odd/even", "encoder": f"MLP width {WIDTH}", "seed": SEED, "n_labelled": known})
    print(table(arguments.n_labelled))


if __name__ == "__main__":
    main()
