"""Few-shot fine-tuning: the objective, the rows each term sees, the batches, and resuming."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from transformers import AutoModel

from punce.datasets.generated_text import WORDS, generated_dataset, generated_reviews
from punce.encoders import Transformer
from punce.encoders.tiny_roberta import write_tiny_roberta
from punce.errors import InputError
from punce.experiments.fewshot import FINGERPRINTS, draw, halves, run_fewshot
from punce.losses import SCL, PuNCE
from punce.stages.fewshot import Fewshot, FewshotConfig, _Fewshot, fewshot
from punce.training.batches import StratifiedBatches
from punce.training.loop import Objective
from punce.training.optim import warmup_cosine
from punce.training.run import Run
from punce.views import Text

CONFIG = FewshotConfig(steps=6, batch_size=8, lr=1e-3, head_lr=1e-2, evaluate_every=2)


@pytest.fixture(autouse=True)
def one_thread() -> Any:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def data(encoder: Transformer) -> tuple[Tensor, np.ndarray, tuple[Tensor, np.ndarray]]:
    train, dev = generated_reviews(60), generated_reviews(30, seed=9)
    signs = np.where(train.y_true == 1, 1, -1).astype(np.int8)
    labels = np.where(np.arange(60) < 20, signs, 0).astype(np.int8)
    return encoder.tokens(train.X), labels, (encoder.tokens(dev.X), np.where(dev.y_true == 1, 1, -1).astype(np.int8))


def tune(source: Path, loss: Any, config: FewshotConfig = CONFIG, **options: Any) -> tuple[Transformer, Fewshot]:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        encoder = Transformer(source)
    X, labels, validation = data(encoder)
    if "X" in options:
        X = options.pop("X")(X, labels)
    return encoder, fewshot(encoder, Text(), X, labels, loss, config, validation=validation, **options)


def weights(encoder: nn.Module) -> Tensor:
    return torch.cat([p.detach().flatten() for p in encoder.parameters()])


def test_cross_entropy_alone_is_ordinary_fine_tuning(roberta: Path) -> None:
    """A loop in plain transformers and torch, with the same rows and the same dropout, ends at the same weights."""
    config = replace(CONFIG, evaluate_every=6)
    encoder, fitted = tune(roberta, None, config)
    X, labels, _ = data(encoder)
    bare = AutoModel.from_pretrained(roberta, add_pooling_layer=False).train()
    head = nn.Linear(16, 1)
    nn.init.zeros_(head.weight)
    nn.init.zeros_(head.bias)
    batches = StratifiedBatches(labels, config.batch_size, config.seed, 1, config.labelled_share)
    decayed = [p for name, p in bare.named_parameters() if p.dim() > 1]
    spared = [p for name, p in bare.named_parameters() if p.dim() <= 1]
    groups = [
        {"params": decayed, "lr": config.lr},
        {"params": spared, "lr": config.lr, "weight_decay": 0.0},
        {"params": [head.weight], "lr": config.head_lr},
        {"params": [head.bias], "lr": config.head_lr, "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, weight_decay=config.weight_decay)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: warmup_cosine(step, config.steps, 1))
    with torch.random.fork_rng():
        torch.manual_seed(config.seed * 1_000_003)
        for step in range(config.steps):
            rows = batches.rows(step)
            rows = rows[torch.from_numpy(labels[rows.numpy()] != 0)].repeat(2)
            x = X[rows]
            x = x[:, : int((x >= 0).sum(1).max())]
            mask = x >= 0
            hidden = bare(input_ids=x.clamp_min(0).where(mask, 1).long(), attention_mask=mask.long()).last_hidden_state
            pooled = (hidden * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)
            target = torch.from_numpy(labels[rows.numpy()] == 1).float()
            loss = nn.functional.binary_cross_entropy_with_logits(head(pooled).squeeze(1), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    torch.testing.assert_close(weights(encoder.backbone), weights(bare), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(fitted.head.weight, head.weight[0].detach(), rtol=1e-4, atol=1e-5)


def test_unlabelled_rows_have_no_cross_entropy(roberta: Path) -> None:
    """Whatever the unlabelled rows hold, CE alone trains the same bits; with a contrastive term they matter."""

    def other(X: Tensor, labels: np.ndarray) -> Tensor:
        X = X.clone()
        X[torch.from_numpy(labels == 0)] = X[torch.from_numpy(labels != 0)].repeat(2, 1)
        return X

    for loss, is_same in ((None, True), (SCL(0.3), False)):
        one, two = (weights(tune(roberta, loss, **options)[0]) for options in ({}, {"X": other}))
        assert torch.equal(one, two) == is_same


@pytest.mark.parametrize("ce_weight", [0.0, 0.3, 1.0])
def test_the_objective_is_the_weighted_sum_of_both_terms(
    roberta: Path, ce_weight: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    values, parts = [], []
    objective = _Fewshot.objective

    def noted(*arguments: Any) -> Objective:
        seen = objective(*arguments)
        values.append(seen.loss.item())
        parts.append(tuple(seen.logged[name].item() for name in ("cross_entropy", "contrastive")))
        return seen

    monkeypatch.setattr(_Fewshot, "objective", noted)
    tune(roberta, PuNCE(0.5, 0.3), replace(CONFIG, ce_weight=ce_weight))
    expected = [ce_weight * ce + (1 - ce_weight) * contrastive for ce, contrastive in parts]
    assert len(values) == CONFIG.steps
    assert values == pytest.approx(expected, rel=1e-5)
    assert min(abs(ce - contrastive) for ce, contrastive in parts) > 0.1  # else any weights would do


def test_without_weight_on_cross_entropy_the_head_never_moves(roberta: Path) -> None:
    encoder, none = tune(roberta, PuNCE(0.5, 0.3), replace(CONFIG, ce_weight=0.0, evaluate_every=6, weight_decay=0))
    assert not none.head.weight.any()
    assert not torch.equal(weights(encoder.backbone), weights(Transformer(roberta).backbone))


@pytest.mark.parametrize("loss", [None, SCL(0.3), PuNCE(0.5, 0.3)], ids=["ce", "ce+scl", "ce+punce"])
@pytest.mark.parametrize("project", [False, True])
def test_every_objective_learns_which_reviews_are_good(roberta: Path, loss: Any, project: bool) -> None:
    config = replace(CONFIG, steps=60, batch_size=16, ce_weight=0.5, lr=3e-3, evaluate_every=20, project=project)
    encoder, fitted = tune(roberta, loss, config)
    assert fitted.validation_accuracy > 0.7  # chance is 0.5
    assert [row["epoch"] for row in fitted.history] == [1, 2, 3]
    test = generated_reviews(50, seed=4)
    assert np.mean((fitted.head(encoder.embed(test.X)).numpy() > 0) == test.y_true) > 0.7


def test_the_step_with_the_best_validation_accuracy_is_kept(roberta: Path) -> None:
    """At a rate that wrecks the network in the end, what is returned is as good as the best evaluation."""
    config = replace(CONFIG, steps=40, batch_size=16, lr=3e-3, evaluate_every=4)
    _, fitted = tune(roberta, None, config)
    seen = [row["validation_accuracy"] for row in fitted.history]
    assert fitted.validation_accuracy == max(seen)
    assert min(seen) < max(seen)


def test_every_batch_holds_both_classes_and_unlabelled_rows() -> None:
    rows, sample = draw(generated_dataset().train.y_true, 20, 200, seed=3)
    config = FewshotConfig()
    batches = StratifiedBatches(sample.labels, config.batch_size, 0, 1, config.labelled_share)
    for step in range(3 * batches.per_epoch):
        batch = sample.labels[batches.rows(step).numpy()]
        assert ((batch == 1).sum(), (batch == -1).sum()) == (8, 8)
        assert 14 <= (batch == 0).sum() <= 18


@pytest.mark.faults
def test_a_killed_run_goes_on_and_ends_in_the_same_bits(
    roberta: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loss, config = PuNCE(0.5, 0.3), replace(CONFIG, steps=8)
    encoder, whole = tune(roberta, loss, config)
    steps, killed = Run.steps, KeyboardInterrupt("stands for a kill")

    def stopping(run: Run) -> Any:
        for step in steps(run):
            if step == 5:
                raise killed
            yield step

    monkeypatch.setattr(Run, "steps", stopping)
    with pytest.raises(KeyboardInterrupt):
        tune(roberta, loss, config, folder=tmp_path, save_every=0.0)
    monkeypatch.setattr(Run, "steps", steps)
    torch.rand(7)  # another process would stand elsewhere in the global stream
    resumed, again = tune(roberta, loss, config, folder=tmp_path, save_every=0.0)
    assert torch.equal(weights(resumed), weights(encoder))
    assert torch.equal(again.head.weight, whole.head.weight)
    assert again.history == whole.history
    finished, once_more = tune(roberta, loss, config, folder=tmp_path)
    assert torch.equal(weights(finished), weights(encoder))
    assert once_more.history == whole.history


def test_a_run_does_not_go_on_with_other_rows_or_another_encoder(roberta: Path, tmp_path: Path) -> None:
    tune(roberta, SCL(0.3), folder=tmp_path)
    with pytest.raises(InputError, match="of another configuration"):
        tune(roberta, SCL(0.3), folder=tmp_path, X=lambda X, _: X.flip(0))
    with pytest.raises(InputError, match="of another configuration"):
        tune(write_tiny_roberta(tmp_path / "other", WORDS, seed=1), SCL(0.3), folder=tmp_path)


def test_a_run_does_not_go_on_with_other_weights_or_validation_rows(roberta: Path, tmp_path: Path) -> None:
    def go_on(change: Callable[[Transformer, Tensor], Tensor]) -> None:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            encoder = Transformer(roberta)
        X, labels, (X_dev, labels_dev) = data(encoder)
        validation = (change(encoder, X_dev), labels_dev)
        fewshot(encoder, Text(), X, labels, SCL(0.3), CONFIG, validation=validation, folder=tmp_path)

    def other_weights(encoder: Transformer, X_dev: Tensor) -> Tensor:
        with torch.no_grad():
            next(encoder.backbone.parameters()).add_(1e-3)
        return X_dev

    def other_projector(encoder: Transformer, X_dev: Tensor) -> Tensor:
        with torch.no_grad():
            next(encoder.projector.parameters()).add_(1.0)
        return X_dev

    go_on(lambda encoder, X_dev: X_dev)
    with pytest.raises(InputError, match="validation: "):
        go_on(lambda encoder, X_dev: X_dev.flip(0))
    with pytest.raises(InputError, match="first_weights: "):
        go_on(other_weights)
    go_on(other_projector)  # which takes no part


def test_the_global_stream_is_left_alone(roberta: Path) -> None:
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    tune(roberta, None, replace(CONFIG, steps=1))
    assert torch.equal(torch.rand(3), expected)


def test_labels_that_cannot_be_used(roberta: Path) -> None:
    encoder = Transformer(roberta)
    X, labels, (X_dev, dev) = data(encoder)
    cases = [
        (np.where(labels == -1, 0, labels), dev, "labels: few-shot fine-tuning needs rows of both classes"),
        (labels, np.ones_like(dev), "validation labels: .* both classes"),
        (labels, np.where(np.arange(30) == 3, 0, dev), "validation labels must be 1 or -1"),
        (np.where(labels == 0, 1, labels), dev, "no unlabelled row"),
        (labels[:-1], dev, "60 rows but 59 labels"),
    ]
    for wrong, wrong_dev, message in cases:
        with pytest.raises(InputError, match=message):
            fewshot(encoder, Text(), X, wrong.astype(np.int8), None, CONFIG, validation=(X_dev, wrong_dev))
    with pytest.raises(InputError, match="ce_weight must lie in"):
        tune(roberta, None, replace(CONFIG, ce_weight=1.5))


# Table 5 -----------------------------------------------------------------------------------------------------------


def test_draws_hold_both_classes_and_the_exact_prior() -> None:
    y = np.r_[np.zeros(300), np.ones(30)].astype(np.int8)
    for seed in range(8):
        rows, sample = draw(y, 4, 50, seed)
        assert len(set(rows.tolist())) == 54
        assert {1, -1} <= set(sample.labels.tolist())
        assert sample.prior == pytest.approx(y[rows][sample.labels == 0].mean())
        assert ((sample.labels == 1) <= (y[rows] == 1)).all()
    assert draw(y, 4, 50, 1)[0].tolist() == draw(y, 4, 50, 1)[0].tolist()
    assert draw(y, 4, 50, 1)[0].tolist() != draw(y, 4, 50, 2)[0].tolist()
    with pytest.raises(InputError, match="cannot draw 300 labelled and 50 unlabelled rows from 330"):
        draw(y, 300, 50, 0)


def test_the_halves_of_dev_are_disjoint_and_alike() -> None:
    y = np.r_[np.zeros(428), np.ones(444)].astype(np.int8)
    one, two = halves(y)
    assert len(one) == len(two) == 436
    assert not set(one.tolist()) & set(two.tolist())
    assert y[one].sum() == y[two].sum() == 222


@pytest.mark.parametrize("loss", [None, "scl", "punce"])
def test_a_cell_of_table_5(loss: str | None, tmp_path: Path) -> None:
    cell: dict[str, Any] = {
        "source": "generated",
        "encoder": "tiny",
        "n_labelled": 16,
        "n_unlabelled": 32,
        "loss": loss,
    }
    result = run_fewshot(**cell, steps=30, batch_size=16, lr=3e-3, evaluate_every=10, folder=tmp_path)
    assert result["test_accuracy"] > 70
    assert result["n_test"] == 49
    assert set(result) >= {"last_accuracy", "validation_accuracy", "auc", "prior", "encoder", "history"}
    assert result["encoder"]["type"] == "roberta"
    again = run_fewshot(**cell, steps=30, batch_size=16, lr=3e-3, evaluate_every=10, folder=tmp_path)
    assert again == result


def test_the_oracle_is_the_best_evaluation_by_test_labels() -> None:
    cell: dict[str, Any] = {"source": "generated", "encoder": "tiny", "loss": None, "n_labelled": 16}
    result = run_fewshot(**cell, n_unlabelled=32, steps=30, batch_size=16, lr=3e-3, evaluate_every=5)
    seen = [row["oracle_accuracy"] for row in result["history"]]
    assert len(seen) == 6
    assert result["oracle_accuracy"] == max(seen) >= result["test_accuracy"]
    assert result["last_accuracy"] == seen[-1]


def test_the_seed_decides_the_projector_too() -> None:
    cell: dict[str, Any] = {"source": "generated", "encoder": "tiny", "loss": "scl", "n_labelled": 8, "steps": 2}
    torch.rand(3)
    one, two = (run_fewshot(**cell, n_unlabelled=16, project=True, seed=3)["history"] for _ in range(2))
    assert one == two


def test_an_encoder_that_is_elsewhere_must_be_the_one_that_is_named(
    roberta: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell: dict[str, Any] = {"source": "generated", "loss": None, "n_labelled": 8, "n_unlabelled": 16, "steps": 1}
    with pytest.raises(InputError, match="cannot be reached"):
        run_fewshot(encoder="some-encoder", **cell)
    monkeypatch.setenv("PUNCE_TEXT_ENCODER", str(roberta))
    with pytest.raises(InputError, match="its folder must be called some-encoder"):
        run_fewshot(encoder="somebody/some-encoder", **cell)
    named = tmp_path / "some-encoder"
    shutil.copytree(roberta, named)
    monkeypatch.setenv("PUNCE_TEXT_ENCODER", str(named))
    assert run_fewshot(encoder="somebody/some-encoder", **cell)["n_test"] == 49
    monkeypatch.setitem(FINGERPRINTS, "somebody/some-encoder", "0" * 64)
    with pytest.raises(InputError, match="is not the encoder somebody/some-encoder"):
        run_fewshot(encoder="somebody/some-encoder", **cell)
