"""Results as lines of JSON, one for each run, so that a long command can be stopped and repeated.

No library is imported: its memory would count as that of a package which `peers.py` measures.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def lines_of(file: Path) -> list[dict[str, Any]]:
    """What is there. Half a line at the end is none: its run was killed, or the disk was full."""
    lines = file.read_bytes().splitlines(keepends=True) if file.exists() else []
    return [json.loads(line) for line in lines if line.endswith(b"\n")]


def add_lines(file: Path, *rows: dict[str, Any]) -> None:
    """Add the rows at the end in one write, for another process may be adding its own."""
    if file.exists() and not (content := file.read_bytes()).endswith(b"\n"):
        with file.open("r+b") as opened:
            opened.truncate(content.rfind(b"\n") + 1)
    with file.open("ab", buffering=0) as opened:
        opened.write("".join(json.dumps(row) + "\n" for row in rows).encode())
