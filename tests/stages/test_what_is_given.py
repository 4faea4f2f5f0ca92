"""Rows, features, labels and folders as a person hands them in: with a graph behind them, as lists, as text."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn

from punce.encoders import MLP, AllConv, Identity
from punce.errors import InputError, PunceError
from punce.labels import Labels
from punce.losses import InfoNCE
from punce.risks import NNPU, PvU, Risk
from punce.risks.elkan_noto import weighted_duplicates
from punce.stages.fewshot import FewshotConfig, fewshot
from punce.stages.finetune import FinetuneConfig, finetune
from punce.stages.pretrain import PretrainConfig, pretrain
from punce.stages.probe import LinearHead, ProbeConfig, extract_features, probe
from punce.stages.pupl import pupl
from punce.stages.selfpu import SelfPUConfig, selfpu
from punce.stages.supervised import SupervisedConfig, supervised
from punce.stages.taught import Lesson, learn_from_teacher
from punce.stages.vpu import VPUConfig, train_vpu
from punce.views import Embedding
from punce.views.taught import TaughtView
from tests.stages.test_taught import BRIEF, lesson, pictures, trained

PRIOR = 0.3
LABELS = np.repeat(np.array([1, 0, -1], dtype=np.int8), [10, 40, 10])
PU = LABELS.clip(0)
H = torch.randn(60, 4, generator=torch.Generator().manual_seed(0))
BRIEF_PROBE = ProbeConfig(epochs=2, batch_size=16)

OnFeatures = Callable[[Tensor, Labels], LinearHead]
ON_FEATURES: dict[str, OnFeatures] = {
    "probe": lambda h, labels: probe(h, labels.clip(0), NNPU(PRIOR), BRIEF_PROBE, prior=PRIOR),
    "pupl": lambda h, labels: pupl(h, labels.clip(0)),
    "supervised": lambda h, labels: supervised(h, labels, SupervisedConfig(folds=2, strengths=2)),
}


@pytest.mark.parametrize(
    "stage", [pretrain, probe, finetune, train_vpu, selfpu, pupl, supervised, fewshot, learn_from_teacher]
)
def test_a_stage_needs_no_settings(stage: Callable[..., Any]) -> None:
    config = inspect.signature(stage).parameters["config"]
    assert type(config.default).__name__ == config.annotation


def encoder() -> MLP:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return MLP(4, width=0.01)


def with_graph(x: Tensor) -> Tensor:
    """The same numbers as the output of a network."""
    return x * torch.ones((), requires_grad=True)


@pytest.mark.parametrize("stage", ON_FEATURES.values(), ids=ON_FEATURES)
def test_features_with_a_graph_give_the_head_of_plain_ones(stage: OnFeatures) -> None:
    """Who computes features without torch.no_grad would else meet "backward through the graph a second time"."""
    plain, other = stage(H, LABELS), stage(with_graph(H), LABELS)
    assert torch.equal(plain.weight, other.weight)
    assert not any(part.requires_grad for part in other.state_dict().values())


def test_rows_with_a_graph_pretrain_as_plain_ones_do() -> None:
    config, histories = PretrainConfig(epochs=2, batch_size=16), []
    for X in (H, with_graph(H)):
        histories.append(pretrain(encoder(), Embedding(), X, LABELS, InfoNCE(), config))
    assert histories[0] == histories[1]


def test_a_teacher_with_a_graph_teaches_as_a_plain_one_does() -> None:
    x, truth = pictures(120)
    plain = lesson(truth, x)
    _, view, head = trained(plain, BRIEF)
    fresh, _, _ = trained(plain, replace(BRIEF, epochs=0, own_epochs=0))
    other = learn_from_teacher(fresh, view, replace(plain, taught=with_graph(plain.taught)), BRIEF)
    assert torch.equal(other.weight, head.weight)


@pytest.mark.parametrize("stage", ON_FEATURES.values(), ids=ON_FEATURES)
@pytest.mark.parametrize("features", [H.long(), H.numpy(), H[:, 0], H[:-1]], ids=["int", "array", "vector", "short"])
def test_other_features_are_refused(stage: OnFeatures, features: Any) -> None:
    with pytest.raises(InputError, match="features must be"):
        stage(features, LABELS)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("stage", ON_FEATURES.values(), ids=ON_FEATURES)
def test_features_of_half_precision_are_learned_from_in_full(stage: OnFeatures, dtype: torch.dtype) -> None:
    """Embeddings are often kept in it. NumPy has no bfloat16."""
    half = H.to(dtype)
    head = stage(half, LABELS)
    assert torch.equal(head.weight, stage(half.float(), LABELS).weight)
    assert head(half).dtype == head.weight.dtype


def test_duplicates_are_made_of_features_of_half_precision() -> None:
    made = probe(H.bfloat16(), PU, PvU(PRIOR), BRIEF_PROBE, prior=PRIOR)
    assert torch.equal(made.weight, probe(H.bfloat16().float(), PU, PvU(PRIOR), BRIEF_PROBE, prior=PRIOR).weight)


GIVEN: dict[str, Callable[[Any], Any]] = {
    "probe": lambda labels: probe(H, labels, NNPU(PRIOR), BRIEF_PROBE, prior=PRIOR),
    "pretrain": lambda labels: pretrain(encoder(), Embedding(), H, labels, InfoNCE(), PretrainConfig(epochs=1)),
    "vpu": lambda labels: train_vpu(encoder(), Embedding(), H, labels, VPUConfig(epochs=1)),
    "fewshot": lambda labels: fewshot(
        encoder(), Embedding(), H, labels, None, FewshotConfig(steps=1), validation=(H, labels)
    ),
}


@pytest.mark.parametrize("stage", GIVEN.values(), ids=GIVEN)
@pytest.mark.parametrize("kind", [torch.from_numpy, np.ndarray.tolist, pd.Series], ids=["tensor", "list", "series"])
def test_labels_that_are_no_array_are_refused(stage: Callable[[Any], Any], kind: Callable[[Any], Any]) -> None:
    """A Series of other order than the rows would even be learned from: it is looked up by its index."""
    with pytest.raises(InputError, match=r"labels must be a NumPy array, got \w+; np\.asarray\(labels\) makes one"):
        stage(kind(PU))


@pytest.mark.parametrize("rows", [H.numpy(), ["a text"] * 60], ids=["array", "texts"])
def test_rows_that_are_no_tensor_are_refused(rows: Any) -> None:
    def few(X: Any, judged: Any) -> Any:
        return fewshot(
            encoder(), Embedding(), X, LABELS, None, FewshotConfig(steps=1), validation=(judged, LABELS[LABELS != 0])
        )

    for stage in (
        lambda X: pretrain(encoder(), Embedding(), X, PU, InfoNCE(), PretrainConfig(epochs=1)),
        lambda X: finetune(encoder(), Embedding(), X, PU, NNPU(PRIOR), FinetuneConfig(epochs=1), prior=PRIOR),
        lambda X: train_vpu(encoder(), Embedding(), X, PU, VPUConfig(epochs=1)),
        lambda X: few(X, H[:20]),
        lambda X: few(H, X[:20]),
        lambda X: extract_features(encoder(), Embedding(), X),
    ):
        with pytest.raises(InputError, match=r"(X|validation rows) must be a tensor, got (ndarray|list); "):
            stage(rows)


@pytest.mark.parametrize("stage", GIVEN.values(), ids=GIVEN)
def test_labels_in_a_column_are_refused(stage: Callable[[Any], Any]) -> None:
    with pytest.raises(InputError, match=r"labels must be one-dimensional, got shape \(60, 1\)"):
        stage(PU[:, None])


def test_weights_may_be_the_array_that_weighted_duplicates_makes(tmp_path: Path) -> None:
    made, risk = weighted_duplicates(H.numpy(), PU, PRIOR), PvU(PRIOR)
    for stage in (
        lambda weights, folder: probe(H, PU, risk, BRIEF_PROBE, prior=PRIOR, weights=weights, folder=folder),
        lambda weights, folder: finetune(
            encoder(), Embedding(), H, PU, risk, FinetuneConfig(epochs=1), prior=PRIOR, weights=weights, folder=folder
        ),
    ):
        plain, other = stage(torch.from_numpy(made), None), stage(made, tmp_path / str(id(stage)))
        assert torch.equal(plain.weight, other.weight)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda made: made[1:], r"one w\(x\) for each of 60 rows, got shape \(59,\)"),
        (lambda made: made * 3, r"weights must lie in \[0, 1\], got 3 in row 0"),
        (lambda made: np.where(np.arange(60) == 7, np.nan, made), r"weights must lie in \[0, 1\], got nan in row 7"),
    ],
    ids=["short", "large", "missing"],
)
def test_weights_that_are_none_are_refused_with_their_row(change: Callable[[Any], Any], said: str) -> None:
    weights = change(weighted_duplicates(H.numpy(), PU, PRIOR))
    with pytest.raises(InputError, match=said):
        probe(H, PU, PvU(PRIOR), BRIEF_PROBE, prior=PRIOR, weights=weights)


def test_weights_may_be_a_list() -> None:
    made = weighted_duplicates(H.numpy(), PU, PRIOR).astype(np.float32)
    heads = [probe(H, PU, PvU(PRIOR), BRIEF_PROBE, prior=PRIOR, weights=weights) for weights in (made, made.tolist())]
    assert torch.equal(heads[0].weight, heads[1].weight)


@pytest.mark.parametrize("kind", ["int64", "float32", "bool"])
def test_a_run_resumes_with_the_same_labels_in_another_type(kind: str, tmp_path: Path) -> None:
    """As they are after a round through a file."""
    config = PretrainConfig(epochs=1, batch_size=16)
    histories = [
        [
            pretrain(encoder(), Embedding(), H, labels, InfoNCE(), config, folder=tmp_path / "pretrain"),
            probe(H, labels, NNPU(PRIOR), BRIEF_PROBE, prior=PRIOR, folder=tmp_path / "probe").history,
        ]
        for labels in (PU, PU.astype(kind))
    ]
    assert histories[0] == histories[1]


def test_an_observer_may_return_nothing() -> None:
    """One that only prints."""
    seen: list[LinearHead] = []
    probe(H, PU, NNPU(PRIOR), BRIEF_PROBE, prior=PRIOR, observer=seen.append)
    assert len(seen) == BRIEF_PROBE.epochs
    supervised(H, LABELS, SupervisedConfig(folds=2, strengths=3), observer=seen.append)
    assert len(seen) == BRIEF_PROBE.epochs + 3


def test_a_folder_may_be_text(tmp_path: Path) -> None:
    heads = [
        probe(H, PU, NNPU(PRIOR), BRIEF_PROBE, prior=PRIOR, folder=folder)
        for folder in (str(tmp_path), tmp_path)  # the second resumes the first
    ]
    assert torch.equal(heads[0].weight, heads[1].weight)
    assert (tmp_path / "history.jsonl").is_file()


def test_the_folder_of_two_stages_may_be_text(tmp_path: Path) -> None:
    x, truth = pictures(120)
    trained(lesson(truth, x), replace(BRIEF, epochs=1, own_epochs=1), folder=str(tmp_path))  # type: ignore[arg-type]
    assert {path.name for path in tmp_path.iterdir()} == {"taught", "consistent"}


@pytest.mark.parametrize("row", [0, 9], ids=["unlabelled", "labelled"])
def test_supervised_names_the_row_with_a_missing_feature(row: int) -> None:
    features, labels = torch.randn(30, 2), np.repeat([0, 1, -1], [9, 11, 10]).astype(np.int8)
    features[row, 1] = torch.nan
    with pytest.raises(InputError, match=f"row {row} of the features holds a non-finite value"):
        supervised(features, labels, SupervisedConfig())


def test_finetuning_refuses_a_batch_size_given_as_text() -> None:
    """It divides by it before the loop looks at it."""
    config = FinetuneConfig(epochs=1, batch_size="32")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="batch_size must be a whole number of at least 2, got '32'"):
        finetune(encoder(), Embedding(), H, PU, NNPU(PRIOR), config, prior=PRIOR)


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("encoder", "mlp", "encoder must be an Encoder, got 'mlp'; build_encoder"),
        ("encoder", MLP, "encoder must be an Encoder, got the class MLP; build_encoder"),
        ("encoder", nn.Linear(4, 4), "encoder must be an Encoder, got an object of Linear; build_encoder"),
        ("view", "embedding", "view must be a View, such as .*, got 'embedding'; build_view"),
        ("view", Embedding, "view must be a View, such as .*, got the class Embedding; build_view"),
        ("loss", "infonce", "loss must be a ContrastiveLoss, such as .*, got 'infonce'; build_loss"),
        ("loss", InfoNCE, "loss must be a ContrastiveLoss, such as .*, got the class InfoNCE; build_loss"),
    ],
)
def test_pretraining_refuses_names_classes_and_plain_networks(name: str, given: Any, said: str) -> None:
    arguments: dict[str, Any] = {"encoder": encoder(), "view": Embedding(), "loss": InfoNCE()}
    arguments |= {"X": H, "labels": PU, "config": PretrainConfig(epochs=1), name: given}
    with pytest.raises(InputError, match=said):
        pretrain(**arguments)


ON_ROWS: dict[str, Callable[[MLP, Tensor], Any]] = {
    "pretrain": lambda net, X: pretrain(net, Embedding(), X, PU, InfoNCE(), PretrainConfig(epochs=1)),
    "finetune": lambda net, X: finetune(net, Embedding(), X, PU, NNPU(PRIOR), FinetuneConfig(epochs=1), prior=PRIOR),
    "vpu": lambda net, X: train_vpu(net, Embedding(), X, PU, VPUConfig(epochs=1)),
    "selfpu": lambda net, X: selfpu(net, Embedding(), X, PU, SelfPUConfig.in_proportion(1), prior=PRIOR),
    "fewshot": lambda net, X: fewshot(
        net, Embedding(), X, LABELS, None, FewshotConfig(steps=1), validation=(X[LABELS != 0], LABELS[LABELS != 0])
    ),
}


@pytest.mark.parametrize("stage", ON_ROWS.values(), ids=ON_ROWS)
def test_rows_that_the_encoder_cannot_read_are_refused_in_words(stage: Callable[[MLP, Tensor], Any]) -> None:
    with pytest.raises(InputError, match=r"MLP cannot read .* Embedding .*float32 \(b, 3\), .*for rows of this shape"):
        stage(encoder(), H[:, :3])
    with pytest.raises(InputError, match=r"float32 \(b, 4\), the weights are torch\.float64; encoder\.float\(\)"):
        stage(encoder().double(), H)  # as torch.set_default_dtype(torch.float64) makes it
    wrong = encoder()
    wrong.online_head = nn.Linear(49, 1)
    with pytest.raises(InputError, match=r"MLP\.features gives \(2, 50\) for 2 rows, but online_head reads \(2, 49\)"):
        stage(wrong, H)


WRONG_OBJECTS = {
    "encoder": ["mlp", MLP, nn.Linear(4, 4)],
    "view": ["embedding", Embedding],
    "risk": ["nnpu", NNPU, InfoNCE()],
    "loss": ["infonce", InfoNCE],
}


@pytest.mark.parametrize("word", WRONG_OBJECTS)
def test_every_stage_refuses_names_classes_and_other_objects(word: str) -> None:
    few = (H[LABELS != 0], LABELS[LABELS != 0])
    stages: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
        "finetune": lambda e, v, r, _: finetune(e, v, H, PU, r, FinetuneConfig(epochs=1), prior=PRIOR),
        "joint": lambda e, v, r, _: finetune(e, v, H, PU, r, FinetuneConfig(epochs=1), prior=PRIOR, from_scratch=True),
        "probe": lambda e, v, r, _: probe(H, PU, r, BRIEF_PROBE, prior=PRIOR),
        "vpu": lambda e, v, r, _: train_vpu(e, v, H, PU, VPUConfig(epochs=1)),
        "selfpu": lambda e, v, r, _: selfpu(e, v, H, PU, SelfPUConfig.in_proportion(1), prior=PRIOR),
        "fewshot": lambda e, v, r, loss: fewshot(e, v, H, LABELS, loss, FewshotConfig(steps=1), validation=few),
    }
    takes = {"risk": ["finetune", "joint", "probe"], "loss": ["fewshot"]}
    good = {"encoder": encoder(), "view": Embedding(), "risk": NNPU(PRIOR), "loss": InfoNCE()}
    for name in takes.get(word, [name for name in stages if name != "probe"]):
        for wrong in WRONG_OBJECTS[word]:
            with pytest.raises(InputError, match=rf"{word} must be an? \w+.*, got .*; build_{word} makes one by name"):
                stages[name](*{**good, word: wrong}.values())


@pytest.mark.parametrize("head", [None, nn.Linear(50, 2), nn.Sequential(nn.Linear(50, 1))], ids=["none", "two", "deep"])
def test_an_encoder_without_its_linear_head_is_refused_by_every_stage(head: nn.Module | None) -> None:
    """Python would say that feature_size is missing, and a second output would look like a bad learning rate."""
    wrong = encoder()
    wrong.online_head = head  # type: ignore[assignment]
    for stage in ON_ROWS.values():
        with pytest.raises(InputError, match=r"MLP\.online_head must be torch\.nn\.Linear\(.*, 1\), got"):
            stage(wrong, H)


def test_a_loss_or_risk_with_weights_is_refused_unless_they_are_switched_off() -> None:
    """No stage trains them: a learned temperature would stay what it is."""

    class Learned(InfoNCE):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.ones(()))

    class LearnedRisk(NNPU):
        def __init__(self) -> None:
            super().__init__(PRIOR)
            self.shift = nn.Parameter(torch.zeros(()))

    loss, risk, config = Learned(), LearnedRisk(), PretrainConfig(epochs=1)
    with pytest.raises(InputError, match=r"loss has weights of its own \(scale\), .* loss\.requires_grad_\(False\)"):
        pretrain(encoder(), Embedding(), H, PU, loss, config)
    with pytest.raises(InputError, match=r"the risk has weights of its own \(shift\)"):
        probe(H, PU, risk, BRIEF_PROBE, prior=PRIOR)
    pretrain(encoder(), Embedding(), H, PU, loss.requires_grad_(False), config)  # type: ignore[arg-type]


def test_training_from_scratch_leaves_the_encoder_alone_when_it_refuses_the_rows() -> None:
    net = encoder()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    for labels, prior in ((np.zeros_like(PU), PRIOR), (PU, 2.0)):
        with pytest.raises(InputError):
            finetune(net, Embedding(), H, labels, NNPU(PRIOR), prior=prior, from_scratch=True)
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())


def test_rows_on_another_device_than_the_encoder_are_told() -> None:
    with pytest.raises(InputError, match="they are on meta and the rows on cpu: move both to one device"):
        pretrain(encoder().to("meta"), Embedding(), H, PU, InfoNCE(), PretrainConfig(epochs=1))


def test_numbers_of_numpy_train_and_resume_as_pythons_do(tmp_path: Path) -> None:
    """Seeds often come from an arange, rates from a grid of float32."""
    rate, prior = np.float32(1e-3), np.float32(PRIOR)
    numbers = {"epochs": np.int64(1), "batch_size": np.int32(16), "seed": np.int64(3), "lr": rate}
    plain = {name: value.item() for name, value in numbers.items()}
    histories = [
        [
            pretrain(encoder(), Embedding(), H, PU, InfoNCE(), PretrainConfig(**given), folder=tmp_path / "pretrain"),
            probe(H, PU, NNPU(PRIOR), ProbeConfig(**given), prior=told, folder=tmp_path / "probe").history,
        ]
        for given, told in ((numbers, prior), (plain, float(prior)))  # the second resumes the first
    ]
    assert histories[0] == histories[1]
    apart = pretrain(encoder(), Embedding(), H, PU, InfoNCE(), PretrainConfig(**plain))
    assert apart == histories[0][0]


CALLS: dict[str, Callable[..., Any]] = {
    "pretrain": lambda config, **more: pretrain(encoder(), Embedding(), H, PU, InfoNCE(), config, **more),
    "probe": lambda config, **more: probe(H, PU, NNPU(PRIOR), config, prior=PRIOR, **more),
    "finetune": lambda config, **more: finetune(
        encoder(), Embedding(), H, PU, NNPU(PRIOR), config, prior=PRIOR, **more
    ),
    "train_vpu": lambda config, **more: train_vpu(encoder(), Embedding(), H, PU, config, **more),
    "selfpu": lambda config, **more: selfpu(encoder(), Embedding(), H, PU, config, prior=PRIOR, **more),
    "fewshot": lambda config, **more: fewshot(
        encoder(), Embedding(), H, LABELS, None, config, validation=(H[LABELS != 0], LABELS[LABELS != 0]), **more
    ),
    "learn_from_teacher": lambda config, **more: learn_from_teacher(
        AllConv(12, 16, width=0.05), *view_and_lesson(), config, **more
    ),
    "pupl": lambda config, **_: pupl(H, PU, config),
    "supervised": lambda config, **_: supervised(H, LABELS, config),
}
OWN: dict[str, Any] = {
    "pretrain": PretrainConfig(epochs=1),
    "probe": BRIEF_PROBE,
    "finetune": FinetuneConfig(epochs=1),
    "train_vpu": VPUConfig(epochs=1),
    "selfpu": SelfPUConfig.in_proportion(1),
    "fewshot": FewshotConfig(steps=1),
    "learn_from_teacher": BRIEF,
}


def view_and_lesson() -> tuple[TaughtView, Lesson]:
    x, truth = pictures(120)  # of 60 all positives are labelled, and the share of the others is 0
    given = lesson(truth, x)
    return TaughtView.fit(x, is_mirrored=True), given


@pytest.mark.parametrize("stage", OWN)
def test_a_misspelt_keyword_is_refused(stage: str) -> None:
    """It would be ignored: a run with foldr= would write no checkpoint."""
    with pytest.raises(InputError, match=rf"{stage} has no argument foldr; beside data and settings it takes folder, "):
        CALLS[stage](OWN[stage], foldr="run")


@pytest.mark.parametrize(
    "wrong", [{"folder": 3}, {"save_every": None}, {"save_every": -1.0}, {"writer": print}, {"observer": 3}], ids=repr
)
def test_outputs_that_cannot_be_used_are_refused_before_the_first_step(wrong: dict[str, Any]) -> None:
    """An observer that is no function was noticed after an epoch of training."""
    net = encoder()
    before = net.backbone[0].weight.clone()
    with pytest.raises(InputError, match=rf"{next(iter(wrong))} must be an? .*, got "):
        finetune(net, Embedding(), H, PU, NNPU(PRIOR), OWN["finetune"], prior=PRIOR, from_scratch=True, **wrong)
    assert torch.equal(net.backbone[0].weight, before)


def test_a_keyword_of_another_stage_is_refused() -> None:
    with pytest.raises(InputError, match="train_vpu has no argument prior"):
        train_vpu(encoder(), Embedding(), H, PU, VPUConfig(epochs=1), prior=PRIOR)  # type: ignore[call-arg]
    with pytest.raises(InputError, match="pretrain has no argument observer"):
        CALLS["pretrain"](OWN["pretrain"], observer=print)


@pytest.mark.parametrize("stage", CALLS)
def test_the_configuration_of_another_stage_is_refused(stage: str) -> None:
    """A probe took that of pretraining, and held no row out."""
    for other in (OWN["probe" if stage != "probe" else "pretrain"], {"epochs": 1}, PretrainConfig, None):
        with pytest.raises(InputError, match=rf"{stage} takes a \w+Config, got (an object of|the class) \w+"):
            CALLS[stage](other)


@pytest.mark.parametrize("stage", ["finetune", "train_vpu", "selfpu", "fewshot"])
def test_an_encoder_that_is_switched_off_is_refused_as_it_is(stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its weights were drawn anew, and the head alone was trained on features of random weights."""
    net = encoder().requires_grad_(False)
    before = {name: value.clone() for name, value in net.state_dict().items()}
    monkeypatch.setitem(globals(), "encoder", lambda: net)
    with pytest.raises(InputError, match=r"no weight of MLP asks for a gradient.*encoder\.requires_grad_\(\)"):
        CALLS[stage](OWN[stage])
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())


