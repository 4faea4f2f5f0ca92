"""The front door tells the truth: what has no effect is refused, and what ran is what is said to have run."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from punce import PUClassifier
from punce.classifier import ClassifierWarning
from punce.data import simulate_pu
from punce.errors import InputError
from punce.judging.ranking import ranking_score
from punce.losses import InfoNCE
from punce.options import DEFAULTS, WAYS, check_options
from punce.risks import UPU
from punce.stages.pretrain import PretrainConfig
from punce.training.splits import PUStratifiedKFold
from tests.in_process import exit_code

pytestmark = pytest.mark.usefixtures("quick_tables")

EMBEDDING: dict[str, Any] = {"kind": "embedding", "prior": 0.4, "epochs": 2}
NETWORK: dict[str, Any] = {**EMBEDDING, "loss": "punce", "risk": "nnpu"}


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    y = (random.random(300) < 0.5).astype(int)
    X = random.normal(0.9 * (2 * y[:, None] - 1), 1.0, (300, 4)).astype(np.float32)
    labels = np.zeros(300, int)
    labels[np.flatnonzero(y)[:50]] = 1
    return X, labels, y


@pytest.fixture(scope="module")
def on_table(rows: tuple[np.ndarray, ...]) -> PUClassifier:
    return PUClassifier(prior=0.4).fit(*rows[:2])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"loss": "scl"}, "loss='scl' has no effect on a table: the ensemble for tables uses labelling, prior"),
        ({"risk": "upu", "epochs": 7}, "risk='upu', epochs=7 have no effect on a table"),
        ({"transfer": "finetune"}, "encoder='mlp' trains a network, which uses transfer"),
        ({"encoder": "resnet18"}, "encoder 'resnet18' reads images, not a table"),
        ({"configs": {"probe": {"lr": 0.1}}}, "the ensemble for tables has no stage 'probe'"),
        ({**NETWORK, "labelling": "biased"}, "labelling='biased' has no effect on embeddings: .*, random_state$"),
        ({"labelling": "at random"}, "labelling must be 'random' or 'biased'"),
        ({**NETWORK, "risk": "selfpu"}, "give loss=None"),
        ({**NETWORK, "loss": None, "transfer": "finetune"}, "transfer='finetune' has no effect"),
        ({**NETWORK, "risk": "pupl", "transfer": "finetune"}, "'pupl' is a head on frozen features"),
        ({"kind": "embedding", "encoder": "identity", "loss": "scl"}, "has no weights to pretrain"),
        ({**NETWORK, "configs": {"pretrain": {"epochs": 3}}}, "epochs is given twice"),
        ({**NETWORK, "risk": "vpu", "configs": {"risk": {"mixup_weight": 0.5}}}, "without MixUp"),
        (
            {**EMBEDDING, "configs": {"pretrain": {"lr": 0.1}}},
            "loss='punce', risk='nnpu' trains the method of the paper",
        ),
    ],
)
def test_an_argument_without_effect_is_refused(
    arguments: dict[str, Any], message: str, rows: tuple[np.ndarray, ...]
) -> None:
    with pytest.raises(InputError, match=message):
        PUClassifier(**arguments).fit(*rows[:2])


def test_the_table_of_options_has_the_classifiers_defaults() -> None:
    parameters = PUClassifier().get_params()
    assert {name: parameters[name] for name in DEFAULTS} == DEFAULTS
    assert all(set(way.options) <= set(DEFAULTS) for way in WAYS.values())


def test_on_the_command_line_even_a_default_is_an_explicit_choice() -> None:
    asked = PUClassifier().get_params()
    assert check_options("table", asked) is WAYS["ensemble"]
    with pytest.raises(InputError, match="loss='punce' has no effect on a table"):
        check_options("table", {**asked, "loss": "punce"})
    with pytest.raises(InputError, match="transfer='probe' has no effect on a table"):
        check_options("table", asked, chosen=["transfer"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--loss", "scl", "--risk", "upu", "--transfer", "finetune", "--epochs", "7"], "have no effect on a table"),
        (["--loss", "punce"], "loss='punce' has no effect on a table"),
        (["--image-size", "8"], "--image-size has no effect on a CSV file"),
        (["--labels", "{data}"], "--labels has no effect on a CSV file"),
        (["--text", "a", "--kind", "table"], "--text has no effect with --kind table"),
        (["--encoder", "resnet18", "--dry-run"], "'resnet18' reads images, not a table"),
        (["--encoder", "mlp", "--risk", "selfpu", "--loss", "scl", "--dry-run"], "give loss=None"),
    ],
)
def test_an_option_without_effect_is_one_line(
    options: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    rows: tuple[np.ndarray, ...],
) -> None:
    data = tmp_path / "data.csv"
    pd.DataFrame(rows[0], columns=list("abcd")).assign(y=rows[1]).to_csv(data, index=False)
    arguments = [option.replace("{data}", str(data)) for option in options]
    assert exit_code(monkeypatch, "fit", data, "--label", "y", *arguments, "--out", tmp_path / "run") == 2
    said = capsys.readouterr().err
    assert message in said
    assert len(said.strip().splitlines()) == 1
    assert not (tmp_path / "run").exists()


def test_a_table_run_says_which_members_ran(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: tuple[np.ndarray, ...]
) -> None:
    data, run = tmp_path / "data.csv", tmp_path / "run"
    pd.DataFrame(rows[0], columns=list("abcd")).assign(y=rows[1]).to_csv(data, index=False)
    assert exit_code(monkeypatch, "fit", data, "--label", "y", "--prior", 0.4, "--out", run) == 0
    config = json.loads((run / "config.json").read_text())
    assert sum(config["ran"]["members"].values()) == pytest.approx(1)
    assert not {"loss", "risk", "transfer", "epochs"} & set(config["model"])
    card = (run / "MODEL_CARD.md").read_text()
    most = max(config["ran"]["members"], key=config["ran"]["members"].get)
    assert f"the ensemble for tables ({most} 0." in card
    assert "punce," not in card.partition("options:")[2].partition("\n")[0]
    assert config["ran"]["members"] == json.loads((run / "report.json").read_text())["configuration"]["ran"]["members"]


def test_what_ran_is_in_the_repr_and_survives_saving(on_table: PUClassifier, tmp_path: Path) -> None:
    assert repr(on_table).startswith("PUClassifier(prior=0.4)  # fitted: the ensemble for tables (")
    assert "#" not in repr(PUClassifier(prior=0.4))
    on_table.save(tmp_path / "model")
    assert repr(PUClassifier.load(tmp_path / "model")) == repr(on_table)


def test_score_is_the_mean_auc_of_ranking_and_calls(on_table: PUClassifier, rows: tuple[np.ndarray, ...]) -> None:
    X, labels, _ = rows
    both = on_table.decision_function(X), on_table.predict(X)
    auc = np.mean([roc_auc_score(labels, values) for values in both])
    assert on_table.score(X, labels) == pytest.approx(auc, abs=1e-8)
    assert on_table.score(X, labels, prior=0.3) == pytest.approx((auc - 0.15) / 0.7, abs=1e-8)
    weights = np.where(labels == 0, np.arange(len(labels)), 1.0)
    weighted = np.mean([roc_auc_score(labels, values, sample_weight=weights) for values in both])
    assert on_table.score(X, labels, sample_weight=weights) == pytest.approx(weighted, abs=1e-8)
    with pytest.raises(InputError, match="no labelled positive"):
        on_table.score(X, np.zeros(len(X)))
    with pytest.raises(InputError, match="one for each row"):
        on_table.score(X, labels, sample_weight=weights[:5])
    with pytest.raises(InputError, match="give one for each row"):
        on_table.score(X, labels[:-1])


@pytest.mark.parametrize("name", ["sample_weight", "propensity", "judged"])
def test_what_is_given_for_each_row_has_the_index_of_the_rows(name: str, rows: tuple[np.ndarray, ...]) -> None:
    X, labels, _ = rows
    given = pd.Series(labels == 1 if name == "judged" else np.ones(len(X)))
    with pytest.raises(InputError, match=rf"the index of {name} is not the index of X.*{name}.loc\[X.index\]"):
        PUClassifier(prior=0.4).fit(pd.DataFrame(X), labels, **{name: given.iloc[::-1]})


def test_a_ranking_without_calls_scores_less() -> None:
    scores, labels = np.array([4.0, 3.0, 2.0, 1.0]), np.array([1, 1, 0, 0], dtype=np.int8)
    nothing, everything, right = np.zeros(4, bool), np.ones(4, bool), np.array([True, True, False, False])
    assert [ranking_score(scores, labels, called) for called in (nothing, everything, right)] == [0.75, 0.75, 1.0]


@pytest.mark.filterwarnings("ignore::punce.classifier.ClassifierWarning")  # of the one that calls nothing positive
@pytest.mark.parametrize(
    "model",
    [
        PUClassifier(kind="embedding", encoder="identity", risk="pupl"),  # its ranking does not use the prior
        pytest.param(PUClassifier(), marks=pytest.mark.slow),
    ],
    ids=["pupl", "default"],
)
def test_a_search_over_the_prior_does_not_choose_a_model_that_calls_nothing_positive(model: PUClassifier) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    sample = simulate_pu(y, n_labelled=150, seed=0)
    search = GridSearchCV(model, {"prior": [0.05, 0.2, 0.4, 0.7]}, cv=PUStratifiedKFold(3)).fit(X, sample.labels)
    assert search.best_params_["prior"] > 0.05
    assert 0.2 < search.best_estimator_.predict(X)[sample.labels == 0].mean() < 0.8  # 0.49 of them are positive


def test_transform_gives_the_embedding(on_table: PUClassifier, rows: tuple[np.ndarray, ...]) -> None:
    X = rows[0]
    assert (on_table.transform(X) == on_table.embed(X)).all()
    assert len(on_table.get_feature_names_out()) == on_table.transform(X).shape[1]


def test_losses_and_risks_as_objects(rows: tuple[np.ndarray, ...], tmp_path: Path) -> None:
    X, labels, _ = rows
    model = clone(PUClassifier(loss=InfoNCE(0.2), risk=UPU(0.4), **EMBEDDING)).fit(X, labels)
    named = PUClassifier(loss="infonce", risk="upu", configs={"loss": {"temperature": 0.2}}, **EMBEDDING).fit(X, labels)
    assert (model.predict_proba(X) == named.predict_proba(X)).all()
    assert model.ran_["loss"] == "InfoNCE(temperature=0.2)"
    model.save(tmp_path / "model")
    loaded = PUClassifier.load(tmp_path / "model")
    assert (loaded.loss, loaded.risk, loaded.ran_["loss"]) == ("infonce", "upu", "InfoNCE(temperature=0.2)")


def test_punce_with_row_probabilities(rows: tuple[np.ndarray, ...], tmp_path: Path) -> None:
    X, labels, _ = rows
    plain = PUClassifier(**NETWORK).fit(X, labels)
    model = PUClassifier(configs={"loss": {"weighting": "posterior", "own_view": 0.4}}, **NETWORK).fit(X, labels)
    assert "weighting='posterior', own_view=0.4" in model.ran_["loss"]
    assert (model.predict_proba(X) != plain.predict_proba(X)).any()
    model.save(tmp_path / "model")
    assert (PUClassifier.load(tmp_path / "model").predict_proba(X) == model.predict_proba(X)).all()


def test_settings_of_single_stages(rows: tuple[np.ndarray, ...], tmp_path: Path) -> None:
    X, labels, _ = rows
    configs = {"pretrain": PretrainConfig(epochs=2, batch_size=100), "probe": {"lr": 3e-3, "epochs": 7}}
    model = PUClassifier("punce", "nnpu", kind="embedding", prior=0.4).set_params(configs=configs).fit(X, labels)
    assert (model.ran_["pretrain"]["batch_size"], model.ran_["probe"]["lr"]) == (100, 3e-3)
    stages = [row["stage"] for row in model.history_]
    assert (stages.count("pretrain"), stages.count("probe")) == (2, 7)
    model.save(tmp_path / "model")
    loaded = PUClassifier.load(tmp_path / "model")
    assert loaded.configs["probe"] == {"lr": 3e-3, "epochs": 7}
    assert (clone(loaded).fit(X, labels).predict_proba(X) == model.predict_proba(X)).all()


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        ({"prob": {}}, "no stage 'prob'; did you mean 'probe'"),
        ({"probe": {"lrr": 1.0}}, r"configs\['probe'\] has no field 'lrr'; did you mean 'lr'"),
        ({"probe": {"seed": 1}}, "seed is set by random_state"),
        ({"pretrain": PretrainConfig(seed=3)}, "seed is set by random_state"),
        ({"probe": PretrainConfig()}, "must be a ProbeConfig or a dictionary"),
        ({"loss": {"temprature": 0.3}}, "'punce' has no argument 'temprature'; did you mean 'temperature'"),
        ({"finetune": {"lr": 0.1}}, "has no stage 'finetune': it has loss, pretrain, risk, probe"),
        ([], "configs must be a dictionary"),
    ],
)
def test_wrong_settings_of_stages(configs: Any, message: str, rows: tuple[np.ndarray, ...]) -> None:
    with pytest.raises(InputError, match=message):
        PUClassifier("punce", "nnpu", kind="embedding", prior=0.4, configs=configs).fit(*rows[:2])


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        ({"probe": {"lr": "high"}}, r"configs\['probe'\]: lr must be a number >= 0, got 'high'"),
        ({"pretrain": {"batch_size": 0}}, r"configs\['pretrain'\]: batch_size must be a whole number of at least 2"),
        ({"vpu": {"weight_decay": -1}}, r"configs\['vpu'\]: weight_decay must be a number >= 0"),
        ({"risk": {"beta": "small"}}, r"configs\['risk'\]: beta must be a number >= 0, got 'small'"),
    ],
)
def test_wrong_values_in_the_settings_of_stages_are_refused_before_training(configs: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        PUClassifier("punce", "nnpu", configs=configs).check_arguments()


@pytest.mark.parametrize(
    "wrong", [{"epochs": "3"}, {"epochs": 2.5}, {"epochs": 0}, {"epochs": True}, {"threshold": None}]
)
def test_what_is_no_number_is_refused_by_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"^{next(iter(wrong))} must "):
        PUClassifier(**wrong).check_arguments()
    PUClassifier(epochs=np.int64(3), threshold=np.float32(0.4)).check_arguments()


def test_random_states(rows: tuple[np.ndarray, ...]) -> None:
    X, labels = (part[:80] for part in rows[:2])
    first, second = (
        PUClassifier(random_state=np.random.RandomState(7), **NETWORK).fit(X, labels).seed_ for _ in range(2)
    )
    assert first == second
    stream = np.random.RandomState(7)
    seeds = {PUClassifier(random_state=stream, **NETWORK).fit(X, labels).seed_ for _ in range(2)}
    assert len(seeds) == 2
    with pytest.raises(InputError, match="or a RandomState"):
        PUClassifier(random_state="seven").fit(X, labels)


def test_a_series_with_another_index_is_refused(rows: tuple[np.ndarray, ...]) -> None:
    X, labels, _ = rows
    frame = pd.DataFrame(X).add_prefix("x")
    shuffled = pd.Series(labels).sample(frac=1.0, random_state=0)
    with pytest.raises(InputError, match=r"y.loc\[X.index\] brings it into that order"):
        PUClassifier().fit(frame, shuffled)
    with pytest.raises(InputError, match=r"y.to_numpy\(\) if they do belong together"):
        PUClassifier().fit(frame, pd.Series(labels, index=np.arange(1000, 1300)))
    aligned = PUClassifier(**NETWORK).fit(frame, shuffled.loc[frame.index])
    assert aligned.metrics_.n_positive == 15
    weights = pd.Series(np.ones(len(frame)), index=shuffled.index)
    with pytest.raises(InputError, match="the index of sample_weight is not the index of X"):
        aligned.score(frame, labels, sample_weight=weights)


@pytest.mark.parametrize("n_labelled", [1, 2])
@pytest.mark.parametrize("kind", ["table", "embedding"])
def test_one_or_two_labelled_rows_fit_with_a_warning(
    n_labelled: int, kind: str, rows: tuple[np.ndarray, ...], tmp_path: Path
) -> None:
    X, _, y = rows
    labels = np.zeros(len(X), int)
    labels[np.argsort(-X.sum(1) * y)[:n_labelled]] = 1
    options = {} if kind == "table" else {"encoder": "identity"}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ClassifierWarning)
        model = PUClassifier(kind=kind, **options).fit(X, labels)
    said = " ".join(str(w.message) for w in caught)
    assert "cannot be estimated: 0.1 is assumed" in said
    assert f"{n_labelled} labelled row" in said
    assert (model.prior_.value, model.prior_.method) == (0.1, "assumed")
    assert roc_auc_score(y, model.decision_function(X)) > 0.9
    model.save(tmp_path / "model")
    assert (PUClassifier.load(tmp_path / "model").predict_proba(X) == model.predict_proba(X)).all()


def test_rows_that_quick_models_score_alike_fit_with_a_warning() -> None:
    X = np.random.default_rng(0).normal(size=(12, 3))
    labels = (np.arange(12) < 4).astype(int)
    with pytest.warns(ClassifierWarning, match=r"with 4 labelled and 8 unlabelled rows .* needs columns by which"):
        model = PUClassifier(random_state=0).fit(X, labels)
    assert model.metrics_.unlabelled.accuracy.reason
    assert ((model.predict_proba(X) >= 0) & (model.predict_proba(X) <= 1)).all()


def test_a_default_one_hot_pipeline(rows: tuple[np.ndarray, ...]) -> None:
    X, labels, y = rows
    words = pd.DataFrame(np.round(X).astype(int).astype(str), columns=list("abcd"))
    pipeline = make_pipeline(OneHotEncoder(handle_unknown="ignore"), PUClassifier(prior=0.4)).fit(words, labels)
    assert pipeline[-1].n_features_in_ == len(pipeline[0].get_feature_names_out())
    assert roc_auc_score(y, pipeline.decision_function(words)) > 0.85


def test_weights_of_rows_count_in_the_head(rows: tuple[np.ndarray, ...]) -> None:
    X, labels, _ = rows
    fixed = PUClassifier(kind="embedding", encoder="identity", prior=0.4)
    plain, heavy = fixed.fit(X, labels).decision_function(X), np.where(X[:, 0] > 0, 5.0, 0.2)
    assert (clone(fixed).fit(X, labels, sample_weight=np.ones(len(X))).decision_function(X) == plain).all()
    weighted = clone(fixed).fit(X, labels, sample_weight=heavy).decision_function(X)
    assert np.abs(weighted - plain).max() > 0.01
    for wrong, message in (
        (heavy[:5], "one for each row"),
        (-heavy, "at least 0"),
        (labels, "zero for every unlabelled row"),
    ):
        with pytest.raises(InputError, match=message):
            clone(fixed).fit(X, labels, sample_weight=wrong)
    with pytest.raises(InputError, match="sample_weight cannot be used here: punce, then nnpu"):
        PUClassifier(**NETWORK).fit(X, labels, sample_weight=heavy)


def test_weights_of_rows_count_in_the_ensemble(on_table: PUClassifier, rows: tuple[np.ndarray, ...]) -> None:
    X, labels, _ = rows
    plain = on_table.decision_function(X)
    heavy = np.where((labels == 0) & (X[:, 0] > 0), 20.0, 1.0)  # such rows are then less like positives
    weighted = clone(on_table).fit(X, labels, sample_weight=heavy).decision_function(X)
    rank, weighted_rank = (np.argsort(np.argsort(scores)) for scores in (plain, weighted))
    assert (weighted_rank - rank)[heavy > 1].mean() < -1
    same = clone(on_table).fit(X, labels, sample_weight=np.full(len(X), 3.0))
    np.testing.assert_array_equal(same.decision_function(X), plain)


def test_the_ranked_list_of_a_table_is_out_of_fold(on_table: PUClassifier, rows: tuple[np.ndarray, ...]) -> None:
    X, labels, y = rows
    assert not on_table.seen_in_training_.any()
    final = on_table.predict_proba(X)[:, 1]
    assert not np.allclose(final, on_table.scores_)
    # the final model has learned which rows are labelled; scores of models that did not see the row cannot show it
    is_p = y == 1
    assert roc_auc_score(labels[is_p], final[is_p]) > roc_auc_score(labels[is_p], on_table.scores_[is_p])


@pytest.mark.parametrize(
    ("changes", "n_seen"),
    [
        ({"loss": "infonce"}, 0),  # the encoder saw no label, the heads are cross-fitted
        ({"loss": "punce"}, 210),  # the encoder saw the labels of all but the held-out rows
        ({"loss": "punce", "transfer": "finetune"}, 210),
        ({"loss": None}, 210),
    ],
)
def test_training_rows_that_a_network_saw_are_marked(
    changes: dict[str, Any], n_seen: int, rows: tuple[np.ndarray, ...]
) -> None:
    X, labels, y = rows
    model = PUClassifier(**{**NETWORK, **changes}).fit(X, labels)
    assert model.seen_in_training_.sum() == n_seen
    final = model.decision_function(X)
    is_cross_fitted = changes.get("transfer") != "finetune" and changes["loss"] is not None
    assert np.allclose(final, model.decision_scores_, atol=1e-4) != is_cross_fitted
    assert np.corrcoef(final, model.decision_scores_)[0, 1] > 0.9
