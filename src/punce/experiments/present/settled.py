"""Which results a claim rests on: each of several scales on its own, and never two in one comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from punce.experiments.present.claims import further_questions, paper_claims
from punce.experiments.present.grid import Grid
from punce.experiments.present.verdicts import Finding, Verdict
from punce.experiments.scale import Scale

Books = Sequence[tuple[Scale, Mapping[str, Grid]]]
"""Scales with their grids, in the order in which they are believed."""

OPEN = (Verdict.ONE_SEED, Verdict.NOT_MEASURED)


@dataclass(frozen=True)
class Settled:
    """A claim with what every scale says of it that measured any of it.

    `finding` is that of the first scale with two seeds or more, else with one; `scale` is None where none has any.
    """

    finding: Finding
    scale: Scale | None
    by_scale: tuple[tuple[Scale, Finding], ...]
    is_papers: bool

    def at(self, scale: Scale) -> Finding | None:
        """What the results of one scale say; None where it has none."""
        return next((finding for own, finding in self.by_scale if own is scale), None)


def settled_claims(books: Books) -> list[Settled]:
    """Every claim of the paper and every question beyond it."""
    found: list[Settled] = []
    for is_papers, read in ((True, paper_claims), (False, further_questions)):
        columns = [read(grids) for _, grids in books]
        for claims in zip(*columns, strict=True):
            found.append(_settled([(scale, one) for (scale, _), one in zip(books, claims, strict=True)], is_papers))
    return found


def _settled(candidates: Sequence[tuple[Scale, Finding]], is_papers: bool) -> Settled:
    measured = tuple(pair for pair in candidates if pair[1].verdict is not Verdict.NOT_MEASURED)
    if not measured:
        return Settled(candidates[0][1], None, (), is_papers)
    scale, finding = min(measured, key=lambda pair: pair[1].verdict in OPEN)  # of equals the first
    return Settled(finding, scale, measured, is_papers)