def test_an_encoder_without_weights_is_fine_tuned() -> None:
    """Of Identity only the head can learn."""
    head = finetune(Identity(4), Embedding(), H, PU, NNPU(PRIOR), FinetuneConfig(epochs=1), prior=PRIOR)
    assert bool((head.weight != 0).any())


@pytest.mark.parametrize("labels", [PU.astype(str), PU.astype(str).astype(object)], ids=["text", "objects"])
@pytest.mark.parametrize("stage", GIVEN.values(), ids=GIVEN)
def test_labels_in_words_are_refused(stage: Callable[[Any], Any], labels: Any) -> None:
    with pytest.raises(InputError, match=r"labels must be numbers, 1, 0 or -1, got '1'; punce\.labels\.as_labels"):
        stage(labels)


@pytest.mark.parametrize("stage", ON_FEATURES.values(), ids=ON_FEATURES)
def test_labels_outside_the_vocabulary_are_refused_with_their_row(stage: OnFeatures) -> None:
    """The supervised probe took 2 for a negative; the probe named rows of a batch."""
    for other, shown in ((2.0, "2"), (np.nan, "nan")):
        with pytest.raises(InputError, match=rf"1 of 60 is not: values \[{shown}\], first at row 40"):
            stage(H, np.where(np.arange(60) == 40, other, LABELS))


