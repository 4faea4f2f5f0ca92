"""Claims are judged by rules: shows, mixed, does not, the opposite, one seed, not measured."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from punce.experiments import EXPERIMENTS
from punce.experiments.cell import Cell
from punce.experiments.present.claims import further_questions, paper_claims
from punce.experiments.present.grid import Results
from punce.experiments.present.reading import opening, tally
from punce.experiments.present.verdicts import RULES, Answer, Finding, Line, Verdict
from punce.experiments.scales import find_scale

from .synthetic import fill, level

LAPTOP = find_scale("laptop1")
SCL_CLAIM = "PU MNIST (odd/even), MLP: puNCE is ahead of SCL"


def judged(tmp_path: Path, names: list[str], **arguments: object) -> dict[str, Finding]:
    fill(tmp_path, names, **arguments)  # type: ignore[arg-type]
    results = Results(tmp_path, LAPTOP)
    grids = {name: results.grid(experiment) for name, experiment in EXPERIMENTS.items()}
    found = [*paper_claims(grids), *further_questions(grids)]
    assert len({finding.text for finding in found}) == len(found)
    return {finding.text: finding for finding in found}


def by_loss(**levels: float) -> Callable[[Cell], float]:
    """Seeds share their ups and downs, so that differences are clear although intervals overlap."""

    def value(cell: Cell) -> float:
        loss = cell.pretraining.loss if cell.pretraining else "none"
        own = {0: 0.0, 1: 0.05, 2: -0.04}[cell.seed % 3]
        return levels.get(loss, 90.0) + 2.0 * cell.seed + (own if loss == "punce" else 0.0)

    return value


@pytest.mark.parametrize(
    ("scl", "expected"),
    [(94.0, Verdict.SHOWS), (95.0, Verdict.DOES_NOT), (96.0, Verdict.OPPOSITE)],
)
def test_a_lead_shows_when_its_interval_leaves_zero_out(tmp_path: Path, scl: float, expected: Verdict) -> None:
    found = judged(tmp_path, ["table1"], value=by_loss(punce=95.0, scl=scl))
    assert found[SCL_CLAIM].verdict is expected


def test_the_numbers_of_a_claim(tmp_path: Path) -> None:
    found = judged(tmp_path, ["table1"], value=by_loss(punce=95.0, scl=94.0))
    assert found[SCL_CLAIM].numbers[0] == "1k: +1.00 [+0.89 to +1.12], 3 seeds"
    assert found["PU CIFAR (vehicle/animal), ResNet18: puNCE is ahead of SCL"].numbers == (
        "1k: +1.00, 1 seed",
        "3k: not measured",
        "10k: not measured",
    )


def test_one_seed_settles_nothing(tmp_path: Path) -> None:
    found = judged(tmp_path, ["table1"], seeds=[0], value=by_loss(punce=99.0, scl=50.0))
    assert found[SCL_CLAIM].verdict is Verdict.ONE_SEED


def test_what_was_not_run_is_not_measured(tmp_path: Path) -> None:
    found = judged(tmp_path, ["table4"])
    assert found[SCL_CLAIM].verdict is Verdict.NOT_MEASURED
    others = [finding.verdict for text, finding in found.items() if not text.startswith("PNU MNIST")]
    assert set(others) == {Verdict.NOT_MEASURED, Verdict.ONE_SEED}


def test_the_papers_level_is_reached_by_the_mean(tmp_path: Path) -> None:
    def value(cell: Cell) -> float:
        return {1000: 94.70, 3000: 96.00, 10_000: 98.27}.get(cell.data.n_labelled, 90.0)

    found = judged(tmp_path, ["table2"], value=value)
    finding = found["PU MNIST (odd/even), MLP: puNCE reaches the paper's level"]
    assert [line.answer for line in finding.lines] == [Answer.YES, Answer.NO, Answer.YES]
    assert finding.verdict is Verdict.IN_PART
    assert finding.numbers[1] == "3k: 96.00 [96.00 to 96.00], 3 seeds, the paper 96.01"


def test_one_seed_does_not_reach_a_level(tmp_path: Path) -> None:
    found = judged(tmp_path, ["table2"], seeds=[0], value=lambda cell: 99.9)
    finding = found["PU MNIST (odd/even), MLP: puNCE reaches the paper's level"]
    assert {line.answer for line in finding.lines} == {Answer.ONE_SEED}
    assert finding.verdict is Verdict.ONE_SEED
    assert finding.numbers[0] == "1k: 99.90, 1 seed, the paper 94.70"


def test_the_best_other_method_is_the_one_compared(tmp_path: Path) -> None:
    def value(cell: Cell) -> float:
        return {"vpu": 93.0, "selfpu": 91.0}.get(cell.transfer.kind, level(cell)) + 0.1 * cell.seed

    found = judged(tmp_path, ["table2"], value=value)
    finding = found["PU MNIST (odd/even), MLP: puNCE with a probe is ahead of the best other PU method"]
    assert [number.split(":")[0] for number in finding.numbers] == [
        f"{n_p}, against vPU" for n_p in ("1k", "3k", "10k")
    ]


def test_the_best_other_method_is_best_on_the_seeds_it_shares_with_punce(tmp_path: Path) -> None:
    """nnPU's two further seeds lift its mean above vPU's, but puNCE's rise with them."""

    def value(cell: Cell) -> float:
        further = 9.0 if cell.seed > 2 else 0.1 * cell.seed
        if cell.pretraining is not None:
            return 90.0 + further
        own = {"vpu": 85.0}.get(cell.transfer.kind, 84.0 if cell.transfer.risk == "nnpu" else 70.0)
        return own + further

    found = judged(tmp_path, ["table2", "seeds_spread"], value=value)
    finding = found["PU MNIST (odd/even), MLP: puNCE with a probe is ahead of the best other PU method"]
    assert finding.numbers[0].startswith("1k, against vPU: +5.00")


