"""A size of the experiments: how it treats each data set, and the cells it makes. The sizes are in ``scales.py``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from punce.encoders.encoder import Precision
from punce.errors import InputError
from punce.experiments import protocol
from punce.experiments.cell import (
    Cell,
    DataSpec,
    EncoderSpec,
    PortfolioConfig,
    Pretraining,
    PriorSpec,
    TextConfig,
    Transfer,
    TransferKind,
)
from punce.stages.finetune import FinetuneConfig
from punce.stages.probe import ProbeConfig
from punce.stages.selfpu import SelfPUConfig
from punce.stages.transfer import EpochConfig, HeadConfig
from punce.views import Embedding, Image


@dataclass(frozen=True)
class Bench:
    """How a scale treats one data set of the paper.

    `n_labelled` maps the table's "1k", "3k", "10k", "1%", … to numbers of rows; what is missing is left out at this
    scale. `joint` holds the configuration of encoder-and-head training per method; a method that is missing there is
    left out. `seeds` is the number of seeds. `pnu_epochs`, `pnu_width` and `pnu_pretraining` are those of pretraining
    with labels of both classes, where they are others.

    From the second protocol on, fine-tuning begins at the head of the probe (`starts_at_probe`) and tries
    `finetune_rates`, of which the held-out PU risk chooses one. `stability_rate` is the rate of both starts of Figure
    4c. `plain_view` is the view of networks that no pretraining precedes; None is the default view of the source.
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
    pnu_pretraining: Pretraining | None = None
    starts_at_probe: bool = False
    finetune_rates: tuple[float, ...] = ()
    stability_rate: float | None = None
    plain_view: tuple[str, Image | Embedding] | None = None