def test_new_rows_that_do_not_fit_the_encoder_are_refused_in_words() -> None:
    with pytest.raises(InputError, match=r"MLP cannot read these rows: Embedding gives .* \(b, 3\)"):
        extract_features(encoder(), Embedding(), H[:, :3])
    few, known = H[LABELS != 0], LABELS[LABELS != 0]
    with pytest.raises(InputError, match=r"MLP cannot read these rows"):
        fewshot(encoder(), Embedding(), H, LABELS, None, FewshotConfig(steps=1), validation=(few[:, :3], known))
    with pytest.raises(InputError, match=r"AllConv cannot read these rows"):
        learn_from_teacher(AllConv(12, 20, width=0.05), *view_and_lesson(), BRIEF)
    for wrong in ("mlp", MLP, nn.Linear(4, 4)):
        with pytest.raises(InputError, match="encoder must be an Encoder"):
            extract_features(wrong, Embedding(), H)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="view must be a View"):
        extract_features(encoder(), "embedding", H)  # type: ignore[arg-type]
    assert extract_features(encoder(), Embedding(), H[:0]).shape == (0, 50)


def test_validation_without_labels_is_refused() -> None:
    for given in (None, H):
        with pytest.raises(InputError, match="validation must be a pair, rows and their labels, got"):
            fewshot(encoder(), Embedding(), H, LABELS, None, FewshotConfig(steps=1), validation=given)  # type: ignore[arg-type]


