"""``import punce`` and ``punce --help`` are cheap: no torch, well under half a second."""

from __future__ import annotations

import subprocess
import sys


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout


def test_import_punce_does_not_import_torch() -> None:
    assert run("import sys, punce; print('torch' in sys.modules, 'pandas' in sys.modules)").split() == [
        "False",
        "False",
    ]


def test_names_of_the_package_are_found_where_they_live() -> None:
    code = "import punce; print(*(getattr(punce, name).__module__ for name in punce.__all__[:2]))"
    assert run(code).split() == ["punce.classifier", "punce.training.splits"]


def test_help_does_not_import_torch() -> None:
    code = (
        "import sys\nfrom punce.cli import app\n"
        "try:\n    app(['--help'])\nexcept SystemExit: pass\n"
        "print('loaded:', [m for m in ('torch', 'pandas', 'sklearn', 'matplotlib') if m in sys.modules])"
    )
    assert run(code).strip().endswith("loaded: []")
