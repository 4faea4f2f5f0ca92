"""Texts as counts: TF-IDF weights of words and word pairs, or of letters where too few words repeat."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from sklearn.feature_extraction.text import TfidfVectorizer

from punce.errors import InputError

UNITS: dict[str, tuple[int, int]] = {"word": (1, 2), "char": (1, 3)}
"""What is counted, and how many in a row: words, or letters."""
_MOST_UNITS = 50_000
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
"""Thai and Lao, Burmese, Khmer, Japanese, Chinese: written without spaces, so that a character stands for a word.

What spaces or commas separate there is a clause, and next to none is in two texts.
"""
_WORD = rf"[{_UNSPACED}]|[^\W{_UNSPACED}]{{2,}}"


def tf_idf(unit: str, **options: Any) -> TfidfVectorizer:
    """scikit-learn's vectorizer, not fitted."""
    options |= {"token_pattern": _WORD} if unit == "word" else {}
    return TfidfVectorizer(analyzer=unit, ngram_range=UNITS[unit], sublinear_tf=True, **options)


def counted(texts: list[str]) -> tuple[str, TfidfVectorizer, Any]:
    """What was counted, by what, and the TF-IDF weights: the first unit of which at least two are frequent enough.

    And by which texts differ: "sun" and "sun!" are the same words.
    """
    refuse_equal(texts)
    # Texts of punctuation alone would be counted by letter, and say nothing.
    if any(letter.isalnum() for text in texts for letter in text):
        for unit in UNITS:
            vectorizer = tf_idf(unit, min_df=2, max_features=_MOST_UNITS)
            with suppress(ValueError):  # nothing is in two texts
                weights = vectorizer.fit_transform(texts)
                if weights.shape[1] > 1 and (weights.max(axis=0) != weights.min(axis=0)).nnz:
                    return unit, vectorizer, weights
    raise InputError(f"no words to learn from in {len(texts)} texts: none is in at least two of them")


def refuse_equal(texts: list[str]) -> None:
    """Refuse texts that do not differ, as a table of constant columns is refused."""
    if len(texts) > 1 and len(set(texts)) == 1:
        raise InputError(f"all {len(texts)} texts are equal: nothing in them tells one row from another")
