"""How a benchmark set describes itself: its files, where they are published, and how rows are made of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from punce.datasets.dataset import Dataset, Kind

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
    positive: str
    about: str
    folders: tuple[str, ...]
    files: tuple[DataFile, ...]
    build: Callable[[Paths, Collection[Any] | None], Dataset]
    archive: Archive | None = None
