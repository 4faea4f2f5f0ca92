"""True labels appear in data sets, in simulation and in experiments: nothing that fits or judges a model takes them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import punce

SRC = Path(punce.__file__).parent
MAY_SEE = ("datasets/", "experiments/", "data/simulate.py")
MAY_HAND_ON = ("data/__init__.py", "cli/data.py")
"""`punce.data.load` for users, and the command that describes a benchmark set."""

TRUE_LABELS = {"y_true", "y_test", "truth", "true_labels", "TrueLabels", "true_metrics", "is_truly_positive"}
WITH_TRUE_LABELS = {"Dataset", "Part", "load"}


def names(tree: ast.AST) -> set[str]:
    """Every name that is used, imported, read as an attribute, or taken as a parameter."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.arg) or (isinstance(node, ast.keyword) and node.arg):
            found.add(node.arg)
    return found


def imports(tree: ast.AST) -> set[str]:
    """Names imported from the data sets."""
    return {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("punce.data", "punce.datasets"))
        for alias in node.names
    }


def violations(path: str, source: str) -> set[str]:
    tree = ast.parse(source)
    handed_on = set() if path in MAY_HAND_ON else imports(tree) & (WITH_TRUE_LABELS | TRUE_LABELS)
    return (names(tree) & TRUE_LABELS) | handed_on


def modules() -> list[str]:
    paths = [path.relative_to(SRC).as_posix() for path in SRC.rglob("*.py")]
    return sorted(path for path in paths if not path.startswith(MAY_SEE))


def test_no_module_outside_takes_true_labels() -> None:
    found = {path: violations(path, (SRC / path).read_text(encoding="utf-8")) for path in modules()}
    assert len(found) > 100
    assert {path: names for path, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "source",
    [
        "from punce.datasets.dataset import TrueLabels",
        "from punce.data import load",
        "def fit(x, y_true): ...",
        "fit(x, truth=1)",
        "score = data.test.y_true.mean()",
    ],
)
def test_the_check_finds_what_it_looks_for(source: str) -> None:
    assert violations("stages/probe.py", source)