@dataclass(frozen=True)
class FewShot:
    """Few-shot text at one scale: Table 5. `steps` are those of a number of labels, where they are others.

    `encoders` says which model stands for the encoder that a table's rows name.
    """

    source: str
    encoders: Mapping[str, EncoderSpec]
    n_labelled: Mapping[str, int]
    n_unlabelled: int
    config: TextConfig
    seeds: int
    steps: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Scale:
    """One of :data:`punce.experiments.scales.SCALES`, and the cells it makes.

    Without `few_shot` there is no text. `also` names scales whose results stand on the same page, for the claims that
    this one does not settle. `has_papers_rows`: all its rows are those of the paper, so that levels may be compared.
    """

    name: str
    about: str
    benches: Mapping[str, Bench]
    few_shot: FewShot | None = None
    threads: int = 1
    also: tuple[str, ...] = ()
    has_papers_rows: bool = True

    def n_seeds(self, bench: str) -> int:
        """Seeds for the cells of this data set."""
        return self.few_shot.seeds if bench == "sst2" and self.few_shot is not None else self.benches[bench].seeds

    def has(self, bench: str, n_p: str) -> bool:
        """Whether this scale has cells with so many labels."""
        return bench in self.benches and n_p in self.benches[bench].n_labelled

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
        rate: float | None = None,
        embedding: bool = False,
        **data: float | str,
    ) -> Cell:
        """Pretrained with a contrastive loss, then probed or fine-tuned on a risk.

        `epochs` and `rate` are those of the probe or of fine-tuning, where they are others; a given rate is not chosen.
        """
        b = self.benches[bench]
        entry, loss_options = protocol.LOSS_OPTIONS.get(loss, (loss, ()))
        # Other losses know no prior: with None all their cells share one trained encoder, whatever prior is varied.
        told = loss_prior if entry == "punce" else None
        pretraining = replace(b.pretraining, loss=entry, prior=told, loss_options=loss_options)
        head = self._probe(b, risk, risk_prior) if transfer == "probe" else self._finetune(b, risk, risk_prior)
        head = replace(head, config=_changed(head.config, epochs, rate), rates=() if rate else head.rates)
        return Cell(
            self._data(bench, n_p, **data), b.encoders[encoder], pretraining, head, seed, self.threads, embedding
        )

    def untrained(self, bench: str, encoder: str, risk: str, n_p: str, seed: int = 0) -> Cell:
        """A probe on an encoder with random weights: the control of what pretraining adds."""
        b = self.benches[bench]
        head = _seen_as(self._probe(b, risk, "true"), b.plain_view)
        return Cell(self._data(bench, n_p), b.encoders[encoder], None, head, seed, self.threads)

    def _probe(self, b: Bench, risk: str, prior: PriorSpec) -> Transfer:
        # For the reason at PN_SHARE.
        config = replace(b.probe, labelled_share=protocol.PN_SHARE) if risk == "pn" else b.probe
        return Transfer("probe", config, risk, protocol.RISK_OPTIONS[risk], prior)

    def _finetune(self, b: Bench, risk: str, prior: PriorSpec) -> Transfer:
        start = b.probe if b.starts_at_probe else None
        made = Transfer("finetune", b.finetune, risk, protocol.RISK_OPTIONS[risk], prior)
        return replace(made, start=start, rates=b.finetune_rates)

    def portfolio(self, bench: str, encoder: str, loss: str, n_p: str, seed: int = 0, *, head: str) -> Cell:
        """Pretrained with a contrastive loss, then a head of the product's portfolio instead of the probe."""
        cell = self.contrastive(bench, encoder, loss, n_p, seed)
        return replace(cell, transfer=Transfer("head", PortfolioConfig(head)))

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
        rate: float | None = None,
        **data: float | str,
    ) -> Cell:
        """Encoder and head trained together from scratch: PN, PvU, uPU, nnPU, vPU, Self-PU."""
        b = self.benches[bench]
        own: dict[str, TransferKind] = {"vpu": "vpu", "selfpu": "selfpu"}
        kind = own.get(method, "joint")
        risk = protocol.RISK_OF.get(method, method) if kind == "joint" else None
        risk_options = protocol.RISK_OPTIONS[risk] if risk else ()
        head = Transfer(kind, _changed(b.joint[method], epochs, rate), risk, risk_options, prior)
        data_, network = self._data(bench, n_p, **data), b.encoders[encoder]
        return Cell(data_, network, None, _seen_as(head, b.plain_view), seed, self.threads)

    def pnu(self, bench: str, encoder: str, loss: str, share: str, seed: int = 0, *, times: int = 1) -> Cell:
        """Pretrained with labels of both classes; cross-entropy on the labelled rows downstream (Table 4).

        `times` multiplies the epochs of pretraining.
        """
        cell = self.contrastive(bench, encoder, loss, share, seed, risk="pn", setting="pnu")
        b, pretraining = self.benches[bench], cell.pretraining
        assert pretraining is not None
        own = b.pnu_pretraining or b.pretraining
        config = replace(own.config, epochs=times * (b.pnu_epochs or own.config.epochs))
        return replace(
            cell,
            encoder=replace(cell.encoder, width=b.pnu_width or cell.encoder.width),
            pretraining=replace(pretraining, config=config, view=own.view),
            transfer=replace(cell.transfer, config=protocol.SUPERVISED_PROBE),
        )

    def few_shot_cell(self, loss: str | None, n_labelled: str, seed: int = 0, *, encoder: str = "roberta") -> Cell:
        """Few-shot text (Table 5): cross-entropy alone (`loss` None), or with SCL or puNCE."""
        text = self.few_shot
        if text is None:
            raise InputError(f"scale {self.name} has no text")
        data = DataSpec(text.source, text.n_labelled[n_labelled], "pnu", n_unlabelled=text.n_unlabelled)
        steps = text.steps.get(n_labelled, text.config.steps)
        head = Transfer("fewshot", replace(text.config, loss=loss, steps=steps))
        return Cell(data, text.encoders[encoder], None, head, seed, self.threads)

    def _data(self, bench: str, n_p: str, **changes: float | str) -> DataSpec:
        b = self.benches[bench]
        if n_p not in b.n_labelled:  # an experiment asks has() first; this is for callers in Python
            raise InputError(f"scale {self.name} has no {bench} cells with {n_p} labels, only {list(b.n_labelled)}")
        return replace(b.data, n_labelled=b.n_labelled[n_p], **changes)  # type: ignore[arg-type]


def _changed(config: HeadConfig | TextConfig | PortfolioConfig, epochs: int | None, rate: float | None) -> EpochConfig:
    assert isinstance(config, EpochConfig)
    config = config if epochs is None else replace(config, epochs=epochs)
    return config if rate is None else replace(config, lr=rate)


def _seen_as(head: Transfer, view: tuple[str, Image | Embedding] | None) -> Transfer:
    return head if view is None else replace(head, view_name=view[0], view=view[1])


# Parts that several sizes share -----------------------------------------------------------------------------------


def from_scratch(plain: FinetuneConfig, **own: EpochConfig) -> dict[str, EpochConfig]:
    """Configurations of the methods trained from scratch: `plain` for those that differ in their risk alone."""
    return {**dict.fromkeys(("pn", "pvu", "upu", "nnpu"), plain), **own}


def convolutions(width: float, precision: Precision = "float32") -> dict[str, EncoderSpec]:
    """The two networks of CIFAR."""
    return {name: EncoderSpec(name, width, channels_last=True, precision=precision) for name in ("resnet18", "allconv")}


def brief_selfpu(batch_size: int, epochs: int = 3) -> SelfPUConfig:
    """Trusted rows are picked before every epoch from the second third on."""
    first = max(1, epochs // 3)
    return replace(
        protocol.SELFPU,
        epochs=epochs,
        batch_size=batch_size,
        select_from=first,
        select_until=epochs - 1,
        select_every=1,
    )
