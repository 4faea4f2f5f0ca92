"""The page for judging rows, killed while a person judges: every verdict that was answered is on disk."""

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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from punce.product.review.store import ReviewFolder
from tests.copies import ROOT, Call, Copy, start_copy
from tests.faults.kills import BrokenPromiseError, Counts
from tests.product.review.runs import finished_run, write_table

SERVED = "review --serve"
_ROWS = 40
_MOST = 1.0  # seconds after which a server is killed


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


@contextmanager
def served(run: Path) -> Iterator[tuple[Copy, str]]:
    """A server in a process of its own, and its link."""
    call = Call("tests.copies", "command", ["review", str(run), "--serve", "--rows", str(_ROWS)])
    if (run / "review" / "draw.json").exists():
        call = Call("tests.copies", "command", ["review", str(run), "--serve"])
    copy, said = start_copy(call, str(ROOT), {"PYTHONUNBUFFERED": "1"}), ""
    while "#" not in said or not said.endswith("\n"):
        if not select.select([copy.out], [], [], 60.0)[0] or not (part := os.read(copy.out, 4096)):
            raise BrokenPromiseError(f"the server said nothing: {copy.ended(1.0)[2][-300:]}")
        said += part.decode()
    yield copy, said
    copy.send(signal.SIGKILL)
    copy.ended(10.0)


def disturb_server(seconds: float, seed: int) -> Counts:
    """Servers killed at random moments while a person judges."""
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
    """Kills until every row is judged; nothing that was answered may be missing."""
    answered: dict[str, str] = {}
    for _ in range(6):
        share = rng.random()
        with served(run) as (copy, link):
            person = Person(link)
            thread = threading.Thread(target=person.judge)
            thread.start()
            time.sleep(share * _MOST)
            copy.send(signal.SIGKILL)
            thread.join()
        counts.kills += 1
        counts.moments[int(share * len(counts.moments))] += 1
        answered |= person.answered
        kept = {one.key: one.verdict for one in ReviewFolder(run).verdicts()}
        lost = [key for key, verdict in answered.items() if kept.get(key) != verdict]
        if lost:
            raise BrokenPromiseError(f"{len(lost)} verdicts were answered and are not on disk")
    counts.finished += 1
    if left := [path.name for path in run.rglob("*.punce-tmp")]:
        raise BrokenPromiseError(f"left behind: {left}")
