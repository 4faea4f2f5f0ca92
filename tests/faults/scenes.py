"""Commands that are killed, and what must hold afterwards. Inputs are tiny, so that a run takes a second or two."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image

LEFT = (".punce-tmp", ".tmp-", ".lock", "/work")
_VOLATILE = ("seconds", "machine", "attempts", "created")


@dataclass(frozen=True)
class Scene:
    """A command on a folder of inputs: `arguments` are made for the folder of results; the ranks run it together."""

    name: str
    inputs: Callable[[Path], None]
    arguments: Callable[[Path, Path], list[str]]
    results: tuple[str, ...]
    """Files, as patterns, that an undisturbed run leaves and that must be equal to the byte."""
    ranks: int = 1
    left: tuple[str, ...] = field(default=LEFT)


def digests(out: Path, patterns: tuple[str, ...]) -> dict[str, str]:
    """File -> sha256, of what must not depend on when or how often the run was interrupted."""
    files = sorted(file for pattern in patterns for file in out.glob(pattern))
    return {str(file.relative_to(out)): hashlib.sha256(_content(file)).hexdigest() for file in files}


def _content(file: Path) -> bytes:
    """The bytes; of JSON without how long something took and when it was made."""
    if file.name not in ("metrics.json", "report.json", "prior.json") and file.parent.name != "smoke":
        return file.read_bytes()
    return json.dumps(_lasting(json.loads(file.read_text())), sort_keys=True).encode()


def _lasting(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _lasting(value) for key, value in tree.items() if key not in _VOLATILE}
    return [_lasting(value) for value in tree] if isinstance(tree, list) else tree


def leftovers(out: Path, patterns: tuple[str, ...]) -> list[str]:
    """What no finished command may leave."""
    found = [str(path.relative_to(out.parent)) for path in out.parent.rglob("*")]
    return [name for name in found if any(part in f"/{name}" for part in patterns)]


# Inputs ---------------------------------------------------------------------------------------------------------------


def _truth(n: int) -> np.ndarray[Any, Any]:
    return np.arange(n) % 3 == 0


def _labels(n: int) -> np.ndarray[Any, Any]:
    return (_truth(n) & (np.arange(n) % 2 == 0)).astype(int)


def table(folder: Path, n: int = 90) -> None:
    """Numbers and a category."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(n, 3)) + 2 * _truth(n)[:, None], columns=["a", "b", "c"])
    frame["town"] = rng.choice(["Bonn", "Rome"], n)
    frame.assign(label=_labels(n)).to_csv(folder / "rows.csv", index=False)


def embedding(folder: Path, n: int = 120) -> None:
    """A matrix."""
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(n, 6)) + 2 * _truth(n)[:, None]).astype(np.float32)
    np.savez(folder / "rows.npz", X=X, y=_labels(n))


def pictures(folder: Path, n: int = 60) -> None:
    """Small grey images."""
    rng = np.random.default_rng(0)
    for part in ("labelled", "unlabelled"):
        (folder / "rows" / part).mkdir(parents=True)
    for i in range(n):
        pixels = (rng.random((8, 8)) * 100 + 120 * _truth(n)[i]).astype(np.uint8)
        part = "labelled" if _labels(n)[i] else "unlabelled"
        Image.fromarray(pixels).save(folder / "rows" / part / f"{i:03d}.png")


def texts(folder: Path, n: int = 90) -> None:
    """Short texts."""
    words = [["pay", "invoice", "urgent"], ["hello", "lunch", "meeting"]]
    lines = [" ".join([*words[int(not _truth(n)[i])], f"word{i % 7}", f"more{i % 5}"]) for i in range(n)]
    pd.DataFrame({"words": lines, "label": _labels(n)}).to_csv(folder / "rows.csv", index=False)


def many_rows(folder: Path) -> None:
    """A table for a model that is there, large enough to be killed at."""
    from tests.models.stored.write import table as rows

    rows(30_000).to_csv(folder / "rows.csv", index=False)


def nothing(folder: Path) -> None:
    """No inputs: the data are in the package."""


# Scenes ---------------------------------------------------------------------------------------------------------------

_RUN = ("model/*", "scores.parquet", "metrics.json", "history.jsonl", "report.json", "MODEL_CARD.md")
_NETWORK = ["--loss", "punce", "--risk", "nnpu", "--epochs", "3"]


def _fit(name: str, data: str, inputs: Callable[[Path], None], *options: str, ranks: int = 1) -> Scene:
    def arguments(folder: Path, out: Path) -> list[str]:
        return ["fit", str(folder / data), *options, "--out", str(out), "--seed", "3"]

    return Scene(name, inputs, arguments, (*_RUN, "config.json"), ranks)


def _predict(folder: Path, out: Path) -> list[str]:
    from tests.models.stored.write import HERE

    rows = ["--batch-rows", "1000"]
    return ["predict", str(HERE / "table"), str(folder / "rows.csv"), "--out", str(out / "scores.csv"), *rows]


def _prior(folder: Path, out: Path) -> list[str]:
    return ["prior", str(folder / "rows.csv"), "--label", "label", "--out", str(out / "prior.json")]


def _reproduce(folder: Path, out: Path) -> list[str]:
    """Two cells, each of some seconds."""
    cells = ["--only", "1k", "--only", "mnist", "--only", "punce, infonce", "--seeds", "1"]
    return ["reproduce", "table1", "--scale", "smoke", *cells, "--results", str(out)]


# A file system may hold locks and checkpoints of what is under way below the results: that is no litter.
_OF_CELLS = (".punce-tmp", ".tmp-")

SCENES: dict[str, Scene] = {
    scene.name: scene
    for scene in (
        _fit("fit table", "rows.csv", table, "--label", "label"),
        _fit("fit image", "rows", pictures),
        _fit("fit text", "rows.csv", texts, "--label", "label", "--text", "words"),
        _fit("fit embedding", "rows.npz", embedding),
        _fit("fit image network", "rows", pictures, *_NETWORK),
        _fit("fit embedding network", "rows.npz", embedding, *_NETWORK),
        _fit("fit embedding, two ranks", "rows.npz", embedding, *_NETWORK, ranks=2),
        Scene("predict", many_rows, _predict, ("scores.csv",)),
        Scene("prior", table, _prior, ("prior.json",)),
        Scene("reproduce", nothing, _reproduce, ("smoke/*.json",), left=_OF_CELLS),
    )
}
