"""Which stage trains the head: a linear probe, fine-tuning, joint training, or a complete algorithm of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import Tensor

from punce.encoders import Encoder
from punce.errors import InputError
from punce.labels import Labels
from punce.losses import ContrastiveLoss, build_loss
from punce.models.route import FitSettings
from punce.risks import RISKS, Risk, build_risk
from punce.stages.finetune import FinetuneConfig, finetune, train_from_scratch
from punce.stages.probe import LinearHead, ProbeConfig, extract_features, probe
from punce.stages.pupl import PuplConfig, pupl
from punce.stages.selfpu import SelfPUConfig, selfpu
from punce.stages.vpu import VPUConfig, train_vpu
from punce.views import View

HEADS: tuple[str, ...] = (*RISKS, "pupl", "selfpu")
HEAD_PARTS = ("weight", "bias", "mean", "scale")
_ROWS_SEEN = 900_000  # what an automatic number of epochs aims at: 15 epochs of MNIST
_EPOCHS = (10, 100)
_PN_SHARE = 0.5


def check_head(risk: Any) -> None:
    """Refuse what is neither a risk nor an algorithm."""
    if not isinstance(risk, Risk) and not (isinstance(risk, str) and risk in HEADS):
        raise InputError(f"risk must be one of {sorted(HEADS)} or a risk object, got {risk!r}")


def pretrains(settings: FitSettings) -> bool:
    """Whether a contrastive stage comes first. Self-PU trains its own networks; the identity has no weights."""
    is_fixed = isinstance(settings.encoder, str) and settings.encoder == "identity"
    return settings.loss is not None and settings.risk != "selfpu" and not is_fixed


def fit_head(encoder: Encoder, view: View, x: Tensor, labels: Labels, settings: FitSettings) -> LinearHead:
    """The head on `encoder`, which fine-tuning, joint training and the complete algorithms change in place."""
    folder = settings.folder / "head" if settings.folder else None
    if settings.risk == "selfpu":
        head = _selfpu(encoder, view, x, labels, settings, folder)
    elif settings.risk == "vpu" and (settings.loss is None or settings.transfer == "finetune"):
        head = _vpu(encoder, view, x, labels, settings, folder)
    elif settings.loss is None or settings.transfer == "finetune":
        head = _joint(encoder, view, x, labels, settings, folder)
    else:
        head = _frozen(encoder, view, x, labels, settings, folder)
    return head.cpu()


def automatic_epochs(n_rows: int) -> int:
    """Enough to see about 900,000 rows, between 10 and 100."""
    low, high = _EPOCHS
    return max(low, min(high, round(_ROWS_SEEN / n_rows)))


def batch_size(n_rows: int, most: int = 1024) -> int:
    """At least eight steps an epoch, and batches small enough for the rows there are."""
    return min(most, max(64, n_rows // 8))


def probe_config(settings: FitSettings, batch_size: int) -> ProbeConfig:
    """The probe for a risk. PN draws P and U equally often: else no row would be more likely labelled than not."""
    share = _PN_SHARE if settings.risk == "pn" else ProbeConfig.labelled_share
    automatic = ProbeConfig(seed=settings.random_state, batch_size=batch_size, labelled_share=share)
    config: ProbeConfig = settings.config("probe", automatic)
    return config


def loss_of(settings: FitSettings) -> ContrastiveLoss:
    """The loss that was asked for, which `settings.used` then holds as it was built."""
    loss = build_loss(settings.loss, settings.prior, **settings.configs.get("loss", {}))
    settings.used["loss"] = repr(loss)
    return loss


def risk_of(settings: FitSettings) -> Risk:
    """The risk that was asked for, which `settings.used` then holds as it was built."""
    risk = build_risk(settings.risk, settings.prior, **settings.configs.get("risk", {}))
    settings.used["risk"] = repr(risk)
    return risk


def _frozen(
    encoder: Encoder, view: View, x: Tensor, labels: Labels, settings: FitSettings, folder: Path | None
) -> LinearHead:
    features = extract_features(encoder, view, x).cpu()
    if settings.risk == "pupl":
        return pupl(features, labels, settings.config("pupl", PuplConfig(seed=settings.random_state)))
    config = probe_config(settings, batch_size(len(x), 4096))
    risk = risk_of(settings)
    return probe(features, labels, risk, config, prior=settings.prior, folder=folder)


def _joint(
    encoder: Encoder, view: View, x: Tensor, labels: Labels, settings: FitSettings, folder: Path | None
) -> LinearHead:
    if settings.risk == "pupl":
        raise InputError("risk 'pupl' is a head on frozen features: use it with a loss and transfer='probe'")
    train = train_from_scratch if settings.loss is None else finetune
    config = settings.config("finetune", FinetuneConfig(**_joint_settings(x, settings, "finetune")))
    risk = risk_of(settings)
    options: dict[str, Any] = {"prior": settings.prior, "folder": folder, "progress": settings.progress}
    return train(encoder, view, x, labels, risk, config, **options)


def _vpu(
    encoder: Encoder, view: View, x: Tensor, labels: Labels, settings: FitSettings, folder: Path | None
) -> LinearHead:
    automatic = VPUConfig(**_joint_settings(x, settings, "vpu"), from_scratch=settings.loss is None)
    config = settings.config("vpu", automatic)
    head = train_vpu(encoder, view, x, labels, config, folder=folder, progress=settings.progress)
    return head.linear


def _selfpu(
    encoder: Encoder, view: View, x: Tensor, labels: Labels, settings: FitSettings, folder: Path | None
) -> LinearHead:
    config = settings.config("selfpu", SelfPUConfig.in_proportion(**_joint_settings(x, settings, "selfpu")))
    return selfpu(encoder, view, x, labels, config, prior=settings.prior, folder=folder, progress=settings.progress)


def _joint_settings(x: Tensor, settings: FitSettings, stage: str) -> dict[str, Any]:
    epochs = settings.epochs_of(stage) or automatic_epochs(len(x))
    return {"epochs": epochs, "batch_size": batch_size(len(x)), "seed": settings.random_state}
