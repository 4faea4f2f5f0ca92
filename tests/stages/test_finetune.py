from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from punce.errors import InputError
from punce.losses import PuNCE
from punce.risks import NNPU, PN, UPU, PvU, Risk
from punce.stages.finetune import FinetuneConfig, _labelled_share, duplicate_weights_of, finetune
from punce.stages.pretrain import PretrainConfig, pretrain
from punce.stages.probe import LinearHead, ProbeConfig, extract_features, probe
from punce.stages.scorer import Scorer, reinitialise
from punce.stages.vpu import VariationalHead
from punce.training.splits import holdout_split
from tests.stages.digits import (
    Interruption,
    Trainer,
    assert_resumes_exactly,
    assert_same_bits,
    digits,
    interrupted_at,
    small_encoder,
    weights_after,
)

SHORT = FinetuneConfig(epochs=3, batch_size=256)


def scratch(risk: Risk, config: FinetuneConfig) -> Trainer:
    d = digits()
    return lambda encoder, folder: finetune(
        encoder, d.view, d.X, d.labels, risk, config, prior=d.prior, from_scratch=True, folder=folder
    )


@pytest.mark.parametrize(
    "risk", [UPU(digits().prior), NNPU(digits().prior), PvU(), PvU(digits().prior), PvU(digits().prior, "threshold")]
)
def test_joint_training_learns_without_negatives(risk: Risk) -> None:
    d, encoder = digits(), small_encoder()
    config = FinetuneConfig(epochs=25, batch_size=256, lr=3e-3)
    head = finetune(encoder, d.view, d.X, d.labels, risk, config, prior=d.prior, from_scratch=True)
    assert d.accuracy(encoder, head, risk.decision_score) > 0.8
    assert [row["epoch"] for row in head.history] == list(range(1, 26))


def test_pn_calls_hidden_positives_negative() -> None:
    d, encoder = digits(), small_encoder()
    config = FinetuneConfig(epochs=25, batch_size=256, lr=3e-3, validation_share=0)
    head = finetune(encoder, d.view, d.X, d.labels, PN(), config, prior=d.prior, from_scratch=True)
    recall = (head(extract_features(encoder, d.view, d.X_test))[d.is_odd] > 0).float().mean()
    assert recall < 0.5  # 200 of 719 odd rows are labelled


def test_fine_tuning_starts_where_the_probe_ended() -> None:
    d, encoder = digits(), small_encoder()
    pretrain(encoder, d.view, d.X, d.labels, PuNCE(d.prior), PretrainConfig(epochs=3, batch_size=256))
    features = extract_features(encoder, d.view, d.X)
    head = probe(features, d.labels, NNPU(d.prior), ProbeConfig(epochs=5), prior=d.prior)
    started = Scorer(encoder).eval().start_from(head)
    torch.testing.assert_close(started(d.view.clean(d.X[:50])), head(features[:50]), rtol=1e-4, atol=1e-4)

    nothing = FinetuneConfig(epochs=1, batch_size=256, lr=0.0, weight_decay=0.0, validation_share=0)
    before = encoder.backbone[0].weight.clone()
    unmoved = finetune(encoder, d.view, d.X, d.labels, NNPU(d.prior), nothing, prior=d.prior, head=head)
    assert torch.equal(encoder.backbone[0].weight, before)
    torch.testing.assert_close(unmoved.weight, head.weight / head.scale)


def test_fine_tuning_moves_encoder_and_head_but_not_the_projector() -> None:
    d, encoder = digits(), small_encoder()
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    head = finetune(encoder, d.view, d.X, d.labels, NNPU(d.prior), SHORT, prior=d.prior)
    assert head.weight.abs().sum() > 0
    after = encoder.state_dict()
    assert not torch.equal(before["backbone.0.weight"], after["backbone.0.weight"])
    assert all(torch.equal(before[name], after[name]) for name in before if name.startswith("projector"))
    assert not encoder.training


def test_a_head_for_other_features_is_refused() -> None:
    d = digits()
    one = torch.ones(7)
    head = LinearHead(one, torch.tensor(0.0), one, one)
    with pytest.raises(InputError, match="7 features, the encoder has 50"):
        finetune(small_encoder(), d.view, d.X, d.labels, NNPU(d.prior), SHORT, prior=d.prior, head=head)


