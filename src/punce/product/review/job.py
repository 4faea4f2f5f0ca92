"""The job behind ``punce review``: draw rows for people to judge, take their verdicts, and say what they show."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import get_args

import numpy as np

from punce.data import UserData
from punce.errors import InputError, number_of
from punce.judging.audit import Audit, agreed_share, audit, disagreements
from punce.judging.estimates import CONFIDENCE, Estimate
from punce.judging.sampling import QUANTITIES, Flags, Quantity, draw, stratify
from punce.product.review.files import read_verdicts, refuse_foreign, refuse_to_lose, write_rows
from punce.product.review.run import ScoredRun, as_estimate, content_hashes, label_hash
from punce.product.review.store import (
    NO,
    YES,
    DrawnRow,
    Plan,
    ReviewFolder,
    Round,
    Settled,
    Verdict,
    key_of,
    letters_of,
    new_code,
    samples_of,
    settle,
    taken_rows,
)
from punce.storage.files import as_argument, file_and_table, refuse_to_replace_input, write_text
from punce.storage.json_tree import encode

_FEWEST = 10  # verdicts below which nothing is said: every interval would be "anything"
_GOAL = re.compile(r"\s*(\w+)\s*(?:±|\+/?-|=)\s*([0-9.]+)\s*(%?)\s*")


@dataclass(frozen=True)
class Goal:
    """An interval to reach: the quantity, and how far it may reach on each side."""

    quantity: Quantity
    half_width: float

    @classmethod
    def of(cls, text: str) -> Goal:
        """From ``precision±0.03``; +-, +/- and = do as well, and 3% for 0.03."""
        match = _GOAL.fullmatch(text)
        half = float(match[2]) / (100.0 if match[3] else 1.0) if match and match[2].count(".") < 2 else 0.0
        if match is None or match[1] not in QUANTITIES or not 0.0 < half < 0.5:
            raise InputError(
                f"--stop-when must name one of {', '.join(QUANTITIES)} and half the width of its interval, "
                f"like precision±0.03 or precision+-0.03; got {text!r}"
            )
        return cls(quantity_of(match[1]), half)


@dataclass(frozen=True)
class State:
    """Everything that is known of a review. `audit` is None before there are ten verdicts that can audit the run.

    `judged_share` is the share of positives by all verdicts; None before there are ten.
    """

    run: ScoredRun
    plan: Plan
    settled: Settled
    audit: Audit | None
    judged_share: Estimate | None

    @property
    def open(self) -> list[DrawnRow]:
        """Rows that nobody has looked at yet."""
        seen = self.settled.words
        return [drawn for key, drawn in self.plan.drawn.items() if key not in seen]

    @property
    def compared(self) -> dict[Quantity, Estimate]:
        """Claims that rest on the labels and not on the judged rows."""
        is_judged = self.run.share_was_judged
        return {name: found for name, found in self.run.claims.items() if name != "share" or not is_judged}

    @property
    def disagreements(self) -> list[Quantity]:
        """What the labels and the judged rows give differently, beyond chance."""
        return disagreements(self.compared, self.audit) if self.audit else []

    @property
    def share_by_labels(self) -> Estimate | None:
        """The share that the labels alone gave: after a refit that of the first run, for its own rests on verdicts."""
        if not self.run.was_judged:
            return self.run.claims["share"]
        first = self.plan.before[0].claimed.get("share") if self.plan.before else None
        return None if first is None else as_estimate(asdict(first))

    @property
    def share(self) -> Estimate | None:
        """The share of positives to go on with."""
        return None if self.judged_share is None else agreed_share(self.share_by_labels, self.judged_share)

    @property
    def share_rests_on_labels(self) -> bool:
        """Whether the labels agree and have a part in the share: they often say more of it than the verdicts."""
        return self.share != self.judged_share


def quantity_of(name: str) -> Quantity:
    """The name of a quantity, checked."""
    for known in get_args(Quantity):
        if name == known:
            return known  # type: ignore[no-any-return]
    raise InputError(f"--for must be one of {', '.join(QUANTITIES)}, got {name!r}")


def state_of(run: ScoredRun) -> State | None:
    """The review of a run as it stands; None before the first draw."""
    folder = ReviewFolder(run.folder)
    plan = folder.plan()
    if plan is None:
        return None
    if plan.rounds and len(plan.rounds[0].strata) != len(run.rows):
        raise InputError(f"{folder.path} holds the review of another run ({len(plan.rounds[0].strata):,} rows)")
    settled = settle(folder.verdicts(), plan.drawn)
    usable = replace(
        settled, positive={key: y for key, y in settled.positive.items() if plan.drawn[key].row not in run.leaked}
    )
    found = _audit(run, plan, usable, run.called)
    share = found.share if found else None
    if len(usable.positive) < len(settled.positive):
        # The share is that of the file, whatever run is audited: it rests on all verdicts. They divide by the strata
        # they were drawn from alone, because the model calls rows that it was trained with as it was told to.
        every = _audit(run, plan, settled, np.zeros(len(run.rows), dtype=bool))
        share = every.share if every else None
        found = replace(found, share=share) if found and share else None
    return State(run, plan, settled, found, share)


def open_to(state: State, who: str | None, new: Sequence[Verdict] = ()) -> list[DrawnRow]:
    """Rows that the page has left for a person; a named one judges alone, whatever others have said of a row.

    `new` are verdicts that are not kept yet.
    """
    said = [*ReviewFolder(state.run.folder).verdicts(), *new]
    seen = {one.key for one in said if who in (None, one.who)}
    return [drawn for key, drawn in state.plan.drawn.items() if key not in seen]


def _audit(run: ScoredRun, plan: Plan, settled: Settled, called: Flags) -> Audit | None:
    """What these verdicts show; None where they are too few. Shape: called (N,)."""
    if len(settled.positive) < _FEWEST:
        return None
    return audit(samples_of(plan, settled, run.rows), called, run.probability)


def is_all_drawn(run: ScoredRun, plan: Plan) -> bool:
    """Whether no unlabelled row is left to be drawn."""
    return bool(taken_rows(plan, run.rows).all())


def check_draw(run: ScoredRun, plan: Plan | None, quantity: Quantity) -> None:
    """Refuse a draw that no row can answer."""
    if quantity == "precision" and not run.called.any():
        raise InputError("no row is called positive, so there is no precision to measure; use --for share or recall")
    if plan is not None and is_all_drawn(run, plan):
        raise InputError("every unlabelled row is drawn already: judge those that are open, with --verdicts or --serve")


def draw_rows(run: ScoredRun, data: UserData, quantity: Quantity, n_rows: int, seed: int) -> Plan:
    """Draw rows that no earlier round drew, and write them down."""
    folder = ReviewFolder(run.folder)
    with folder.held():
        assert data.labels is not None
        found = folder.plan()
        check_draw(run, found, quantity)
        plan = found or Plan(new_code(), len(data), label_hash(data.labels))
        made = _round(run, data, plan, settle(folder.verdicts(), plan.drawn), quantity, n_rows, seed)
        plan = replace(plan, rounds=(*plan.rounds, made))
        folder.write(plan)
    return plan


def _round(
    run: ScoredRun, data: UserData, plan: Plan, settled: Settled, quantity: Quantity, n_rows: int, seed: int
) -> Round:
    own = [one for one in plan.rounds if one.run == plan.code and one.quantity == quantity]
    # More rows of the same kind come from the same strata; another aim is better served by strata of its own.
    strata = own[-1].as_strata if own else stratify(run.probability, run.score, run.called, quantity, n_rows)
    taken, n_strata = taken_rows(plan, run.rows), len(strata.called)
    known = run.rows.searchsorted([one.row for key, one in plan.drawn.items() if key in settled.positive])
    judged = np.bincount(strata.of_row[known], minlength=n_strata)
    chosen = draw(strata, run.probability, taken, judged, quantity, n_rows, seed + len(plan.rounds))
    free = np.bincount(strata.of_row[~taken], minlength=n_strata)
    drawn = np.bincount(strata.of_row[chosen], minlength=n_strata)
    rows = run.rows[chosen]
    named = zip(rows.tolist(), content_hashes(data, rows), strict=True)
    return Round(
        run=plan.code,
        quantity=quantity,
        seed=seed + len(plan.rounds),
        strata=letters_of(strata),
        called=tuple(strata.called.tolist()),
        free=tuple(free.tolist()),
        chances=tuple((drawn / np.maximum(free, 1)).tolist()),
        drawn=tuple(DrawnRow(row, str(data.ids[row]), key_of(plan.code, row), content) for row, content in named),
    )


def check_review_file(run: ScoredRun, path: Path) -> None:
    """Refuse a place for review.csv at which the file of the run, or any other file, would be lost."""
    asked = run.config["data"]
    labels = asked.get("labels")
    refuse_to_replace_input(path, file_and_table(asked["path"])[0], None if labels is None else Path(labels))
    refuse_foreign(path)


def check_open_verdicts(run: ScoredRun, path: Path, new: Sequence[Verdict] = ()) -> None:
    """Refuse a file with verdicts that are neither kept nor `new`, before rows are drawn for it."""
    folder = ReviewFolder(run.folder)
    plan = folder.plan()
    if plan is not None:
        refuse_to_lose(path, [*folder.verdicts(), *new], plan.drawn)


def write_open_rows(state: State, data: UserData, path: Path, *, show_probability: bool) -> None:
    """review.csv with the rows that are still open."""
    refuse_to_lose(path, ReviewFolder(state.run.folder).verdicts(), state.plan.drawn)
    shown = dict(zip(state.run.rows.tolist(), state.run.probability.tolist(), strict=True))
    write_rows(path, state.open, data, shown if show_probability else None)


def new_verdicts(run: ScoredRun, files: Sequence[Path], who: str | None) -> tuple[list[Verdict], list[str]]:
    """The verdicts of the files that are not kept yet, and a line for each thing that is not usable; writes nothing."""
    folder = ReviewFolder(run.folder)
    plan = folder.plan()
    if plan is None:
        raise InputError(f"{run.folder} has no review yet: draw rows first with punce review {as_argument(run.folder)}")
    if who is None:
        _refuse_same_names(files)
    # All files are read before anything is written: a file that is refused leaves no half of a hand-in behind.
    read = [read_verdicts(file, plan.drawn, who) for file in files]
    told = {(one.key, one.who): one.verdict for one in folder.verdicts()}
    said = {(one.key, one.who): one for file in read for one in file.verdicts}  # a file may be named twice
    new = [one for who_said, one in said.items() if told.get(who_said) != one.verdict]
    return new, [*(problem for file in read for problem in file.problems), *_about_replaced(new, told)]


def _refuse_same_names(files: Sequence[Path]) -> None:
    """Two people's files of one name would be those of one person, whose last word replaces the first."""
    by_name: dict[str, Path] = {}
    for file in files:
        first = by_name.setdefault(file.name, file)
        if first.resolve() != file.resolve():
            raise InputError(
                f"{first} and {file} have the same name, which stands for the person who judged; hand them in one "
                "after the other with --judge NAME, or rename one"
            )


