"""The style sheet and script of the pages, and the policy that admits them and nothing else."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources


def content_policy(style: str, script: str | None = None) -> str:
    """A Content-Security-Policy that admits this style sheet and this script by their hashes; no script without one."""
    directives = {
        "default-src": "'none'",
        "style-src": f"'sha256-{_hash(style)}'",
        "script-src": "'none'" if script is None else f"'sha256-{_hash(script)}'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in directives.items())


def _hash(source: str) -> str:
    return base64.b64encode(hashlib.sha256(source.encode("utf-8")).digest()).decode("ascii")


@cache
def asset(name: str, package: str = "punce.report") -> str:
    """A style sheet or script; line ends as the browser sees them, or the hash would not match."""
    text = resources.files(package).joinpath("templates", name).read_text(encoding="utf-8")
    return text.replace("\r\n", "\n")