def test_a_risk_is_no_loss() -> None:
    with pytest.raises(InputError, match=r"loss must be a ContrastiveLoss, such as .*, got an object of NNPU"):
        pretrain(encoder(), Embedding(), H, PU, NNPU(PRIOR), PretrainConfig(epochs=1))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("stage", "changes", "said"),
    [
        ("probe", {"labelled_share": "auto"}, r"labelled_share must lie in \(0, 1\) or be None, got 'auto'"),
        ("probe", {"validation_share": "0.2"}, r"the held-out share must lie in \[0, 1\), got '0.2'"),
        ("pretrain", {"min_labelled": -1}, "min_labelled must be a whole number of at least 0, got -1"),
        ("pretrain", {"min_labelled": 2.5}, "min_labelled must be a whole number of at least 0, got 2.5"),
        ("fewshot", {"evaluate_every": 2.5}, "evaluate_every must be a whole number of at least 1, got 2.5"),
        ("fewshot", {"steps": 0}, "steps must be at least 1, got 0"),
        ("fewshot", {"warmup_share": -0.1}, r"warmup_share must lie in \[0, 1\], got -0.1"),
        ("fewshot", {"ce_weight": "0.5"}, "ce_weight must be a number between 0 and 1, got '0.5'"),
    ],
)
def test_settings_of_other_types_are_refused(stage: str, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        CALLS[stage](replace(OWN[stage], **changes))


def test_a_seed_that_no_generator_takes_is_refused() -> None:
    with pytest.raises(InputError, match=r"seed must be at most 2³² − 1, got 4294967296"):
        pretrain(encoder(), Embedding(), H, PU, InfoNCE(), PretrainConfig(epochs=1, seed=2**32))


def test_trying_the_encoder_leaves_the_callers_random_stream() -> None:
    class Noisy(MLP):
        def features(self, x: Tensor) -> Tensor:
            return super().features(x) + torch.randn(())

    with torch.random.fork_rng():
        net = Noisy(4, width=0.01)
        torch.manual_seed(5)
        expected = torch.rand(3)
        torch.manual_seed(5)
        pretrain(net, Embedding(), H, PU, InfoNCE(), PretrainConfig(epochs=1))
        assert torch.equal(torch.rand(3), expected)


VALUES: dict[str, tuple[Callable[[Tensor], Any], str]] = {
    "rows": (lambda z: z.flatten(1).mean(1), r"must give one number as a tensor, .*, got shape \(\d+,\)"),
    "number": (lambda z: 3.0, "must give one number as a tensor, .*, got an object of float"),
    "detached": (lambda z: z.detach().mean(), "no gradient goes through the (loss|risk)"),
}


@pytest.mark.parametrize("name", VALUES)
def test_a_loss_or_risk_that_teaches_nothing_is_refused(name: str) -> None:
    """In a sum with what the online head learns, the encoder was left as it was without a word."""
    compute, said = VALUES[name]

    class Own(InfoNCE):
        def forward(self, z: Tensor, labels: Tensor | None = None) -> Tensor:
            return compute(z)  # type: ignore[no-any-return]

    class OwnRisk(Risk):
        def forward(self, scores: Tensor, labels: Tensor) -> Tensor:
            return compute(scores[:, None])  # type: ignore[no-any-return]

    few = (H[LABELS != 0], LABELS[LABELS != 0])
    for stage in (
        lambda: pretrain(encoder(), Embedding(), H, PU, Own(), PretrainConfig(epochs=1)),
        lambda: fewshot(encoder(), Embedding(), H, LABELS, Own(), FewshotConfig(steps=1), validation=few),
        lambda: probe(H, PU, OwnRisk(), BRIEF_PROBE, prior=PRIOR),
        lambda: finetune(encoder(), Embedding(), H, PU, OwnRisk(), FinetuneConfig(epochs=1), prior=PRIOR),
    ):
        with pytest.raises(PunceError, match=said):
            stage()


@pytest.mark.parametrize(
    ("projector", "said"),
    [
        (nn.Linear(49, 8), r"MLP\.projector cannot read the features \(b, 50\): .* torch\.nn\.Linear\(50, 64\)"),
        (None, r"MLP\.projector cannot read the features \(b, 50\)"),
        (nn.Sequential(nn.Linear(50, 1), nn.Flatten(0)), r"MLP\.project gives \(2,\) for 2 rows"),
    ],
    ids=["size", "none", "vector"],
)
def test_a_projector_that_does_not_fit_the_features_is_named(projector: nn.Module | None, said: str) -> None:
    wrong = encoder()
    wrong.projector = projector  # type: ignore[assignment]
    few, project = (H[LABELS != 0], LABELS[LABELS != 0]), FewshotConfig(steps=1, project=True)
    for stage in (
        lambda: pretrain(wrong, Embedding(), H, PU, InfoNCE(), PretrainConfig(epochs=1)),
        lambda: fewshot(wrong, Embedding(), H, LABELS, InfoNCE(), project, validation=few),
    ):
        with pytest.raises(InputError, match=said):
            stage()
    finetune(wrong, Embedding(), H, PU, NNPU(PRIOR), FinetuneConfig(epochs=1), prior=PRIOR)  # which needs none
