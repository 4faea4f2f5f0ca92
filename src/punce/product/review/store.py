"""RUN/review: which rows were drawn with which chances, and what people said of them.

draw.json         the rounds: strata, sizes, chances and the drawn rows; written whole or not at all
verdicts.jsonl    one line per verdict, appended and synced at once: a killed process loses none
review.csv        the rows that are still to be judged, for a spreadsheet
"""

from __future__ import annotations

import json
import os
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from punce.errors import InputError, WriteError
from punce.judging.audit import Sample
from punce.judging.sampling import Flags, Ints, Strata
from punce.report.content import Interval
from punce.storage.files import locked, write_text
from punce.storage.json_tree import decode, encode, load_json

FORMAT = 1
# Consonants only: no spreadsheet takes a word of them for a number, a date or a month.
_ALPHABET = "bcdfghjklmnpqrstvwxz"
_FIRST = ord("A")  # letter of the first stratum; a byte a row, and readable
YES, NO, UNSURE = "yes", "no", "unsure"


@dataclass(frozen=True)
class DrawnRow:
    """A row to judge: its number in the file, its name, the key by which a verdict names it, and its content's hash."""

    row: int
    id: str
    key: str
    content: str


@dataclass(frozen=True)
class Round:
    """One draw. `run` is the code of the run whose scores made the strata; H strata, a letter for each unlabelled row.

    `free` counts the rows of each stratum that could be drawn, `chances` are the share of them that was.
    """

    run: str
    quantity: str
    seed: int
    strata: str
    called: tuple[bool, ...]
    free: tuple[int, ...]
    chances: tuple[float, ...]
    drawn: tuple[DrawnRow, ...]

    @property
    def as_strata(self) -> Strata:
        """The strata of every unlabelled row."""
        letters = np.frombuffer(self.strata.encode("latin-1"), dtype=np.uint8).astype(np.intp)
        return Strata(letters - _FIRST, np.array(self.called))


def letters_of(strata: Strata) -> str:
    """The strata as a letter for each row."""
    return (strata.of_row + _FIRST).astype(np.uint8).tobytes().decode("latin-1")


@dataclass(frozen=True)
class Before:
    """What an earlier run was found to be, to compare with: its verdicts, what it claimed and what was audited."""

    run: str
    verdicts: int
    claimed: dict[str, Interval]
    audited: dict[str, Interval]


@dataclass(frozen=True)
class Plan:
    """Everything that was drawn. `code` names this run in keys, `labels` is a hash of the label column."""

    code: str
    rows: int
    labels: str
    rounds: tuple[Round, ...] = ()
    before: tuple[Before, ...] = ()
    format: int = FORMAT

    @property
    def drawn(self) -> dict[str, DrawnRow]:
        """Every row that was ever drawn, by key, in the order in which they were."""
        return {drawn.key: drawn for one in self.rounds for drawn in one.drawn}


@dataclass(frozen=True)
class Verdict:
    """What one person said of one row."""

    key: str
    verdict: str
    who: str
    at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))


@dataclass(frozen=True)
class Settled:
    """The verdicts of all people together. Rows on which as many say yes as no are `disputed` and do not count."""

    positive: dict[str, bool]
    unsure: frozenset[str]
    disputed: frozenset[str]
    disagreed: frozenset[str]
    """Rows of which people said different things, whether a majority settles them or not."""

    @property
    def words(self) -> dict[str, str]:
        """What counts for each row that somebody looked at."""
        settled = {key: YES if is_positive else NO for key, is_positive in self.positive.items()}
        return settled | dict.fromkeys(self.unsure | self.disputed, UNSURE)


