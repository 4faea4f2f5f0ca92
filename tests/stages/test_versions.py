"""A stage whose numbers change raises its entry of VERSIONS: else old and new results would share a name.

``versions.json`` has, for every version of a stage, the sha256 of what ``fingerprints.json`` records of it. After a
change of numbers: record the fingerprints again, raise VERSIONS, and add the new version with

    python -m tests.stages.test_versions
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from punce.experiments.cell import VERSIONS
from tests.stages.test_fingerprints import RECORD

KNOWN = Path(__file__).with_name("versions.json")
CASES = {"joint": "from scratch"}
"""How the cases of a stage begin, where they do not begin with its name."""
STAGES = sorted(set(VERSIONS) - {"head"})  # the heads of the portfolio have tests of their own


def recorded(stage: str, content: dict[str, Any]) -> str:
    """sha256 of every recorded case of a stage: what training gave, to the last bit."""
    first = CASES.get(stage, stage)
    cases = {
        f"{where} {name}": case
        for where in ("alone", "two ranks")
        for name, case in content[where].items()
        if name.startswith(first)
    }
    assert cases, stage
    return hashlib.sha256(json.dumps(cases, sort_keys=True).encode()).hexdigest()


def known() -> dict[str, dict[str, str]]:
    content: dict[str, dict[str, str]] = json.loads(KNOWN.read_text(encoding="utf-8"))
    return content


@pytest.mark.parametrize("stage", STAGES)
def test_numbers_of_a_version_never_change(stage: str) -> None:
    found = recorded(stage, json.loads(RECORD.read_text(encoding="utf-8")))
    assert known()[stage].get(str(VERSIONS[stage])) == found, (
        f"the recorded numbers of {stage} are not those of version {VERSIONS[stage]}: raise VERSIONS[{stage!r}] in "
        "punce/experiments/cell.py, then run python -m tests.stages.test_versions"
    )


def test_another_number_is_noticed() -> None:
    content = json.loads(RECORD.read_text(encoding="utf-8"))
    before = {stage: recorded(stage, content) for stage in ("probe", "vpu")}
    content["alone"]["probe nnpu"]["history"][0]["risk"] = 0.123
    assert recorded("probe", content) != before["probe"]
    assert recorded("vpu", content) == before["vpu"]


def main() -> None:
    """Add versions that are not known yet; what is known stays."""
    content, found = json.loads(RECORD.read_text(encoding="utf-8")), known() if KNOWN.exists() else {}
    for stage in STAGES:
        found.setdefault(stage, {}).setdefault(str(VERSIONS[stage]), recorded(stage, content))
    KNOWN.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
