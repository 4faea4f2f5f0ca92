"""The settings of every stage, named in full: what stands in a cell's configuration, and so in its hash.

Most repeat the stages' defaults, on purpose. A default that changes later must not change what a stored result means;
``tests/experiments/test_scales.py`` fails when a stage gains an argument that is not decided here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from punce.experiments.cell import Cell, DataSpec, EncoderSpec, Settings, Transfer, Value, settings

RISK_SETTINGS: Mapping[str, Settings] = {
    "pn": settings(surrogate="logistic"),
    "pvu": settings(correction="weighted", surrogate="logistic", target_share=0.0),
    "upu": settings(surrogate="sigmoid"),
    "nnpu": settings(surrogate="sigmoid", beta=0.0, gamma=1.0),
}
"""Arguments of the risks but the prior. PvU means weighted duplicates everywhere (in the paper's AllConv rows it is
the naive one, which is our PN)."""

PN_SHARE = 0.5
"""PN under a probe draws P and U equally often: else, with few labels, it would call no row positive."""

SUPERVISED_PROBE: Settings = settings(folds=5, strengths=10)
"""Logistic regression on the labelled rows of the PNU setting: cross-validated over `strengths` penalties."""


DIGIT_VIEW: Settings = settings(
    crop_scale=(0.5, 1.0),
    crop_ratio=(0.85, 1.15),
    flip=0.0,
    degrees=15.0,
    shift=0.05,
    zoom=(0.85, 1.15),
    shear=10.0,
    padding="zeros",
    jitter=(0.0, 0.0, 0.0, 0.0),
    jitter_probability=0.0,
    grey=0.0,
    mean=(0.5,),
    std=(0.5,),
)
"""Arguments of the view of digits. The paper does not say which it used."""

WEAK_DIGIT_VIEW: Settings = settings(
    **{**dict(DIGIT_VIEW), "crop_scale": (0.7, 1.0), "degrees": 10.0, "zoom": (0.9, 1.1), "shear": 5.0}
)
"""What held-out P and U preferred for few epochs of a narrow network (benchmarks/mnist_tuning.py)."""

CIFAR_VIEW: Settings = settings(
    **{
        **dict(DIGIT_VIEW),
        "crop_scale": (0.08, 1.0),
        "crop_ratio": (3 / 4, 4 / 3),
        "flip": 0.5,
        "degrees": 0.0,
        "shift": 0.0,
        "zoom": (1.0, 1.0),
        "shear": 0.0,
        "padding": "border",
        "jitter": (0.4, 0.4, 0.4, 0.1),
        "jitter_probability": 0.8,
        "grey": 0.2,
    }
)
"""Arguments of the view of photographs: SimCLR's."""


def probe(epochs: int = 60, batch_size: int = 4096, **changes: Value) -> Settings:
    """:class:`punce.stages.probe.ProbeConfig` without its seed."""
    base: dict[str, Value] = {
        "epochs": epochs,
        "batch_size": batch_size,
        "optimizer": "adam",
        "lr": 1e-2,
        "weight_decay": 0.0,
        "labelled_share": 0.25,
        "validation_share": 0.2,
    }
    return settings(**{**base, **changes})


def finetune(epochs: int, batch_size: int = 1024, lr: float = 1e-3, **changes: Value) -> Settings:
    """:class:`punce.stages.finetune.FinetuneConfig` without its seed; for fine-tuning and for training from scratch."""
    base: dict[str, Value] = {
        "epochs": epochs,
        "batch_size": batch_size,
        "optimizer": "adam",
        "lr": lr,
        "weight_decay": 0.0,
        "warmup_epochs": 1.0,
        "labelled_share": "auto",
        "augment": False,
        "validation_share": 0.2,
    }
    return settings(**{**base, **changes})


def vpu(epochs: int, batch_size: int = 1024, lr: float = 1e-3, **changes: Value) -> Settings:
    """:class:`punce.stages.vpu.VPUConfig` without its seed."""
    base: dict[str, Value] = {
        "epochs": epochs,
        "batch_size": batch_size,
        "lr": lr,
        "betas": (0.5, 0.99),
        "weight_decay": 0.0,
        "mixup_weight": 0.3,
        "mixup_alpha": 0.3,
        "labelled_share": None,
        "quantile": 0.99,
        "validation_share": 0.2,
        "from_scratch": True,
    }
    return settings(**{**base, **changes})


def selfpu(epochs: int, select: tuple[int, int, int], batch_size: int = 1024, **changes: Value) -> Settings:
    """:class:`punce.stages.selfpu.SelfPUConfig` without its seed; `select` is (first epoch, last epoch, every)."""
    base: dict[str, Value] = {
        "epochs": epochs,
        "batch_size": batch_size,
        "optimizer": "adam",
        "lr": 1e-3,
        "weight_decay": 0.0,
        "labelled_share": 0.25,
        "trusted_shares": (0.2, 0.3),
        "select_from": select[0],
        "select_until": select[1],
        "select_every": select[2],
        "ema_decay": 0.999,
        "consistency_weight": 1.0,
        "validation_share": 0.2,
    }
    return settings(**{**base, **changes})


def few_shot(steps: int, **changes: Value) -> Settings:
    """:class:`punce.stages.fewshot.FewshotConfig` without its seed, and the other arguments of ``run_fewshot``."""
    base: dict[str, Value] = {
        "steps": steps,
        "batch_size": 32,
        "labelled_share": 0.5,
        "ce_weight": 0.1,
        "project": False,
        "optimizer": "adamw",
        "lr": 1e-4,
        "head_lr": 1e-2,
        "weight_decay": 0.01,
        "warmup_share": 0.1,
        "evaluate_every": 20,
        "temperature": 0.3,
        "pooling": "mean",
    }
    return settings(**{**base, **changes})


@dataclass(frozen=True)
class FewShot:
    """Few-shot text at one scale. `settings` are those of :mod:`punce.stages.fewshot`; `ce_weight` multiplies CE."""

    source: str
    encoder: str
    n_labelled: Mapping[str, int]
    n_unlabelled: int
    settings: Settings
    seeds: int

    def cell(self, loss: str | None, n_labelled: str, seed: int, threads: int) -> Cell:
        """CE alone (`loss` None), or CE with SCL or puNCE."""
        data = DataSpec(self.source, self.n_labelled[n_labelled], "pnu", n_unlabelled=self.n_unlabelled)
        chosen = settings(**{**dict(self.settings), "loss": loss})
        return Cell(data, EncoderSpec(self.encoder), None, Transfer("fewshot", chosen), seed, threads)