class ReviewFolder:
    """The folder RUN/review."""

    def __init__(self, run: Path) -> None:
        self.path = run / "review"
        self.log = self.path / "verdicts.jsonl"

    def plan(self) -> Plan | None:
        """What was drawn; None before the first draw."""
        file = self.path / "draw.json"
        if not file.exists():
            return None
        tree = load_json(file)
        if not isinstance(tree, dict) or tree.get("format") != FORMAT:
            raise InputError(
                f"{file} is not a draw that this version of punce reads; move {self.path} away to draw again"
            )
        plan = decode(Plan, tree, str(file))
        assert isinstance(plan, Plan)
        return plan

    def write(self, plan: Plan) -> None:
        """Replace the plan as a whole."""
        write_text(self.path / "draw.json", json.dumps(encode(plan)) + "\n")

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the folder while rows are drawn: two draws at once would each think the other's rows free."""
        with locked(self.path / ".lock") as is_alone:
            if not is_alone:
                raise InputError(f"another process is drawing rows in {self.path}; wait for it")
            yield

    def begin(self, verdicts: Iterable[Verdict]) -> None:
        """Write the first verdicts as a whole, unless there are some: a killed process leaves all of them or none."""
        if not self.log.exists():
            write_text(self.log, _lines(verdicts))

    def append(self, verdicts: Iterable[Verdict]) -> None:
        """Add verdicts; they are on disk when this returns."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            with self.log.open("ab+") as file:
                text = _lines(verdicts)
                if file.tell() and not _ends_a_line(file):
                    text = "\n" + text  # a process was killed inside a line, which counts as never written
                file.write(text.encode())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise WriteError(f"cannot write {self.log}: {error.strerror or error}") from error

    def verdicts(self) -> list[Verdict]:
        """All of them in order. A line that a killed process left unfinished, or that is no verdict, is skipped."""
        if not self.log.exists():
            return []
        found = (_parsed(line) for line in self.log.read_text(encoding="utf-8", errors="replace").splitlines())
        return [verdict for verdict in found if verdict is not None]


def _lines(verdicts: Iterable[Verdict]) -> str:
    return "".join(json.dumps(asdict(verdict)) + "\n" for verdict in verdicts)


def _ends_a_line(file: Any) -> bool:
    file.seek(-1, os.SEEK_END)
    return bool(file.read(1) == b"\n")


def _parsed(line: str) -> Verdict | None:
    try:
        verdict = Verdict(**json.loads(line))
    except (ValueError, TypeError):
        return None
    is_text = all(isinstance(part, str) for part in asdict(verdict).values())
    return verdict if is_text and verdict.verdict in (YES, NO, UNSURE) else None


def settle(verdicts: list[Verdict], keys: Iterable[str]) -> Settled:
    """The last word of each person counts, then the majority of people; who is unsure has no vote."""
    known = set(keys)
    last = {(one.key, one.who): one.verdict for one in verdicts if one.key in known}
    votes: dict[str, Counter[str]] = {}
    for (key, _), verdict in last.items():
        votes.setdefault(key, Counter())[verdict] += 1
    positive = {key: vote[YES] > vote[NO] for key, vote in votes.items() if vote[YES] != vote[NO]}
    disputed = frozenset(key for key, vote in votes.items() if vote[YES] == vote[NO] > 0)
    disagreed = frozenset(key for key, vote in votes.items() if vote[YES] and vote[NO])
    # Who is neither settled nor disputed has got no vote but "unsure".
    return Settled(positive, frozenset(votes) - set(positive) - disputed, disputed, disagreed)


def samples_of(plan: Plan, settled: Settled, unlabelled: Ints) -> list[Sample]:
    """The rows with a verdict, by the strata they were drawn from. Shape: unlabelled (N,), rows of the file.

    Rounds of the same strata are one sample. Rows that are unsure, disputed or not judged yet are in none: those with
    a verdict are taken for a random part of their stratum.
    """
    by_strata: dict[str, list[DrawnRow]] = {}
    for one in plan.rounds:
        by_strata.setdefault(one.strata, []).extend(drawn for drawn in one.drawn if drawn.key in settled.positive)
    strata = {one.strata: one.as_strata for one in plan.rounds}
    return [
        Sample(
            strata[letters],
            unlabelled.searchsorted([drawn.row for drawn in rows]),
            np.array([settled.positive[drawn.key] for drawn in rows], dtype=bool),
        )
        for letters, rows in by_strata.items()
        if rows
    ]


def taken_rows(plan: Plan, unlabelled: Ints) -> Flags:
    """Which unlabelled rows were drawn in any round."""
    return np.isin(unlabelled, [drawn.row for drawn in plan.drawn.values()])


def new_code() -> str:
    """A word that tells the keys of this run from those of others."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(4))


def key_of(code: str, row: int) -> str:
    """The key of a row, which no spreadsheet changes."""
    word = ""
    while row or len(word) < 4:
        row, digit = divmod(row, len(_ALPHABET))
        word = _ALPHABET[digit] + word
    return f"{code}-{word}"
