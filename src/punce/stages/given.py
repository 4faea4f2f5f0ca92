"""The objects that a caller hands to a stage, looked at before anything is trained."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from numbers import Real
from os import PathLike
from typing import Any

import torch
from torch import Tensor, nn

from punce.encoders import Encoder
from punce.encoders.encoder import eval_mode
from punce.errors import InputError, PunceError, first_line, is_number
from punce.losses import LOSSES
from punce.risks import RISKS, Risk
from punce.risks.base import Surrogate
from punce.training.loop import Watched
from punce.training.random_stream import seeded
from punce.training.run import Outputs, weights_fingerprint
from punce.views import View
from punce.views.taught import SmallImageView

UNUSED_PARTS = ("projector.", "online_head.")
"""Parts of an encoder that a head on its features does not use: their weights do not change the result."""


def check_encoder(encoder: object, *, with_head: bool = False) -> None:
    """Refuse a name or a class in the place of an encoder, a network that is none, and one without its linear head.

    A stage that trains it `with_head`, a new one, refuses an encoder whose weights are all switched off, too.
    """
    if not isinstance(encoder, Encoder):
        raise InputError(
            f"encoder must be an Encoder, got {_called(encoder)}; build_encoder makes one by name, and a network of "
            "your own is the backbone of a subclass (docs/training.md)"
        )
    head = getattr(encoder, "online_head", None)
    # Asked here: its size is that of the features, and without it torch would say that feature_size is missing.
    if not isinstance(head, nn.Linear) or head.out_features != 1:
        raise InputError(
            f"{type(encoder).__name__}.online_head must be torch.nn.Linear(number of features, 1), "
            f"got {'nothing' if head is None else head}"
        )
    if with_head:
        _refuse_frozen(encoder)


def _refuse_frozen(encoder: Encoder) -> None:
    """The head alone would learn; on features of random weights where the encoder is to be trained from scratch."""
    weights = [weight for name, weight in encoder.named_parameters() if not name.startswith(UNUSED_PARTS)]
    if weights and not any(weight.requires_grad for weight in weights):  # Identity has none
        raise InputError(
            f"no weight of {type(encoder).__name__} asks for a gradient, so only the head would be trained: probe does "
            "that, on frozen features; encoder.requires_grad_() lets the encoder be trained, too"
        )


def check_call(
    stage: str, config: object, kind: type, outputs: Mapping[str, object], known: type[Outputs] = Watched
) -> None:
    """Refuse another stage's configuration, keywords that the stage does not know, and values that cannot be used.

    The first two would be ignored, the last be noticed after an epoch of training.
    """
    if not isinstance(config, kind):
        raise InputError(f"{stage} takes a {kind.__name__}, got {_called(config)}")
    if unknown := sorted(set(outputs) - set(known.__annotations__)):
        raise InputError(
            f"{stage} has no argument {', '.join(unknown)}; beside data and settings it takes "
            f"{', '.join(known.__annotations__)}"
        )
    for name, given in outputs.items():
        is_usable, what = _USABLE.get(name, (lambda _: True, ""))
        if not is_usable(given):
            raise InputError(f"{name} must be {what}, got {given!r}")


_USABLE: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "folder": (lambda given: given is None or isinstance(given, str | PathLike), "a path or None"),
    "save_every": (lambda given: is_number(given) and given >= 0, "a number of seconds of at least 0"),
    "writer": (
        lambda given: given is None or hasattr(given, "add_scalar"),
        "an object with add_scalar(name, value, step) or None",
    ),
    "observer": (lambda given: given is None or callable(given), "a function or None"),
}
"""What the outputs of a stage may be."""


def check_view(view: object, *, augments: bool) -> None:
    """Refuse a name or a class in the place of a view, and an object without what the stage calls.

    `fit` is the caller's to call, and a stage that `augments` nothing asks for no plan.
    """
    called = ("clean", "plan") if augments else ("clean",)
    # A class has the methods, too.
    if isinstance(view, type) or not all(hasattr(view, name) for name in called):
        raise InputError(f"view must be a View, such as Embedding(), got {_called(view)}; build_view makes one by name")


def check_fit(encoder: Encoder, view: View | SmallImageView, X: Tensor, *, projects: bool = False) -> None:
    """Refuse rows that the encoder cannot read. Two rows are tried, because only the encoder knows what it reads.

    A stage that `projects` refuses a projector that cannot read the features, too.
    """
    x, weight, name = view.clean(X[:2]), next(encoder.parameters()), type(encoder).__name__
    try:
        # Seeded: an encoder may draw random numbers in eval mode, too, and the caller's stream must not change.
        with eval_mode(encoder), torch.no_grad(), seeded(0, weight.device):
            h = encoder.features(x)
    except (InputError, torch.OutOfMemoryError):
        raise
    except (RuntimeError, ValueError, IndexError) as error:
        row = ", ".join(map(str, x.shape[1:]))
        why = first_line(error)
        raise InputError(
            f"{name} cannot read these rows: {type(view).__name__} gives them as {x.dtype} (b, {row}), the weights are "
            f"{weight.dtype}; {_remedy(x, weight)} ({why})"
        ) from error
    expected, seen = (len(x), encoder.feature_size), tuple(h.shape) if isinstance(h, Tensor) else type(h).__name__
    if seen != expected:
        raise InputError(f"{name}.features gives {seen} for {len(x)} rows, but online_head reads {expected}")
    if projects:
        _check_projector(encoder, h)


def _check_projector(encoder: Encoder, h: Tensor) -> None:
    name = type(encoder).__name__
    try:
        with eval_mode(encoder), torch.no_grad(), seeded(0, h.device):
            z = encoder.project(h)
    except (InputError, torch.OutOfMemoryError):
        raise
    except (RuntimeError, ValueError, LookupError, TypeError, AttributeError) as error:
        why = first_line(error)
        raise InputError(
            f"{name}.projector cannot read the features (b, {h.shape[1]}): it must be a module from them to what a "
            f"contrastive loss compares, such as torch.nn.Linear({h.shape[1]}, 64) ({why})"
        ) from error
    if not isinstance(z, Tensor) or z.dim() != 2 or len(z) != len(h):
        seen = tuple(z.shape) if isinstance(z, Tensor) else type(z).__name__
        raise InputError(f"{name}.project gives {seen} for {len(h)} rows, but a contrastive loss compares rows (b, k)")


def _remedy(x: Tensor, weight: Tensor) -> str:
    """What to do about an encoder with such weights that cannot read x."""
    if x.device != weight.device:
        return f"they are on {weight.device} and the rows on {x.device}: move both to one device"
    return "build the encoder for rows of this shape" if x.dtype == weight.dtype else "encoder.float() converts it"


def check_loss(loss: object) -> None:
    """Refuse a name, a class or a risk in the place of a loss, and one with weights."""
    if not isinstance(loss, nn.Module) or isinstance(loss, Risk):
        raise InputError(
            f"loss must be a ContrastiveLoss, such as InfoNCE(), got {_called(loss)}; build_loss makes one by name"
        )
    _refuse_weights("loss", loss)


def checked_value(word: str, value: Tensor, of: Tensor) -> Tensor:
    """The value of a loss or risk; refused where it is no single number, or no gradient goes through it to `of`.

    A stage adds others to it, so that it would train on without it. No InputError: that would name rows of the batch.
    """
    if not isinstance(value, Tensor) or value.numel() != 1:
        seen = f"shape {tuple(value.shape)}" if isinstance(value, Tensor) else f"an object of {type(value).__name__}"
        raise PunceError(f"the {word} must give one number as a tensor, the mean over rows or anchors, got {seen}")
    if of.requires_grad and not value.requires_grad:
        raise PunceError(
            f"no gradient goes through the {word}, so nothing would be learned from it: compute it with torch from "
            "what it is given, without detach() or torch.no_grad()"
        )
    return value


def check_risk(risk: object) -> None:
    """Refuse a name or a class in the place of a risk, and one with weights."""
    if not isinstance(risk, Risk):
        raise InputError(f"risk must be a Risk, such as NNPU(prior), got {_called(risk)}; build_risk makes one by name")
    _refuse_weights("risk", risk)


def told(part: object) -> str:
    """A loss, risk or view as a checkpoint compares it: what it shows, and of a class from outside every plain setting.

    Whoever writes one need not define what it shows: a run would be resumed with another setting of it.
    """
    # Python's own words for an object hold its address, which no second process has.
    shown = type(part).__name__ if type(part).__repr__ is object.__repr__ else repr(part)
    if part is None or is_dataclass(part) or type(part) in (*LOSSES.values(), *RISKS.values()):
        return shown
    settings = getattr(part, "__dict__", {})  # a class with __slots__ has none
    own = {name: value.name if isinstance(value, Surrogate) else value for name, value in settings.items()}
    own.pop("training", None)
    plain = {name: value for name, value in own.items() if name[0] != "_" and _is_plain(value)}
    tensors = f" {weights_fingerprint(part)}" if isinstance(part, nn.Module) and part.state_dict() else ""
    return f"{shown} {plain}{tensors}"


def _is_plain(value: object) -> bool:
    """Whether a setting looks alike in every process; a list of functions shows their addresses."""
    return all(map(_is_plain, value)) if isinstance(value, tuple | list) else isinstance(value, Real | str)


def _refuse_weights(word: str, module: nn.Module) -> None:
    """A stage trains the network alone: a learned temperature would stay what it is without a word."""
    if names := [name for name, weight in module.named_parameters() if weight.requires_grad]:
        raise InputError(
            f"the {word} has weights of its own ({', '.join(names)}), which a stage does not train; train it in a loop "
            f"of your own, or keep them as they are with {word}.requires_grad_(False)"
        )


def _called(given: object) -> str:
    """What was given, as a message names it."""
    if isinstance(given, type):
        return f"the class {given.__name__}"
    return repr(given) if isinstance(given, str) else f"an object of {type(given).__name__}"
