"""A million rows are scored in bounded memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from punce import PUClassifier

ROWS, COLUMNS, LIMIT_MB = 1_000_000, 20, 2_000
_SCORE = """
import resource, sys
from pathlib import Path
from punce.product.predict import run_predict
done = run_predict(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]))
print(done.rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def _write_rows(path: Path) -> None:
    random = np.random.default_rng(1)
    names = [f"x{i}" for i in range(COLUMNS)]
    with pq.ParquetWriter(path, pa.schema([(name, pa.float64()) for name in names])) as writer:
        for _ in range(10):
            values = random.normal(size=(ROWS // 10, COLUMNS))
            writer.write_table(pa.Table.from_pandas(pd.DataFrame(values, columns=names), preserve_index=False))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_million_rows_in_bounded_memory(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    y = random.random(600) < 0.5
    train = pd.DataFrame(random.normal(y[:, None], 1.0, (600, COLUMNS)), columns=[f"x{i}" for i in range(COLUMNS)])
    labels = np.where(y & (np.arange(600) < 300), 1, 0)
    PUClassifier(prior=0.3).fit(train, labels).save(tmp_path / "model")
    _write_rows(tmp_path / "rows.parquet")
    arguments = [str(tmp_path / name) for name in ("model", "rows.parquet", "scores.parquet")]
    done = subprocess.run(
        [sys.executable, "-c", _SCORE, *arguments], capture_output=True, text=True, timeout=800, check=True
    )
    rows, megabytes = map(int, done.stdout.split())
    assert rows == ROWS
    assert megabytes < LIMIT_MB
    assert pq.read_metadata(tmp_path / "scores.parquet").num_rows == ROWS
    print(f"peak memory {megabytes} MB")  # noqa: T201  the figure is what one runs this for
