"""Heads on features: they learn, their held-out scores are honest, and a stored model scores the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize

from punce.encoders import build_encoder
from punce.errors import InputError
from punce.judging.ranking import auc_between
from punce.losses import build_loss
from punce.models.portfolio import candidates, contrastive
from punce.models.portfolio.candidates import Candidates
from punce.models.portfolio.directions import Directions, _shift
from punce.models.portfolio.heads import DEFAULT, HEADS, HeadProblem
from punce.models.portfolio.logistic import solved
from punce.models.portfolio.memorised import (
    EpochWatch,
    about_memory,
    as_history,
    best_epochs,
    seen_and_held_out,
)
from punce.models.portfolio.model import FeatureModel, Portfolio, about_scales
from punce.models.portfolio.problem import Linear
from punce.models.portfolio.readers import Given
from punce.models.route import FitSettings
from punce.stages.pretrain import PretrainConfig, pretrain
from punce.training.random_stream import seeded
from punce.views import build_view

SETTINGS = FitSettings(
    loss="auto",
    risk="auto",
    transfer="probe",
    encoder="auto",
    prior=0.4,
    scenario="single_set",
    random_state=0,
    epochs=1,
    device="cpu",
    progress=False,
    folder=None,
)


def _rows(n: int = 600, seed: int = 0, apart: float = 2.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two classes that differ along one of ten directions; 60 of the positives are labelled."""
    rng = np.random.default_rng(seed)
    truth = np.where(rng.random(n) < 0.5, 1, -1)
    x = rng.normal(size=(n, 10)).astype(np.float32)
    x[:, 3] += apart * (truth > 0)
    labels = np.zeros(n, dtype=np.int8)
    labels[np.flatnonzero(truth > 0)[:60]] = 1
    return x, labels, truth


@pytest.mark.parametrize("name", HEADS)
def test_every_head_learns(name: str) -> None:
    x, labels, truth = _rows()
    head = HEADS[name](HeadProblem(x, labels == 1, np.zeros(600, np.int8), np.ones(600), 0.4, 0))
    scores = head.score(x)
    assert auc_between(scores[(truth > 0) & (labels == 0)], scores[truth < 0]) > 0.85
    assert type(head).from_arrays(head.arrays()).score(x) == pytest.approx(scores)


@pytest.mark.parametrize("name", HEADS)
def test_known_truths_and_weights_change_a_head(name: str) -> None:
    x, labels, truth = _rows(apart=1.0)
    plain = HeadProblem(x, labels == 1, np.zeros(600, np.int8), np.ones(600), 0.4, 0)
    judged = np.where(labels == 0, truth, 0).astype(np.int8)
    judged[300:] = 0
    told = HEADS[name](plain.changed(truths=judged)).score(x)
    weighed = HEADS[name](plain.changed(counts=np.where(x[:, 0] > 0, 1.0, 0.0))).score(x)
    alone = HEADS[name](plain).score(x)
    assert not np.allclose(told, alone)
    assert not np.allclose(weighed, alone)


def test_a_feature_model_scores_every_row_by_heads_that_did_not_see_it() -> None:
    rng = np.random.default_rng(1)
    x, labels = rng.normal(size=(400, 50)).astype(np.float32), np.repeat([1, 0], [40, 360]).astype(np.int8)
    fitted = FeatureModel.fit(x, labels, SETTINGS)[1]
    # In noise a model that saw its own rows ranks labelled ones far above chance.
    assert abs(auc_between(fitted.scores[labels == 1], fitted.scores[labels == 0]) - 0.5) < 0.15
    assert len(fitted.rows) == 400


@pytest.mark.parametrize("n_labelled", [1, 2])
def test_one_or_two_labelled_rows_are_learned_from(n_labelled: int) -> None:
    """A single one cannot be left out: it is in every fold's training rows, and its score is marked as seen."""
    x, labels, truth = _rows(120, apart=4.0)
    labels = np.where(np.cumsum(labels) <= n_labelled, labels, 0).astype(np.int8)
    _, fitted = FeatureModel.fit(x, labels, SETTINGS)
    assert auc_between(fitted.scores[truth > 0], fitted.scores[truth < 0]) > 0.6
    assert fitted.seen is not None
    assert fitted.seen.tolist() == ((labels == 1) & (n_labelled == 1)).tolist()


