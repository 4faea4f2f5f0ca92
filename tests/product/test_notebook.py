"""What a notebook shows of a classifier, a prior and the quality."""

from __future__ import annotations

from html import escape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context

from punce import PUClassifier
from punce.priors import estimate_prior
from punce.ran import ran_in_words
from tests.product.parts import rows

pytestmark = pytest.mark.usefixtures("quick_tables")
HOSTILE = "<script>alert(1)</script>&\"'"


class Tags(HTMLParser):
    """Every tag is closed; what they are."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.add(tag)
        if tag not in ("input", "br", "link", "meta"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def table() -> tuple[pd.DataFrame, np.ndarray]:
    X = pd.concat([rows(0, 120, 1.0), rows(1, 480)], ignore_index=True).drop(columns=["y", "town"])
    return X, (np.arange(600) < 120).astype(int)


def test_a_fitted_classifier_shows_what_ran_the_share_and_the_quality(table: tuple) -> None:
    X, y = table
    classifier = PUClassifier(prior=0.3).fit(X, y)
    shown = classifier._repr_mimebundle_()["text/html"]
    assert escape(ran_in_words(classifier.ran_)) in shown
    for words in ("PUClassifier, fitted", "learned by", "Share of positives", "0.300", "precision", "auc"):
        assert words in shown
    assert "estimated without negatives" in shown
    assert "PUClassifier, fitted" in classifier._repr_html_()
    assert not hasattr(classifier, "_measured")  # importances take seconds, and nobody asked for them
    assert "importances_" not in shown
    Tags(classifier.prior_._repr_html_() + classifier.metrics_._repr_html_())
    assert "PUClassifier, fitted" not in PUClassifier()._repr_html_()
    with config_context(display="text"):
        assert not hasattr(classifier, "_repr_html_")


def test_a_loaded_classifier_shows_the_same(table: tuple, tmp_path: Path) -> None:
    X, y = table
    classifier = PUClassifier(prior=0.3).fit(X, y)
    classifier.save(tmp_path / "model")
    loaded = PUClassifier.load(tmp_path / "model")
    own = [shown._repr_html_().partition("PUClassifier, fitted")[2] for shown in (classifier, loaded)]
    assert own[0] == own[1]
    for name in ("ran_", "prior_", "metrics_"):  # older folders lack some of them
        delattr(loaded, name)
    assert "PUClassifier, fitted" in loaded._repr_html_()


def test_markup_in_names_and_notes_is_shown_as_text(table: tuple) -> None:
    X, y = table
    classifier = PUClassifier(prior=0.3).fit(X, y)
    classifier.notes_ = (HOSTILE,)
    own = classifier._repr_html_().partition("PUClassifier, fitted")[2]
    assert "<script>" not in own
    assert "&lt;script&gt;alert(1)&lt;/script&gt;&amp;&quot;" in own


@pytest.mark.filterwarnings("ignore::punce.priors.PriorWarning")
def test_all_estimators_show_as_one_table(table: tuple) -> None:
    X, y = table
    shown = estimate_prior(X, y, method="all")._repr_html_()
    assert Tags(shown).seen >= {"table", "caption", "th", "td"}
    for words in ("bbe", "dedpul", "median", "90 % interval"):
        assert words in shown
