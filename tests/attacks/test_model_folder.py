"""Model folders that somebody else made on purpose: refused with words, and nothing in them runs."""

from __future__ import annotations

import json
import os
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load, save

from punce import PUClassifier
from punce.errors import PunceError
from punce.judging.shift import SeenScores, count
from punce.models.portfolio.model import Portfolio
from punce.storage.model_file import ModelFileError
from tests.attacks.folders import STORED, Parts, rows_for, stored, write_folder


def refused(folder: Path, parts: Parts, match: str | None = None) -> None:
    with pytest.raises(PunceError, match=match):
        PUClassifier.load(write_folder(folder, parts))


def with_content(name: str, **changes: Any) -> Parts:
    parts = stored(name)
    return Parts(json.dumps({**json.loads(parts.text), **changes}).encode(), parts.tensors)


def with_header(parts: Parts, header: dict[str, Any], body: bytes = b"") -> Parts:
    text = json.dumps(header).encode()
    return Parts(parts.text, struct.pack("<Q", len(text)) + text + body)


class Bomb:
    """Touches a file when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, tuple[Path]]:
        return Path.touch, (self.mark,)


@pytest.mark.parametrize("place", ["tensors", "text", "both"])
def test_a_pickle_with_matching_digests_never_runs(tmp_path: Path, place: str) -> None:
    bomb, good = pickle.dumps(Bomb(tmp_path / "exploded")), stored("table")
    parts = Parts(good.text if place == "tensors" else bomb, good.tensors if place == "text" else bomb)
    refused(tmp_path / "model", parts, "cannot be read|not a punce model")
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize("name", STORED)
@pytest.mark.parametrize("wild", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers_are_refused_although_the_digests_match(
    tmp_path: Path, name: str, wild: float
) -> None:
    parts = stored(name)
    tensors = load(parts.tensors)
    may_be_infinite = (".edges", ".threshold")
    key = next(
        key
        for key, value in tensors.items()
        if value.is_floating_point() and not key.startswith("seen.") and not key.endswith(may_be_infinite)
    )
    spoilt = {**tensors, key: torch.full_like(tensors[key], wild)}
    refused(tmp_path / "model", Parts(parts.text, save(spoilt)), "NaN or infinite")


@pytest.mark.parametrize("file", ["model.safetensors", "model.json", "manifest.json"])
def test_links_and_pipes_in_a_folder_are_not_followed(tmp_path: Path, file: str) -> None:
    folder = write_folder(tmp_path / "model", stored("table"))
    kept = tmp_path / "elsewhere"
    (folder / file).rename(kept)
    (folder / file).symlink_to(kept)  # even a link to the right content: the next one leads to /dev/zero
    with pytest.raises(ModelFileError, match="link"):
        PUClassifier.load(folder)
    (folder / file).unlink()
    os.mkfifo(folder / file)
    with pytest.raises(ModelFileError):
        PUClassifier.load(folder)


@pytest.mark.parametrize("name", ["../model.json", "/etc/passwd", "model.json/../../x", "C:\\x"])
def test_a_manifest_that_names_other_files_reads_none_of_them(tmp_path: Path, name: str) -> None:
    folder = write_folder(tmp_path / "model", stored("table"))
    digests = json.loads((folder / "manifest.json").read_text())["sha256"]
    (folder / "manifest.json").write_text(json.dumps({"sha256": {name: digests["model.json"]}}))
    with pytest.raises(ModelFileError, match="not a punce model"):
        PUClassifier.load(folder)
    digests[name] = digests["model.json"]
    (folder / "manifest.json").write_text(json.dumps({"sha256": digests}))
    with pytest.raises(ModelFileError, match="not a punce model"):
        PUClassifier.load(folder)


def test_a_manifest_of_any_size_is_not_taken_into_memory(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "model", stored("table"))
    with (folder / "manifest.json").open("ab") as file:
        file.truncate(1 << 40)  # without blocks on disk
    with pytest.raises(ModelFileError, match="too large"):
        PUClassifier.load(folder)


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F32", "shape": [2**62, 4], "data_offsets": [0, 16]},
        {"dtype": "F32", "shape": [2**40, 0], "data_offsets": [0, 0]},
        {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [4], "data_offsets": [0, 2**60]},
        {"dtype": "F32", "shape": [1] * 5000, "data_offsets": [0, 4]},
        {"dtype": "OBJECT", "shape": [4], "data_offsets": [0, 16]},
        {"dtype": "F8_E4M3", "shape": [16], "data_offsets": [0, 16]},
    ],
    ids=["huge", "empty but wide", "negative", "beyond the end", "many dimensions", "objects", "another type"],
)
def test_absurd_shapes_in_the_header_of_tensors(tmp_path: Path, entry: dict[str, Any]) -> None:
    refused(tmp_path / "model", with_header(stored("table"), {"roots": entry}, bytes(16)))


@pytest.mark.parametrize("length", [0, 1, 2**31, 2**63, 2**64 - 1])
def test_absurd_lengths_of_the_header(tmp_path: Path, length: int) -> None:
    refused(tmp_path / "model", Parts(stored("table").text, struct.pack("<Q", length) + b"{}"), "cannot be read")


def test_a_network_of_absurd_width_costs_no_memory(tmp_path: Path) -> None:
    content = json.loads(stored("table_network").text)
    content["route"]["model"]["network"]["encoder"]["options"]["width"] = 1e6
    refused(tmp_path / "model", Parts(json.dumps(content).encode(), stored("table_network").tensors))


@pytest.mark.parametrize(
    "path", ["os.system", "builtins.eval", "__import__('os').system", "../encoder.py", "torch.hub"]
)
def test_names_in_the_configuration_are_looked_up_in_catalogues_and_never_imported(tmp_path: Path, path: str) -> None:
    network = json.loads(stored("table_network").text)
    for key in ("encoder", "view"):
        content = json.loads(json.dumps(network))
        content["route"]["model"]["network"][key] = {"name": path, "options": {}}
        refused(
            tmp_path / "model", Parts(json.dumps(content).encode(), stored("table_network").tensors), "must be one of"
        )
    refused(tmp_path / "model", with_content("table", kind=path), "not a model")
    for name in ("loss", "risk"):
        parameters = {**json.loads(stored("table").text)["parameters"], name: path}
        refused(tmp_path / "model", with_content("table", parameters=parameters))
    parameters = {**json.loads(stored("table").text)["parameters"], "__class__": path, "callback": path}
    refused(tmp_path / "model", with_content("table", parameters=parameters), "not a model")


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("calibrator", "logits"), []),
        (("calibrator", "logits", 0), float("nan")),
        (("calibrator", "scores", 0), 1e300),  # not in order
        (("calibrator", "prior"), float("nan")),
        (("n_features",), "x"),
    ],
)
def test_numbers_in_the_text_that_mean_nothing_are_refused_before_a_row_is_scored(
    tmp_path: Path, place: tuple[Any, ...], value: object
) -> None:
    content = json.loads(stored("table").text)
    tree = content
    for name in place[:-1]:
        tree = tree[name]
    tree[place[-1]] = value
    refused(tmp_path / "model", Parts(json.dumps(content).encode(), stored("table").tensors), "is not a model")


@pytest.mark.parametrize("wild", [float("nan"), -1.0, 1e300])
@pytest.mark.parametrize("name", ["positive", "unlabelled"])
def test_counts_of_probabilities_that_are_none_are_refused(name: str, wild: float) -> None:
    good = SeenScores(count(np.full(10, 0.9)), count(np.full(30, 0.2)), (0.3, 0.2, 0.4), 0.25, 0.3).to_json()
    SeenScores.from_json(good)
    with pytest.raises(ValueError, match="numbers of rows"):
        SeenScores.from_json({**good, name: [wild, *good[name][1:]]})


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"scales": []}, "scale"),
        ({"folds": 0, "scales": []}, "scale"),
        ({"weight": float("nan")}, "weight: expected float"),
    ],
)
def test_candidates_without_scores_are_refused(change: dict[str, Any], match: str) -> None:
    member = {"features": "raw", "head": "taught_linear", "folds": 0, "scales": [[0.0, 1.0]], "weight": 1.0, **change}
    with pytest.raises(ValueError, match=match):
        Portfolio.from_state({}, {"readers": [], "members": [member]})


@pytest.mark.parametrize("name", STORED)
def test_a_good_model_is_still_read(tmp_path: Path, name: str) -> None:
    classifier = PUClassifier.load(write_folder(tmp_path / "model", stored(name)))
    assert classifier.predict_proba(rows_for(classifier.kind_)).shape == (4, 2)