def test_a_single_unlabelled_row_is_refused() -> None:
    with pytest.raises(InputError, match="one unlabelled row"):
        FeatureModel.fit(np.eye(4, dtype=np.float32), np.array([1, 1, 1, 0], dtype=np.int8), SETTINGS)


@pytest.mark.parametrize(("asked", "used"), [("auto", "cpu"), ("cuda:0", "cuda:0")])
def test_a_feature_model_trains_on_the_device_that_was_asked_for(
    asked: str, used: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No device but the CPU is needed to see which one the portfolio is told."""
    told: list[torch.device] = []

    def fit(rows: Given, labels: object, settings: FitSettings, device: torch.device) -> tuple[None, None]:
        told.append(device)
        return None, None

    monkeypatch.setattr(Portfolio, "fit", fit)
    x, labels = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32), np.repeat([1, 0], 10).astype(np.int8)
    FeatureModel.fit(x, labels, replace(SETTINGS, device=asked))
    assert told == [torch.device(used)]


@pytest.mark.parametrize(("n_rows", "kept"), [(60, 59), (300, 256)])
def test_the_note_on_wide_rows_counts_the_directions_that_there_are(n_rows: int, kept: int) -> None:
    """There are fewer than rows."""
    x = np.random.default_rng(0).normal(size=(n_rows, 1_000)).astype(np.float32)
    model = FeatureModel(Directions.fit(x, 0), Portfolio({}, ()))
    assert model.about_width() == (
        f"the 1,000 numbers of a row were reduced to the {kept} directions in which rows differ most",
    )


@pytest.mark.parametrize(
    ("larger", "said"),
    [((), ""), ((3,), "99.9% of the variance is in 1 of the 40"), ((3, 7, 8), "")],
)
def test_numbers_on_a_far_larger_scale_are_named_if_they_are_few(larger: tuple[int, ...], said: str) -> None:
    """At most a twentieth of all."""
    x = np.random.default_rng(0).normal(size=(200, 40)).astype(np.float32)
    x[:, list(larger)] *= 1_000
    assert "".join(about_scales(x)).startswith(said)
    assert bool(about_scales(x)) == bool(said)


def test_a_stored_feature_model_scores_the_same() -> None:
    x, labels, _ = _rows()
    model, _ = FeatureModel.fit(x, labels, SETTINGS)
    again = FeatureModel.from_state(*model.state())
    assert np.array_equal(again.score(x), model.score(x))
    assert model.embed(x).shape == (600, 10)
    assert sum(SETTINGS.used["members"].values()) == pytest.approx(1.0)


def test_rows_of_folds_whose_heads_have_other_scales_are_ranked_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when one fold chooses another strength of regularisation."""
    x, labels, truth = _rows()
    plain = FeatureModel.fit(x, labels, SETTINGS)[1].scores
    factors = iter([100.0, 0.01, 1.0, 30.0, 0.1] * len(HEADS) * 3)

    def scaled(problem: HeadProblem) -> Linear:
        head, factor = HEADS["logistic"](problem), next(factors)
        return Linear(head.weight * np.float32(factor), head.bias * np.float32(factor) + np.float32(factor))

    monkeypatch.setattr(candidates, "HEADS", dict.fromkeys(HEADS, scaled))
    scores = FeatureModel.fit(x, labels, SETTINGS)[1].scores
    is_u = labels == 0
    found = [auc_between(own[is_u & (truth > 0)], own[is_u & (truth < 0)]) for own in (scores, plain)]
    assert found[0] > found[1] - 0.02


@pytest.mark.parametrize("penalty", [0.003, 0.1, 3.0])
def test_regressions_solved_together_are_those_of_scikit_learn(penalty: float) -> None:
    x, labels, _ = _rows(apart=1.0)
    x *= np.linspace(3.0, 0.1, 10, dtype=np.float32)  # an ill-conditioned problem
    weights = HeadProblem(x, labels == 1, np.zeros(600, np.int8), np.ones(600), 0.4, 0).balanced
    target = np.where(labels == 1, 1.0, np.linspace(0.0, 0.6, 600))
    twice, both = np.concatenate([x, x]), np.concatenate([weights * target, weights * (1 - target)])
    exact = LogisticRegression(C=1 / penalty, tol=1e-8, max_iter=5000).fit(twice, np.repeat([1, 0], 600), both)
    assert solved(x, target, weights, penalty).score(x) == pytest.approx(exact.decision_function(x), abs=0.03)
    assert solved(csr_matrix(x), target, weights, penalty).score(x) == pytest.approx(
        exact.decision_function(x), abs=0.03
    )


@pytest.mark.parametrize("penalty", [0.0001, 0.001, 0.01])
def test_a_regression_on_the_words_of_texts_is_solved_to_its_end(penalty: float) -> None:
    # Every word stands in few texts: each has a small share of the gradient, long before the end.
    rng = np.random.default_rng(0)
    is_p = np.arange(1000) < 100
    words = rng.zipf(1.4, size=(1000, 12)) % 2000
    words[is_p, :3] = rng.integers(1500, 1600, size=(100, 3))
    x = normalize(csr_matrix((np.ones(words.size), (np.repeat(np.arange(1000), 12), words.ravel())), (1000, 2000)))
    weights = HeadProblem(x, is_p, np.zeros(1000, np.int8), np.ones(1000), 0.4, 0).balanced
    exact = LogisticRegression(C=1 / penalty, tol=1e-9, max_iter=10_000).fit(x, is_p, weights).decision_function(x)
    assert solved(x, is_p.astype(float), weights, penalty).score(x) == pytest.approx(exact, abs=0.01 * exact.std())


def test_the_default_heads_are_in_the_catalogue() -> None:
    assert set(DEFAULT) < set(HEADS)
    assert {"nnpu", "logistic", "self_consistent", "trees", "pupl"} < set(HEADS)


def test_candidates_of_some_kinds_only_are_weighed_like_a_smaller_portfolio() -> None:
    x, labels, _ = _rows()
    heads = ("logistic", "nnpu")
    whole = Candidates.fit(
        Given(torch.from_numpy(x)), labels, SETTINGS, torch.device("cpu"), heads=heads, losses=("scl", "punce")
    )
    assert set(whole.readers) == {"raw", "infonce", "scl", "punce"}
    assert len(whole.held_out) == 8
    some = whole.only(["raw", "scl"], ["nnpu"])
    assert set(some.held_out) == {"raw, nnpu", "scl, nnpu"}
    members = Portfolio.weighed(some, labels, 0.4).members
    assert {member.head for member in members} == {"nnpu"}
    assert sum(member.weight for member in members) == pytest.approx(1.0)


def test_a_portfolio_with_trees_is_stored_and_scores_the_same() -> None:
    x, labels, _ = _rows(200)
    rows = Given(torch.from_numpy(x))
    portfolio = Portfolio.weighed(
        Candidates.fit(rows, labels, SETTINGS, torch.device("cpu"), heads=("trees",), losses=()), labels, 0.4
    )
    assert np.array_equal(Portfolio.from_state(*portfolio.state()).score(rows), portfolio.score(rows))


def test_rows_in_parts_have_the_scores_of_all_rows_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    x, labels, _ = _rows(300)
    whole, fitted = FeatureModel.fit(x, labels, SETTINGS)
    monkeypatch.setattr(candidates, "ROWS_AT_ONCE", 37)
    in_parts, again = FeatureModel.fit(x, labels, SETTINGS)
    assert again.scores == pytest.approx(fitted.scores, abs=1e-4)
    assert in_parts.score(x) == pytest.approx(whole.score(x), abs=1e-4)


class _Fixed:
    """Features that were decided beforehand, one table for each fold."""

    def __init__(self, features: np.ndarray) -> None:
        self.features = features

    def __call__(self, rows: Given) -> np.ndarray:
        return self.features[rows.x[:, 0].long().numpy()]


def test_labelled_rows_known_by_heart_are_told_from_a_class_that_was_learned() -> None:
    rng = np.random.default_rng(0)
    labels = np.repeat([1, 0], [60, 400]).astype(np.int8)
    folds = np.arange(460) % 2
    numbers = Given(torch.arange(460)[:, None])
    noise = rng.normal(size=(460, 20)).astype(np.float32)
    shift = np.zeros(20, dtype=np.float32)
    shift[0] = 3.0
    learned = [_Fixed(noise + shift * (labels == 1)[:, None])] * 2
    by_heart = [_Fixed(noise + shift * ((labels == 1) & (folds != k))[:, None]) for k in range(2)]
    fair = seen_and_held_out(learned, numbers, labels, folds)  # type: ignore[arg-type]
    unfair = seen_and_held_out(by_heart, numbers, labels, folds)  # type: ignore[arg-type]
    assert abs(fair["seen"] - fair["held_out"]) < 0.05
    assert unfair["seen"] > 0.9
    assert abs(unfair["held_out"] - 0.5) < 0.1
    assert about_memory({"scl": fair}) == ()
    assert "learned with scl have memorised labelled rows" in about_memory({"scl": unfair})[0]
    assert as_history({"scl": fair, "punce": {}}) == [{"stage": "labelled rows, scl", **fair}]


def test_each_fold_keeps_the_epoch_that_the_other_folds_found_best() -> None:
    rising, falling, flat = [0.6, 0.7, 0.8], [0.6, 0.8, 0.7], [0.7, 0.7, 0.7]
    assert best_epochs([rising, rising, rising], last=2) == [2, 2, 2]
    assert best_epochs([falling, falling, falling], last=2) == [1, 1, 1]
    # The first fold's own curve has no say in its epoch, and a gain within chance does not stop it.
    assert best_epochs([falling, flat, flat], last=2) == [2, 1, 1]
    assert best_epochs([[], []], last=3) == [3, 3]


def test_training_that_memorises_goes_back_to_where_held_out_rows_ranked_best(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second epoch spoils the encoder; the first is kept, and `ran_` and the history tell it."""
    x, labels, _ = _rows(300)

    def spoiled(watch: EpochWatch, encoder: torch.nn.Module) -> dict[str, float]:
        if len(watch.weights) == 2:
            torch.nn.init.zeros_(next(encoder.parameters()))
        return looked(watch, encoder)  # type: ignore[arg-type]

    looked = EpochWatch.epoch
    monkeypatch.setattr(EpochWatch, "epoch", spoiled)
    monkeypatch.setattr(contrastive, "in_parallel", lambda tasks: (task() for task in tasks))
    settings = replace(SETTINGS, epochs=12, used={})
    found = Candidates.fit(Given(torch.from_numpy(x)), labels, settings, torch.device("cpu"), heads=("logistic",))
    assert settings.used["pretrained"]["scl"] == "5 x 2"
    assert max(settings.used["stopped"]["scl"]) < 2
    rows = [row for row in found.history if "held_out" in row and "epoch" in row]
    assert [row["epoch"] for row in rows] == [1, 2]
    assert all(next(reader.encoder.parameters()).any() for reader in found.readers["scl"])  # type: ignore[union-attr]


def test_a_watch_changes_no_weight_and_a_resumed_run_has_seen_all_epochs(tmp_path: Path) -> None:
    x, labels, _ = _rows(120)
    rows, config, view = torch.from_numpy(x), PretrainConfig(epochs=2, batch_size=40), build_view("embedding")

    def run(watch: EpochWatch | None, folder: Path | None = None) -> dict[str, torch.Tensor]:
        with seeded(0, torch.device("cpu")):
            encoder = build_encoder("mlp", in_features=10, width=0.05)
        pretrain(encoder, view, rows, labels, build_loss("scl", 0.4), config, watch=watch, folder=folder)
        return encoder.state_dict()

    first, again = (EpochWatch(view, rows, labels, np.arange(120) % 3 == 0) for _ in range(2))
    plain, watched = run(None), run(first, tmp_path)
    run(again, tmp_path)
    assert len(first.held_out) == 2
    assert again.held_out == first.held_out
    for name, value in plain.items():
        assert torch.equal(value, watched[name])
        assert torch.equal(value, again.weights[-1][name])


@pytest.mark.parametrize("power", [-40, -60, -100], ids="2**{}".format)
@pytest.mark.parametrize("n", [600, 8], ids=["tall", "wide"])
def test_directions_of_tiny_numbers_are_those_of_ordinary_ones(power: int, n: int) -> None:
    """Their squares are nothing in float32, so that the model ranked almost like a coin."""
    x = _rows()[0][:n]
    tiny = np.ldexp(x, power)
    expected, found = Directions.fit(x, 0)(x), Directions.fit(tiny, 0)(tiny)
    assert found.shape == expected.shape
    assert np.allclose(np.abs(found), np.abs(expected), atol=1e-4)  # the sign of a direction means nothing


def test_directions_of_ordinary_and_of_equal_rows_are_not_rescaled() -> None:
    assert {_shift(np.ldexp(_rows()[0], power)) for power in (-25, 0, 40)} == {0}
    equal = np.full((20, 3), 5, dtype=np.float32)
    assert not Directions.fit(equal, 0)(equal).any()
