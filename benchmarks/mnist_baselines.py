"""The classic PU methods trained jointly (encoder and head) on MNIST odd/even with 1,000 labelled positives.

    PUNCE_DATA=... python benchmarks/mnist_baselines.py                  # what is missing or had other settings
    PUNCE_DATA=... python benchmarks/mnist_baselines.py --only nnpu      # one, anew
    PUNCE_DATA=... python benchmarks/mnist_baselines.py --show           # the table, without training

The paper's MLP at width 0.2, single_set, seed 0. "selected" is the test accuracy of the epoch that held-out P and U
chose; "oracle" is that of the best epoch by test labels, which nobody without negatives could choose. Each method's
result is written as soon as it is there. On a busy machine read "cpu_seconds", over all threads, not "seconds". The
paper trains the full width for longer.

PN calls every row negative, as it should: 2 % of the rows are labelled, so none is more likely labelled than not. It
takes a network that knows its labelled rows by heart to call others positive; the paper's may have got there.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch
from machine import RESULTS, save
from torch import Tensor

from punce.data import load, simulate_pu
from punce.encoders import MLP
from punce.labels import Labels
from punce.risks import NNPU, PN, UPU, PvU, Risk
from punce.risks.vpu import phi_decision_score, phi_scale
from punce.stages.finetune import FinetuneConfig, finetune
from punce.stages.probe import extract_features
from punce.stages.scorer import Observer, ScoreRows
from punce.stages.selfpu import SelfPUConfig, selfpu
from punce.stages.vpu import VPUConfig, train_vpu
from punce.views import View, digit

NAME = "mnist_baselines"
WIDTH, N_LABELLED, SEED = 0.2, 1000, 0
PAPER = {"pn": 65.32, "pvu": 91.10, "upu": 91.14, "nnpu": 91.83}  # Table 2, PU MNIST, n_P = 1k


@dataclass(frozen=True)
class Setting:
    X: Tensor
    labels: Labels
    prior: float
    X_test: Tensor
    is_positive: Tensor
    view: View

    def accuracy(self, scores: Tensor, cut: float) -> float:
        return 100.0 * float(((scores > cut) == self.is_positive).float().mean())

    def oracle(self, cut_of: Callable[[Tensor], float]) -> Observer:
        """Watches test accuracy; training never sees it."""

        def watch(scores_of: ScoreRows) -> dict[str, float]:
            scores = scores_of(self.X_test)
            return {"oracle_accuracy": self.accuracy(scores, cut_of(scores))}

        return watch


@dataclass(frozen=True)
class Method:
    """What decides a method's numbers, and how to get them: run() -> (history, test accuracy of the chosen epoch)."""

    config: dict[str, Any]
    run: Callable[[], tuple[list[dict[str, Any]], float]]


def setting() -> Setting:
    data = load("mnist", download=False)
    sample = simulate_pu(data.train.y_true, N_LABELLED, "single_set", SEED)
    X = torch.from_numpy(data.train.X)
    is_positive = torch.from_numpy(data.test.y_true == 1)
    return Setting(X, sample.labels, sample.prior, torch.from_numpy(data.test.X), is_positive, digit().fit(X))


def joint(make: Callable[[float], Risk], **changes: Any) -> Callable[[Setting], Method]:
    def method(s: Setting) -> Method:
        risk, config = make(s.prior), FinetuneConfig(**changes)

        def run() -> tuple[list[dict[str, Any]], float]:
            encoder, watch = MLP(784, WIDTH), s.oracle(lambda _: risk.decision_score)
            head = finetune(
                encoder, s.view, s.X, s.labels, risk, config, prior=s.prior, from_scratch=True, observer=watch
            )
            scores = head(extract_features(encoder, s.view, s.X_test))
            return head.history, s.accuracy(scores, risk.decision_score)

        return Method({"risk": repr(risk), **asdict(config)}, run)

    return method


