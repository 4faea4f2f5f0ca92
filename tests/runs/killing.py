"""Start a training run, kill -9 it at a random moment, start it again, many times; then let it finish.

    python -m tests.runs.killing --kills 20 --world 2 -- FOLDER --epochs 20      # the arguments of tests.runs.tiny

Processes are forked from one that has imported torch, because importing takes longer than the whole run. What a kill
can hit is the same. Every other kill waits until a save has begun, and saves linger. Prints JSON: the sha256 of an
uninterrupted run and of the interrupted one, the exit codes after SIGTERM, how many kills cut a save short ("torn":
before all files were written), and how many temporary folders are left in the end.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from punce.storage.checkpoint import STATE, TENSORS
from punce.storage.tensor_folder import MANIFEST
from punce.training import collectives
from tests.runs import tiny

MOST_STEPS = 5  # steps between two kills, so that the run cannot end before the last kill
SURVIVORS_END_WITHIN = 30.0
LINGER = 0.004  # seconds between the parts of a save
SAVE_TAKES = 7 * LINGER


@dataclass
class Rank:
    pid: int
    lines: TextIO
    code: int | None = None

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def wait(self, flags: int = 0) -> int | None:
        """Its exit code; with WNOHANG None while it still runs."""
        if self.code is None:
            pid, status = os.waitpid(self.pid, flags)
            self.code = os.waitstatus_to_exitcode(status) if pid else None
        return self.code

    def wait_for_steps(self, count: int) -> None:
        while count > 0:
            line = self.lines.readline()
            assert line, "the run ended before it was killed"
            count -= line.startswith("step")  # gloo talks on stdout as well


def fork_ranks(line: list[str], world: int) -> list[Rank]:
    port = free_port()
    return [fork_rank(line, rank, world, port) for rank in range(world)]


def fork_rank(line: list[str], rank: int, world: int, port: int) -> Rank:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        os.dup2(writing, sys.stdout.fileno())
        os.environ.update(RANK=str(rank), WORLD_SIZE=str(world), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        leave(lambda: tiny.train(tiny.arguments(line)))
    os.close(writing)
    return Rank(pid, os.fdopen(reading))


def leave(work: Callable[[], object]) -> None:
    """Do the work and end this process there, with the exit code Python would have given it."""
    code = 1
    try:
        collectives.init_from_environment(timeout=60)
        work()
        code = 0
    except SystemExit as stop:
        code = int(stop.code or 0)
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    os._exit(code)


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def kill_once(ranks: Sequence[Rank], rng: random.Random, saves_in: Path | None) -> None:
    """Kill one rank within a random step (or before the first); the others must notice and end by themselves.

    With a folder, kill the first rank, which saves there, at a random moment of its next save.
    """
    victim = ranks[0] if saves_in else rng.choice(ranks)
    steps = rng.randrange(1 if saves_in else 0, MOST_STEPS)
    victim.wait_for_steps(steps)
    if saves_in:
        assert saving_process(saves_in, within=20.0) == victim.pid
        time.sleep(rng.uniform(0.0, SAVE_TAKES))
    else:
        step_takes = 0.015 if len(ranks) == 1 else 0.1  # about; gloo between two busy cores is slow
        time.sleep(rng.uniform(0.0, step_takes if steps else 0.2))
    victim.kill()
    assert victim.wait() == -signal.SIGKILL, "the run ended before it was killed"
    for other in ranks:
        if other is not victim:
            if steps == 0:  # still meeting, they cannot notice before their timeout; torchrun ends them so
                os.kill(other.pid, signal.SIGTERM)
            assert wait_within(other, SURVIVORS_END_WITHIN) != 0
    for rank in ranks:
        rank.lines.close()


def saving_process(folder: Path, within: float) -> int | None:
    """Wait for a save to begin and return the process that writes it, which its temporary folder names."""
    until, before = time.monotonic() + within, set(folder.glob(".tmp-*"))  # the next save removes older ones
    while time.monotonic() < until:
        for temporary in set(folder.glob(".tmp-*")) - before:
            return int(temporary.name.split("-")[-2])
        time.sleep(0.0005)
    return None


def is_torn(temporary: Path) -> bool:
    """Whether a save was cut short before all its files were written."""
    return {path.name for path in temporary.iterdir()} != {TENSORS, STATE, MANIFEST}


def wait_within(rank: Rank, seconds: float) -> int:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        code = rank.wait(os.WNOHANG)
        if code is not None:
            return code
        time.sleep(0.005)
    raise AssertionError(f"a rank still ran {seconds} s after its peer was killed")


def finish(ranks: Sequence[Rank]) -> str:
    """Let the ranks end and return the sha256 that the first one printed."""
    output = [rank.lines.read() for rank in ranks]
    codes = [rank.wait() for rank in ranks]
    assert codes == [0] * len(ranks), codes
    return str(json.loads(output[0].splitlines()[-1])["sha256"])


def terminate_once(ranks: Sequence[Rank], rng: random.Random) -> list[int | None]:
    """SIGTERM to one rank in its steps; the exit codes of all."""
    victim = rng.choice(ranks)
    victim.wait_for_steps(2)
    os.kill(victim.pid, signal.SIGTERM)
    for rank in ranks:
        rank.lines.read()
    return [rank.wait() for rank in ranks]


def killed(ranks: Sequence[Rank], rng: random.Random, saves_in: Path | None) -> None:
    try:
        kill_once(ranks, rng, saves_in)
    except AssertionError as failure:
        for rank in ranks:
            rank.kill()
        raise AssertionError(f"{failure}; exit codes {[rank.wait() for rank in ranks]}") from failure


def import_what_the_children_need() -> None:
    """They would import it with their first optimiser and data set; here it is done once for all."""
    import torch._dynamo  # noqa: F401
    from sklearn import datasets  # noqa: F401


def main() -> None:
    import_what_the_children_need()
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--world", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("run", nargs="+", help="arguments of tests.runs.tiny")
    options = parser.parse_args()
    folder, others = options.run[0], options.run[1:]
    whole = finish(fork_ranks([f"{folder}-whole", *others, "--save-every", "1e9"], options.world))
    rng, world, saves_in = random.Random(options.seed), options.world, Path(folder) / "checkpoints"
    cut_short = torn = 0
    for number in range(options.kills):
        line = [folder, *others, "--announce", "--linger", str(LINGER)]
        killed(fork_ranks(line, world), rng, saves_in if number % 2 else None)
        left = list(saves_in.glob(".tmp-*"))
        cut_short, torn = cut_short + bool(left), torn + any(map(is_torn, left))
    codes = terminate_once(fork_ranks([folder, *others, "--announce"], world), rng)
    digest = finish(fork_ranks(options.run, options.world))
    result = {"whole": whole, "sha256": digest, "sigterm": codes, "cut_short": cut_short, "torn": torn}
    sys.stdout.write(json.dumps(result | {"left": len(list(saves_in.glob(".tmp-*")))}) + "\n")


if __name__ == "__main__":
    main()
