"""What the page of a run says in words."""

from __future__ import annotations

import pytest

from punce.product.page import _rule_in_words


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("accuracy", "the likelier of the two, which is best for accuracy"),
        ("f1", "best for F1"),
        ("precision=0.9", "the lowest with an estimated precision of 0.9"),
        ("recall=0.95", "the highest with an estimated recall of 0.95"),
        (0.3, "as given"),
    ],
)
def test_every_threshold_rule_has_words(rule: str | float, words: str) -> None:
    assert _rule_in_words(rule) == words
