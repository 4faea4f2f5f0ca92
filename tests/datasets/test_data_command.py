from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from punce.cli.data import data
from punce.data import DATASETS
from punce.errors import InputError


def _run(*arguments: str) -> str:
    app = typer.Typer()
    app.command()(data)
    result = CliRunner().invoke(app, arguments)
    if result.exception is not None:
        raise result.exception
    return result.output


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


@pytest.mark.parametrize("arguments", [(), ("--list",)])
def test_every_set_is_listed_with_its_positive_class(arguments: tuple[str, ...]) -> None:
    output = _run(*arguments)
    for name, benchmark in DATASETS.items():
        assert name in output
        assert benchmark.positive[:20] in output


def test_a_set_and_the_list_of_sets_are_not_asked_for_together() -> None:
    with pytest.raises(InputError, match="--list shows all sets"):
        _run("mnist", "--list")


def test_digits_are_counted() -> None:
    output = _run("digits")
    assert "1,438" in output
    assert "0.5042" in output
    assert "odd digits" in output


def test_a_changed_file_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "banknote").mkdir()
    (tmp_path / "banknote" / "banknote_authentication.csv").write_text("1,2,3,4,0\n" * 10 + "1,2,3,4,1\n" * 10)
    with pytest.raises(InputError, match=r"banknote_authentication\.csv: not the pinned content"):
        _run("banknote", "--root", str(tmp_path))


def test_an_unknown_set_is_refused() -> None:
    with pytest.raises(InputError, match="no benchmark set is called 'cifar100'"):
        _run("cifar100")


def test_the_command_does_not_import_torch() -> None:
    code = (
        "import sys; from punce.cli.data import data; assert 'pandas' not in sys.modules; "
        "data('digits', None, False); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=120, env=os.environ).returncode == 0
