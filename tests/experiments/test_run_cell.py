"""One cell, every kind of transfer: the numbers it must report, from the labels it may see."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from punce.errors import InputError
from punce.experiments.cell import Cell
from punce.experiments.encoder_cache import EncoderCache
from punce.experiments.job import Job, told_prior
from punce.experiments.run_cell import run_cell
from punce.experiments.sources import draw_labels, generated_shapes, load_rows
from punce.labels import UNLABELLED
from punce.stages.transfer import Problem, TrainedHead, train_head
from tests.experiments.tiny import SMOKE, infonce, joint, punce

KINDS = [
    punce(),
    punce(transfer="finetune"),
    joint("pn"),
    joint("pvu"),
    joint("selfpu"),
    joint("vpu"),
    SMOKE.contrastive("cifar10", "resnet18", "scl", "1k", 0),
    SMOKE.joint("cifar10", "allconv", "nnpu", "1k", 0),
    punce(scenario="case_control"),
    punce(label_bias=1.0),
]


@pytest.fixture(scope="module")
def encoders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("encoders")


@pytest.mark.parametrize("cell", KINDS, ids=Cell.describe)
def test_every_kind_reports_its_numbers_twice_the_same(cell: Cell, encoders: Path, tmp_path: Path) -> None:
    first, again = run_cell(cell, encoders, tmp_path / "work"), run_cell(cell, encoders)
    assert first.result == again.result
    result = first.result
    assert 0 <= result["test_accuracy"] <= result["oracle_accuracy"] <= 100
    assert result["oracle_accuracy"] == max(result["test_accuracy"], *result["curve"])
    assert len(result["curve"]) == asdict(cell.transfer.config)["epochs"]
    assert 0 <= result["auc"] <= 1
    assert ("held_out_pu_risk" in result) == (cell.transfer.kind != "vpu")
    assert ("oracle_linear_accuracy" in result) == (cell.transfer.kind == "probe")
    assert ("pretrain" in first.seconds) == (cell.pretraining is not None)


def test_pretraining_and_probing_learn_something(encoders: Path) -> None:
    assert run_cell(punce(), encoders).result["test_accuracy"] > 65  # half of the digits are odd


def test_pnu_learns_from_labels_of_both_classes(encoders: Path) -> None:
    result = run_cell(SMOKE.pnu("cifar10", "allconv", "punce", "10%", 0), encoders).result
    assert {"test_accuracy", "oracle_accuracy", "auc", "prior"} <= set(result)
    assert "curve" not in result


def test_a_cell_trains_in_its_precision_and_scores_in_float32(encoders: Path) -> None:
    cell = SMOKE.joint("cifar10", "allconv", "nnpu", "1k", 0)
    halved = replace(cell, encoder=replace(cell.encoder, precision="bfloat16"))
    auc, own_auc = (run_cell(each, encoders).result["auc"] for each in (cell, halved))
    assert auc != own_auc
    assert own_auc == pytest.approx(auc, abs=0.1)
    encoder = Job(halved, EncoderCache(encoders), None).new_encoder()
    assert encoder.precision == "bfloat16"
    rows = torch.rand(4, 3, 12, 12)
    assert torch.equal(
        encoder.eval().features(rows), Job(cell, EncoderCache(encoders), None).new_encoder().eval().features(rows)
    )


def test_an_embedding_has_the_test_rows_with_their_class(encoders: Path) -> None:
    embedding = run_cell(punce(embedding=True), encoders).result["embedding"]
    y_test = load_rows("digits", 500, 200).y_test
    assert len(embedding["x"]) == len(embedding["y"]) == len(embedding["is_positive"]) == 200
    assert sum(embedding["is_positive"]) == y_test.sum()


def test_few_shot_cells_are_run(encoders: Path) -> None:
    result = run_cell(SMOKE.few_shot_cell("punce", "20", 0), encoders).result
    assert 0 <= result["test_accuracy"] <= result["oracle_accuracy"] <= 100


# Labels and priors -----------------------------------------------------------------------------------------------


def test_the_labelled_set_is_that_of_the_seed_and_the_same_in_every_stage(tmp_path: Path) -> None:
    cache = EncoderCache(tmp_path)
    pretrain, probe = Job(punce(), cache, None), Job(punce(transfer="finetune"), cache, None)
    assert np.array_equal(pretrain.labels, probe.labels)
    assert not np.array_equal(pretrain.labels, Job(punce(seed=1), cache, None).labels)
    assert int((pretrain.labels == 1).sum()) == 40


def test_label_free_pretraining_sees_no_label_and_no_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = {}

    def spy(
        encoder: object, view: object, X: torch.Tensor, labels: np.ndarray, *_: object, **__: object
    ) -> list[object]:
        seen.update(n=len(X), labelled=int((labels != UNLABELLED).sum()))
        return []

    monkeypatch.setattr("punce.experiments.job.pretrain", spy)
    cell = replace(infonce(), data=replace(infonce().data, scenario="case_control"))
    Job(cell, EncoderCache(tmp_path), None).pretrained()
    assert seen == {"n": 500, "labelled": 0}


def test_case_control_adds_the_labelled_rows_as_copies() -> None:
    rows = load_rows("digits", 500, 200)
    sample = draw_labels(punce(scenario="case_control").data, rows, 0)
    assert len(sample.labels) == 540


def test_biased_labels_are_brighter() -> None:
    rows = load_rows("digits", 500, 200)
    brightness = rows.X.flatten(1).float().mean(1).numpy()
    means = [brightness[draw_labels(punce(label_bias=s).data, rows, 0).labels == 1].mean() for s in (0.0, 2.0)]
    assert means[1] > means[0] + 5


def test_priors_that_an_algorithm_is_told() -> None:
    sample = draw_labels(punce().data, load_rows("digits", 500, 200), 0)
    told = [told_prior(spec, sample, lambda: np.zeros((0, 0), np.float32), 0) for spec in ("true", "true+0.1", 0.3)]
    assert told == pytest.approx([sample.prior, sample.prior + 0.1, 0.3])
    assert told_prior("true-0.9", sample, lambda: np.zeros((0, 0), np.float32), 0) == 0.01
    with pytest.raises(InputError, match="a prior is"):
        told_prior("guess", sample, lambda: np.zeros((0, 0), np.float32), 0)


def test_an_estimated_prior_is_used_by_loss_and_risk(encoders: Path) -> None:
    prior = run_cell(punce(loss_prior="bbe", risk_prior="bbe"), encoders).result["prior"]
    assert prior["loss"] == prior["risk"] != prior["true"]


def test_generated_pictures_are_the_same_every_time_and_have_both_classes() -> None:
    first, again = generated_shapes(), generated_shapes()
    assert np.array_equal(first.train.X, again.train.X)
    assert 0.3 < first.train.y_true.mean() < 0.5


def test_fine_tuning_without_pretraining_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="this transfer needs a pretrained encoder"):
        run_cell(replace(punce(transfer="finetune"), pretraining=None), tmp_path)


def test_a_probe_on_random_weights_is_the_control(tmp_path: Path) -> None:
    result = run_cell(SMOKE.untrained("mnist", "mlp", "nnpu", "1k"), tmp_path).result
    assert len(result["curve"]) == SMOKE.benches["mnist"].probe.epochs
    assert not list(tmp_path.iterdir())  # no encoder is kept


def test_fine_tuning_begins_at_the_probe_and_takes_the_rate_of_the_lower_risk(
    encoders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[tuple[float, bool, float]] = []

    def watched(config: Any, problem: Problem) -> TrainedHead:
        head = train_head(config, problem)
        if problem.encoder is not None and config.__class__.__name__ == "FinetuneConfig":
            lowest = min(row["held_out_risk"] for row in head.history)
            tried.append((config.lr, problem.start is not None, lowest))
        return head

    monkeypatch.setattr("punce.experiments.job.train_head", watched)
    result = run_cell(punce(transfer="finetune"), encoders).result
    assert [rate for rate, _, _ in tried] == [1e-3, 1e-4]
    assert all(started for _, started, _ in tried)
    assert result["rate"] == min(tried, key=lambda one: one[2])[0]
    assert result["held_out_pu_risk"] == pytest.approx(min(risk for *_, risk in tried), abs=1e-6)


@pytest.mark.parametrize("head", ["self_consistent", "logistic", "weighted_logistic"])  # the linear ones
def test_heads_of_the_portfolio_call_the_prior_positive(head: str, encoders: Path) -> None:
    result = run_cell(SMOKE.portfolio("mnist", "mlp", "punce", "1k", head=head), encoders).result
    assert 50 < result["test_accuracy"] <= 100
    assert result["curve"] == []


def test_wrong_labels_are_negatives_and_leave_the_prior_exact() -> None:
    rows = load_rows("digits", 500, 200)
    sample = draw_labels(punce(label_noise=0.1).data, rows, 0)
    labelled = rows.y_true[sample.labels == 1]
    assert (len(labelled), int((labelled == 0).sum())) == (40, 4)
    assert sample.prior == pytest.approx(rows.y_true[sample.labels == 0].mean())


def test_the_share_of_positives_can_be_lowered() -> None:
    rows = load_rows("digits", 500, 200, 0.05)
    assert rows.y_true.mean() == pytest.approx(0.05, abs=0.005)
    assert rows.y_test.mean() == pytest.approx(0.05, abs=0.01)
    with pytest.raises(InputError, match=r"positive_share 0\.9"):
        load_rows("digits", 500, 200, 0.9)
