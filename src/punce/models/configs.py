"""The stages' settings that a caller hands in: ``configs={"pretrain": PretrainConfig(...), "probe": {"lr": 1e-3}}``."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from inspect import signature
from typing import Any

import numpy as np

from punce.errors import InputError
from punce.losses import LOSSES
from punce.options import PAPER
from punce.risks import RISKS, build_risk
from punce.stages.finetune import FinetuneConfig
from punce.stages.pretrain import PretrainConfig
from punce.stages.probe import ProbeConfig
from punce.stages.pupl import PuplConfig
from punce.stages.selfpu import SelfPUConfig
from punce.stages.vpu import VPUConfig
from punce.training.loop import Settings, TrainingConfig

STAGES: dict[str, Any] = {
    "pretrain": PretrainConfig,
    "probe": ProbeConfig,
    "finetune": FinetuneConfig,
    "vpu": VPUConfig,
    "selfpu": SelfPUConfig,
    "pupl": PuplConfig,
}
# The classifier's own arguments set these; a second place for the same number would be one that has no effect.
_SET_ELSEWHERE = {"seed": "random_state", "monitor_prior": "prior", "prior": "prior", "from_scratch": "loss=None"}


def plain_configs(configs: Mapping[str, Any] | None, loss: Any, risk: Any) -> dict[str, dict[str, Any]]:
    """The fields to change, by stage, as plain values; refuses stages and fields that do not exist.

    A Config object sets every field it has, a dictionary those it names. "loss" and "risk" take the arguments of the
    class that the caller named.
    """
    if configs is None:
        return {}
    if not isinstance(configs, Mapping):
        raise InputError(f"configs must be a dictionary such as {{'probe': {{'lr': 1e-3}}}}, got {configs!r}")
    for stage in configs:
        _require_known(stage, [*STAGES, "loss", "risk"], "configs has no stage {}")
    return {stage: _changes(stage, given, loss, risk) for stage, given in configs.items()}


def _changes(stage: str, given: Any, loss: Any, risk: Any) -> dict[str, Any]:
    where = f"configs[{stage!r}]"
    if stage in ("loss", "risk"):
        chosen = loss if stage == "loss" else risk
        chosen = PAPER[stage] if isinstance(chosen, str) and chosen == "auto" else chosen
        changes = _of_entry(where, given, chosen, LOSSES if stage == "loss" else RISKS)
        if stage == "risk":  # built after pretraining; the loss at its beginning, when labelled negatives are known
            _try(where, partial(build_risk, chosen, 0.5), changes)
        return changes
    if isinstance(given, STAGES[stage]):
        given = _fields_of(given)
    if not isinstance(given, Mapping):
        raise InputError(f"{where} must be a {STAGES[stage].__name__} or a dictionary, got {given!r}")
    names = [field.name for field in fields(STAGES[stage])]
    for name in given:
        _require_known(name, names, f"{where} has no field {{}}")
        if name in _SET_ELSEWHERE:
            raise InputError(f"{where}: {name} is set by {_SET_ELSEWHERE[name]}; leave it out here")
    changes = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}  # from JSON
    is_proportional = stage == "selfpu" and "epochs" in changes
    _try(where, SelfPUConfig.in_proportion if is_proportional else STAGES[stage], changes)
    return changes


def _fields_of(config: Any) -> dict[str, Any]:
    """All fields of a Config object, but of those that the classifier sets only what was changed: to be refused."""
    values = [(field, getattr(config, field.name)) for field in fields(config)]
    return {field.name: v for field, v in values if field.name not in _SET_ELSEWHERE or v != field.default}


def _of_entry(where: str, given: Any, chosen: Any, catalogue: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise InputError(f"{where} must be a dictionary of arguments, got {given!r}")
    if not isinstance(chosen, str) or chosen not in catalogue:
        raise InputError(f"{where} needs the loss or risk by name; {chosen!r} has its settings already")
    names = [name for name in signature(catalogue[chosen]).parameters if name != "prior"]  # estimated, or prior=
    for name in given:
        _require_known(name, names, f"{where}: {chosen!r} has no argument {{}}")
    return dict(given)


def _try(where: str, build: Callable[..., Any], changes: Mapping[str, Any]) -> None:
    """Build it once, so that a value that the stage itself refuses is refused before anything runs."""
    try:
        built = build(**changes)
        if isinstance(built, TrainingConfig | VPUConfig):
            Settings.of(built)
    except (TypeError, ValueError) as error:
        raise InputError(f"{where}: {error}") from error


def _require_known(name: Any, known: list[str], message: str) -> None:
    if name in known:
        return
    near = difflib.get_close_matches(str(name), known, n=1)
    guess = f"; did you mean {near[0]!r}?" if near else f"; it has {', '.join(known)}"
    raise InputError(message.format(repr(name)) + guess)


def plain_parameters(parameters: Mapping[str, Any], seed: int | None) -> dict[str, Any]:
    """The classifier's parameters as JSON. Losses and risks go by the name of their class; ``ran_`` has their settings.

    An encoder object has no such form and is left out; a RandomState is kept as the seed that was drawn from it.
    """
    names = {kind: name for name, kind in {**LOSSES, **RISKS}.items()}
    given = {key: names.get(type(value), plain(value)) for key, value in parameters.items()}
    given["configs"] = plain_configs(parameters["configs"], parameters["loss"], parameters["risk"]) or None
    if isinstance(given["random_state"], np.random.RandomState):
        given["random_state"] = seed
    is_plain = (str, int, float, bool, dict, type(None))
    return {key: value for key, value in given.items() if isinstance(value, is_plain)}


def plain(value: Any) -> Any:
    """A NumPy number, which JSON does not know, as Python's own."""
    return value.item() if isinstance(value, np.generic) else value
