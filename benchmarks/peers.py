"""pulearn, pu-toolbox, pytorch-metric-learning and lightly beside punce: one run of each, every answer checked.

    python benchmarks/peers.py [--seconds 600] [--only abilities classifiers losses bad_input bad_batch ranks start]

Lines go to results/peers.jsonl, one for each question and library, each from a process of its own; what is there is not
asked again. The summary is results/peers.json. Seconds are CPU seconds, which other work on the machine changes little;
run it with OMP_NUM_THREADS=1 and modules compiled (`python -m compileall -q src`).

- classifiers: three tables that come with scikit-learn, at most 100 labelled positives, half of the rows for the test,
  three seeds: true accuracy, AUC and calibration error on the test rows; peak memory; seconds of the first fit of a
  process, with what the library imports, but for NumPy and scikit-learn, which the tables have loaded before. The
  libraries' classifiers as their documentation shows them; nnPU of pu-toolbox and of pulearn is told the true share;
  pu-toolbox's gives scores and calls, no probabilities.
- losses: value and gradient of InfoNCE at 512 views in float32 against float64 by the definition, at temperatures 0.5
  and 0.05; seconds (best of three) and extra peak memory at 4,096 views.
- bad_input: what happens to rows and labels that cannot be meant: a clear error, another error, or a model.
- bad_batch: the same for losses (peer_batches.py).
- abilities: the share of positives, and contrastive PU classifiers (peer_abilities.py).
- ranks: two processes (gloo), half of the batch each: the largest difference of the gradient from one process.
- start: seconds of Python with this import; best of three.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from json_lines import add_lines, lines_of

HERE = Path(__file__).parent
LINES = HERE / "results" / "peers.jsonl"
TABLES = ("breast_cancer", "digits", "wine")
SEEDS = (0, 1, 2)
N_LABELLED = 100
CLASSIFIERS = (
    "punce",
    "pulearn Elkan-Noto",
    "pulearn bagging",
    "pulearn nnPU, true prior",
    "pu-toolbox nnPU, true prior",
)
LOSSES = ("punce InfoNCE", "pytorch-metric-learning NTXentLoss", "lightly NTXentLoss")
SUPCON = "pytorch-metric-learning SupConLoss"
ABILITIES = ("punce combined", "pulearn SCAR-EM", "pu-toolbox KM1", "punce puNCE", "pu-toolbox WConPU")
IMPORTS = {
    "Python alone": "pass",
    "punce": "import punce",
    "punce PUClassifier": "from punce import PUClassifier",
    "pulearn": "import pulearn",
    "pu-toolbox": "import pu_toolbox",
    "pytorch-metric-learning": "from pytorch_metric_learning import losses",
    "lightly NTXentLoss": "import lightly_loss; lightly_loss.ntxent(0.5)",
    "torch, which all but pulearn need": "import torch",
}
WRONG = (
    "a NaN in a column",
    "an infinite number",
    "a column of text",
    "no labelled row",
    "no unlabelled row",
    "labels 1, 2 and 3",
    "more rows than labels",
    "new rows with a column less",
)
Fitted = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def questions() -> Iterator[dict[str, Any]]:
    yield from ({"about": "start", "of": name} for name in IMPORTS)
    yield from ({"about": "losses", "of": name} for name in LOSSES)
    yield from ({"about": "ranks", "of": name} for name in LOSSES)
    yield from ({"about": "bad_input", "of": name} for name in CLASSIFIERS)
    yield from ({"about": "bad_batch", "of": name} for name in (*LOSSES, "punce SCL", SUPCON))
    yield from ({"about": "abilities", "of": name} for name in ABILITIES)
    for table in TABLES:
        for seed in SEEDS:
            yield from ({"about": "classifiers", "of": name, "table": table, "seed": seed} for name in CLASSIFIERS)


# --- Classifiers ------------------------------------------------------------------------------------------------------


def fit(name: str, x: np.ndarray, labels: np.ndarray, prior: float, seed: int) -> Fitted:
    """A function that gives the probability of being positive and the calls, of new rows."""
    if name == "punce":
        from punce import PUClassifier

        model: Any = PUClassifier(random_state=seed)
    elif name.startswith("pulearn"):
        model = _pulearn(name, labels, prior, seed)
    else:
        model = _toolbox(x.shape[1], prior, seed)
    model.fit(x, labels)
    return lambda new: (_probability(model, new), np.asarray(model.predict(new)).ravel() == 1)


def _pulearn(name: str, labels: np.ndarray, prior: float, seed: int) -> Any:
    import pulearn
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.tree import DecisionTreeClassifier

    if "Elkan" in name:
        return pulearn.ElkanotoPuClassifier(RandomForestClassifier(100, random_state=seed), 0.2, seed)
    if "bagging" in name:
        size = int(max(1, labels.sum()))
        return pulearn.BaggingPuClassifier(DecisionTreeClassifier(), 100, max_samples=size, random_state=seed)
    return pulearn.NNPUClassifier(prior=prior, random_state=seed)


def _toolbox(width: int, prior: float, seed: int) -> Any:
    import torch
    from pu_toolbox.estimators.risk.nnpu import NonNegativePUClassifier

    torch.manual_seed(seed)
    net = torch.nn.Sequential(torch.nn.Linear(width, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    return NonNegativePUClassifier(net, class_prior=prior, optimizer=optimizer, max_epochs=50, random_state=seed)


def _probability(model: Any, x: np.ndarray) -> np.ndarray:
    """Probabilities, or where a library gives none, its scores."""
    try:
        found = np.asarray(model.predict_proba(x), dtype=np.float64)
    except NotImplementedError:
        return np.asarray(model.decision_function(x), dtype=np.float64).ravel()
    return found[:, 1] if found.ndim == 2 else found


def problem(table: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float]:
    """Standardised training rows, labels, test rows and their classes, and the true share in the unlabelled rows."""
    import sklearn.datasets
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import StandardScaler

    x, y = getattr(sklearn.datasets, f"load_{table}")(return_X_y=True)
    y = y % 2 == 1 if table == "digits" else y == 1
    x, x_test, y, y_test = train_test_split(x, y, test_size=0.5, stratify=y, random_state=seed)
    scale = StandardScaler().fit(x)
    positive = np.random.default_rng(seed).permutation(np.flatnonzero(y))
    labels = np.zeros(len(y), dtype=np.int64)
    labels[positive[: min(N_LABELLED, len(positive) // 2)]] = 1
    return scale.transform(x), labels, scale.transform(x_test), y_test, float(y[labels == 0].mean())


def classifiers(question: dict[str, Any]) -> dict[str, Any]:
    from sklearn.metrics import roc_auc_score

    x, labels, x_test, y_test, prior = problem(question["table"], question["seed"])
    start = time.process_time()
    fitted = fit(question["of"], x, labels, prior, question["seed"])
    seconds = time.process_time() - start
    p, called = fitted(x_test)
    return {
        "accuracy": float((called == y_test).mean()),
        "auc": float(roc_auc_score(y_test, p)),
        "calibration_error": None if "toolbox" in question["of"] else calibration_error(np.clip(p, 0, 1), y_test),
        "beyond_0_and_1": bool((p < 0).any() or (p > 1).any()),  # of a library without probabilities: of its scores
        "seconds": seconds,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def calibration_error(p: np.ndarray, y: np.ndarray) -> float:
    """Ten bins with as many rows each: mean distance of the mean probability from the share of positives."""
    bins = np.array_split(np.argsort(p), 10)
    return float(sum(len(rows) * abs(p[rows].mean() - y[rows].mean()) for rows in bins) / len(p))


# --- Bad input --------------------------------------------------------------------------------------------------------


def bad_input(question: dict[str, Any]) -> dict[str, Any]:
    return {what: _answer(question["of"], what) for what in WRONG}


def _answer(name: str, what: str) -> str:
    x, labels, new = _wrong(what)
    try:
        p, _ = fit(name, x, labels, 0.3, 0)(new)
    except Exception as error:
        words = " ".join(str(error).split())[:160]
        return f"{type(error).__name__}: {words}"
    return "accepted" if np.isfinite(p).all() else f"accepted, {int((~np.isfinite(p)).sum())} probabilities are NaN"


def _wrong(what: str) -> tuple[Any, np.ndarray, Any]:
    rng = np.random.default_rng(0)
    x: Any = rng.normal(size=(300, 5))
    labels, new = (np.arange(300) < 60).astype(np.int64), x[:50].copy()
    x[:60] += 1.0
    if what == "a NaN in a column":
        x[3, 1] = np.nan
    elif what == "an infinite number":
        x[3, 1] = np.inf
    elif what == "a column of text":
        x = x.astype(object)
        x[:, 0] = [f"town {k % 3}" for k in range(300)]
        new = x[:50]
    elif what == "no labelled row":
        labels[:] = 0
    elif what == "no unlabelled row":
        labels[:] = 1
    elif what == "labels 1, 2 and 3":
        labels = np.arange(300) % 3 + 1
    elif what == "more rows than labels":
        labels = labels[:-10]
    else:
        new = new[:, :4]
    return x, labels, new


# --- Losses -----------------------------------------------------------------------------------------------------------


def loss_of(name: str, temperature: float, **options: Any) -> Callable[[Any], Any]:
    """InfoNCE of the two views z (2, b, d)."""
    import torch

    if name.startswith("punce"):
        from punce.losses import InfoNCE

        ours = InfoNCE(temperature)
        return lambda z: ours(z, torch.zeros(z.shape[1], dtype=torch.long))
    if name.startswith("lightly"):
        from lightly_loss import ntxent

        theirs = ntxent(temperature, **options)
        return lambda z: theirs(z[0], z[1])
    from pytorch_metric_learning.losses import NTXentLoss

    metric: Any = NTXentLoss(temperature=temperature)
    if options:
        from pytorch_metric_learning.utils.distributed import DistributedLossWrapper

        metric = DistributedLossWrapper(metric)
        rank, both = torch.distributed.get_rank(), torch.distributed.get_world_size()
        return lambda z: metric(z.flatten(0, 1), (torch.arange(z.shape[1]) + rank * z.shape[1]).repeat(2)) * both / both
    return lambda z: metric(z.flatten(0, 1), torch.arange(z.shape[1]).repeat(2))


def reference(z: Any, temperature: float) -> Any:
    """InfoNCE by its definition."""
    import torch
    import torch.nn.functional as F

    views = F.normalize(z.flatten(0, 1), dim=1)
    n, b = len(views), z.shape[1]
    logits = (views @ views.T / temperature).masked_fill(torch.eye(n, dtype=torch.bool), -math.inf)
    return F.cross_entropy(logits, (torch.arange(n) + b) % n)


def views(n: int) -> Any:
    import torch

    generator = torch.Generator().manual_seed(0)
    first = torch.randn(n // 2, 128, generator=generator)
    return torch.stack([first, first + 2.0 * torch.randn(n // 2, 128, generator=generator)])


def gradient(loss: Callable[[Any], Any], z: Any) -> tuple[float, Any]:
    z = z.clone().requires_grad_()
    value = loss(z)
    value.backward()
    return float(value.detach()), z.grad


def abilities(question: dict[str, Any]) -> dict[str, Any]:
    import peer_abilities

    return peer_abilities.abilities(question["of"], problem("breast_cancer", 0))


def losses(question: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for temperature in (0.5, 0.05):
        z = views(512)
        value, grad = gradient(loss_of(question["of"], temperature), z)
        exact, exact_grad = gradient(lambda z, t=temperature: reference(z, t), z.double())
        found[f"error of the value at {temperature}"] = abs(value - exact) / abs(exact)
        found[f"error of the gradient at {temperature}"] = float((grad - exact_grad).norm() / exact_grad.norm())
    return {**found, **cost(loss_of(question["of"], 0.5), views(4096))}


def bad_batch(question: dict[str, Any]) -> dict[str, Any]:
    import peer_batches

    return peer_batches.bad_batch(question)


def cost(loss: Callable[[Any], Any], z: Any) -> dict[str, Any]:
    """Seconds and extra memory of a forward and backward pass, or why there is none."""
    gradient(loss, z[:, :64])
    before, seconds = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, []
    try:
        for _ in range(3):
            start = time.process_time()
            gradient(loss, z)
            seconds.append(time.process_time() - start)
    except RuntimeError as error:  # torch's for memory that cannot be had
        return {"failed at 4096": str(error)[-120:]}
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"seconds at 4096": min(seconds), "extra_mb at 4096": (after - before) / 1024}


# --- Two ranks --------------------------------------------------------------------------------------------------------


def ranks(question: dict[str, Any]) -> dict[str, Any]:
    """Each rank has half of the rows; DistributedDataParallel averages gradients of parameters over the ranks."""
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    line = [sys.executable, __file__, "--rank-of", question["of"], "--port", str(port), "--rank"]
    started = [subprocess.Popen([*line, str(rank)], stdout=subprocess.PIPE, text=True) for rank in (0, 1)]
    said = [process.communicate(timeout=300)[0] for process in started]
    return json.loads(said[0].splitlines()[-1])


def one_rank(name: str, port: int, rank: int) -> None:
    import torch

    address = f"tcp://127.0.0.1:{port}"
    torch.distributed.init_process_group("gloo", init_method=address, rank=rank, world_size=2)
    torch.manual_seed(0)
    layer = torch.nn.Linear(128, 64).double()
    z = views(256).double()
    gradient_of(lambda z: reference(z, 0.5), layer, z)
    exact = layer.weight.grad.clone()
    half = z[:, rank::2] if "metric" not in name else z[:, rank * 64 : (rank + 1) * 64]
    options = {} if name.startswith("punce") else {"gather_distributed": True}
    gradient_of(loss_of(name, 0.5, **options), layer, half)
    torch.distributed.all_reduce(layer.weight.grad)
    mean = layer.weight.grad / 2
    if rank == 0:
        off = float((mean - exact).norm() / exact.norm())
        cosine = float(torch.nn.functional.cosine_similarity(mean.flatten(), exact.flatten(), dim=0))
        print(json.dumps({"gradient_off": off, "cosine": cosine}))
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


def gradient_of(loss: Callable[[Any], Any], layer: Any, z: Any) -> None:
    layer.zero_grad()
    loss(layer(z)).backward()


# --- All of it --------------------------------------------------------------------------------------------------------


def start(question: dict[str, Any]) -> dict[str, Any]:
    seconds = []
    for _ in range(3):
        before = _of_children()
        subprocess.run([sys.executable, "-c", IMPORTS[question["of"]]], check=True, capture_output=True, cwd=HERE)
        seconds.append(_of_children() - before)
    return {"seconds": min(seconds)}


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


ASKED = {
    "abilities": abilities,
    "classifiers": classifiers,
    "bad_input": bad_input,
    "bad_batch": bad_batch,
    "losses": losses,
    "ranks": ranks,
    "start": start,
}


def answered(question: dict[str, Any]) -> dict[str, Any]:
    """By a process of its own, so that memory and imports are its own."""
    line = [sys.executable, __file__, "--ask", json.dumps(question)]
    done = subprocess.run(
        line, capture_output=True, text=True, timeout=900, env={**os.environ, "PYTHONWARNINGS": "ignore"}
    )
    if done.returncode:
        return {**question, "failed": (done.stderr.strip().splitlines() or ["no word"])[-1][:200]}
    return {**question, **json.loads(done.stdout.splitlines()[-1])}


def summary(done: list[dict[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for line in done:
        if line["about"] != "classifiers":
            plain = {key: value for key, value in line.items() if key not in ("about", "of")}
            result.setdefault(line["about"], {})[line["of"]] = plain
    for name in CLASSIFIERS:
        own = [x for x in done if x["about"] == "classifiers" and x["of"] == name and "failed" not in x]
        if own:
            numbers = ("accuracy", "auc", "calibration_error", "seconds", "peak_mb")
            means = {key: None if own[0][key] is None else float(np.mean([x[key] for x in own])) for key in numbers}
            odd = sum(x["beyond_0_and_1"] for x in own)
            result.setdefault("classifiers", {})[name] = {**means, "runs": len(own), "beyond_0_and_1": odd}
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600, help="ask nothing new after so many")
    parser.add_argument("--only", nargs="+", choices=tuple(ASKED), default=tuple(ASKED))
    for name, kind in (("--ask", str), ("--rank-of", str), ("--port", int), ("--rank", int)):
        parser.add_argument(name, type=kind, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.ask:
        question = json.loads(arguments.ask)
        print(json.dumps(ASKED[question["about"]](question)))
        return
    if arguments.rank_of:
        one_rank(arguments.rank_of, arguments.port, arguments.rank)
        return
    done = lines_of(LINES)
    begun = time.monotonic()
    for question in questions():
        known = any(question.items() <= line.items() for line in done)
        if known or question["about"] not in arguments.only or time.monotonic() - begun > arguments.seconds:
            continue
        done.append(answered(question))
        add_lines(LINES, done[-1])
        print(json.dumps(done[-1])[:300], flush=True)
    from machine import save  # imports torch, whose memory would count as that of a library that does without it

    print("saved", save("peers", summary(done)).name)


if __name__ == "__main__":
    main()
