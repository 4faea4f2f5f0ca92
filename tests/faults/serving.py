"""The page for judging rows, ended while a person judges: every verdict that was answered is on disk.

It is ended by kill -9, SIGTERM or Ctrl-C. The last is how a person ends it: the command then says what the verdicts
show, and its exit code is 0.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import re
import select
import signal
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from punce.product.review.store import ReviewFolder
from tests.copies import ROOT, Call, Copy, start_copy
from tests.faults.kills import BrokenPromiseError, Counts, random_signal, require
from tests.product.review.runs import finished_run, write_table

SERVED = "review --serve"
_ROWS = 40
_MOST = 1.0  # seconds after which a server is ended
CODES = {signal.SIGKILL: -signal.SIGKILL, signal.SIGTERM: 143, signal.SIGINT: 0}
"""Signal -> the exit code that docs/using.md promises."""


class Person:
    """Judges rows as fast as the page answers, until it no longer does."""

    def __init__(self, link: str) -> None:
        self.port, self.token = re.search(r"127.0.0.1:(\d+)/#(\S+)", link).groups()  # type: ignore[union-attr]
        self.answered: dict[str, str] = {}

    def judge(self) -> None:
        """One row after another."""
        try:
            session = self._ask("/session", {"token": self.token})["session"]
            cards = self._ask("/state", None, session)["cards"]
            for k, card in enumerate(cards):
                verdict = "yes" if k % 3 else "no"
                self._ask("/verdict", {"key": card["key"], "verdict": verdict}, session)
                self.answered[card["key"]] = verdict
        except (OSError, http.client.HTTPException):
            pass  # the server was killed

    def _ask(self, path: str, body: Any, session: str = "") -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", int(self.port), timeout=10)
        headers = {"X-Punce-Session": session, "Content-Type": "application/json"}
        method = "GET" if body is None else "POST"
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        return json.loads(connection.getresponse().read())


def start_server(run: Path) -> tuple[Copy, str]:
    """A server in a process of its own, and its link."""
    call = Call("tests.copies", "command", ["review", str(run), "--serve", "--rows", str(_ROWS)])
    if (run / "review" / "draw.json").exists():
        call = Call("tests.copies", "command", ["review", str(run), "--serve"])
    copy, said = start_copy(call, str(ROOT), {"PYTHONUNBUFFERED": "1"}), ""
    while "#" not in said or not said.endswith("\n"):
        if not select.select([copy.out], [], [], 60.0)[0] or not (part := os.read(copy.out, 4096)):
            raise BrokenPromiseError(f"the server said nothing: {copy.ended(1.0)[2][-300:]}")
        said += part.decode()
    return copy, said


def disturb_server(seconds: float, seed: int) -> Counts:
    """Servers ended at random moments while a person judges."""
    rng, counts = random.Random(f"{SERVED} {seed}"), Counts(seconds=_MOST)
    until = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as scratch:
        number = 0
        while time.monotonic() < until:
            number += 1
            run = finished_run(Path(scratch) / f"run-{number}", write_table(Path(scratch) / f"{number}.csv"))
            try:
                _one_review(run, rng, counts)
            except BrokenPromiseError as broken:
                counts.broken.append(str(broken))
    return counts


def _one_review(run: Path, rng: random.Random, counts: Counts) -> None:
    """Servers, one after the other; nothing that was answered may be missing."""
    answered: dict[str, str] = {}
    for _ in range(6):
        answered |= _ended_server(run, rng, counts)
        kept = {one.key: one.verdict for one in ReviewFolder(run).verdicts()}
        lost = [key for key, verdict in answered.items() if kept.get(key) != verdict]
        require(not lost, f"{len(lost)} verdicts were answered and are not on disk")
    counts.finished += 1
    require(not (left := _temporary(run)), f"left behind: {left}")


def _ended_server(run: Path, rng: random.Random, counts: Counts) -> dict[str, str]:
    """The verdicts that a server answered before a signal ended it."""
    number, share = random_signal(rng), rng.random()
    copy, link = start_server(run)
    person = Person(link)
    thread = threading.Thread(target=person.judge)
    thread.start()
    time.sleep(share * _MOST)
    copy.send(number)
    code, said, problem = copy.ended(60.0)
    thread.join()
    require(code == CODES[number], f"{number.name}: exit code {code}, {problem[-300:]!r}")
    if number == signal.SIGKILL:
        counts.killed(share)
        return person.answered
    name = counts.told_to_end(number)
    require(not problem, f"{name}: it said {problem[-300:]!r}")
    require(number == signal.SIGTERM or "rows judged" in said, f"{name}: it did not say what was judged, {said!r}")
    require(not (left := _temporary(run)), f"{name}: left behind {left}")
    return person.answered


def _temporary(run: Path) -> list[str]:
    return [path.name for path in run.rglob("*.punce-tmp")]
