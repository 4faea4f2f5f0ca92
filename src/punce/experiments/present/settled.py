"""Which results a claim rests on: the first of several scales that settles it, and never two in one comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from punce.experiments.present.claims import further_questions, paper_claims
from punce.experiments.present.grid import Grid
from punce.experiments.present.verdicts import Finding, Verdict
from punce.experiments.scale import Scale

OPEN = (Verdict.ONE_SEED, Verdict.NOT_MEASURED)


@dataclass(frozen=True)
class Settled:
    """A claim, and the scale whose results it rests on; None where no scale measured it."""

    finding: Finding
    scale: Scale | None
    is_papers: bool = True

    @property
    def is_open(self) -> bool:
        """Whether no scale has two seeds of it."""
        return self.finding.verdict in OPEN


def settled_claims(books: Sequence[tuple[Scale, Mapping[str, Grid]]]) -> list[Settled]:
    """Every claim of the paper and every question beyond it, in the order of the first scale."""
    found: list[Settled] = []
    for is_papers, read in ((True, paper_claims), (False, further_questions)):
        columns = [read(grids) for _, grids in books]
        for claims in zip(*columns, strict=True):
            found.append(_chosen(list(zip((scale for scale, _ in books), claims, strict=True)), is_papers))
    return found


def _chosen(candidates: Sequence[tuple[Scale, Finding]], is_papers: bool) -> Settled:
    """Two seeds or more before one, one before none; among equals the first scale."""
    settled = [pair for pair in candidates if pair[1].verdict not in OPEN]
    one_seed = [pair for pair in candidates if pair[1].verdict is Verdict.ONE_SEED]
    for scale, finding in [*settled, *one_seed]:
        return Settled(finding, scale, is_papers)
    return Settled(candidates[0][1], None, is_papers)
