from __future__ import annotations

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
    judged_rows,
    key_of,
    settle,
)


def test_a_line_that_was_cut_off_costs_only_itself(tmp_path: Path) -> None:
    folder = ReviewFolder(tmp_path)
    folder.append([Verdict("a", YES, "ann"), Verdict("b", NO, "ann")])
    with folder.log.open("ab") as file:
        file.write(b'{"key": "c", "verd')
    assert [one.key for one in folder.verdicts()] == ["a", "b"]
    folder.append([Verdict("d", UNSURE, "ann")])
    assert [one.key for one in folder.verdicts()] == ["a", "b", "d"]


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


def a_round(strata: str, drawn: dict[int, str], free: tuple[int, ...]) -> Round:
    rows = tuple(DrawnRow(row, str(row), key, "") for row, key in drawn.items())
    return Round("run", "share", 0, strata, (False, True), free, (0.0, 0.0), rows)


def test_a_row_is_judged_unless_every_round_missed_it() -> None:
    """Ten unlabelled rows, in the file's even lines. Round two has other strata and none of the first round's rows."""
    first = a_round("AAAAABBBBB", {0: "a", 2: "b", 10: "c"}, (5, 5))
    second = a_round("ABABABABAB", {4: "d", 6: "e", 8: "f"}, (3, 4))
    plan = Plan("bcdf", 20, "", (first, second))
    said = [Verdict("a", YES, "x"), Verdict("c", NO, "x"), Verdict("d", NO, "x"), Verdict("e", YES, "x")]
    found = judged_rows(plan, settle(said, plan.drawn), np.arange(0, 20, 2))
    assert found.rows.tolist() == [0, 5, 2, 3]
    assert found.positive.tolist() == [True, False, False, True]
    # One of five had a verdict in each stratum of round one; one of three and one of four in those of round two.
    missed = [4 / 5 * 2 / 3, 4 / 5 * 3 / 4, 4 / 5 * 2 / 3, 4 / 5 * 3 / 4]
    assert found.chance == pytest.approx(1 - np.array(missed))
