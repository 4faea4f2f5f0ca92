from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from punce.errors import InputError
from punce.risks import NNPU, RiskWarning
from punce.stages.probe import extract_features
from punce.stages.selfpu import Pair, SelfPUConfig, Teachers, Trusted, _parts, ema_decay, selfpu
from punce.training.splits import holdout_split
from tests.stages.digits import Trainer, assert_resumes_exactly, assert_same_bits, digits, small_encoder, weights_after

SHORT = SelfPUConfig(epochs=4, batch_size=256, select_from=1, select_until=3, select_every=1)


def trainer(config: SelfPUConfig) -> Trainer:
    d = digits()
    return lambda encoder, folder: selfpu(encoder, d.view, d.X, d.labels, config, prior=d.prior, folder=folder)


def test_selfpu_learns_without_negatives() -> None:
    d, encoder = digits(), small_encoder()
    config = SelfPUConfig(epochs=25, batch_size=256, lr=3e-3, select_from=5, select_until=20, select_every=5)
    head = selfpu(encoder, d.view, d.X, d.labels, config, prior=d.prior)
    assert d.accuracy(encoder, head) > 0.85
    assert min(row["consistency"] for row in head.history) > 0
    shares = [row["trusted_share"] for row in head.history]
    assert shares[4] == 0.0
    assert shares[5] == pytest.approx(0.05, abs=0.002)
    assert shares[20] == pytest.approx(0.2, abs=0.002)
    assert shares == sorted(shares)
    assert head.history[-1]["trusted"] > 0


def test_trusted_sets_grow_and_hold_unlabelled_training_rows_only(monkeypatch: pytest.MonkeyPatch) -> None:
    d = digits()
    picked: list[tuple[int, Tensor]] = []
    original = Trusted.pick

    def recording(self: Trusted, scores: Tensor, rows: Tensor, share: float, prior: float) -> None:
        original(self, scores, rows, share, prior)
        picked.append((id(self), self.of(torch.arange(len(d.X))).nonzero().flatten()))

    monkeypatch.setattr(Trusted, "pick", recording)
    selfpu(small_encoder(), d.view, d.X, d.labels, SHORT, prior=d.prior)
    assert len(picked) == 6
    _, held_out = holdout_split(d.labels, SHORT.validation_share, SHORT.seed)
    for _, rows in picked:
        assert (d.labels[rows.numpy()] == 0).all()
        assert not set(rows.tolist()) & set(held_out.tolist())
    for network in {name for name, _ in picked}:
        sizes = [len(rows) for name, rows in picked if name == network]
        assert sizes == sorted(set(sizes))
    assert len(picked[-1][1]) / len(picked[-2][1]) == pytest.approx(1.5, rel=0.02)  # 30 % against 20 %


def test_a_pick_takes_both_ends_of_the_ranking_and_the_prior_of_the_rest() -> None:
    trusted = Trusted(12, 0.4, torch.device("cpu"))
    rows = torch.arange(2, 12)  # rows 0 and 1 are labelled
    trusted.pick(torch.arange(10.0), rows, 0.4, 0.4)
    assert trusted.of(torch.arange(12)).nonzero().flatten().tolist() == [2, 3, 10, 11]
    assert trusted.share == pytest.approx(0.4)
    assert trusted.risk.prior == pytest.approx((4 - 2) / 6)
    trusted.pick(-torch.arange(10.0), rows, 0.2, 0.4)  # picked anew, not added
    assert trusted.of(torch.arange(12)).nonzero().flatten().tolist() == [2, 11]


def test_a_pick_never_trusts_more_than_half_of_the_positives_there_are() -> None:
    trusted = Trusted(1000, 0.02, torch.device("cpu"))
    trusted.pick(torch.randn(1000, generator=torch.Generator().manual_seed(0)), torch.arange(1000), 0.3, 0.02)
    assert trusted.share == pytest.approx(0.3)
    assert trusted.risk.prior == pytest.approx((20 - 10) / 700)


@pytest.mark.parametrize("share", [0.0, 0.999])
@pytest.mark.parametrize("prior", [0.001, 0.5, 0.999])
def test_extreme_picks_leave_a_rest(share: float, prior: float) -> None:
    trusted = Trusted(50, prior, torch.device("cpu"))
    trusted.pick(torch.arange(50.0), torch.arange(50), share, prior)
    assert 0 < trusted.risk.prior < 1
    assert trusted.share < 1


def test_teachers_average_weights_and_buffers_and_copy_counters() -> None:
    pair = Pair(small_encoder(), 0).train()
    teachers = Teachers(pair)
    assert not torch.equal(pair.first.encoder.backbone[0].weight, pair.second.encoder.backbone[0].weight)
    before = {name: value.clone() for name, value in teachers.state_dict().items()}
    with torch.no_grad():
        for parameter in pair.parameters():
            parameter.add_(1.0)
    pair(torch.randn(32, 64, generator=torch.Generator().manual_seed(0)))  # moves BatchNorm's buffers
    teachers.follow(pair, 0.9)
    for name, value in teachers.state_dict().items():
        new = pair.state_dict()[name]
        expected = 0.9 * before[name] + 0.1 * new if value.is_floating_point() else new
        torch.testing.assert_close(value, expected, msg=name)
    means = [name for name in before if name.endswith("backbone.1.running_mean")]
    assert all(not torch.equal(before[name], teachers.state_dict()[name]) for name in means)
    assert len(means) == 2
    assert not any(parameter.requires_grad for parameter in teachers.parameters())
    assert not any(module.training for module in teachers.modules())


def test_the_decay_is_reached_gradually() -> None:
    assert ema_decay(0, 0.999) == pytest.approx(0.1)
    assert ema_decay(10**6, 0.999) == 0.999
    assert ema_decay(5, 0.0) == 0.0