def _about_replaced(new: Sequence[Verdict], told: Mapping[tuple[str, str], str]) -> list[str]:
    """A line for each person whose yes became a no, or the other way round: it may be another person."""
    turned = Counter(one.who for one in new if {told.get((one.key, one.who)), one.verdict} == {YES, NO})
    return [
        f"{number_of(n, 'verdict', 'verdicts')} of {who} changed between yes and no, and the last one counts; if two "
        "people judged, hand in the first file again, and then the second with --judge NAME"
        for who, n in turned.items()
    ]


def write_audit(state: State) -> None:
    """RUN/review/audit.json, for programs."""
    if state.audit is None:
        return
    content = {
        "audited": {name: state.audit.of(name) for name in QUANTITIES},
        "claimed": state.run.claims,
        "disagree": state.disagreements,
        "share": state.share,
        "verdicts": state.audit.verdicts,
        "positive": state.audit.positives,
        "unsure": len(state.settled.unsure),
        "disputed": sorted(state.settled.disputed),
        "confidence": CONFIDENCE,
    }
    write_text(state.run.folder / "review" / "audit.json", json.dumps(encode(content), indent=1) + "\n")


def finding(state: State) -> str:
    """What the comparison means, in a sentence or two; empty before there is anything to compare."""
    if state.audit is None:
        return ""
    names, share = state.disagreements, state.audit.share
    if names:
        said = state.run.claims[names[0]]
        found = state.audit.of(names[0])
        cause = "the labelled rows are no random sample of the positives"
        if state.run.prior_was_given and not state.run.share_was_judged:
            cause = f"the given share of positives does not fit, or {cause}"
        also = f"; they also contradict {', '.join(names[1:])}" if len(names) > 1 else ""
        return (
            f"The judged rows contradict what the labels say: {names[0]} was said to be {said.value:.3f} and is "
            f"{found.value:.3f} ({found.low:.3f} to {found.high:.3f}){also}. Most likely {cause}. "
            "Trust the judged numbers."
        )
    agreed = state.share or share
    if agreed == share:  # the labels say nothing of it, or something else
        return f"The judged rows put the share of positives at {share.in_words()}."
    both = "Together with the labels they" if state.run.was_judged else "Both together"
    return (
        f"The judged rows do not contradict the fit beyond chance. {both} put the share of positives at "
        f"{agreed.in_words()}."
    )


