"""One dispatch for every head: the configuration's type decides the stage, and every head answers alike."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace

import numpy as np
import pytest
import torch

from punce.encoders import MLP
from punce.errors import InputError
from punce.risks import NNPU, VPU
from punce.risks.vpu import phi_probability, phi_scale
from punce.stages.finetune import FinetuneConfig
from punce.stages.probe import ProbeConfig, extract_features, probe
from punce.stages.pupl import PuplConfig
from punce.stages.selfpu import SelfPUConfig
from punce.stages.supervised import SupervisedConfig
from punce.stages.transfer import HeadConfig, Judge, Problem, train_head
from punce.stages.vpu import VPUConfig
from punce.views import Embedding

PRIOR = 0.4
FROZEN: list[HeadConfig] = [ProbeConfig(epochs=20, batch_size=64), PuplConfig(), SupervisedConfig(folds=3, strengths=4)]
TRAINED: list[HeadConfig] = [
    FinetuneConfig(epochs=3, batch_size=64, lr=1e-2),
    VPUConfig(epochs=3, batch_size=64, lr=1e-2),
    SelfPUConfig.in_proportion(3, batch_size=64, lr=1e-2),
]


def problem(*, with_negatives: bool = False) -> tuple[Problem, np.ndarray]:
    random = np.random.RandomState(0)
    is_positive = random.random_sample(240) < 0.5
    x = random.standard_normal((240, 6)).astype(np.float32) + 2.0 * is_positive[:, None]
    labels = np.zeros(240, dtype=np.int8)
    labels[np.flatnonzero(is_positive)[:60]] = 1
    if with_negatives:
        labels[np.flatnonzero(~is_positive)[:40]] = -1
    torch.manual_seed(0)
    encoder = MLP(6, width=0.005)
    return Problem(encoder, Embedding(), torch.from_numpy(x), labels, PRIOR, risk=NNPU(PRIOR)), is_positive


@pytest.mark.parametrize("config", [*FROZEN, *TRAINED], ids=lambda config: type(config).__name__)
def test_every_head_separates_the_classes_and_is_watched(config: HeadConfig) -> None:
    given, is_positive = problem(with_negatives=isinstance(config, SupervisedConfig))
    seen = []

    def watch(judge: Judge) -> dict[str, float]:
        scores, cut = judge(given.X)
        seen.append(float(((scores > cut).numpy() == is_positive).mean()))
        return {"seen": seen[-1]}

    before = {name: value.clone() for name, value in given.encoder.state_dict().items()}
    head = train_head(config, replace(given, watch=watch))
    called = (head.scores(given.X) > head.decision_score).numpy()
    assert (called == is_positive).mean() > 0.8
    assert head.is_frozen == all(torch.equal(before[name], value) for name, value in given.encoder.state_dict().items())
    if not isinstance(config, PuplConfig):  # clusters, not epochs
        assert [row["seen"] for row in head.history] == seen
        assert len(seen) == getattr(config, "epochs", getattr(config, "strengths", None))


def test_the_probe_is_the_stage_itself_and_features_are_extracted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    given, _ = problem()
    features = extract_features(given.encoder, given.view, given.X)
    alone = probe(features, given.labels, NNPU(PRIOR), ProbeConfig(epochs=2), prior=PRIOR)
    calls = []

    def counted(*arguments: object) -> torch.Tensor:
        calls.append(1)
        return extract_features(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("punce.stages.transfer.extract_features", counted)
    head = train_head(ProbeConfig(epochs=2), replace(given, watch=lambda judge: {"n": len(judge(given.X)[0])}))
    assert torch.equal(head.scores(given.X), alone(features).detach())
    assert len(calls) == 1


def test_batches_that_were_scored_are_not_kept() -> None:
    given, _ = problem()
    head = train_head(ProbeConfig(epochs=1), given)
    batches = [given.X[k : k + 40].clone() for k in range(0, 240, 40)]
    scored = torch.cat([head.scores(batch) for batch in batches])
    torch.testing.assert_close(scored, head.scores(given.X))
    alive = [weakref.ref(batch) for batch in batches]
    batches.clear()
    gc.collect()
    assert sum(each() is not None for each in alive) <= 2


def test_from_scratch_forgets_the_weights_that_the_encoder_had() -> None:
    scores = []
    for shift in (0.0, 5.0):
        given, _ = problem()
        with torch.no_grad():
            next(given.encoder.parameters()).add_(shift)
        head = train_head(FinetuneConfig(epochs=1, batch_size=64), replace(given, from_scratch=True))
        scores.append(head.scores(given.X))
    assert torch.equal(*scores)


def test_a_stage_without_its_risk_is_refused() -> None:
    given, _ = problem()
    for config in (ProbeConfig(), FinetuneConfig()):
        with pytest.raises(InputError, match="need a risk"):
            train_head(config, replace(given, risk=None))


@pytest.mark.parametrize(("code", "name"), [(1, "positives"), (-1, "negatives")])
def test_logistic_regression_on_one_row_of_a_class_is_refused(code: int, name: str) -> None:
    given, _ = problem(with_negatives=True)
    labels = given.labels.copy()
    labels[np.flatnonzero(labels == code)[1:]] = 0
    with pytest.raises(InputError, match=f"at least 2 labelled {name}, got 1"):
        train_head(SupervisedConfig(), replace(given, labels=labels))


def test_a_probe_on_vpu_is_cut_where_its_free_scale_says_one_half() -> None:
    given, _ = problem()
    head = train_head(ProbeConfig(epochs=20, batch_size=64), replace(given, risk=VPU()))
    scores = head.scores(given.X)
    called = phi_probability(scores, phi_scale(scores)) > 0.5
    assert torch.equal(scores > head.decision_score, called)
    assert head.decision_score != 0.0


def test_fine_tuning_on_vpu_names_its_own_stage() -> None:
    given, _ = problem()
    with pytest.raises(InputError, match="train_vpu"):
        train_head(FinetuneConfig(epochs=1), replace(given, risk=VPU()))
