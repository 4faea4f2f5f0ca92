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
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from punce.encoders import Encoder
from punce.errors import InputError
from punce.labels import NEGATIVE, POSITIVE, UNLABELLED, Labels, check_vocabulary
from punce.losses import ContrastiveLoss
from punce.risks import PN
from punce.stages.probe import LinearHead
from punce.stages.scorer import WITHOUT_PART, Best, Observer, Scorer, observed, on_all_ranks, score_rows
from punce.training import collectives
from punce.training.batches import StratifiedBatches, own_part
from punce.training.optim import OptimizerName, build_optimizer, set_rate, warmup_cosine
from punce.training.run import Run, fingerprint, own_dropout, weights_fingerprint
from punce.training.sync_norm import synchronise_batch_norm
from punce.views import View


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
