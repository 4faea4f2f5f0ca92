"""Every entry of a model folder, changed on purpose: refused when the model is loaded, or harmless. Of every kind."""

from __future__ import annotations

import json
import random
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load, save

from punce import PUClassifier
from punce.cli import main
from punce.errors import PunceError
from tests.attacks.changes import ODD
from tests.attacks.folders import Parts, write_folder
from tests.attacks.small_models import rows_of, small_models

_ENTRIES, _TENSORS = 15, 3  # changes of each kind of model
NAMES = (
    *("table", "table few", "table network", "embedding", "embedding network"),
    *("grey images", "grey images, networks", "images, networks", "images network", "images frozen", "images tuned"),
    *("text words", "text network", "text frozen", "text tuned"),
)
Tree = Any
Place = tuple[str | int, ...]


@pytest.fixture(scope="module")
def models() -> Iterator[dict[str, Parts]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        yield small_models()


def places(tree: Tree, at: Place = ()) -> Iterator[Place]:
    """Where there is something in a tree; of a list its first and last entry."""
    yield at
    if isinstance(tree, dict):
        for name, value in tree.items():
            yield from places(value, (*at, name))
    if isinstance(tree, list) and tree:
        for k in {0, len(tree) - 1}:
            yield from places(tree[k], (*at, k))


def changed(tree: Tree, at: Place, value: object) -> Tree:
    """A copy with another value in one place."""
    copy = tree.copy()
    copy[at[0]] = changed(tree[at[0]], at[1:], value) if at[1:] else value
    return copy


def is_loaded(folder: Path, parts: Parts, name: str) -> bool:
    """Whether a model is loaded; then it scores and tells of itself, and nothing fails. Else one line says why."""
    write_folder(folder, parts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        why = refusal(lambda: PUClassifier.load(folder))
        if why:
            assert "\n" not in why
            return False
        classifier, rows = PUClassifier.load(folder), rows_of(name, 5)
        # Refused are rows of another shape or with other columns than the model now asks for.
        if not refusal(lambda: classifier.predict_proba(rows)):
            assert classifier.embed(rows).shape[0] == 5
        assert repr(classifier)
        assert classifier._repr_html_()
    return True


def refusal(run: Callable[[], object]) -> str:
    """What is said against it, if anything."""
    try:
        run()
    except PunceError as error:
        return str(error)
    return ""


def with_entry(parts: Parts, at: Place, value: object) -> Parts:
    return Parts(json.dumps(changed(json.loads(parts.text), at, value)).encode(), parts.tensors)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.faults
def test_odd_entries_are_refused_or_harmless(name: str, models: dict[str, Parts], tmp_path: Path) -> None:
    parts, rng = models[name], random.Random(name)
    assert is_loaded(tmp_path / "model", parts, name)
    every = [at for at in places(json.loads(parts.text)) if at]
    tried = [(at, rng.choice(ODD)) for at in rng.sample(every, _ENTRIES)]
    tried += [(at, rng.choice(ODD)) for at in every if at[0] == "route"]
    loaded = [is_loaded(tmp_path / "model", with_entry(parts, at, value), name) for at, value in tried]
    assert sum(loaded) < len(loaded) / 2


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.faults
def test_odd_tensors_are_refused_or_harmless(name: str, models: dict[str, Parts], tmp_path: Path) -> None:
    parts, rng = models[name], random.Random(name)
    tensors = load(parts.tensors)
    for key in rng.sample(sorted(tensors), min(_TENSORS, len(tensors))):
        for other in odd_forms(tensors[key]):
            rest = {own: value for own, value in tensors.items() if own != key}
            spoilt = rest if other is None else {**rest, key: other.contiguous().clone()}
            is_loaded(tmp_path / "model", Parts(parts.text, save(spoilt)), name)


def odd_forms(tensor: torch.Tensor) -> list[torch.Tensor | None]:
    """Nothing, another shape, another type, other numbers."""
    is_float = tensor.is_floating_point()
    forms = [
        None,
        tensor.flatten(),
        tensor[None],
        tensor.to(torch.int64 if is_float else torch.float32),
        tensor * 0 - 7,
    ]
    return forms + ([tensor[:0], torch.cat([tensor, tensor]), tensor[..., :1]] if tensor.dim() else [])


SPOILT: tuple[tuple[str, Place, object, str], ...] = (
    ("text words", ("route", "vectors", "words"), 5, "words.words: expected list, got 5"),
    ("text words", ("route", "vectors", "words", 0), 5, r"words.words\[0\]: expected str, got 5"),
    ("text words", ("route", "vectors", "words"), ["one"], "equal to vocabulary size"),
    ("embedding", ("route", "portfolio", "readers", 0, "own"), [], "for which there is no reader"),
    ("embedding", ("route", "portfolio", "readers", 0, "own"), "x", r"readers\[0\].own: expected list"),
    ("embedding", ("route", "portfolio", "members", 0, "features"), "other", "for which there is no reader"),
    ("images, networks", ("route", "factor"), "x", "factor: expected int"),
    ("images, networks", ("route", "portfolio", "readers", 3, "own", 0, "factor"), 0, "reduced by a whole number"),
    ("table", ("prior",), {"value": "x", "population_prior": 0.5}, "prior: the field '"),
    ("table", ("prior", "value"), [], "prior.value: expected float"),
    ("table", ("prior", "value"), 7, "prior must"),
    ("table", ("ran",), [], "ran: expected dict"),
    ("table", ("ran", "members"), [], "ran.members: expected dict"),
    ("table", ("n_embedding",), 2**31, "n_embedding is 2147483648"),
    ("table", ("route", "encoder", "columns", 0, "median"), "x", "a column of the table.median: expected float"),
    ("table", ("route", "encoder", "columns", 0, "name"), 5, "a column of the table.name: expected str"),
    ("table", ("metrics", "confidence"), "x", "confidence: expected float"),
    ("table", ("another",), 1, "unknown field 'another'"),
)


@pytest.mark.parametrize(("name", "at", "value", "match"), SPOILT)
def test_the_line_says_which_entry_is_wrong(
    name: str, at: Place, value: object, match: str, models: dict[str, Parts], tmp_path: Path
) -> None:
    with pytest.raises(PunceError, match=match):
        PUClassifier.load(write_folder(tmp_path / "model", with_entry(models[name], at, value)))


def test_predict_ends_with_one_line_and_code_2(
    models: dict[str, Parts], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_folder(tmp_path / "model", with_entry(models["embedding"], ("route", "portfolio", "readers", 0, "own"), "x"))
    pd.DataFrame(np.zeros((3, 12))).to_csv(tmp_path / "new.csv", index=False)
    monkeypatch.setattr("sys.argv", ["punce", "predict", str(tmp_path / "model"), str(tmp_path / "new.csv")])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "is not a model that this version of punce reads" in " ".join(capsys.readouterr().err.split())


def test_an_encoder_that_is_not_there_is_no_fault_of_the_file(models: dict[str, Parts], tmp_path: Path) -> None:
    spoilt = with_entry(models["text frozen"], ("route", "vectors", "encoder", "source"), "/nowhere")
    with pytest.raises(PunceError, match=r"^the model was trained on the text encoder '/nowhere'"):
        PUClassifier.load(write_folder(tmp_path / "model", spoilt))
