"""MNIST odd/even, n_P = 1000, CPU-sized MLP (width 0.2): pretrain with each loss, probe with nnPU, on one seed.

    PUNCE_DATA=... python benchmarks/mnist_losses.py                    # every loss that has no result yet
    PUNCE_DATA=... python benchmarks/mnist_losses.py --only punce --optimizer lars --lr 1.0

Selection is by PU-only held-out risk; `oracle` numbers use the test labels and are named so. The paper's figures are
for 200 epochs of the full network; ours are CPU-sized runs and stand beside them. Results are added to
benchmarks/results/mnist_losses.json one by one, so the command can be killed and repeated.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np
import torch
from machine import RESULTS, save

from punce.data import Dataset, PUSample, load, simulate_pu
from punce.encoders import MLP
from punce.losses import build_loss
from punce.risks import NNPU
from punce.stages.pretrain import PretrainConfig, pretrain
from punce.stages.probe import ProbeConfig, extract_features, probe
from punce.views import VIEWS

N_LABELLED, WIDTH = 1000, 0.2
PAPER = {"infonce": 94.15, "dcl": 94.32, "scl": 94.24, "punce": 94.70}  # Table 1, PU MNIST, n_P = 1k


def run(name: str, data: Dataset, sample: PUSample, config: PretrainConfig, temperature: float) -> dict[str, Any]:
    X, view = torch.from_numpy(data.train.X), VIEWS["digit"]()
    torch.manual_seed(config.seed)
    encoder = MLP(width=WIDTH)
    start = time.perf_counter()
    history = pretrain(
        encoder, view, X, sample.labels, build_loss(name, sample.prior, temperature=temperature), config, progress=True
    )
    pretrained = time.perf_counter()
    features = extract_features(encoder, view, X)
    head = probe(features, sample.labels, NNPU(sample.prior), ProbeConfig(seed=config.seed), prior=sample.prior)
    done = time.perf_counter()
    test = extract_features(encoder, view, torch.from_numpy(data.test.X))
    return {
        "test_accuracy": accuracy(head(test), data.test.y_true),
        "oracle_linear_accuracy": oracle_accuracy(features, data.train.y_true, test, data.test.y_true),
        "held_out_pu_risk": min(row["held_out_risk"] for row in head.history),
        "paper_200_epochs": PAPER[name],
        "seconds": {"pretrain": pretrained - start, "features and probe": done - pretrained},
        "loss_by_epoch": [row["loss"] for row in history],
    }


def accuracy(scores: torch.Tensor, y_true: np.ndarray) -> float:
    return 100 * float(((scores > 0).numpy() == (y_true == 1)).mean())


def oracle_accuracy(x: torch.Tensor, y: np.ndarray, x_test: torch.Tensor, y_test: np.ndarray) -> float:
    """A linear layer trained on *all true labels*: how much of what is missing lies in the representation."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)).fit(x.numpy(), y)
    return 100 * float(model.score(x_test.numpy(), y_test))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=list(PAPER), choices=list(PAPER))
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--optimizer", default="adam")
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--temperature", type=float, default=0.5)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    path = RESULTS / "mnist_losses.json"
    results: dict[str, Any] = json.loads(path.read_text())["runs"] if path.exists() else {}
    data = load("mnist")
    sample = simulate_pu(data.train.y_true, N_LABELLED, seed=arguments.seed)
    for name in arguments.only:
        config = PretrainConfig(
            epochs=arguments.epochs,
            batch_size=arguments.batch_size,
            optimizer=arguments.optimizer,
            lr=arguments.lr,
            monitor_prior=sample.prior,
            seed=arguments.seed,
        )
        key = (
            f"{name}, {config.optimizer} {config.lr:g}, {config.epochs} epochs, batch {config.batch_size}, "
            f"temperature {arguments.temperature:g}, seed {config.seed}"
        )
        if key not in results:
            results[key] = run(name, data, sample, config, arguments.temperature)
            setting = {"data": "mnist odd/even", "n_labelled": N_LABELLED, "encoder": f"MLP width {WIDTH}"}
            save("mnist_losses", {"setting": setting, "runs": results})
        row = results[key]
        print(
            f"{key}: test accuracy {row['test_accuracy']:.2f} (paper {row['paper_200_epochs']}), oracle linear "
            f"{row['oracle_linear_accuracy']:.2f}, {row['seconds']['pretrain']:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
