"""kill -9 and SIGTERM on real processes: the same command goes on and ends in the same bits."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.runs import tiny
from tests.runs.killing import LINGER, SAVE_TAKES, saving_process
from tests.runs.tiny import ROOT

pytestmark = pytest.mark.faults

ENVIRONMENT = os.environ | {
    "OMP_NUM_THREADS": "1",
    "GLOO_SOCKET_IFNAME": "lo",
    "PYTHONFAULTHANDLER": "1",  # where it was, if torch aborts a process
    "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
}
TIMEOUT = 240.0


def output_of(*module_and_arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", *module_and_arguments],
        cwd=ROOT,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-8000:]
    return dict(json.loads(done.stdout.splitlines()[-1]))


def test_three_kills_and_a_sigterm_end_in_the_same_bits(tmp_path: Path) -> None:
    outcome = output_of(
        "tests.runs.killing", "--kills", "3", "--world", "1", "--", str(tmp_path / "run"), "--epochs", "4"
    )
    assert outcome["sha256"] == outcome["whole"]
    assert outcome["sigterm"] == [143]
    assert outcome["left"] == 0


@pytest.mark.slow
@pytest.mark.parametrize(("world", "epochs"), [(1, 10), (2, 7)])
def test_twenty_kills_at_random_moments_and_a_sigterm_end_in_the_same_bits(
    tmp_path: Path, world: int, epochs: int
) -> None:
    run = ["--kills", "20", "--world", str(world), "--", str(tmp_path / "run"), "--epochs", str(epochs)]
    outcome = output_of("tests.runs.killing", *run)
    assert outcome["sha256"] == outcome["whole"]
    assert outcome["sigterm"] == [143] * world
    assert outcome["cut_short"] >= 5  # the kills did hit saves,
    assert outcome["torn"] >= 1  # some before all files were written,
    assert outcome["left"] == 0  # and what they left behind was removed


def start(module: str, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.Popen(
        command, cwd=ROOT, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def stop_after(process: subprocess.Popen[str], steps: int, delay: float, number: signal.Signals) -> int:
    assert process.stdout is not None
    for line in process.stdout:
        steps -= line.startswith("step")
        if steps <= 0:
            break
    time.sleep(delay)
    process.send_signal(number)
    process.communicate(timeout=TIMEOUT)
    return process.returncode


@pytest.mark.slow
def test_the_same_command_goes_on_after_sigterm(tmp_path: Path, one_thread: None) -> None:
    command = ["tests.runs.tiny", str(tmp_path / "run"), "--epochs", "3", "--save-every", "1e9"]
    assert stop_after(start(*command, "--announce"), 9, 0.0, signal.SIGTERM) == 143
    (saved,) = (tmp_path / "run" / "checkpoints").iterdir()
    assert 9 <= int(saved.name.split("-")[-1]) < 45
    assert output_of(*command)["sha256"] == tiny.train(tiny.arguments([str(tmp_path / "whole"), *command[2:]]))


@pytest.mark.slow
def test_twenty_kills_of_the_real_command(tmp_path: Path) -> None:
    rng = random.Random(1)
    command = ["tests.runs.tiny", str(tmp_path / "run"), "--epochs", "16"]
    for _ in range(20):
        process = start(*command, "--announce")
        assert stop_after(process, rng.randint(1, 6), rng.uniform(0, 0.02), signal.SIGKILL) == -signal.SIGKILL
    whole = output_of("tests.runs.tiny", str(tmp_path / "whole"), "--epochs", "16", "--save-every", "1e9")
    assert output_of(*command) == whole


# torchrun

TORCHRUN = ["torch.distributed.run", "--nproc-per-node=2", "--local-addr=127.0.0.1", "--rdzv-backend=c10d"]


def torchrun(restarts: int, *arguments: str) -> list[str]:
    endpoint = ["--rdzv-endpoint=127.0.0.1:0", f"--max-restarts={restarts}", "--monitor-interval=0.1"]
    return [*TORCHRUN, *endpoint, "-m", "tests.runs.tiny", *arguments]


@pytest.mark.slow
def test_torchrun_restarts_after_a_worker_killed_itself(tmp_path: Path) -> None:
    arguments = ["--epochs", "3"]
    whole = output_of(*torchrun(0, str(tmp_path / "whole"), *arguments, "--save-every", "1e9"))
    killed = output_of(*torchrun(2, str(tmp_path / "run"), *arguments, "--die-at", "20"))
    assert (tmp_path / "run" / "died").exists()
    assert killed == whole


@pytest.mark.slow
def test_torchrun_with_twenty_workers_killed_at_random_moments(tmp_path: Path) -> None:
    rng, kills = random.Random(2), 20
    arguments, saves_in = ["--epochs", "14", "--announce", "--linger", str(LINGER)], tmp_path / "run" / "checkpoints"
    process = start(*torchrun(kills + 5, str(tmp_path / "run"), *arguments))
    assert process.stdout is not None
    in_saves = 0
    seen: list[str] = []
    for line in process.stdout:
        seen.append(line)
        step = re.search(r"step (\d+) of process (\d+)", line)
        if step and kills and rng.random() < 0.2:
            saving = saving_process(saves_in, within=1.0) if kills % 2 else None
            time.sleep(rng.uniform(0, SAVE_TAKES if saving else 0.1))
            try:
                os.kill(saving or int(step[2]), signal.SIGKILL)
            except ProcessLookupError:
                continue  # it had already been ended for its peer's sake
            kills -= 1
            in_saves += any(saves_in.glob(f".tmp-{saving}-*"))
    process.stdout.close()
    assert process.wait(timeout=TIMEOUT) == 0, "".join(seen[-60:])
    assert kills == 0
    assert in_saves >= 3
    whole = output_of(*torchrun(0, str(tmp_path / "whole"), "--epochs", "14", "--save-every", "1e9"))
    assert json.loads(next(line for line in reversed(seen) if line.startswith("{"))) == whole


@pytest.mark.slow
def test_sigterm_to_torchrun_saves(tmp_path: Path) -> None:
    folder = str(tmp_path / "run")
    stop_after(start(*torchrun(0, folder, "--epochs", "3", "--announce", "--save-every", "1e9")), 20, 0, signal.SIGTERM)
    assert [path for path in (tmp_path / "run" / "checkpoints").iterdir() if not path.name.endswith("step-45")]
    whole = output_of(*torchrun(0, str(tmp_path / "whole"), "--epochs", "3", "--save-every", "1e9"))
    assert output_of(*torchrun(0, folder, "--epochs", "3", "--save-every", "1e9")) == whole