def test_a_rival_that_was_not_measured_might_be_the_best(tmp_path: Path) -> None:
    """The seeds' spread has nnPU and puNCE at 1k, and nothing else."""
    found = judged(
        tmp_path, ["seeds_spread"], value=lambda cell: level(cell) + 0.1 * cell.seed * bool(cell.pretraining)
    )
    finding = found["PU MNIST (odd/even), MLP: puNCE with a probe is ahead of the best other PU method"]
    assert finding.numbers[0].startswith("1k, against nnPU: +")
    assert finding.numbers[1:] == (
        "1k, against PN, PvU, uPU, vPU, Self-PU: not measured",
        "3k: not measured",
        "10k: not measured",
    )
    assert finding.verdict is Verdict.WHERE_MEASURED


def test_a_control_alone_answers_no_question(tmp_path: Path) -> None:
    """Labels without a bias are the nnPU and puNCE of Table 2."""
    found = judged(tmp_path, ["table2"])
    assert found["MNIST, 1k: puNCE is ahead of nnPU when labels prefer bright images"].verdict is Verdict.NOT_MEASURED


def test_a_gap_that_grows_with_fewer_labels(tmp_path: Path) -> None:
    def value(cell: Cell) -> float:
        gap = {1000: 4.0, 3000: 2.0, 10_000: 0.5}[cell.data.n_labelled]
        noise = 0.01 * (cell.seed % 2) * (cell.data.n_labelled > 1000)
        return 97.0 - (gap if cell.transfer.kind == "finetune" else 0.0) + noise

    found = judged(tmp_path, ["table3"], value=value)
    start = "PU MNIST (odd/even), MLP: "
    assert (
        found[start + "the gap between them is larger with fewer labels"]
        .numbers[0]
        .startswith("gap at 1k − gap at 10k: +3.5")
    )


def test_stability_and_separation_are_read_from_curves_and_pictures(tmp_path: Path) -> None:
    found = judged(tmp_path, ["ablation_stability", "tsne"])
    drop = next(finding for text, finding in found.items() if "loses less" in text and "MNIST" in text)
    assert drop.numbers[0].startswith("uPU, random − puNCE: +1.80")
    picture = next(finding for text, finding in found.items() if "t-SNE" in text and "MNIST" in text)
    assert picture.verdict is Verdict.ONE_SEED


def test_a_cost_below_the_limit_shows(tmp_path: Path) -> None:
    def value(cell: Cell) -> float:
        wrong = cell.transfer.prior != "true"
        noise = 0.02 * cell.seed if wrong else 0.0
        return 95.0 - noise - (0.3 if wrong and cell.pretraining else 3.0 if wrong else 0.0)

    found = judged(tmp_path, ["sensitivity_prior"], value=value)
    costs = "MNIST, 1k: a wrong prior costs {} less than one point"
    assert found[costs.format("puNCE (in loss and probe)")].verdict is Verdict.SHOWS
    assert found[costs.format("nnPU from scratch")].verdict is Verdict.OPPOSITE


