"""Model folders of an earlier version load and give the same numbers."""

from __future__ import annotations

import json

import numpy as np
import pytest

from punce import PUClassifier
from tests.models.stored.write import HERE, MODELS


@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_the_version_before_scores_as_it_did(name: str):
    expected = json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))
    rows = MODELS[name][0]()
    classifier = PUClassifier.load(HERE / name)
    # Not bit by bit: matrix products of another machine round in another order.
    np.testing.assert_allclose(classifier.decision_function(rows), expected["scores"], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(classifier.embed(rows[:3]), expected["embed"], rtol=1e-5, atol=1e-6)
