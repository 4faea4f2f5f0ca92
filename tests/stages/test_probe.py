"""The linear layer on frozen features: how its epoch is chosen, and what PvU and vPU need of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from punce.data import load
from punce.encoders import MLP
from punce.errors import InputError
from punce.risks import NNPU, PN, UPU, VPU, PvU, Risk
from punce.risks.base import zero_one_risk
from punce.stages.probe import LinearHead, ProbeConfig, extract_features, probe
from punce.training.splits import holdout_split
from punce.views import Embedding
from tests.stages.digits import Interruption, digits, interrupted_at

D = digits()
FEATURES = D.view.clean(D.X).flatten(1)
IS_ODD = torch.from_numpy(load("digits").train.y_true == 1)
CONFIG = ProbeConfig(epochs=12, batch_size=256, lr=0.1)


def watched(risk: Risk) -> tuple[LinearHead, list[LinearHead]]:
    """The head that was kept, and that of every epoch."""
    seen: list[LinearHead] = []

    def observer(head: LinearHead) -> dict[str, float]:
        seen.append(head)
        return {}

    return probe(FEATURES, D.labels, risk, CONFIG, prior=D.prior, observer=observer), seen


def held_out() -> tuple[Tensor, Tensor]:
    _, rows = holdout_split(D.labels, CONFIG.validation_share, CONFIG.seed)
    return FEATURES[rows], torch.from_numpy(D.labels[rows.numpy()].astype("int64"))


def test_vpu_keeps_the_epoch_of_the_lowest_held_out_variational_loss() -> None:
    head, seen = watched(VPU())
    x, labels = held_out()
    losses = [float(VPU().value(each(x), labels)) for each in seen]
    assert [row["held_out_variational"] for row in head.history] == pytest.approx(losses, rel=1e-4)
    assert all("held_out_risk" not in row for row in head.history)
    assert torch.equal(head.weight, seen[int(np.argmin(losses))].weight)


@pytest.mark.parametrize("risk", [PN(), UPU(D.prior), NNPU(D.prior), PvU(D.prior, "threshold", target_share=0.3)])
def test_other_risks_are_judged_at_their_own_cut(risk: Risk) -> None:
    head, seen = watched(risk)
    x, labels = held_out()
    errors = [zero_one_risk(each(x), labels, D.prior, risk.decision_score) for each in seen]
    assert [row["held_out_risk"] for row in head.history] == pytest.approx(errors, abs=2e-2)
    assert (risk.decision_score == 0) == (not isinstance(risk, PvU))


def test_pvu_counts_each_row_with_its_own_weight() -> None:
    """Made out of fold; a constant weight would rank the rows alike but misplace the cut, and is warned of."""
    head, _ = watched(PvU(D.prior))
    accuracy = float(((head(FEATURES) > 0) == IS_ODD)[torch.from_numpy(D.labels == 0)].float().mean())
    assert accuracy > 0.8


def test_weights_that_are_given_are_used() -> None:
    truth = torch.where(IS_ODD, 1.0, 0.0)
    run = {"config": CONFIG, "prior": D.prior}
    told = probe(FEATURES, D.labels, PvU(D.prior), weights=truth, **run)  # type: ignore[arg-type]
    turned = probe(FEATURES, D.labels, PvU(D.prior), weights=1 - truth, **run)  # type: ignore[arg-type]
    right = [float(((head(FEATURES) > 0) == IS_ODD).float().mean()) for head in (told, turned)]
    assert right[0] > 0.85 > 0.6 > right[1]
    with pytest.raises(InputError, match="weights belong to PvU"):
        probe(FEATURES, D.labels, NNPU(D.prior), weights=truth, **run)  # type: ignore[arg-type]


def test_an_interrupted_pvu_probe_ends_in_the_same_bits_and_makes_no_weights_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(folder: Path | None) -> LinearHead:
        return probe(FEATURES, D.labels, PvU(D.prior), ProbeConfig(3, 256), prior=D.prior, folder=folder)

    whole = run(None)
    with interrupted_at(6), pytest.raises(Interruption):
        run(tmp_path)
    monkeypatch.setattr("punce.stages.probe.weights_of_training_rows", None)  # calling it would fail
    assert torch.equal(run(tmp_path).weight, whole.weight)


def test_rows_that_are_refused_leave_the_encoder_in_its_mode() -> None:
    encoder = MLP(3, width=0.001).train()
    with pytest.raises(InputError, match="NaN"):
        extract_features(encoder, Embedding(), torch.full((2, 3), torch.nan))
    assert encoder.training


def test_a_part_in_eval_mode_stays_so_when_features_are_extracted() -> None:
    """Who trains on with a frozen BatchNorm must not find it awake, and its statistics changed, after a look."""
    encoder = MLP(3, width=0.001).train()
    norms = [part for part in encoder.backbone.modules() if isinstance(part, torch.nn.BatchNorm1d)]
    for norm in norms:
        norm.eval()
    before = [part.training for part in encoder.modules()]
    extract_features(encoder, Embedding(), torch.zeros(2, 3))
    assert norms
    assert [part.training for part in encoder.modules()] == before


def test_without_an_epoch_the_head_is_zero_and_not_a_random_one() -> None:
    head = probe(FEATURES, D.labels, NNPU(D.prior), ProbeConfig(epochs=0), prior=D.prior)
    assert not head.weight.any()
    assert not head.bias.any()


@pytest.mark.parametrize(
    ("features", "prior", "message"),
    [
        (FEATURES[:-3], D.prior, "one row per label"),
        (torch.cat([FEATURES, FEATURES[:3]]), D.prior, "one row per label"),
        (FEATURES.index_fill(0, torch.tensor([7]), torch.nan), D.prior, "row 7 of the features"),
        (FEATURES, 5.0, "prior"),
    ],
)
def test_features_that_do_not_fit_the_labels_are_refused(features: Tensor, prior: float, message: str) -> None:
    with pytest.raises(InputError, match=message):
        probe(features, D.labels, NNPU(D.prior), CONFIG, prior=prior)


@pytest.mark.parametrize("risk", [NNPU(D.prior), UPU(D.prior), VPU(), PvU(D.prior)])
def test_negatives_that_the_risk_does_not_know_are_refused_by_their_row_in_the_data(risk: Risk) -> None:
    """The first batch would else be refused, by the place of the row in it."""
    labels = np.where(np.arange(len(D.labels)) == 321, -1, D.labels).astype(np.int8)
    with pytest.raises(InputError, match=r"1 row is labelled negative \(-1\), first at row 321"):
        probe(FEATURES, labels, risk, CONFIG, prior=D.prior)


@pytest.mark.parametrize("risk", [PN(), NNPU(D.prior, known_share=0.5)])
def test_negatives_that_the_risk_knows_are_learned_from(risk: Risk) -> None:
    labels = np.where(np.arange(len(D.labels)) == 321, -1, D.labels).astype(np.int8)
    assert probe(FEATURES, labels, risk, ProbeConfig(epochs=1, batch_size=256), prior=D.prior).weight.any()
