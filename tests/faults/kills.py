"""Kill -9 commands at random moments over their whole run, start them again, and look at what they leave.

A command is started in a folder, killed after a random share of the time that an undisturbed run takes, and started
again; after at most six kills it may finish. Then its files must be equal to the byte to those of the undisturbed run,
and nothing else may be there. In between, whatever file has its final name must be whole. Every sixth signal is SIGTERM
or SIGINT instead: the command must end with 143 or 130 and not more than one line.

Processes are forked from one that has imported everything, because importing takes longer than the runs themselves.
The ensemble of tables is made small (tests/quick.py); what a kill can hit is the same.
"""

from __future__ import annotations

import random
import shutil
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.copies import ROOT, Call, start_copy
from tests.faults.scenes import Scene, digests, leftovers
from tests.runs.killing import free_port

MOST_KILLS = 6  # of one run, before it may finish
PATIENCE = 600.0  # seconds, on a machine that may have other things to do
_BINS = 10


class BrokenPromiseError(Exception):
    """What did not hold after a kill."""


@dataclass
class Counts:
    """What was done to one scene, and what was seen."""

    kills: int = 0
    terminated: int = 0
    interrupted: int = 0
    full_disks: int = 0
    file_limits: int = 0
    finished: int = 0
    """Runs that were let finish after kills; each ended in the same bytes."""
    seconds: float = 0.0
    """Of an undisturbed run."""
    spent: float = 0.0
    """Seconds of all its runs."""
    moments: list[int] = field(default_factory=lambda: [0] * _BINS)
    """Kills by the tenth of the undisturbed run's time at which they came."""
    broken: list[str] = field(default_factory=list)

    def killed(self, share: float) -> None:
        """Count a kill at this share of the time."""
        self.kills += 1
        self.moments[int(share * _BINS)] += 1

    def told_to_end(self, number: int) -> str:
        """Count a SIGTERM or a Ctrl-C; the name under which it is counted."""
        name = "terminated" if number == signal.SIGTERM else "interrupted"
        setattr(self, name, getattr(self, name) + 1)
        return name


def random_signal(rng: random.Random) -> signal.Signals:
    """Mostly SIGKILL; one time in six SIGTERM or SIGINT."""
    return rng.choices([signal.SIGKILL, signal.SIGTERM, signal.SIGINT], [10, 1, 1])[0]


class Command:
    """One start of a scene: a process for each rank."""

    def __init__(
        self, scene: Scene, folder: Path, out: Path, *, file_limit: int | None = None, backwards: bool = False
    ) -> None:
        port = str(free_port())
        call = Call("tests.faults.limits", "limited", [file_limit, backwards, *scene.arguments(folder, out)])
        self.copies = [start_copy(call, str(ROOT), _ranks(scene, k, port)) for k in range(scene.ranks)]

    def signal(self, number: int, rng: random.Random) -> None:
        """Send it to one rank; the others end by themselves, or as torchrun ends them."""
        victim = rng.choice(self.copies)
        victim.send(number)
        others = [copy for copy in self.copies if copy is not victim]
        until = time.monotonic() + 30.0
        while time.monotonic() < until and any(copy.is_running() for copy in others):
            time.sleep(0.01)
        for copy in others:
            copy.send(signal.SIGTERM)

    def ended(self) -> list[tuple[int, str, str]]:
        """Exit code, stdout and stderr of each rank."""
        return [copy.ended(PATIENCE) for copy in self.copies]

    def is_running(self) -> bool:
        """Whether no rank has ended yet."""
        return all(copy.is_running() for copy in self.copies)


