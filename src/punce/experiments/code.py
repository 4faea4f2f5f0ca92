"""Which code made a result: the sha256 of the modules that decide numbers, room by room."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import punce

ROOMS = (
    *("data", "datasets", "encoders", "experiments", "losses", "models"),
    *("priors", "risks", "stages", "training", "views"),
)
"""Packages whose modules can change a number of a cell. Presentation is not one of them."""


@cache
def code_hashes() -> dict[str, str]:
    """The first 16 hex digits for each room; the order of files does not count."""
    root = Path(punce.__file__).parent
    return {room: _hash(root / room) for room in ROOMS}


def _hash(room: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(room.rglob("*.py")):
        name = path.relative_to(room).as_posix()
        if not name.startswith("present/"):
            digest.update(f"{name}\0{path.read_text(encoding='utf-8')}\0".encode())
    return digest.hexdigest()[:16]
