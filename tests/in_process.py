"""The command in this process, where monkeypatch and capsys reach it; tests.copies runs it in one of its own."""

from __future__ import annotations

import sys

import pytest

from punce.cli import main


def exit_code(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    """Of ``punce`` with these arguments."""
    monkeypatch.setattr(sys, "argv", ["punce", *map(str, arguments)])
    try:
        main()
    except SystemExit as stopped:
        return int(stopped.code or 0)
    return 0
