from __future__ import annotations

import numpy as np
import pandas as pd

from punce.columns.given import plain_rows


def test_records_are_a_table_with_their_names() -> None:
    frame = pd.DataFrame({"x": [1.5, np.nan], "n": [1, 2], "c": ["a", "b"]})
    read = plain_rows(frame.to_records(index=False))
    pd.testing.assert_frame_equal(read, frame, check_dtype=False)
    hidden = np.ma.array([(1.0, 2), (3.0, 4)], dtype=[("x", float), ("n", int)], mask=[(False, True), (False, False)])
    assert plain_rows(hidden)["n"].isna().tolist() == [True, False]
