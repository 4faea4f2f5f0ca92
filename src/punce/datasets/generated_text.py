"""Made-up reviews of one to twelve words: enough to see that text code runs, not to say anything about a method."""

from __future__ import annotations

import numpy as np

from punce.datasets.dataset import Dataset, Part

GOOD = ("sun", "warm", "sea", "beach")
BAD = ("cold", "rain", "mud", "grey")
OTHER = ("the", "day")
WORDS = (*GOOD, *BAD, *OTHER)
GENERATED_TEXT = "generated"
"""The name of these texts as a source of rows."""


def generated_reviews(n: int, seed: int = 0) -> Part:
    """`n` reviews; the first word always tells the class, of the others two in three do."""
    random = np.random.RandomState(seed)
    y_true = random.randint(2, size=n).astype(np.int8)
    return Part([_review(GOOD if good else BAD, random) for good in y_true], y_true)


def generated_dataset() -> Dataset:
    """400 reviews to train with and 100 to test with; always the same."""
    return Dataset(GENERATED_TEXT, "text", "good weather", generated_reviews(400, 1), generated_reviews(100, 2))


def _review(own: tuple[str, ...], random: np.random.RandomState) -> str:
    others = [random.choice(own if random.rand() < 2 / 3 else OTHER) for _ in range(random.randint(12))]
    return " ".join([random.choice(own), *others])
