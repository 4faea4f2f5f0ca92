"""What a benchmark result must say about where it was measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from punce.experiments.machine import facts

RESULTS = Path(__file__).parent / "results"


def machine() -> dict[str, Any]:
    return {**facts(), "threads": torch.get_num_threads()}


def save(name: str, result: dict[str, Any]) -> Path:
    """Write results/<name>.json with the machine it was measured on."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps({"machine": machine(), **result}, indent=1) + "\n")
    return path
