"""Whether the labelled rows are a random sample of the positives."""

from __future__ import annotations

import numpy as np

from punce.judging.labelling import check_labelling


def test_the_check_gives_a_p_value_and_no_sentence_where_it_does_not_fire() -> None:
    rng = np.random.default_rng(0)
    labels = np.repeat([1, 0], [60, 400]).astype(np.int8)
    check = check_labelling(rng.normal(size=460) + labels, labels, 0.3)
    assert not check.fires
    assert 0.0 <= check.p_value <= 1.0
    assert check.sentence == ""