def _ranks(scene: Scene, rank: int, port: str) -> dict[str, str]:
    if scene.ranks == 1:
        return {}
    return {"RANK": str(rank), "WORLD_SIZE": str(scene.ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}


class Killing:
    """Kills of one scene."""

    def __init__(self, scene: Scene, folder: Path, seed: int) -> None:
        self.scene, self.folder, self.rng = scene, folder, random.Random(f"{scene.name} {seed}")
        (folder / "inputs").mkdir()
        scene.inputs(folder / "inputs")
        self.counts, self._number = Counts(), 0
        started = time.monotonic()
        whole = self._out()
        self._finish(whole)
        self.counts.seconds = time.monotonic() - started
        self.expected = digests(whole, scene.results)
        self.sizes = [file.stat().st_size for file in whole.rglob("*") if file.is_file()]
        require(bool(self.expected), "an undisturbed run left no results")

    def one_run(self) -> None:
        """A run with some kills, and its end."""
        out = self._out()
        for number in range(self.rng.randint(1, MOST_KILLS)):
            started = time.monotonic()
            if not self._disturbed(out):
                if number == 0:  # the machine has less to do than when the time of a run was taken
                    self.counts.seconds = min(self.counts.seconds, time.monotonic() - started)
                break  # it was done before the moment came: what it left is looked at all the same
        else:
            self._finish(out)
        self.counts.finished += 1
        self._look(out)
        shutil.rmtree(out.parent)

    def _out(self) -> Path:
        self._number += 1
        out = self.folder / f"out-{self._number}" / "results"
        out.parent.mkdir()
        return out

    def _disturbed(self, out: Path) -> bool:
        """Start and end it by a signal at a random moment; False if it was done before."""
        share = self.rng.random()
        number = random_signal(self.rng)
        command = Command(self.scene, self.folder / "inputs", out)
        until = time.monotonic() + share * self.counts.seconds
        while time.monotonic() < until and command.is_running():
            time.sleep(0.001)
        if command.is_running() or len(command.copies) > 1:
            command.signal(number, self.rng)
        ended = command.ended()
        if all(code == 0 for code, _, _ in ended) or _was_finished(ended):  # before the signal came
            return False
        require(any(code < 0 for code, _, _ in ended) or number != signal.SIGKILL, f"it failed: {ended[0][2][-300:]}")
        self._count(number, share, ended)
        self._whole_files(out)
        return True

    def _count(self, number: int, share: float, ended: list[tuple[int, str, str]]) -> None:
        if number == signal.SIGKILL:
            self.counts.killed(share)
            require(-signal.SIGKILL in [code for code, _, _ in ended], f"exit codes {[e[0] for e in ended]}")
            return
        name = self.counts.told_to_end(number)
        codes = [end[0] if end[0] >= 0 else 128 - end[0] for end in ended]  # as a shell tells them
        require(128 + number in codes, f"{name}: exit codes {codes}, {ended[0][2][-300:]!r}")
        require(not any("Traceback" in end[2] for end in ended), f"{name}: a traceback, {ended[0][2][-300:]!r}")

    def _whole_files(self, out: Path) -> None:
        """A file under its final name is the one of the undisturbed run, or an earlier part of it such as the plan."""
        for name, digest in digests(out, self.scene.results).items():
            if name != "config.json":
                require(digest == self.expected[name], f"after a kill {name} is not whole")

    def _finish(self, out: Path) -> None:
        ended = Command(self.scene, self.folder / "inputs", out).ended()
        codes = [end[0] for end in ended]
        require(
            codes == [0] * len(codes) or _was_finished(ended), f"exit codes {codes}: {ended[0][2].strip()[-300:]!r}"
        )

    def _look(self, out: Path) -> None:
        found = digests(out, self.scene.results)
        different = [name for name in self.expected if found.get(name) != self.expected[name]]
        require(not different, f"not as undisturbed: {different}")
        left = leftovers(out, self.scene.left)
        require(not left, f"left behind: {left}")


def _was_finished(ended: list[tuple[int, str, str]]) -> bool:
    """Whether the kill before came after the run had finished, in its last moments: a fit that is repeated says so."""
    return any(code == 2 and "holds a finished run" in said for code, _, said in ended)


def require(holds: bool, what: str) -> None:
    """What must hold."""
    if not holds:
        raise BrokenPromiseError(what)
