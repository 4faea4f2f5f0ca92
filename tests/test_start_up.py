"""What a command imports before it answers. Checked by what is imported, because times depend on the machine."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from punce.encoders import ENCODERS, build_encoder, row_options
from punce.losses import LOSSES
from punce.models.heads import HEADS
from punce.options import HEAD_NAMES, IMAGE_ENCODERS, LOSS_NAMES, VECTOR_ENCODERS

_HEAVY = ("torch", "sklearn", "scipy.stats", "matplotlib", "transformers", "dask")
_MAIN = "from punce.cli import main\ntry:\n    main()\nexcept SystemExit:\n    pass\n"


def _imported(code: str, *arguments: str, cwd: Path | None = None) -> tuple[set[str], str]:
    """Names of imported modules, and what was printed."""
    script = f"{code}\nimport json, sys\nprint('\\n' + json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, cwd=cwd)
    *said, modules = done.stdout.splitlines()
    return set(json.loads(modules)), "\n".join([*said, done.stderr])


def _table(folder: Path) -> str:
    rows = "".join(f"{k % 7},{(k * 37) % 11},{int(k % 3 == 0)}\n" for k in range(60))
    (folder / "rows.csv").write_text("a,b,label\n" + rows)
    return "rows.csv"


def test_importing_punce_and_asking_for_help_is_light(tmp_path: Path) -> None:
    for code, arguments in (("import punce", ()), (_MAIN, ("--help",)), (_MAIN, ("fit", "--help"))):
        modules, _ = _imported(code, *arguments, cwd=tmp_path)
        assert not modules & {*_HEAVY, "pandas", "pyarrow"}, arguments


@pytest.mark.parametrize("command", ["fit", "prior", "predict"])
def test_a_wrong_file_name_is_answered_before_pandas_is_imported(command: str, tmp_path: Path) -> None:
    _table(tmp_path)
    arguments = ("rows.csv", "row.csv") if command == "predict" else ("row.csv", "--label", "label")
    modules, said = _imported(_MAIN, command, *arguments, cwd=tmp_path)
    assert "row.csv does not exist; did you mean rows.csv?" in said
    assert not modules & {*_HEAVY, "pandas", "pyarrow"}


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (("--loss", "nonsense"), "loss must be one of"),
        (("--risk", "nonsense"), "risk must be one of"),
        (("--prior", "2"), "prior"),
        (("--threshold", "nonsense"), "threshold"),
        (("--encoder", "resnet18"), "reads images"),
        (("--dry-run",), "would learn with the ensemble for tables"),
    ],
)
def test_a_bad_option_and_a_dry_run_need_no_torch(option: tuple[str, ...], said: str, tmp_path: Path) -> None:
    dry = () if option == ("--dry-run",) else ("--dry-run",)
    modules, printed = _imported(_MAIN, "fit", _table(tmp_path), "--label", "label", *option, *dry, cwd=tmp_path)
    assert said in " ".join(printed.split())
    assert not modules & set(_HEAVY)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (("--header", "maybe"), "--header must be"),
        (("--decimal", ";"), "--decimal must be"),
        (("--table", "sheet"), "--table has no effect on a CSV file"),
    ],
)
def test_a_bad_option_of_reading_needs_no_torch(option: tuple[str, ...], said: str, tmp_path: Path) -> None:
    modules, printed = _imported(_MAIN, "fit", _table(tmp_path), "--label", "label", *option, cwd=tmp_path)
    assert said in " ".join(printed.split())
    assert not modules & set(_HEAVY)


def test_names_known_without_torch_are_those_of_the_catalogues() -> None:
    assert sorted(LOSSES) == list(LOSS_NAMES)
    assert sorted(HEADS) == list(HEAD_NAMES)
    assert {*VECTOR_ENCODERS, *IMAGE_ENCODERS, "transformer"} == set(ENCODERS)  # which reads texts


@pytest.mark.parametrize("name", [*VECTOR_ENCODERS, *IMAGE_ENCODERS])
def test_the_shape_of_a_row_builds_every_network_that_a_command_calls_by_name(name: str) -> None:
    row = (4,) if name in VECTOR_ENCODERS else (3, 16, 16)
    assert build_encoder(name, **row_options(name, row)).eval().features(torch.zeros(1, *row)).shape[0] == 1
