"""A fit that learns from verdicts: the rows of the review found again, and the review carried over to the new run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from punce.data import UserData
from punce.errors import InputError, number_of
from punce.judging.sampling import QUANTITIES, Flags
from punce.labels import NEGATIVE, POSITIVE, Labels
from punce.product.plan import DataOptions
from punce.product.review.job import State, state_of, write_audit
from punce.product.review.page import as_interval, show_on_page
from punce.product.review.run import check_same, content_hashes, label_hash, moved_to, scored_run
from punce.product.review.store import Before, Plan, ReviewFolder, new_code
from punce.storage.files import as_argument

Share = tuple[float, float, float]


@dataclass(frozen=True)
class Reviewed:
    """The verdicts on the rows of a file. Shape: labels and judged (n,); labels hold the truth of judged rows."""

    state: State
    labels: Labels
    judged: Flags

    @property
    def prior(self) -> Share | None:
        """The share of positives by the verdicts, and by the labels where they agree; None below ten verdicts."""
        share = self.state.share
        if share is None:
            return None
        # Sixty rows without a positive do not show that there is none: the value stays off the ends.
        value = min(max(float(share.value), 0.001), 0.999)
        return value, min(float(share.low), value), max(float(share.high), value)

    def said(self) -> list[str]:
        """The verdict on each row for the ranked list: yes, no, or empty."""
        return [
            {POSITIVE: "yes", NEGATIVE: "no"}[int(y)] if j else ""
            for y, j in zip(self.labels, self.judged, strict=True)
        ]

    def as_config(self) -> dict[str, str | int]:
        """What config.json says of it."""
        return {"run": str(self.state.run.folder), "verdicts": len(self.state.settled.positive)}

    def carry(self, out: Path) -> None:
        """The rounds and verdicts so far, for the next review of the new run."""
        state, audited = self.state, self.state.audit
        before = Before(
            state.run.folder.name,
            len(state.settled.positive),
            {name: as_interval(claim) for name, claim in state.run.claims.items()},
            {name: as_interval(audited.of(name)) for name in QUANTITIES} if audited else {},
        )
        plan = state.plan
        folder = ReviewFolder(out)
        folder.write(Plan(new_code(), plan.rows, plan.labels, plan.rounds, (*plan.before, before)))
        folder.begin(ReviewFolder(state.run.folder).verdicts())  # a fit that was killed after this comes here again


def reviewed_rows(review: Path, source: DataOptions, data: UserData) -> Reviewed:
    """The verdicts of the review of a run on the same file; a file that changed is refused."""
    run = scored_run(review)
    state = state_of(run)
    if state is None or not state.settled.positive:
        raise InputError(f"{review} has no verdicts yet; judge rows with punce review {as_argument(review)}")
    assert data.labels is not None
    check_same(data, run, vars(source))
    # Read as the run read it: dropping a column for the new fit is no change of the file.
    _check_rows(state, moved_to(run, source.path).data())
    labels, judged = data.labels.copy(), np.zeros(len(data), dtype=bool)
    for key, is_positive in state.settled.positive.items():
        row = state.plan.drawn[key].row
        labels[row], judged[row] = POSITIVE if is_positive else NEGATIVE, True
    return Reviewed(state, labels, judged)


def _check_rows(state: State, data: UserData) -> None:
    assert data.labels is not None
    drawn = list(state.plan.drawn.values())
    if len(data) != state.plan.rows or label_hash(data.labels) != state.plan.labels:
        raise InputError(f"{data.source} has other rows or labels than when {state.run.folder} was reviewed")
    now = content_hashes(data, np.array([one.row for one in drawn]))
    changed = [one.id for one, content in zip(drawn, now, strict=True) if one.content != content]
    if changed:
        raise InputError(
            f"{data.source}: {number_of(len(changed), 'reviewed row has', 'reviewed rows have')} changed since (first: "
            f"{changed[0]}); the verdicts were on what was there: restore the file, or start a new review"
        )


def finish_review(out: Path) -> State | None:
    """The audit of the new run's calls by the verdicts so far, in its folder and on its page."""
    state = state_of(scored_run(out))
    if state is not None and state.audit is not None:
        write_audit(state)
        show_on_page(state)
    return state
