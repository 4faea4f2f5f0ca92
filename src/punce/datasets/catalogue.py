"""How a benchmark set describes itself: its files, where they are published, and how rows are made of them."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from punce.datasets.dataset import Dataset, Kind, Part
from punce.errors import InputError

Paths = Mapping[str, Path]
"""Canonical file name -> where it was found."""


@dataclass(frozen=True)
class DataFile:
    """One file of a set.

    `also` names other accepted forms of the same content (ungzipped, renamed) with their sha256. `compressed` says
    that the public address serves the file packed with Unix ``compress``; the sha256 is that of the unpacked file.
    """

    name: str
    sha256: str
    urls: tuple[str, ...] = ()
    also: Mapping[str, str] = field(default_factory=dict)
    compressed: bool = False

    @property
    def forms(self) -> dict[str, str]:
        """Every accepted name with the sha256 of that form, the canonical one first."""
        return {self.name: self.sha256, **self.also}


@dataclass(frozen=True)
class Archive:
    """A .tar.gz or .zip that holds all files of a set in its folder `top` ("" for the root of the archive)."""

    urls: tuple[str, ...]
    sha256: str | None
    """None where the publisher repacks it: then the pinned members alone are the check."""
    top: str


@dataclass(frozen=True)
class Benchmark:
    """A catalogue entry. `folders` are tried in order below each data directory; a download goes into the first."""

    name: str
    kind: Kind
    about: str
    folders: tuple[str, ...]
    files: tuple[DataFile, ...]
    parts: Callable[[Paths, Collection[Any]], Sequence[Part]]
    """Train, test, and validation where the set has it, with these classes positive."""
    classes: tuple[Any, ...]
    """Positive classes by default; empty for a set of two classes whose positive one is fixed."""
    describe: Callable[[Collection[Any]], str]
    """These positive classes for a person."""
    archive: Archive | None = None

    @property
    def positive(self) -> str:
        """The default positive classes for a person."""
        return self.describe(self.classes)

    def build(self, paths: Paths, positive: Collection[Any] | None) -> Dataset:
        """The set from its files, with other positive classes if they are given."""
        if positive is not None and not self.classes:
            raise InputError(f"{self.name} has two classes and a fixed positive one; positive= cannot be given")
        chosen = self.classes if positive is None else positive
        return Dataset(self.name, self.kind, self.describe(chosen), *self.parts(paths, chosen))


def published(name: str) -> dict[str, Any]:
    """The arguments of a :class:`Benchmark` that stand in ``published.toml``: name, about, folders, files, archive."""
    entry = _published()[name]
    archive = entry.get("archive")
    return {
        "name": name,
        "about": entry["about"],
        "folders": tuple(entry["folders"]),
        "files": tuple(_data_file(file, entry.get("mirrors", [])) for file in entry.get("files", [])),
        "archive": archive and Archive(tuple(archive["urls"]), archive["sha256"], archive["top"]),
    }


@cache
def _published() -> dict[str, Any]:
    return tomllib.loads((files(__package__) / "published.toml").read_text(encoding="utf-8"))


def _data_file(entry: Mapping[str, Any], mirrors: list[str]) -> DataFile:
    name, sha256, compressed = entry["name"], entry["sha256"], entry.get("compressed", False)
    also = dict.fromkeys(entry.get("also", []), sha256)
    if name.endswith(".gz"):
        bare = name.removesuffix(".gz")
        # torchvision and Keras write the first spelling, the original site's gunzip instructions the second
        also = dict.fromkeys([bare, bare.replace("-idx", ".idx")], entry["unpacked"])
    return DataFile(name, sha256, tuple(f"{url}/{name}{'.Z' * compressed}" for url in mirrors), also, compressed)