def line(answer: Answer) -> Line:
    return Line(answer, "")


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([], Verdict.NOT_MEASURED),
        ([Answer.MISSING, Answer.MISSING], Verdict.NOT_MEASURED),
        ([Answer.YES, Answer.YES], Verdict.SHOWS),
        ([Answer.YES, Answer.MISSING, Answer.MISSING], Verdict.WHERE_MEASURED),
        ([Answer.YES, Answer.ONE_SEED], Verdict.WHERE_MEASURED),
        ([Answer.YES, Answer.NO], Verdict.IN_PART),
        ([Answer.YES, Answer.NO, Answer.MISSING], Verdict.IN_PART),
        ([Answer.YES, Answer.OPPOSITE], Verdict.MIXED),
        ([Answer.YES, Answer.NO, Answer.OPPOSITE, Answer.MISSING], Verdict.MIXED),
        ([Answer.NO, Answer.OPPOSITE], Verdict.OPPOSITE_IN_PART),
        ([Answer.NO, Answer.OPPOSITE, Answer.MISSING], Verdict.OPPOSITE_IN_PART),
        ([Answer.NO, Answer.MISSING], Verdict.DOES_NOT),
        ([Answer.OPPOSITE, Answer.OPPOSITE], Verdict.OPPOSITE),
        ([Answer.OPPOSITE, Answer.ONE_SEED], Verdict.OPPOSITE_WHERE_MEASURED),
        ([Answer.ONE_SEED, Answer.MISSING], Verdict.ONE_SEED),
    ],
)
def test_many_comparisons_make_one_verdict(answers: list[Answer], expected: Verdict) -> None:
    assert Finding("", "", tuple(map(line, answers))).verdict is expected


def test_only_a_settled_verdict_has_a_colour_of_its_own() -> None:
    kinds = {verdict: verdict.kind for verdict in Verdict if verdict.kind != "open"}
    assert kinds == {Verdict.SHOWS: "shows", Verdict.DOES_NOT: "against", Verdict.OPPOSITE: "against"}


def test_the_rules_say_that_many_claims_were_tested() -> None:
    assert "not corrected for the number of claims" in " ".join(RULES)


def test_the_tally_has_a_word_for_every_verdict() -> None:
    by_answers = [[answer] for answer in Answer]
    by_answers += [[a, b] for a in Answer for b in Answer]
    findings = [Finding("", "", tuple(map(line, answers))) for answers in by_answers]
    assert {finding.verdict for finding in findings} == set(Verdict)
    said = tally(findings)
    for words in ("show where measured", "show in part", "are mixed", "show the opposite where measured"):
        assert words in said
    assert sum(int(number) for number in re.findall(r" (\d+) \D", said)[1:]) == len(findings)


def test_the_tally_counts_every_claim() -> None:
    findings = [Finding("", "", (line(answer),)) for answer in (Answer.YES, Answer.YES, Answer.NO, Answer.MISSING)]
    assert tally(findings) == "Of 4 claims, 2 show, 1 does not show, 1 was not measured."


def said_at(tmp_path: Path, scale: str) -> str:
    fill(tmp_path, ["table2"], scale)
    results = Results(tmp_path, find_scale(scale))
    grids = {name: results.grid(experiment) for name, experiment in EXPERIMENTS.items()}
    return " ".join(opening(find_scale(scale), grids))


def test_the_opening_says_what_was_chosen_for_punce_and_who_trained_longer(tmp_path: Path) -> None:
    said = said_at(tmp_path, "laptop1")
    bench = LAPTOP.benches["mnist"]
    contrastive, joint, pn = bench.pretraining.config.epochs, bench.joint["nnpu"], bench.joint["pn"]
    assert "were chosen for puNCE, at 10k labels and seed 0, without true labels" in said
    times = f"{2 * contrastive / joint.epochs:.2g}"
    assert f"On mnist contrastive losses had {contrastive} epochs of two views, which is at least {times} times" in said
    assert f"the epochs were {pn.epochs} (PN), {joint.epochs} (PvU, uPU, nnPU)" in said
    assert asdict(joint)["augment"] is asdict(pn)["augment"] is False
    assert "no augmented views" in said


def test_what_was_not_measured_is_not_said_to_have_trained(tmp_path: Path) -> None:
    said = " ".join(opening(LAPTOP, {"table2": Results(tmp_path, LAPTOP).grid(EXPERIMENTS["table2"])}))
    assert "equally long" not in said
    assert "were chosen for puNCE" in said


def test_other_scales_say_what_is_theirs(tmp_path: Path) -> None:
    said = said_at(tmp_path, "paper")
    assert "LARS runs at rate 1.0 instead of the paper's 0.01" in said
    assert "chosen for puNCE" not in said
    assert "chosen for puNCE" not in said_at(tmp_path, "smoke")
    assert "LARS" not in said_at(tmp_path, "laptop1")


def test_the_opening_says_at_which_size_this_was_run(tmp_path: Path) -> None:
    fill(tmp_path, ["table1"])
    results = Results(tmp_path, LAPTOP)
    said = " ".join(opening(LAPTOP, {"table1": results.grid(EXPERIMENTS["table1"])}))
    pretraining = LAPTOP.benches["mnist"].pretraining
    assert "sized for a CPU" in said
    assert f"{pretraining.config.epochs} epochs, batch {pretraining.config.batch_size}" in said
    assert "sized for a CPU" not in " ".join(opening(find_scale("paper"), {}))
