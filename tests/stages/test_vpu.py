from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from punce.errors import InputError
from punce.stages.probe import extract_features
from punce.stages.scorer import Scorer, reinitialise
from punce.stages.vpu import VPUConfig, _draw_pairs, mix_up, train_vpu
from punce.training.batches import StratifiedBatches
from punce.training.run import Run
from punce.training.splits import holdout_split
from punce.views import Text
from tests.stages.digits import Trainer, assert_resumes_exactly, assert_same_bits, digits, small_encoder, weights_after

SHORT = VPUConfig(epochs=3, batch_size=256)


def vpu(config: VPUConfig) -> Trainer:
    d = digits()
    return lambda encoder, folder: train_vpu(encoder, d.view, d.X, d.labels, config, folder=folder)


def test_vpu_learns_without_negatives_and_without_a_prior() -> None:
    d, encoder = digits(), small_encoder()
    head = train_vpu(encoder, d.view, d.X, d.labels, VPUConfig(epochs=10, batch_size=256))
    assert d.accuracy(encoder, head, head.decision_score) > 0.8  # 0.5 with a head that starts at zero
    probability = head.probability(extract_features(encoder, d.view, d.X_test))
    assert float(probability.min()) >= 0
    assert float(probability.max()) <= 1
    above = head(extract_features(encoder, d.view, d.X_test)) > head.decision_score
    assert torch.equal(above, probability > 0.5)


def plain_loss(scores: Tensor, labels: list[int], mixed_scores: Tensor, mix: list[float], weight: float) -> float:
    """log mean_U Φ − mean_P log Φ + λ mean (log t − log Φ(x̃))², row by row."""
    phi = [1 / (1 + math.exp(-float(s))) for s in scores]
    unlabelled = [p for p, label in zip(phi, labels, strict=True) if label == 0]
    positive = [p for p, label in zip(phi, labels, strict=True) if label == 1]
    squares = []
    for p, g, gamma in zip(unlabelled, mixed_scores, mix, strict=True):
        target = gamma * p + (1 - gamma) * 1
        squares.append((math.log(target) - math.log(1 / (1 + math.exp(-float(g))))) ** 2)
    variational = math.log(sum(unlabelled) / len(unlabelled)) - sum(map(math.log, positive)) / len(positive)
    return variational + weight * sum(squares) / len(squares)


