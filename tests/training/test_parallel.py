"""Copies of a process are made only where that is safe, so their tests need a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CASES = Path(__file__).with_name("parallel_cases.py")


def test_copies_of_a_process_with_one_thread_and_no_children() -> None:
    """In this one, threads and children of other tests may be about, and a case that kills its copy would kill it."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", str(CASES)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False, env=dict(os.environ))
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert "10 passed" in done.stdout