def test_what_is_no_head_of_a_probe_is_refused() -> None:
    """A layer of torch was taken for a head of one feature, and that of vPU has no weight."""
    d, own = digits(), small_encoder()
    linear = LinearHead.of(own.online_head)
    for head, name in ((torch.nn.Linear(50, 1), "Linear"), (VariationalHead(linear, 0.5), "VariationalHead")):
        with pytest.raises(InputError, match=rf"head must be a LinearHead, .* an object of {name}; .* as \.linear"):
            finetune(own, d.view, d.X, d.labels, NNPU(d.prior), SHORT, prior=d.prior, head=head)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("risk", "changes"),
    [(NNPU(digits().prior), {}), (NNPU(digits().prior), {"augment": True}), (PvU(), {}), (PN(), {"optimizer": "sgd"})],
    ids=["nnpu", "augmented", "pvu", "pn_sgd"],
)
def test_interrupted_training_ends_in_the_same_bits(risk: Risk, changes: dict[str, object], tmp_path: Path) -> None:
    config = FinetuneConfig(epochs=3, batch_size=256, **changes)  # type: ignore[arg-type]
    assert_resumes_exactly(scratch(risk, config), tmp_path, step=6)


def test_augmented_rows_have_one_plan_for_each_epoch_over_the_training_rows_alone() -> None:
    d, plans = digits(), []

    class Noting:
        clean = staticmethod(d.view.clean)

        def plan(self, n_rows: int, seed: int, epoch: int, X: torch.Tensor) -> object:
            plans.append((n_rows, epoch, X))
            return d.view.plan(n_rows, seed, epoch, X)

    config = FinetuneConfig(epochs=2, batch_size=512, augment=True)
    finetune(small_encoder(), Noting(), d.X, d.labels, NNPU(d.prior), config, prior=d.prior)  # type: ignore[arg-type]
    train, _ = holdout_split(d.labels, config.validation_share, config.seed)
    assert [(n_rows, epoch) for n_rows, epoch, _ in plans] == [(len(train), 0), (len(train), 1)]
    assert all(torch.equal(X, d.X[train]) for _, _, X in plans)  # no value of a held-out row is mixed in


def test_interrupted_fine_tuning_ends_in_the_same_bits(tmp_path: Path) -> None:
    d = digits()

    def train(encoder: object, folder: Path | None) -> LinearHead:
        fixed = small_encoder(4)  # what was pretrained is the caller's to bring again
        encoder.load_state_dict(fixed.state_dict())  # type: ignore[attr-defined]
        return finetune(encoder, d.view, d.X, d.labels, NNPU(d.prior), SHORT, prior=d.prior, folder=folder)  # type: ignore[arg-type]

    assert_resumes_exactly(train, tmp_path, step=5)


def test_weighted_duplicates_are_not_made_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train = scratch(PvU(), SHORT)
    with interrupted_at(6), pytest.raises(Interruption):
        weights_after(train, tmp_path)
    monkeypatch.setattr("punce.stages.finetune.duplicate_weights_of", None)  # calling it would fail
    weights_after(train, tmp_path)


def test_same_seed_same_weights_and_another_seed_others() -> None:
    risk = NNPU(digits().prior)
    one = weights_after(scratch(risk, SHORT), seed=1)
    assert_same_bits(one, weights_after(scratch(risk, SHORT), seed=2))  # whatever the encoder held before
    other = weights_after(scratch(risk, FinetuneConfig(epochs=3, batch_size=256, seed=1)))
    assert not torch.equal(one["backbone.0.weight"], other["backbone.0.weight"])


def test_reinitialising_leaves_the_global_stream_alone() -> None:
    state = torch.get_rng_state()
    reinitialise(small_encoder(), 3)
    assert torch.equal(state, torch.get_rng_state())


