"""What the classifier asks of the stages: the loss, the risk, and the configuration of each stage for these rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from punce.encoders import Encoder
from punce.encoders.precision import fast_convolutions
from punce.errors import InputError
from punce.labels import NEGATIVE, Labels
from punce.losses import LOSSES, ContrastiveLoss, build_loss
from punce.models.known_rows import known_share
from punce.models.route import LEARNED_FROM_KNOWN, FitSettings, Floats, under
from punce.risks import RISKS, VPU, Risk, build_risk
from punce.stages.finetune import FinetuneConfig
from punce.stages.pretrain import PretrainConfig, pretrain
from punce.stages.probe import LinearHead, ProbeConfig, extract_features
from punce.stages.pupl import PuplConfig
from punce.stages.selfpu import SelfPUConfig
from punce.stages.transfer import EpochConfig, Problem, train_head, train_on_features
from punce.stages.vpu import VPUConfig
from punce.views import View

HEADS: tuple[str, ...] = (*RISKS, "pupl", "selfpu")
HEAD_PARTS = ("weight", "bias", "mean", "scale")
_ROWS_SEEN = 900_000  # what an automatic number of epochs aims at: 15 epochs of MNIST
_PN_SHARE = 0.5  # see probe_config


def check_objects(loss: Any, risk: Any) -> None:
    """Refuse what is neither a name, at which ``punce.options`` looks, nor a loss or a risk; also their classes."""
    if not (loss is None or isinstance(loss, str | ContrastiveLoss)):
        raise InputError(f"loss must be one of {sorted(LOSSES)}, a loss object or None, got {loss!r}")
    if not isinstance(risk, str | Risk):
        raise InputError(f"risk must be one of {sorted(HEADS)} or a risk object, got {risk!r}")


def pretrains(settings: FitSettings) -> bool:
    """Whether a contrastive stage comes first. Self-PU trains its own networks; the identity has no weights."""
    is_fixed = isinstance(settings.encoder, str) and settings.encoder == "identity"
    return settings.loss is not None and settings.risk != "selfpu" and not is_fixed


def uses_frozen_features(settings: FitSettings) -> bool:
    """Whether the head is trained alone, on features that stay as they are. Self-PU trains its own networks."""
    return settings.loss is not None and settings.transfer == "probe" and settings.risk != "selfpu"


def pretrain_encoder(
    encoder: Encoder, view: View, x: Tensor, labels: Labels, settings: FitSettings, automatic: PretrainConfig
) -> list[dict[str, Any]]:
    """Contrastive pretraining in place, where it comes first; `automatic` holds for what the caller left open.

    Shape: x (n, ...), labels (n,) of {1, 0, −1}.
    """
    if not pretrains(settings):
        return []
    told = replace(automatic, monitor_prior=settings.prior, seed=settings.random_state)
    config, folder = settings.config("pretrain", told), settings.folder / "pretrain" if settings.folder else None
    loss = loss_of(settings, labels)
    with trained_fast(encoder, settings):
        return pretrain(encoder, view, x, labels, loss, config, folder=folder, progress=settings.progress)


def fit_head(encoder: Encoder, view: View, x: Tensor, labels: Labels, settings: FitSettings) -> LinearHead:
    """The head on `encoder`, which fine-tuning, joint training and the complete algorithms change in place."""
    folder = settings.folder / "head" if settings.folder else None
    if uses_frozen_features(settings):
        return frozen_head(extract_features(encoder, view, x).cpu(), labels, settings, folder).cpu()
    config, is_plain = _training_config(settings, len(x)), settings.risk not in ("selfpu", "vpu")
    problem = Problem(
        encoder,
        view,
        x,
        labels,
        settings.prior,
        risk=risk_of(settings) if is_plain else None,
        from_scratch=settings.loss is None,
        folder=folder,
        progress=settings.progress,
    )
    with trained_fast(encoder, settings):
        return train_head(config, problem).linear.cpu()


@contextmanager
def trained_fast(encoder: Encoder, settings: FitSettings) -> Iterator[None]:
    """Convolutions in their fast layout and precision; the card names a precision that is not the usual one."""
    with fast_convolutions(encoder) as precision:
        if precision != "float32":
            settings.used["precision"] = f"{precision} in the convolutions while training"
        yield


def frozen_head(features: Tensor, labels: Labels, settings: FitSettings, folder: Path | None = None) -> LinearHead:
    """A head on features that stay as they are. Shape: features (n, D), labels (n,)."""
    labels, settings = _with_known(labels, settings)
    if settings.weights is not None:
        rows = drawn_by_weight(labels, settings.weights, settings.random_state)
        features, labels = features[rows], labels[rows]
    if settings.risk == "pupl":
        clusters: PuplConfig = settings.config("pupl", PuplConfig(seed=settings.random_state))
        return train_on_features(clusters, features, labels, prior=settings.prior)
    config = probe_config(settings, batch_size(len(features), 4096))
    return train_on_features(config, features, labels, prior=settings.prior, risk=risk_of(settings), folder=folder)


def _with_known(labels: Labels, settings: FitSettings) -> tuple[Labels, FitSettings]:
    """What nnPU is told where classes are known: labels of {1, 0, -1}, the prior of the rest, the negatives' share.

    Other risks know positives and unlabelled rows only.
    """
    if settings.truths is None or settings.risk != "nnpu":
        return labels, settings
    known, prior = settings.known_classes(labels), settings.prior_of_rest(labels)
    risk = {"known_share": known_share(known, prior), **settings.configs.get("risk", {})}
    settings.used[LEARNED_FROM_KNOWN] = True
    return known, replace(settings, truths=None, prior=prior, configs={**settings.configs, "risk": risk})


def drawn_by_weight(labels: Labels, weights: Floats, seed: int) -> npt.NDArray[np.intp]:
    """As many labelled and as many unlabelled rows as there are, each as often as its weight asks for.

    Drawn at equal steps of the summed weights, so that a weight of 2 gives two copies and not two on average: no risk
    has to know of weights.
    """
    drawn = []
    for value in np.unique(labels):
        rows = np.flatnonzero(labels == value)
        if value == NEGATIVE and not weights[rows].any():
            continue  # the caller wants none of them
        # A part of the rows may hold only labelled ones of weight 0, which then count alike.
        summed = np.cumsum(weights[rows] if weights[rows].any() else np.ones(len(rows)))
        # One random offset for all steps: systematic sampling
        steps = (np.arange(len(rows)) + np.random.default_rng(seed).random()) * summed[-1] / len(rows)
        drawn.append(rows[np.searchsorted(summed, steps, side="right")])
    return np.sort(np.concatenate(drawn))  # with equal weights the rows come out in their own order


def _training_config(settings: FitSettings, n_rows: int) -> EpochConfig:
    """Which stage trains encoder and head, and how."""
    stage = settings.risk if settings.risk in ("selfpu", "vpu") else "finetune"
    common: dict[str, Any] = {
        "epochs": settings.epochs_of(stage) or automatic_epochs(n_rows),
        "batch_size": batch_size(n_rows),
        "seed": settings.random_state,
    }
    automatic: EpochConfig = FinetuneConfig(**common)
    if stage == "selfpu":
        automatic = SelfPUConfig.in_proportion(**common)
    elif stage == "vpu":
        automatic = VPUConfig(**common, from_scratch=settings.loss is None)
    config: EpochConfig = settings.config(stage, automatic)
    return config


def automatic_epochs(n_rows: int) -> int:
    """Enough to see about 900,000 rows, between 10 and 100."""
    return max(10, min(100, round(_ROWS_SEEN / n_rows)))


def batch_size(n_rows: int, most: int = 1024) -> int:
    """At least eight steps an epoch, and batches small enough for the rows there are."""
    return min(most, max(64, n_rows // 8))


def probe_config(settings: FitSettings, batch_size: int) -> ProbeConfig:
    """The probe for a risk. PN draws P and U equally often: else no row would be more likely labelled than not."""
    share = _PN_SHARE if settings.risk == "pn" else ProbeConfig.labelled_share
    automatic = ProbeConfig(seed=settings.random_state, batch_size=batch_size, labelled_share=share)
    config: ProbeConfig = settings.config("probe", automatic)
    return config


def loss_of(settings: FitSettings, labels: Labels) -> ContrastiveLoss:
    """The loss that was asked for, which `settings.used` then holds as it was built."""
    options = settings.configs.get("loss", {})
    if settings.loss == "punce" and (labels == NEGATIVE).any():
        # With labels of both classes the paper's weights leave next to nothing to a row's own view (docs/training.md).
        options = {"weighting": "posterior", **options}
    loss = build_loss(settings.loss, settings.prior, **options)
    settings.used["loss"] = repr(loss)
    return loss


def risk_of(settings: FitSettings) -> Risk:
    """The risk that was asked for, which `settings.used` then holds as it was built."""
    risk = build_risk(settings.risk, settings.prior, **settings.configs.get("risk", {}))
    # A probe does not mix rows: the options of the risk for that would say what did not happen.
    settings.used["risk"] = "VPU, the variational loss alone" if isinstance(risk, VPU) else repr(risk)
    return risk


def network_tensors(encoder: Encoder, head: LinearHead) -> dict[str, Tensor]:
    """Weights of both, under the names that a model file has."""
    tensors = {f"encoder.{k}": v.detach().cpu().contiguous() for k, v in encoder.state_dict().items()}
    return tensors | {f"head.{name}": getattr(head, name).contiguous() for name in HEAD_PARTS}


def load_network(encoder: Encoder, tensors: dict[str, Tensor], *, assign: bool = False) -> LinearHead:
    """Inverse of :func:`network_tensors`: fills the encoder and returns the head."""
    encoder.load_state_dict(under(tensors, "encoder."), assign=assign)
    encoder.eval()
    return LinearHead(*(tensors[f"head.{name}"] for name in HEAD_PARTS))  # type: ignore[arg-type]