def gain(state: State) -> str:
    """What the refit changed, by the accuracy of the calls of both runs as judged; empty where there was no refit."""
    if not state.plan.before or state.audit is None:
        return ""
    last, now = state.plan.before[-1], state.audit.accuracy
    then = last.audited.get("accuracy")
    if then is None or then.value is None or then.low is None or then.high is None or np.isnan(now.value):
        return ""
    is_clear = now.low > then.high or now.high < then.low
    sure = "Their intervals do not overlap." if is_clear else "Their intervals overlap: this may be chance."
    used = "learned from" if state.run.learned_from_verdicts else "had"
    return (
        f"The refit {used} {number_of(last.verdicts, 'verdict', 'verdicts')}: the judged accuracy went from "
        f"{then.value:.3f} ({last.run}) to {now.value:.3f} ({now.value - then.value:+.3f}). {sure}"
    )


def why_no_audit(state: State) -> str:
    """Why verdicts show nothing yet; also where there are enough, but the model has seen the rows they are on."""
    which = "rows are judged" if len(state.settled.positive) < _FEWEST else "of the judged rows can audit this model"
    return f"fewer than {_FEWEST} {which}: too few to say anything"


def progress_to(goal: Goal, state: State) -> str:
    """Whether enough rows are judged, and about how many more it takes if not."""
    if state.audit is None:
        return why_no_audit(state)
    found = state.audit.of(goal.quantity)
    if np.isnan(found.value):
        return f"{goal.quantity} {found.in_words()}"
    half = (found.high - found.low) / 2
    reached = f"{goal.quantity} is known to ±{half:.3f}"
    if half <= goal.half_width:
        return f"enough rows are judged: {reached} (goal ±{goal.half_width:g})"
    # The width falls with the root of the rows.
    more = np.ceil(state.audit.verdicts * ((half / goal.half_width) ** 2 - 1.0))
    left = len(state.run.rows) - state.audit.verdicts
    takes = f"it takes nearly all of the {left:,} rows left"
    if more < left:
        takes = f"about {number_of(int(more), 'more verdict', 'more verdicts')}"
    return f"not enough yet: {reached}, goal ±{goal.half_width:g}; {takes}"


def is_reached(goal: Goal, state: State) -> bool:
    """Whether the interval is narrow enough."""
    found = state.audit.of(goal.quantity) if state.audit else Estimate.impossible("")
    return bool((found.high - found.low) / 2 <= goal.half_width)  # NaN compares as False
