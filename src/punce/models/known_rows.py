"""Rows whose class is known although they are no labelled positives: labelled negatives and judged rows.

Wherever a model learns from them, its labels are 1 and −1 where the class is known, whoever said it, else 0, and its
prior is the share of positives among the rest.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from punce.errors import InputError, number_of
from punce.labels import NEGATIVE, POSITIVE, UNLABELLED, Labels, RowLabels
from punce.models.route import LEARNED_FROM_KNOWN
from punce.options import FEWEST_FOR_ENSEMBLE
from punce.ran import KNOWN_UNUSED


def require_unknown(rows: RowLabels) -> None:
    """Refuse rows of which (nearly) all classes are known: models are fitted on a part of the others each."""
    unknown = int(((rows.labels == UNLABELLED) & (rows.truths == 0)).sum())
    if rows.counts and unknown < FEWEST_FOR_ENSEMBLE:
        few = number_of(unknown, "row is", "rows are")
        raise InputError(
            f"{few} of unknown class, beside {' and '.join(f'{n} {name}' for name, n in rows.counts.items())}; PU "
            f"learning needs at least {FEWEST_FOR_ENSEMBLE} that nobody has looked up (use an ordinary classifier)"
        )


def require_verdicts(codes: Labels, judged: Any) -> None:
    """Refuse judged rows without a class. Shape: codes and judged (n,).

    Whoever writes negatives as 0 would have only the positives of the judged rows learned from, and every probability
    moved up to fit them.
    """
    if judged is None:
        return
    silent = np.flatnonzero((codes == UNLABELLED) & np.asarray(judged))
    if len(silent):
        few = number_of(len(silent), "row whose label is", "rows whose labels are")
        raise InputError(
            f"judged marks {few} read as unlabelled (0), first row {silent[0]}: label a judged row 1 or -1, by what "
            "the person said, and leave a row of which nothing is known out of judged"
        )


def about_known(ran: dict[str, Any], counts: dict[str, int]) -> tuple[str, ...]:
    """Enter the `counts` of known rows into what `ran`; what to say where nothing learned from them."""
    is_learned = ran.pop(LEARNED_FROM_KNOWN, False)
    if not counts:
        return ()
    ran["known" if is_learned else KNOWN_UNUSED] = counts
    what = f"{' and '.join(counts)}; they serve the share of positives and the quality only"
    return () if is_learned else (f"{ran['way']} does not learn from {what}",)


def known_weight(prior: float, n_positive: int, n_unlabelled: int) -> float:
    """How many unlabelled rows one row of known class counts for.

    The risk of negatives can be had from N alone, with variance (1−π)²/n_N, or from U less the share of P in it, with
    variance 1/n_U + π²/n_P. Weighed by their inverse variances, a row of N weighs (1 + π²·n_U/n_P)/(1 − π) rows of U,
    however many there are of N.
    """
    return float((1.0 + prior**2 * n_unlabelled / max(1, n_positive)) / (1.0 - prior))


def known_share(known: Labels, prior: float) -> float:
    """What labelled negatives weigh in the risk of all negatives, by the same reasoning. Shape: known (n,)."""
    n_p, n_u, n_n = (int((known == kind).sum()) for kind in (POSITIVE, UNLABELLED, NEGATIVE))
    weight = n_n * known_weight(prior, n_p, n_u)
    return weight / (weight + (1.0 - prior) * n_u)