def test_the_loss_of_a_network_in_plain_loops() -> None:
    own, other = torch.tensor([0.3, -1.0, 2.0, 0.5, -0.2]), torch.tensor([1.0, 0.7, -0.4, 0.1, 0.9])
    teacher = torch.tensor([0.2, 0.9, 0.4, 0.5, 0.6])
    labels = torch.tensor([1, 0, 0, 0, 0])
    is_trusted = torch.tensor([False, True, True, False, False])
    parts = _parts(own, other, teacher, labels, is_trusted, NNPU(0.3))

    def sigmoid(t: float) -> float:
        return 1 / (1 + math.exp(-t))

    entropy = difference = 0.0
    for i in range(5):
        q, p = sigmoid(float(other[i])), sigmoid(float(own[i]))
        if is_trusted[i]:
            entropy -= (q * math.log(p) + (1 - q) * math.log(1 - p)) / 2
        if labels[i] == 0:
            difference += (p - float(teacher[i])) ** 2 / 4
    rest = NNPU(0.3)(own[[0, 3, 4]], labels[[0, 3, 4]])
    assert float(parts.trusted) == pytest.approx(entropy, rel=1e-5)
    assert float(parts.consistency) == pytest.approx(difference, rel=1e-5)
    assert float(parts.pu) == pytest.approx(float(rest), rel=1e-6)
    total = 0.6 * float(rest) + 0.4 * entropy + 2.0 * difference
    assert float(parts.total(0.4, 2.0)) == pytest.approx(total, rel=1e-5)


def test_soft_labels_and_teachers_get_no_gradient() -> None:
    own, other = torch.randn(6, requires_grad=True), torch.randn(6, requires_grad=True)
    labels = torch.tensor([1, 0, 0, 0, 0, 0])
    parts = _parts(own, other, torch.full((6,), 0.5), labels, torch.arange(6) > 3, NNPU(0.3))
    parts.total(0.3, 1.0).backward()
    assert other.grad is None
    assert own.grad is not None


def test_the_returned_network_is_the_best_teacher_by_held_out_risk() -> None:
    d, encoder = digits(), small_encoder()
    first: list[Tensor] = []

    def observer(scores_of: object) -> dict[str, float]:
        first.append(scores_of(d.X_test))  # type: ignore[operator]
        return {}

    config = SelfPUConfig.in_proportion(4, batch_size=256, validation_share=0.0)
    head = selfpu(encoder, d.view, d.X, d.labels, config, prior=d.prior, observer=observer)
    final = head(extract_features(encoder, d.view, d.X_test))
    torch.testing.assert_close(final, first[-1], rtol=1e-4, atol=1e-4)  # without held-out rows: the first, at the end


@pytest.mark.parametrize("step", [6, 9], ids=["after_the_first_pick", "later"])
def test_interrupted_training_ends_in_the_same_bits(step: int, tmp_path: Path) -> None:
    assert_resumes_exactly(trainer(SHORT), tmp_path, step)


def test_same_seed_same_weights() -> None:
    one = weights_after(trainer(SHORT), seed=1)
    assert_same_bits(one, weights_after(trainer(SHORT), seed=2))


@pytest.mark.parametrize(
    ("epochs", "picks"),
    [
        (60, [10, 20, 30, 40, 50]),  # as published
        (100, [17, 34, 51, 68, 85]),
        (10, [2, 4, 6, 8]),
        (6, [1, 2, 3, 4, 5]),
        (3, [1, 2]),
        (2, [1]),
        (1, [0]),
    ],
)
def test_trusted_rows_are_picked_in_proportion_to_the_epochs(epochs: int, picks: list[int]) -> None:
    config = SelfPUConfig.in_proportion(epochs, batch_size=256)
    shares = [config.trusted_share(0, epoch) for epoch in range(epochs)]
    assert [epoch for epoch, share in enumerate(shares) if share is not None] == picks
    assert shares[picks[-1]] == config.trusted_shares[0]


def test_a_run_too_short_to_trust_any_row_is_warned_of() -> None:
    d, too_short = digits(), SelfPUConfig(epochs=1, batch_size=1024)
    with pytest.warns(
        RiskWarning, match=r"from epoch 10 on, but trains for 1: it never picks any; .*in_proportion\(1\)"
    ):
        selfpu(small_encoder(), d.view, d.X, d.labels, too_short, prior=d.prior)
    without = replace(too_short, trusted_shares=(0.0, 0.0))  # asked for: no warning, which would be an error here
    selfpu(small_encoder(), d.view, d.X, d.labels, without, prior=d.prior)
    before_the_one_epoch = replace(too_short, select_from=0, select_until=0)
    selfpu(small_encoder(), d.view, d.X, d.labels, before_the_one_epoch, prior=d.prior)


@pytest.mark.parametrize(
    "changes",
    [
        {"trusted_shares": (0.2, 1.0)},
        {"trusted_shares": (0.2,)},
        {"trusted_shares": 0.2},
        {"select_from": 5, "select_until": 4},
        {"select_every": 0},
        {"ema_decay": 1.0},
        {"consistency_weight": -1.0},
    ],
)
def test_bad_settings_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises(InputError):
        SelfPUConfig(**changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": np.zeros_like(digits().labels)}, "no labelled positive"),
        ({"labels": -digits().labels}, "labelled negative"),
        ({"prior": 0.0}, "prior must lie in"),
    ],
)
def test_bad_input_is_refused(changes: dict[str, object], message: str) -> None:
    d = digits()
    arguments: dict[str, object] = {"labels": d.labels, "prior": d.prior} | changes
    with pytest.raises(InputError, match=message):
        selfpu(small_encoder(), d.view, d.X, config=SHORT, **arguments)  # type: ignore[arg-type]
