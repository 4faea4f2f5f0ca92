"""The scale ``frozen``: CIFAR-10 as two packaged ImageNet encoders see it, an MLP instead of a convolutional network.

The same experiments as ``paper``: contrastive losses pretrain an MLP on whitened features with noise and dropout as
views; the PU methods train the same MLP from scratch. Under a minute a cell on one core.

The encoders' ImageNet labels stand behind every number: rows are compared with each other, not with the paper's.
"""

from __future__ import annotations

from dataclasses import replace

from punce.experiments import protocol
from punce.experiments.cell import DataSpec, EncoderSpec, Pretraining
from punce.experiments.scale import Bench, Scale, brief_selfpu, from_scratch
from punce.views import Embedding

SOURCE = "cifar10@lite0+mobilenetv2"
VIEW = Embedding(noise=0.1, dropout=0.2)
_EPOCHS = 8
_SCRATCH = 20  # the operations of two views of every row for eight epochs, a fifth of the rows held out


def frozen() -> Scale:
    """Decided before any test row was looked at; what PU criteria chose is said where it stands."""
    short = replace(protocol.PRETRAIN, epochs=_EPOCHS, batch_size=512, optimizer="adam", lr=1e-3, warmup_epochs=1.0)
    # On views, as the other scales train from scratch: held-out P and U preferred them there.
    joint = replace(protocol.FINETUNE, epochs=_SCRATCH, batch_size=512, augment=True)
    mlp = EncoderSpec("mlp", 0.05)
    cifar = Bench(
        data=DataSpec(SOURCE, 0),
        n_labelled={**protocol.FEW_LABELS, **protocol.LABELS, **protocol.CIFAR_SHARES},
        # The paper's two convolutional networks are one and the same MLP here: the encoder below it is frozen.
        encoders={"resnet18": mlp, "allconv": mlp},
        pretraining=Pretraining("", short, "embedding", VIEW),
        probe=replace(protocol.PROBE, epochs=50),
        finetune=replace(protocol.FINETUNE, epochs=5, batch_size=512),
        joint=from_scratch(
            joint,
            pnb=replace(joint, labelled_share=protocol.PN_SHARE),
            # Rate and batches as benchmarks/scale_choices.py chose them.
            vpu=replace(
                protocol.VPU, epochs=_SCRATCH // 2, batch_size=512, lr=3e-3, mixup_weight=0.03, labelled_share=None
            ),
            selfpu=brief_selfpu(512, _SCRATCH // 3),
        ),
        stability_epochs=_SCRATCH,
        seeds=5,
        starts_at_probe=True,
        finetune_rates=(1e-3, 1e-4),
        stability_rate=1e-4,
        plain_view=("embedding", VIEW),
    )
    about = "an MLP on features of frozen encoders that were trained on ImageNet with labels"
    return Scale("frozen", about, {"cifar10": cifar}, has_papers_rows=False)
