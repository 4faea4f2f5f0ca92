"""A cell: everything that decides one number, and the name that follows from it.

A cell knows nothing of tables. puNCE at n_P = 1k with a linear probe is one cell, trained once, whether Table 1,
Table 2, Table 3 or a figure points at it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal

from punce.encoders.encoder import Precision
from punce.encoders.transformer import Pooling
from punce.errors import number_of
from punce.labels import Setting
from punce.scenario import Scenario
from punce.stages.fewshot import FewshotConfig
from punce.stages.finetune import FinetuneConfig
from punce.stages.pretrain import PretrainConfig
from punce.stages.probe import ProbeConfig
from punce.stages.transfer import HeadConfig
from punce.views import Embedding, Image

VERSIONS: dict[str, int] = {
    "pretrain": 1,
    "probe": 1,
    "finetune": 1,
    "joint": 1,
    "selfpu": 1,
    "vpu": 1,
    "fewshot": 1,
    "head": 1,
}
"""Raise a stage's number when its code changes so that the same configuration gives another result: what was stored
before then keeps its old name, and only the cells of that stage are done again."""

TransferKind = Literal["probe", "finetune", "joint", "selfpu", "vpu", "fewshot", "head"]
PriorSpec = str | float
"""Which prior an algorithm is told: ``"true"``, ``"true+0.1"``, a number, or the name of an estimator such as "bbe"."""

Options = tuple[tuple[str, str | float], ...]
"""Options of a loss or a risk by name, sorted; a mapping that can be hashed."""

LABEL_FREE = ("infonce", "dcl")
"""Losses that look at no label: one pretrained encoder serves every labelled set of the same rows."""


def options(**values: str | float) -> Options:
    """Options in the one order in which they are compared and hashed."""
    return tuple(sorted(values.items()))


@dataclass(frozen=True)
class DataSpec:
    """Which rows, and which of them are labelled.

    `source` is a benchmark set, or "shapes" (generated). In the "pu" setting `n_labelled` positives are labelled, in
    "pnu" that many rows of either class. `label_bias` > 0 labels bright images more often: the weight of a positive
    is exp(label_bias · standardised brightness). `n_train` and `n_test` cut the set down to a fixed random part.
    `n_unlabelled` is for few-shot text, which takes that many unlabelled rows and drops the others. `label_noise` is
    the share of labelled rows that are negatives in truth. `positive_share` drops positives of both parts at random
    until they are that share of them.
    """

    source: str
    n_labelled: int
    setting: Setting = "pu"
    scenario: Scenario = "single_set"
    label_bias: float = 0.0
    n_train: int | None = None
    n_test: int | None = None
    n_unlabelled: int | None = None
    label_noise: float = 0.0
    positive_share: float | None = None

    @cached_property
    def plain(self) -> dict[str, Any]:
        """As plain JSON; what was added later is named only where it says something, so that old names last."""
        return _without_defaults(asdict(self), DataSpec, "label_noise", "positive_share")


@dataclass(frozen=True)
class EncoderSpec:
    """Which network: a name in :data:`punce.encoders.ENCODERS` (for text, a model's name or path) and its width.

    `channels_last` and `precision` say how it is computed; `precision`, how it trains: it scores in float32.
    """

    name: str
    width: float = 1.0
    channels_last: bool = False
    precision: Precision = "float32"

    @cached_property
    def plain(self) -> dict[str, Any]:
        """As plain JSON; float32 is not named, because stored results were named before there was another precision."""
        return _without_defaults(asdict(self), EncoderSpec, "precision")


@dataclass(frozen=True)
class Pretraining:
    """Contrastive pretraining. `prior` is given to puNCE and must be None for the other losses.

    `view_name` is the name of the view in :data:`punce.views.VIEWS`. Seed and `monitor_prior` of the configuration
    follow from the cell.
    """

    loss: str
    config: PretrainConfig
    view_name: str
    view: Image | Embedding
    temperature: float = 0.5
    prior: PriorSpec | None = None
    loss_options: Options = ()

    @cached_property
    def plain(self) -> dict[str, Any]:
        """As plain JSON, under the names that stored results have."""
        stage = _without(asdict(self.config), "seed", "monitor_prior")  # these follow from the cell
        return {
            "loss": self.loss,
            **stage,
            "view": self.view_name,
            "view_settings": asdict(self.view),
            "temperature": self.temperature,
            "prior": self.prior,
            "loss_settings": dict(self.loss_options),
        }


@dataclass(frozen=True)
class TextConfig(FewshotConfig):
    """Few-shot text: the stage's configuration, its contrastive loss (None: cross-entropy alone), and the encoder's."""

    loss: str | None = None
    temperature: float = 0.3
    pooling: Pooling = "mean"


@dataclass(frozen=True)
class PortfolioConfig:
    """A head of :data:`punce.models.portfolio.heads.HEADS` on features that stay as they are."""

    head: str
    seed: int = 0


@dataclass(frozen=True)
class Transfer:
    """From an encoder, or from nothing, to a classifier.

    `config` is that of the stage; its seed follows from the cell. `risk` is a name in :data:`punce.risks.RISKS` with
    its `risk_options`; None where the stage has its own objective. `prior` is what risk and selection are told.
    Fine-tuning may begin at the head of a probe, `start`, and choose among `rates` by the held-out PU risk. `view_name`
    and `view` are those of rows that no pretraining sees; None is the default view of the source.
    """

    kind: TransferKind
    config: HeadConfig | TextConfig | PortfolioConfig
    risk: str | None = None
    risk_options: Options = ()
    prior: PriorSpec = "true"
    start: ProbeConfig | None = None
    rates: tuple[float, ...] = ()
    view_name: str | None = None
    view: Image | Embedding | None = None

    @cached_property
    def plain(self) -> dict[str, Any]:
        """As plain JSON, under the names that stored results have."""
        start = None if self.start is None else _without(asdict(self.start), "seed")
        later = {"start": start, "rates": list(self.rates), "view": self.view_name}
        settings = {"view_settings": asdict(self.view)} if self.view is not None else {}
        return {
            "kind": self.kind,
            "settings": _without(_without_defaults(asdict(self.config), type(self.config), "blocks"), "seed"),
            "risk": self.risk,
            "risk_settings": dict(self.risk_options),
            "prior": self.prior,
            **{name: value for name, value in later.items() if value},
            **settings,
        }


@dataclass(frozen=True)
class Cell:
    """The full configuration of one number: rows and labels, network, pretraining, transfer, seed and threads.

    `threads` counts, because one and two threads add in another order and differ in the last bits. `embedding` asks
    for a t-SNE plot of test features in the result.
    """

    data: DataSpec
    encoder: EncoderSpec
    pretraining: Pretraining | None
    transfer: Transfer
    seed: int
    threads: int = 1
    embedding: bool = False

    def config(self) -> dict[str, Any]:
        """As plain JSON: what :attr:`key` hashes and a result file keeps."""
        transfer, data = self.transfer.plain, self.data.plain
        return self._plain(protocol=self._protocol(), data=data, transfer=transfer, embedding=self.embedding)

    def _plain(self, **more: Any) -> dict[str, Any]:
        """What decides an encoder and a result alike, and `more`; as it comes back from a JSON file (lists)."""
        pretraining = None if self.pretraining is None else self.pretraining.plain
        shared = {"encoder": self.encoder.plain, "seed": self.seed, "threads": self.threads}
        plain: dict[str, Any] = json.loads(canonical({**shared, "pretraining": pretraining, **more}))
        return plain

    def _protocol(self) -> int | str:
        stages = [self.transfer.kind] if self.pretraining is None else ["pretrain", self.transfer.kind]
        versions = [VERSIONS[stage] for stage in stages]
        # A plain 1 for the first version: what was stored before stages had numbers of their own keeps its name.
        return 1 if set(versions) == {1} else "-".join(map(str, versions))

    @cached_property
    def key(self) -> str:
        """sha256 of the configuration; kept, as a page asks for it tens of thousands of times."""
        return config_key(self.config())

    @property
    def name(self) -> str:
        """The first 16 hex digits of the key: the name of the result file."""
        return self.key[:16]

    def encoder_config(self) -> dict[str, Any] | None:
        """The part of the configuration that decides the pretrained encoder; None without pretraining."""
        if self.pretraining is None:
            return None
        data = _without(self.data.plain, "n_test", "n_unlabelled")  # those rows take no part in pretraining
        if self.pretraining.loss in LABEL_FREE:
            data = {name: data[name] for name in ("source", "n_train", "positive_share") if name in data}
        return self._plain(protocol=VERSIONS["pretrain"], data=data)

    @property
    def encoder_name(self) -> str | None:
        """The name under which the pretrained encoder is shared between cells; None without pretraining."""
        config = self.encoder_config()
        return None if config is None else config_key(config)[:16]

    def describe(self) -> str:
        """One line for a person."""
        parts = [*_told_data(self.data), f"{self.encoder.name} ×{self.encoder.width:g}"]
        parts += [_told_pretraining(self.pretraining)] if self.pretraining is not None else []
        parts += [_told_transfer(self.transfer), *(["t-SNE"] if self.embedding else [])]
        return ", ".join([*parts, f"seed {self.seed}"])


def canonical(config: dict[str, Any]) -> str:
    """The one JSON text of a configuration."""
    # Any change here, even of white space, renames every stored result.
    return json.dumps(config, sort_keys=True, separators=(",", ":"), allow_nan=False)


def config_key(config: dict[str, Any]) -> str:
    """sha256 of the canonical JSON."""
    return hashlib.sha256(canonical(config).encode()).hexdigest()


def _without(values: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in names}


def _without_defaults(values: dict[str, Any], kind: type[Any], *names: str) -> dict[str, Any]:
    """Without those of `names` that have the value with which `kind` declares them."""
    return {name: value for name, value in values.items() if name not in names or value != getattr(kind, name)}


def _told_data(data: DataSpec) -> list[str]:
    parts = [f"{data.source} {data.setting} {data.n_labelled} labelled"]
    parts += [data.scenario] if data.scenario != "single_set" else []
    parts += [f"label bias {data.label_bias:g}"] if data.label_bias else []
    parts += [f"label noise {data.label_noise:g}"] if data.label_noise else []
    parts += [f"{100 * data.positive_share:g} % positive"] if data.positive_share else []
    return [*parts, *([f"{data.n_train} rows"] if data.n_train else [])]


def _told_pretraining(pretraining: Pretraining) -> str:
    told = "" if pretraining.prior in (None, "true") else f" (prior {pretraining.prior})"
    form = dict(pretraining.loss_options).get("weighting")
    loss = pretraining.loss if form is None else f"{pretraining.loss} {form}"
    return f"{loss}{told} {number_of(pretraining.config.epochs, 'epoch', 'epochs')}"


def _told_transfer(transfer: Transfer) -> str:
    told = "" if transfer.prior == "true" else f" (prior {transfer.prior})"
    rate = f" at {transfer.config.lr:g}" if isinstance(transfer.config, FinetuneConfig) else ""
    what = transfer.config.head if isinstance(transfer.config, PortfolioConfig) else transfer.risk or ""
    return f"{transfer.kind} {what}".rstrip() + told + rate
