"""From numbers to a verdict, by rules: what is compared, over which seeds, and what counts as showing.

A comparison is a difference over the seeds that all its places share. It shows if the 95 % t-interval of the mean
difference lies above zero (or, for "costs less than", below the limit), and the opposite shows if it lies beyond the
other side. With one seed there is no interval, and no verdict beyond "one seed only". A level is reached if the mean,
of two seeds at least, is at or above it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from punce.experiments.present.curves import drop_by_seed, jitter_by_seed, purity_by_seed
from punce.experiments.present.grid import Grid, Measured
from punce.experiments.present.numbers import with_interval
from punce.experiments.present.statistics import BySeed, Summary, summarise

RULES = (
    "Every verdict is computed. A comparison is the mean difference over the seeds that both sides share. It shows if "
    "the 95 % t-interval of that mean lies above zero. It does not show if the interval contains zero. A level is "
    "reached if our mean is at or above the paper's. One seed has no interval and settles nothing. A claim with "
    "several comparisons shows in part if some show and others do not; the opposite shows in part if some show the "
    "opposite and others do not. It is mixed if some show and others show the opposite. It shows where measured if the "
    "other comparisons were not measured or have one seed. Square brackets hold 95 % intervals; differences are in "
    "points.",
    "The intervals are not corrected for the number of claims. Of forty comparisons without any effect, one is "
    "expected to show by chance.",
    "All accuracies of the PU tables are PU-selected: epochs were chosen without negatives. In Table 4 the penalty of "
    "the linear layer was chosen on labels of training rows, in Table 5 the step on the other half of the dev set. No "
    "test label was used to choose. As in the paper, pretraining saw every training row, including those on which the "
    "epoch of a probe or of fine-tuning was chosen later; SCL and puNCE also saw their labels. Training from scratch "
    "held these rows out.",
)


class Answer(Enum):
    """What one comparison says."""

    YES = "yes"
    NO = "no"
    OPPOSITE = "opposite"
    ONE_SEED = "one seed"
    MISSING = "not measured"


_OPEN = frozenset({Answer.ONE_SEED, Answer.MISSING})


class Verdict(Enum):
    """What all comparisons of a claim say together: the word for the reader, and the verb for one claim and several."""

    SHOWS = ("shows", "shows", "show")
    WHERE_MEASURED = ("shows where measured", "shows where measured", "show where measured")
    IN_PART = ("shows in part", "shows in part", "show in part")
    MIXED = ("mixed", "is mixed", "are mixed")
    DOES_NOT = ("does not show", "does not show", "do not show")
    OPPOSITE = ("the opposite shows", "shows the opposite", "show the opposite")
    OPPOSITE_WHERE_MEASURED = (
        "the opposite where measured",
        "shows the opposite where measured",
        "show the opposite where measured",
    )
    OPPOSITE_IN_PART = ("the opposite in part", "shows the opposite in part", "show the opposite in part")
    ONE_SEED = ("one seed only", "has one seed only", "have one seed only")
    NOT_MEASURED = ("not measured", "was not measured", "were not measured")

    @property
    def word(self) -> str:
        """The verdict as the reader sees it."""
        return self.value[0]

    @property
    def kind(self) -> str:
        """A class of the style sheet."""
        settled = {Verdict.SHOWS: "shows", Verdict.DOES_NOT: "against", Verdict.OPPOSITE: "against"}
        return settled.get(self, "open")


@dataclass(frozen=True)
class Line:
    """One comparison of a claim: what it says, and the numbers; for a figure also its name and the difference."""

    answer: Answer
    numbers: str
    label: str = ""
    difference: Summary | None = None


@dataclass(frozen=True)
class Finding:
    """A claim with its verdict. `source` says where the paper makes it."""

    text: str
    source: str
    lines: tuple[Line, ...]

    @property
    def numbers(self) -> tuple[str, ...]:
        """The numbers of every comparison."""
        return tuple(line.numbers for line in self.lines)

    @property
    def verdict(self) -> Verdict:
        """Comparisons with one seed settle nothing and do not count, but the verdict says that there are some."""
        answers = {line.answer for line in self.lines}
        settled = answers - _OPEN
        if not settled:
            return Verdict.ONE_SEED if Answer.ONE_SEED in answers else Verdict.NOT_MEASURED
        if settled == {Answer.YES}:
            return Verdict.WHERE_MEASURED if answers & _OPEN else Verdict.SHOWS
        if settled == {Answer.OPPOSITE}:
            return Verdict.OPPOSITE_WHERE_MEASURED if answers & _OPEN else Verdict.OPPOSITE
        if settled >= {Answer.YES, Answer.OPPOSITE}:
            return Verdict.MIXED
        # What is left has a NO among its answers: alone, or beside one of these two.
        part = {Answer.YES: Verdict.IN_PART, Answer.OPPOSITE: Verdict.OPPOSITE_IN_PART}
        return next((verdict for answer, verdict in part.items() if answer in settled), Verdict.DOES_NOT)


@dataclass(frozen=True)
class Ref:
    """A quantity at a place of an experiment; `place` has the ids of its row and column in any order."""

    experiment: str
    place: str
    quantity: str = "test_accuracy"


_DERIVED: dict[str, Callable[[Measured], dict[int, float]]] = {
    "drop": drop_by_seed,
    "jitter": jitter_by_seed,
    "purity": purity_by_seed,
    "ranking": lambda measured: {seed: 100 * auc for seed, auc in measured.numbers("auc").items()},
}


class Book:
    """All grids of a scale; looks up and compares."""

    def __init__(self, grids: Mapping[str, Grid]) -> None:
        self._grids = grids

    @property
    def has_papers_rows(self) -> bool:
        """Whether levels of accuracy may be compared with the paper's."""
        return all(grid.scale.has_papers_rows for grid in self._grids.values())

    def has(self, experiment: str, place: str) -> bool:
        """Whether the scale has cells for the place, measured or not."""
        grid, wanted = self._grids.get(experiment), set(place.split("/"))
        return grid is not None and any({*row.split("/"), column} == wanted for row, column in grid.cells)

    def values(self, ref: Ref) -> BySeed:
        """The quantity by seed; empty where nothing was measured."""
        grid, wanted = self._grids.get(ref.experiment), set(ref.place.split("/"))
        places = grid.places if grid is not None else {}
        # By the set of ids: Figure 4a has Table 1's numbers with rows and columns exchanged.
        measured = next((m for (row, column), m in places.items() if {*row.split("/"), column} == wanted), Measured({}))
        derived = _DERIVED.get(ref.quantity)
        return derived(measured) if derived else measured.numbers(ref.quantity)

    def summary(self, ref: Ref) -> Summary | None:
        """Over all seeds of a place."""
        values = self.values(ref)
        return summarise([values[seed] for seed in sorted(values)]) if values else None

    def contrast(self, plus: Sequence[Ref], minus: Sequence[Ref]) -> Summary | None:
        """Σ plus − Σ minus, seed by seed; None when no seed has them all."""
        columns = [self.values(ref) for ref in (*plus, *minus)]
        signs = [1.0] * len(plus) + [-1.0] * len(minus)
        shared = set(columns[0]).intersection(*columns[1:])
        per_seed = [sum(s * c[seed] for s, c in zip(signs, columns, strict=True)) for seed in sorted(shared)]
        return summarise(per_seed) if per_seed else None

    def ahead(self, label: str, plus: Sequence[Ref], minus: Sequence[Ref]) -> Line:
        """Whether the contrast is above zero."""
        return self._compared(label, self.contrast(plus, minus), 0.0, {})

    def costs_less(self, label: str, plus: Sequence[Ref], minus: Sequence[Ref], limit: float) -> Line:
        """Whether the contrast stays below `limit`."""
        turned = {Answer.YES: Answer.OPPOSITE, Answer.OPPOSITE: Answer.YES}  # to be above it is the opposite
        return self._compared(label, self.contrast(plus, minus), limit, turned)

    def _compared(self, label: str, found: Summary | None, limit: float, turned: Mapping[Answer, Answer]) -> Line:
        if found is None:
            return Line(Answer.MISSING, f"{label}: not measured")
        above = _against(found, limit)
        return Line(turned.get(above, above), f"{label}: {with_interval(found, sign=True)}", label, found)

    def reaches(self, label: str, ref: Ref, level: float) -> Line:
        """Whether the mean over two seeds or more is at or above a level."""
        found = self.summary(ref)
        if found is None:
            return Line(Answer.MISSING, f"{label}: not measured, the paper {level:.2f}")
        reached = Answer.YES if found.mean >= level else Answer.NO
        # No interval here: the paper's own spread is unknown, so that the means alone are compared.
        answer = Answer.ONE_SEED if found.low is None else reached
        return Line(answer, f"{label}: {with_interval(found)}, the paper {level:.2f}")


def _against(found: Summary, limit: float) -> Answer:
    if found.low is None or found.high is None:
        return Answer.ONE_SEED
    if found.low > limit:
        return Answer.YES
    return Answer.OPPOSITE if found.high < limit else Answer.NO
