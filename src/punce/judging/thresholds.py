"""Where to cut, without negatives: for accuracy, for F1, or for a wanted precision or recall.

Calibrated probabilities say it themselves: of the rows from a threshold on, the mean probability is the precision, and
F1 is twice their sum over (their number + the sum over all rows). That is much steadier than counting the few labelled
rows above each candidate (true F1 with 30 labelled rows: +1 to +3 points, benchmarks/honesty.py). A wanted recall is
read off the labelled rows, which show it directly.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from punce.errors import InputError

Floats = npt.NDArray[np.float64]
Rule = str | float


def choose_threshold(
    rule: Rule, p: Floats, u: Floats, labelled_share: float = 0.0, n: Floats | None = None, negative_share: float = 0.0
) -> float:
    """The probability from which a row is called positive.

    `rule`: a probability; "accuracy" (0.5, the best cut for calibrated probabilities); "f1"; or "precision=0.9" /
    "recall=0.95" for the lowest threshold with that precision or the highest with that recall. Where no threshold
    reaches the precision, the one with the highest is taken, and :func:`shortfall` says so. `p` and `u` are
    probabilities of held-out labelled and unlabelled rows; the rows to be called are those of U with a
    `labelled_share` of rows like P among them, and a `negative_share` of rows like the labelled negatives `n`.
    """
    check_rule(rule)
    if not isinstance(rule, str):
        return float(rule)
    if rule == "accuracy":
        return 0.5
    name, wanted = ("f1", 0.0) if rule == "f1" else _parse(rule)
    if name == "recall":
        candidates = np.unique(np.concatenate([p, u]))
        return float(candidates[np.flatnonzero(_share_from(p, candidates) >= wanted)[-1]])  # the lowest has recall 1
    candidates, rows, hits = _from_each_threshold(p, u, labelled_share, n, negative_share)
    if name == "f1":
        return float(candidates[np.argmax(2 * hits / (rows + hits[-1]))])
    precision = hits / rows  # falls with the threshold, up to rounding
    precise = np.flatnonzero(precision >= wanted)
    return float(candidates[precise[-1] if len(precise) else np.argmax(precision)])


def shortfall(
    rule: Rule, p: Floats, u: Floats, labelled_share: float = 0.0, n: Floats | None = None, negative_share: float = 0.0
) -> str:
    """What to tell a person whose wanted precision no threshold reaches; empty where one does."""
    if not isinstance(rule, str) or not rule.startswith("precision"):
        return ""
    _, rows, hits = _from_each_threshold(p, u, labelled_share, n, negative_share)
    best, wanted = float(np.max(hits / rows)), _parse(rule)[1]
    if best >= wanted:
        return ""
    return f"no threshold reaches an estimated precision of {wanted:g}; the best is {best:.3f}, which is used"


def _from_each_threshold(
    p: Floats, u: Floats, labelled_share: float, n: Floats | None, negative_share: float
) -> tuple[Floats, Floats, Floats]:
    """Probabilities from high to low, and the shares of rows and of positives from each on. Shape: (k,) each."""
    groups = [(p, labelled_share), (u, 1.0 - labelled_share - negative_share)]
    groups += [] if n is None else [(n, negative_share)]
    chances = np.concatenate([own for own, _ in groups])
    weights = np.concatenate([np.full(len(own), share / max(1, len(own))) for own, share in groups])
    candidates, place = np.unique(-chances, return_inverse=True)
    rows: Floats = np.cumsum(np.bincount(place, weights=weights))
    hits: Floats = np.cumsum(np.bincount(place, weights=weights * chances))
    kept = rows > 0  # a candidate among P only counts nothing where no labelled rows are to be called
    return -candidates[kept], rows[kept], hits[kept]


def check_rule(rule: Rule) -> None:
    """Refuse a rule that :func:`choose_threshold` does not know."""
    if not isinstance(rule, str):
        try:
            value = float(rule)
        except (TypeError, ValueError):  # None, or a list
            value = np.nan
        if not 0.0 < value < 1.0:
            raise InputError(f"threshold must lie in (0, 1), or be a rule such as 'f1', got {rule!r}")
    elif rule not in ("accuracy", "f1"):
        _parse(rule)


def _share_from(values: Floats, candidates: Floats) -> Floats:
    ordered = np.sort(values)
    # Not 1 − below/n: 1 − 8/25 is a little less than the 0.68 that somebody asks for.
    shares: Floats = (len(ordered) - np.searchsorted(ordered, candidates, side="left")) / len(ordered)
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