def variational(s: Setting) -> Method:
    # The rate by held-out variational loss: at 1e-4 and above the best moment is over before the first epoch ends.
    config = VPUConfig(epochs=3, batch_size=1024, lr=2e-5)

    def run() -> tuple[list[dict[str, Any]], float]:
        encoder = MLP(784, WIDTH)
        # While it trains the scale is not fixed yet; the watcher takes the test rows' own quantile.
        watch = s.oracle(lambda scores: phi_decision_score(phi_scale(scores, config.quantile)))
        head = train_vpu(encoder, s.view, s.X, s.labels, config, observer=watch)
        scores = head(extract_features(encoder, s.view, s.X_test))
        return head.history, s.accuracy(scores, head.decision_score)

    return Method(asdict(config), run)


def self_pu(s: Setting) -> Method:
    config = SelfPUConfig(epochs=6, batch_size=1024, select_from=2, select_until=5, select_every=1)

    def run() -> tuple[list[dict[str, Any]], float]:
        encoder = MLP(784, WIDTH)
        head = selfpu(encoder, s.view, s.X, s.labels, config, prior=s.prior, observer=s.oracle(lambda _: 0.0))
        return head.history, s.accuracy(head(extract_features(encoder, s.view, s.X_test)), 0.0)

    return Method(asdict(config), run)


METHODS: dict[str, Callable[[Setting], Method]] = {
    "pn": joint(lambda prior: PN(), epochs=20),
    "pvu": joint(lambda prior: PvU(), epochs=8),
    "upu": joint(UPU, epochs=8),
    "nnpu": joint(NNPU, epochs=8),
    "vpu": variational,
    "selfpu": self_pu,
}


def measure(name: str, method: Method) -> dict[str, Any]:
    began, cpu_began = time.perf_counter(), time.process_time()
    history, selected = method.run()
    return {
        "selected": round(selected, 2),
        "oracle": round(max(selected, *(row["oracle_accuracy"] for row in history)), 2),
        "paper": PAPER.get(name),
        "seconds": round(time.perf_counter() - began, 1),
        "cpu_seconds": round(time.process_time() - cpu_began, 1),
        "config": as_json(method.config),
        "history": history,
    }


def as_json(config: dict[str, Any]) -> dict[str, Any]:
    """As it comes back from a file: tuples are lists there."""
    return dict(json.loads(json.dumps(config)))


def results() -> dict[str, Any]:
    path = RESULTS / f"{NAME}.json"
    return json.loads(path.read_text())["methods"] if path.exists() else {}


def is_current(row: dict[str, Any] | None, method: Method) -> bool:
    return row is not None and row["config"] == as_json(method.config)


def table(methods: dict[str, Method]) -> str:
    rows = results()
    lines = [f"{'method':8} {'selected':>9} {'oracle':>8} {'paper':>8} {'seconds':>8} {'cpu':>7}"]
    for name in METHODS:
        if row := rows.get(name):
            paper = "–" if row["paper"] is None else f"{row['paper']:.2f}"
            cost = f"{row['seconds']:8.1f} {row.get('cpu_seconds', float('nan')):7.1f}"
            note = "" if is_current(row, methods[name]) else "  (measured with other settings: run again)"
            lines.append(f"{name:8} {row['selected']:9.2f} {row['oracle']:8.2f} {paper:>8} {cost}{note}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=METHODS, default=[], help="these methods, anew")
    parser.add_argument("--show", action="store_true", help="print the table and train nothing")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    s = setting()
    methods = {name: make(s) for name, make in METHODS.items()}
    stale = [name for name, method in methods.items() if not is_current(results().get(name), method)]
    for name in [] if arguments.show else arguments.only or stale:
        measured = measure(name, methods[name])
        # Read again just before writing, so that another method's result that came meanwhile stays.
        rows = results() | {name: measured}
        facts = {"data": "mnist odd/even", "n_labelled": N_LABELLED, "scenario": "single_set", "seed": SEED}
        save(NAME, {**facts, "prior": s.prior, "encoder": f"MLP(784, width={WIDTH})", "methods": rows})
    print(table(methods))


if __name__ == "__main__":
    main()