def test_a_step_takes_the_papers_loss_on_the_pairs_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Step 3, where Φ differs between rows: what the model was given, and the loss in plain loops from its scores."""
    d, config = digits(), VPUConfig(epochs=1, batch_size=256, lr=1e-2, mixup_weight=0.7)
    seen: list[tuple[Tensor, Tensor]] = []
    original = Scorer.forward

    def recording(self: Scorer, x: Tensor) -> Tensor:
        scores = original(self, x)
        if self.training:
            seen.append((x.detach(), scores.detach()))
        return scores

    monkeypatch.setattr(Scorer, "forward", recording)
    losses: list[float] = []
    monkeypatch.setattr(
        Run, "log", lambda self, **values: losses.append(sum(float(v.detach()) for v in values.values()))
    )
    train_vpu(small_encoder(), d.view, d.X, d.labels, config)
    train, _ = holdout_split(d.labels, config.validation_share, config.seed)
    batches = StratifiedBatches(d.labels[train.numpy()], config.batch_size, config.seed, 1, config.labelled_share)
    step = 3
    rows = train[batches.rows(step)]
    partners, mix = _draw_pairs(rows, d.labels, config, step)
    (x, scores), (mixed, mixed_scores) = seen[2 * step], seen[2 * step + 1]
    is_u = torch.from_numpy(d.labels[rows.numpy()] == 0)
    assert torch.equal(x, d.view.clean(d.X[rows]))
    assert torch.equal(mixed, mix_up(x[is_u], d.view.clean(d.X[partners[is_u]]), mix[is_u]))
    assert (d.labels[partners.numpy()] == 1).all()
    assert scores.std() > 0.01
    labels = d.labels[rows.numpy()].tolist()
    expected = plain_loss(scores, labels, mixed_scores, mix[is_u].tolist(), config.mixup_weight)
    assert losses[step] == pytest.approx(expected, rel=1e-4)


def test_mix_up_row_by_row() -> None:
    u, p = torch.zeros(3, 2), torch.ones(3, 2)
    mixed = mix_up(u, p, torch.tensor([0.0, 0.25, 1.0]))
    assert mixed.tolist() == [[1.0, 1.0], [0.75, 0.75], [0.0, 0.0]]


def test_pairs_are_a_function_of_the_step() -> None:
    d = digits()
    rows = torch.arange(len(d.labels))
    (_, one), (_, again), (_, other) = (_draw_pairs(rows, d.labels, SHORT, step) for step in (4, 4, 5))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)
    assert abs(float(one.mean()) - 0.5) < 0.05  # Beta(0.3, 0.3): mean ½, most of it at the ends
    assert float(((one < 0.1) | (one > 0.9)).float().mean()) > 0.4


def test_the_kept_epoch_has_the_lowest_held_out_loss_and_sets_the_scale() -> None:
    d, encoder = digits(), small_encoder()
    config = VPUConfig(epochs=6, batch_size=256, lr=3e-2)
    seen: list[Tensor] = []

    def observer(scores_of: object) -> dict[str, float]:
        seen.append(scores_of(d.X_test))  # type: ignore[operator]
        return {}

    head = train_vpu(encoder, d.view, d.X, d.labels, config, observer=observer)
    best = int(np.argmin([row["held_out_variational"] for row in head.history]))
    final = head(extract_features(encoder, d.view, d.X_test))
    torch.testing.assert_close(final, seen[best], rtol=1e-4, atol=1e-4)
    _, held_out = holdout_split(d.labels, config.validation_share, config.seed)
    phi = torch.sigmoid(head(extract_features(encoder, d.view, d.X[held_out])))
    assert head.scale == pytest.approx(float(phi.sort().values[math.ceil(0.99 * len(phi)) - 1]), rel=1e-4)


@pytest.mark.parametrize("changes", [{}, {"validation_share": 0.0}], ids=["held_out", "all_rows"])
def test_interrupted_training_ends_in_the_same_bits(changes: dict[str, float], tmp_path: Path) -> None:
    config = VPUConfig(epochs=3, batch_size=256, **changes)  # type: ignore[arg-type]
    assert_resumes_exactly(vpu(config), tmp_path, step=7)


def test_same_seed_same_weights() -> None:
    one = weights_after(vpu(SHORT), seed=1)
    assert_same_bits(one, weights_after(vpu(SHORT), seed=2))
    other = weights_after(vpu(VPUConfig(epochs=3, batch_size=256, seed=1)))
    assert not torch.equal(one["backbone.0.weight"], other["backbone.0.weight"])


def test_the_encoder_can_be_kept() -> None:
    encoder = small_encoder(3)
    fresh = small_encoder()
    reinitialise(fresh, 0)
    d = digits()
    train_vpu(encoder, d.view, d.X, d.labels, VPUConfig(epochs=1, batch_size=256, lr=0.0, from_scratch=False))
    assert torch.equal(encoder.backbone[0].weight, small_encoder(3).backbone[0].weight)
    train_vpu(encoder, d.view, d.X, d.labels, VPUConfig(epochs=1, batch_size=256, lr=0.0))
    assert torch.equal(encoder.backbone[0].weight, fresh.backbone[0].weight)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": np.zeros_like(digits().labels)}, "no labelled positive"),
        ({"labels": -digits().labels}, "labelled negative"),
        ({"config": VPUConfig(labelled_share=1.0)}, "labelled_share must lie in"),
        ({"X": digits().X[:5]}, "5 rows but"),
    ],
)
def test_bad_input_is_refused(changes: dict[str, object], message: str) -> None:
    d = digits()
    arguments: dict[str, object] = {"X": d.X, "labels": d.labels, "config": SHORT} | changes
    with pytest.raises(InputError, match=message):
        train_vpu(small_encoder(), d.view, **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"quantile": 1.5}, r"quantile must lie in \(0, 1\], got 1.5"),
        ({"mixup_weight": -1.0}, "mixup_weight must be a number >= 0"),
        ({"mixup_alpha": 0.0}, "mixup_alpha must be a number > 0"),
    ],
)
def test_settings_are_refused_before_anything_is_trained(changes: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        VPUConfig(**changes)  # type: ignore[arg-type]


def test_rows_of_tokens_are_refused_because_they_cannot_be_mixed() -> None:
    """The encoder would say that it reads token numbers, got float32."""
    tokens, labels = torch.randint(0, 9, (20, 5)), np.tile([1, 0], 10).astype(np.int8)
    encoder = small_encoder()
    before = encoder.state_dict()["backbone.0.weight"].clone()
    with pytest.raises(InputError, match=r"vPU mixes rows \(MixUp\), but whole numbers such as tokens cannot be mixed"):
        train_vpu(encoder, Text(), tokens, labels, SHORT)
    assert torch.equal(encoder.state_dict()["backbone.0.weight"], before)
