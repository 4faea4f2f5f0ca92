from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from punce.product.review.store import (
    NO,
    UNSURE,
    YES,
    DrawnRow,
    Plan,
    ReviewFolder,
    Round,
    Verdict,
    key_of,
    samples_of,
    settle,
)


@pytest.mark.faults
def test_a_line_that_was_cut_off_costs_only_itself(tmp_path: Path) -> None:
    folder = ReviewFolder(tmp_path)
    folder.append([Verdict("a", YES, "ann"), Verdict("b", NO, "ann")])
    with folder.log.open("ab") as file:
        file.write(b'{"key": "c", "verd')
    assert [one.key for one in folder.verdicts()] == ["a", "b"]
    folder.append([Verdict("d", UNSURE, "ann")])
    assert [one.key for one in folder.verdicts()] == ["a", "b", "d"]


@pytest.mark.faults
def test_first_verdicts_are_written_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    def cut_off() -> Iterator[Verdict]:
        yield Verdict("a", YES, "ann")
        raise KeyboardInterrupt

    folder = ReviewFolder(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        folder.begin(cut_off())
    assert not folder.log.exists()
    folder.begin([Verdict("a", YES, "ann"), Verdict("b", NO, "ann")])
    folder.begin([Verdict("c", NO, "ann")])
    assert [one.key for one in folder.verdicts()] == ["a", "b"]


def test_a_line_that_is_no_verdict_is_skipped(tmp_path: Path) -> None:
    folder = ReviewFolder(tmp_path)
    folder.append([Verdict("a", YES, "ann")])
    with folder.log.open("a") as file:
        file.write('{"key": ["b"], "verdict": "yes", "who": "ann"}\n{"key": "c", "verdict": "yes", "who": null}\n[]\n')
    assert list(settle(folder.verdicts(), ["a", "b", "c"]).positive) == ["a"]


def test_the_last_word_of_each_person_and_then_the_majority_counts() -> None:
    said = [
        ("a", YES, "ann"),
        ("a", NO, "ann"),
        ("b", YES, "ann"),
        ("b", NO, "bob"),
        ("c", YES, "ann"),
        ("c", NO, "bob"),
    ]
    said += [("c", YES, "cy"), ("d", UNSURE, "ann"), ("e", UNSURE, "ann"), ("e", NO, "bob"), ("foreign", YES, "ann")]
    settled = settle([Verdict(*one) for one in said], "abcdef")
    assert settled.positive == {"a": False, "c": True, "e": False}
    assert (settled.disputed, settled.unsure, settled.disagreed) == ({"b"}, {"d"}, {"b", "c"})
    assert settled.words == {"a": NO, "b": UNSURE, "c": YES, "d": UNSURE, "e": NO}


@pytest.mark.parametrize("row", [0, 1, 19, 20, 12345, 10**9])
def test_keys_are_words_without_vowels_or_digits(row: int) -> None:
    key = key_of("bcdf", row)
    assert not set(key) & set("aeiouy0123456789")
    assert key != key_of("bcdf", row + 1)


def a_round(strata: str, drawn: dict[int, str]) -> Round:
    rows = tuple(DrawnRow(row, str(row), key, "") for row, key in drawn.items())
    return Round("run", "share", 0, strata, (False, True), (5, 5), (0.0, 0.0), rows)


def test_rounds_of_the_same_strata_are_one_sample() -> None:
    """Ten unlabelled rows, in the even lines of the file."""
    rounds = (
        a_round("AAAAABBBBB", {0: "a", 2: "b", 10: "c"}),
        a_round("ABABABABAB", {4: "d", 6: "e"}),
        a_round("AAAAABBBBB", {18: "f"}),
        a_round("ABBBBBBBBB", {16: "g"}),
    )
    plan = Plan("bcdf", 20, "", rounds)
    said = [Verdict(key, YES if key in "ad" else NO, "x") for key in "acdf"]
    found = samples_of(plan, settle(said, plan.drawn), np.arange(0, 20, 2))
    assert [one.rows.tolist() for one in found] == [[0, 5, 9], [2]]  # b, e and g have no verdict
    assert [one.positive.tolist() for one in found] == [[True, False, False], [True]]
    assert found[1].strata.of_row.tolist() == [0, 1] * 5
