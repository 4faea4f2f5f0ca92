"""What people install: sdist and wheel hold the whole package, and a model can be fitted from the wheel alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "punce"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an sdist of this tree and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("built")
    _build("sdist", ROOT, folder)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    _build("wheel", next(path for path in folder.iterdir() if path.is_dir()), folder)
    return folder


def _build(target: str, source: Path, out: Path) -> None:
    line = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(out)]
    subprocess.run(line, cwd=source, check=True, capture_output=True, timeout=120)


def test_the_wheel_holds_every_file_of_the_package(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    here = {str(path.relative_to(PACKAGE.parent)) for path in PACKAGE.rglob("*") if path.is_file()}
    there = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("punce/")}
    assert there == {name for name in here if "__pycache__" not in name}


def test_a_model_is_fitted_and_used_with_the_wheel_alone(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    shutil.unpack_archive(wheel, tmp_path / "installed", "zip")
    rng = np.random.default_rng(0)
    y = rng.random(200) < 0.4
    rows = pd.DataFrame({"a": rng.normal(size=200) + 3 * y, "b": rng.normal(size=200)})
    rows.assign(label=(y & (rng.random(200) < 0.5)).astype(int)).to_csv(tmp_path / "rows.csv", index=False)

    own = {**os.environ, "PYTHONPATH": str(tmp_path / "installed"), "OMP_NUM_THREADS": "1"}

    def python(*words: str) -> str:
        line = [sys.executable, *words]
        done = subprocess.run(line, cwd=tmp_path, env=own, check=True, capture_output=True, text=True, timeout=240)
        return done.stdout

    assert str(tmp_path) in python("-c", "import punce; print(punce.__file__)")
    assert "learned by" in python("-m", "punce", "fit", "rows.csv", "--label", "label", "--out", "run")
    assert (tmp_path / "run" / "report.html").stat().st_size > 10_000
    assert "200 rows scored" in python("-m", "punce", "predict", "run", "rows.csv", "--out", "scores.csv")
