"""The objects that a caller hands to a stage, looked at before anything is trained."""

from __future__ import annotations

from torch import nn

from punce.encoders import Encoder
from punce.errors import InputError
from punce.risks import Risk


def check_encoder(encoder: object) -> None:
    """Refuse a name or a class in the place of an encoder, a network that is none, and one without its linear head."""
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


def check_view(view: object, *, augments: bool) -> None:
    """Refuse a name or a class in the place of a view, and an object without what the stage calls.

    `fit` is the caller's to call, and a stage that `augments` nothing asks for no plan.
    """
    called = ("clean", "plan") if augments else ("clean",)
    # A class has the methods, too.
    if isinstance(view, type) or not all(hasattr(view, name) for name in called):
        raise InputError(f"view must be a View, such as Embedding(), got {_called(view)}; build_view makes one by name")


def check_loss(loss: object) -> None:
    """Refuse a name or a class in the place of a loss, and one with weights."""
    if not isinstance(loss, nn.Module):
        raise InputError(
            f"loss must be a ContrastiveLoss, such as InfoNCE(), got {_called(loss)}; build_loss makes one by name"
        )
    _refuse_weights("loss", loss)


def check_risk(risk: object) -> None:
    """Refuse a name or a class in the place of a risk, and one with weights."""
    if not isinstance(risk, Risk):
        raise InputError(f"risk must be a Risk, such as NNPU(prior), got {_called(risk)}; build_risk makes one by name")
    _refuse_weights("risk", risk)


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
