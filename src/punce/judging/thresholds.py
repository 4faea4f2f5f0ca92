"""Where to cut, without negatives: for accuracy, for F1, or for a wanted precision or recall.

With held-out labelled (P) and unlabelled (U) probabilities and the prior π, at a threshold with t the share of P at or
above it and q that of U:  recall = t,  precision = π·t/q,  F1 = 2π·t/(q + π).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from punce.errors import InputError

Floats = npt.NDArray[np.float64]
Rule = str | float


def choose_threshold(rule: Rule, p: Floats, u: Floats, prior: float) -> float:
    """The probability from which a row is called positive.

    `rule`: a probability; "accuracy" (0.5, the best cut for calibrated probabilities); "f1"; or "precision=0.9" /
    "recall=0.95" for the lowest threshold with that precision or the highest with that recall.
    """
    check_rule(rule)
    if not isinstance(rule, str):
        return float(rule)
    if rule == "accuracy":
        return 0.5
    candidates = np.unique(np.concatenate([p, u]))
    t, q = _share_from(p, candidates), _share_from(u, candidates)
    if rule == "f1":
        return float(candidates[np.argmax(2 * prior * t / (q + prior))])
    name, wanted = _parse(rule)
    if name == "recall":
        return float(candidates[np.flatnonzero(t >= wanted)[-1]])  # the lowest candidate has recall 1
    precise = np.minimum(1.0, prior * t / np.maximum(q, 1e-12)) >= wanted
    if not precise.any():
        best = float(np.min([1.0, np.max(prior * t / np.maximum(q, 1e-12))]))
        raise InputError(f"no threshold reaches an estimated precision of {wanted:g}; the best is {best:.3f}")
    return float(candidates[np.flatnonzero(precise)[0]])


def check_rule(rule: Rule) -> None:
    """Refuse a rule that :func:`choose_threshold` does not know."""
    if not isinstance(rule, str):
        if not 0.0 < float(rule) < 1.0:
            raise InputError(f"threshold must lie in (0, 1), got {rule!r}")
    elif rule not in ("accuracy", "f1"):
        _parse(rule)


def _share_from(values: Floats, candidates: Floats) -> Floats:
    ordered = np.sort(values)
    shares: Floats = 1.0 - np.searchsorted(ordered, candidates, side="left") / len(ordered)
    return shares


def _parse(rule: str) -> tuple[str, float]:
    name, _, number = rule.partition("=")
    try:
        wanted = float(number)
    except ValueError:
        wanted = np.nan
    if name not in ("precision", "recall") or not 0.0 < wanted <= 1.0:
        raise InputError(
            f"threshold must be a probability, 'accuracy', 'f1', 'precision=0.9' or 'recall=0.95', got {rule!r}"
        )
    return name, wanted
