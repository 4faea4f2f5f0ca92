"""Claims over several scales: each rests on its own results, and the file for programs says what the page says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from punce.experiments import EXPERIMENTS
from punce.experiments.cell import Cell
from punce.experiments.machine import ROOMS, code_hashes
from punce.experiments.present import build_docs, build_summary
from punce.experiments.present.grid import Results
from punce.experiments.present.settled import settled_claims
from punce.experiments.present.verdicts import Verdict
from punce.experiments.scales import SCALES

from .synthetic import fill

ROOT = Path(__file__).parents[2]
AHEAD = "PU MNIST (odd/even), MLP: puNCE is ahead of SCL"


def backwards(cell: Cell) -> float:
    """SCL ahead of everything, with a little noise."""
    loss = cell.pretraining.loss if cell.pretraining else ""
    return (95.0 if loss == "scl" else 90.0) + 0.01 * cell.seed * (loss == "scl")


def both(results: Path) -> None:
    fill(results, ["table1"], "part", seeds=[0, 1])
    fill(results, ["table1"], "laptop1", value=backwards)


def test_each_scale_speaks_for_itself(tmp_path: Path) -> None:
    both(tmp_path)
    books = [
        (SCALES[name], {key: Results(tmp_path, SCALES[name]).grid(one) for key, one in EXPERIMENTS.items()})
        for name in ("laptop", "part", "laptop1")
    ]
    claim = next(one for one in settled_claims(books) if one.finding.text == AHEAD)
    assert [scale.name for scale, _ in claim.by_scale] == ["part", "laptop1"]
    assert claim.scale is SCALES["part"]
    at_part, at_first = claim.at(SCALES["part"]), claim.at(SCALES["laptop1"])
    assert at_part is not None
    assert at_first is not None
    assert at_first.verdict is Verdict.OPPOSITE
    assert "2 seeds" in at_part.numbers[0]
    assert "3 seeds" in at_first.numbers[0]
    assert claim.at(SCALES["laptop"]) is None


def test_every_claim_with_an_interval_is_in_the_figure(tmp_path: Path) -> None:
    both(tmp_path)
    page, appendix = build_docs(tmp_path, "laptop")
    mnist = appendix[Path("images/results/claims-mnist.svg")]
    assert f"{AHEAD} (part)" in mnist
    assert "puNCE with a probe" not in mnist, "of what was not measured there is nothing to draw"
    assert "(images/results/claims-mnist.svg)" in page
    fill(tmp_path, ["table1"], "laptop", value=backwards)
    _, later = build_docs(tmp_path, "laptop")
    assert f"{AHEAD} (laptop)" in later[Path("images/results/claims-mnist.svg")]


def test_one_seed_draws_no_figure(tmp_path: Path) -> None:
    fill(tmp_path, ["table1"], "laptop", seeds=[0])
    page, appendix = build_docs(tmp_path, "laptop")
    assert not [name for name in appendix if name.name.startswith("claims-")]
    assert "claims-mnist" not in page


def test_the_page_and_the_file_for_programs_agree(tmp_path: Path) -> None:
    both(tmp_path)
    page, _ = build_docs(tmp_path, "laptop")
    who, what = AHEAD.split(": ")
    table = page.split(f"### {who}\n")[1].split("\n#")[0]
    (line,) = (line for line in table.splitlines() if line.startswith(f"| {what} |"))
    content = json.loads(build_summary(tmp_path, "laptop"))
    (claim,) = (claim for claim in content["claims"] if claim["claim"] == AHEAD)
    assert list(claim["scales"]) == ["part", "laptop1"]
    for said in claim["scales"].values():
        assert said["verdict"] in line
    measured = content["scales"]["laptop1"]["experiments"]["table1"]["mnist/mlp/1k scl"]
    assert measured["seeds"] == [0, 1, 2]
    assert measured["test_accuracy"]["mean"] == 95.01
    assert measured["paper"] == 94.24


def test_a_part_of_the_rows_is_not_compared_with_the_papers_level(tmp_path: Path) -> None:
    fill(tmp_path, ["table2"], "part", seeds=[0, 1])
    content = json.loads(build_summary(tmp_path, "laptop"))
    (level,) = (c for c in content["claims"] if c["claim"].startswith("PU MNIST") and "paper's level" in c["claim"])
    assert level["scales"] == {}
    assert "paper" not in content["scales"]["part"]["experiments"]["table2"]["mnist/mlp/punce 1k"]


def test_the_committed_summary_is_what_the_committed_results_give() -> None:
    committed = (ROOT / "results" / "summary.json").read_text(encoding="utf-8")
    assert committed == build_summary(ROOT / "results", "laptop")


def test_every_package_that_a_cell_imports_has_a_hash() -> None:
    show = "import sys, punce.experiments.run_cell; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", show], capture_output=True, text=True, check=True).stdout.split()
    packages = {name.split(".")[1] for name in loaded if name.startswith("punce.") and _is_in_a_package(name)}
    assert packages - {"storage"} <= set(ROOMS)  # storage writes numbers and computes none
    assert len(set(code_hashes().values())) == len(ROOMS)


def _is_in_a_package(name: str) -> bool:
    """Whether a module lies in a package below punce, not beside them."""
    return (ROOT / "src" / "punce" / name.split(".")[1]).is_dir()