def test_weights_that_cannot_be_drawn_anew_are_named() -> None:
    class Odd(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = torch.nn.Parameter(torch.ones(2))

    network = torch.nn.Sequential(torch.nn.Linear(2, 2), Odd())
    before = network[0].weight.detach().clone()
    with pytest.raises(InputError, match=r"1 holds weights but has no reset_parameters"):
        reinitialise(network, 0)
    assert torch.equal(network[0].weight, before)  # a refused network may be a pretrained one


def test_the_epoch_is_the_best_by_held_out_risk_and_observers_only_watch() -> None:
    d, encoder = digits(), small_encoder()
    seen: list[float] = []

    def observer(scores_of: object) -> dict[str, float]:
        scores = scores_of(d.X_test)  # type: ignore[operator]
        seen.append(float(((scores > 0) == d.is_odd).float().mean()))
        return {"oracle_accuracy": seen[-1]}

    config = FinetuneConfig(epochs=8, batch_size=256, lr=3e-2, weight_decay=0.0)
    risk = NNPU(d.prior)
    head = finetune(encoder, d.view, d.X, d.labels, risk, config, prior=d.prior, from_scratch=True, observer=observer)
    history = head.history
    assert [row["oracle_accuracy"] for row in history] == seen
    best = int(np.argmin([row["held_out_risk"] for row in history]))
    assert d.accuracy(encoder, head) == pytest.approx(seen[best])
    unwatched = weights_after(scratch(risk, config))
    assert torch.equal(unwatched["head.weight"], head.weight)


def test_of_epochs_that_all_call_nothing_positive_the_last_is_kept() -> None:
    """PN with few labelled rows: no row is more likely labelled than not, yet later epochs rank better."""
    d, encoder = digits(20), small_encoder()
    config = FinetuneConfig(epochs=3, batch_size=256)
    seen: list[torch.Tensor] = []

    def observer(scores_of: object) -> dict[str, float]:
        seen.append(scores_of(d.X_test))  # type: ignore[operator]
        return {}

    head = finetune(encoder, d.view, d.X, d.labels, PN(), config, prior=d.prior, from_scratch=True, observer=observer)
    assert len({row["held_out_risk"] for row in head.history}) == 1
    torch.testing.assert_close(head(extract_features(encoder, d.view, d.X_test)), seen[-1], rtol=1e-4, atol=1e-4)


def test_labelled_rows_are_oversampled_only_where_a_batch_needs_it_and_the_risk_allows_it() -> None:
    scarce, plenty = digits(10).labels, digits(200).labels  # of 1,438 rows
    config = FinetuneConfig(batch_size=256)
    for separate in (NNPU(0.4), UPU(0.4), PvU(0.4), PvU(0.4, "threshold")):
        assert _labelled_share(config, separate, scarce) == 16 / 256
        assert _labelled_share(config, separate, plenty) is None
    for over_all_rows in (PN(), PvU(), PvU(0.4, "none")):
        assert _labelled_share(config, over_all_rows, scarce) is None
    assert _labelled_share(FinetuneConfig(batch_size=8), NNPU(0.4), scarce) == 0.5
    assert _labelled_share(FinetuneConfig(labelled_share=0.3), PN(), scarce) == 0.3
    assert _labelled_share(FinetuneConfig(batch_size=256, labelled_share=None), NNPU(0.4), scarce) is None


def test_weighted_duplicates_find_the_hidden_positives_among_training_rows_only() -> None:
    from punce.data import load

    d = digits()
    train, held_out = holdout_split(d.labels, 0.2, 0)
    weights = duplicate_weights_of(d.view, d.X, d.labels, train, d.prior)
    assert torch.equal(weights[held_out], torch.zeros(len(held_out)))
    unlabelled = train[torch.from_numpy(d.labels[train.numpy()] == 0)]
    w = weights[unlabelled]
    is_odd = torch.from_numpy(load("digits").train.y_true == 1)[unlabelled]
    assert w.mean() == pytest.approx(d.prior, abs=1e-5)
    assert w[is_odd].mean() > w[~is_odd].mean() + 0.3


def bad(**changes: object) -> dict[str, object]:
    d = digits()
    arguments: dict[str, object] = {"X": d.X, "labels": d.labels, "risk": NNPU(0.4), "prior": d.prior}
    return arguments | changes


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X": digits().X[:9]}, "9 rows but"),
        ({"labels": np.zeros_like(digits().labels)}, "no labelled positive"),
        ({"labels": np.ones_like(digits().labels)}, "no unlabelled row"),
        ({"labels": -digits().labels}, "labelled negative"),
        ({"X": digits().X.float().index_fill(0, torch.tensor(5), torch.nan)}, "row 5 of X"),
        ({"prior": 1.0}, "prior must lie in"),
        ({"weights": torch.ones(3), "risk": PvU()}, r"weights must hold one w\(x\)"),
        ({"weights": torch.ones(len(digits().X))}, r"weights belong to PvU"),
    ],
)
def test_bad_input_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        finetune(small_encoder(), digits().view, config=SHORT, **bad(**changes))  # type: ignore[arg-type]


def test_another_configuration_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    risk = NNPU(digits().prior)
    weights_after(scratch(risk, SHORT), tmp_path)
    with pytest.raises(InputError, match="another configuration"):
        weights_after(scratch(risk, FinetuneConfig(epochs=4, batch_size=256)), tmp_path)
