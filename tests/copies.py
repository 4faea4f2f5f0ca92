"""Real processes without the seconds that imports take: one process imports everything once and is copied by fork.

The tests' own process is not copied: autograd refuses to work in a copy of a process in which it has worked. What only
a fresh interpreter shows, such as what a command imports, is tested with one (tests/test_start_up.py).
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from threadpoolctl import threadpool_limits

import punce

ROOT = Path(__file__).resolve().parent.parent
_IMPORTED = (
    "torch._dynamo",
    "torch.distributed.nn.functional",  # imported after a group was made it would keep it: see collectives.leave
    "torch.nn.parallel",
    "sklearn.manifold",
    "pyarrow.parquet",
    "pytest",
    "punce.cli",
    "punce.product.fit",
    "punce.product.predict",
)


class Call(NamedTuple):
    """A function of a module, and what JSON can say of its arguments."""

    module: str
    function: str
    arguments: Sequence[Any]


def run_copies(
    calls: Sequence[Call], *, timeout: float, cwd: Path = ROOT, env: dict[str, str] | None = None
) -> list[subprocess.CompletedProcess[str]]:
    """Each call in a process of its own, all at once; SystemExit gives the code. At the timeout they are killed."""
    server = _server()
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(json.dumps([calls, timeout, str(cwd), env or {}]) + "\n")
    server.stdin.flush()
    ended = json.loads(server.stdout.readline())
    return [subprocess.CompletedProcess(list(call), *end) for call, end in zip(calls, ended, strict=True)]


def punce_command(*arguments: object, timeout: float = 240.0, **options: Any) -> subprocess.CompletedProcess[str]:
    """``punce ARGUMENTS``; `options` are those of :func:`run_copies`."""
    call = Call(__name__, "command", [*map(str, arguments)])
    return run_copies([call], timeout=timeout, **options)[0]


def command(*arguments: str) -> None:
    """What a copy runs for :func:`punce_command`."""
    from punce.cli import main

    sys.argv = ["punce", *arguments]
    # As an interpreter starts. A shell's job in the background ignores Ctrl-C, and so would every copy of it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    main()


@cache
def _server() -> subprocess.Popen[str]:
    package = Path(punce.__file__).resolve().parents[1]  # the one under test, whichever is installed
    path = os.pathsep.join([str(ROOT), str(package)])
    env = os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "PYTHONPATH": path}
    line = [sys.executable, "-c", f"from {__name__} import serve; serve()"]
    server = subprocess.Popen(line, env=env, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(server.communicate)  # it ends with its input
    return server


def serve() -> None:
    """Read calls from stdin, one JSON line each, and answer with exit codes and output, until it ends."""
    import_everything()
    for line in sys.stdin:
        calls, timeout, cwd, env = json.loads(line)
        copies = [_copy(Call(*call), cwd, env) for call in calls]
        sys.stdout.write(json.dumps(_ended(copies, time.monotonic() + timeout)) + "\n")
        sys.stdout.flush()


def import_everything() -> None:
    """What the copies of this process should not have to import."""
    for name in _IMPORTED:
        importlib.import_module(name)
    gc.freeze()  # copies share what was imported; a collection would touch, and so copy, all of it


@dataclass
class Copy:
    """A copy that runs, for who does more to it than wait."""

    pid: int
    out: int
    err: int

    def is_running(self) -> bool:
        """Whether it has not ended yet; it stays there to be waited for."""
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

    def send(self, number: int) -> None:
        """A signal; nothing happens to a copy that has ended."""
        os.kill(self.pid, number)

    def ended(self, timeout: float) -> tuple[int, str, str]:
        """Exit code, stdout and stderr, after at most so many seconds."""
        return _ended([(self.pid, self.out, self.err)], time.monotonic() + timeout)[0]


def start_copy(call: Call, cwd: str, env: dict[str, str]) -> Copy:
    """A copy of this process, which must have imported everything and never used autograd."""
    return Copy(*_copy(call, cwd, env))


def _copy(call: Call, cwd: str, env: dict[str, str]) -> tuple[int, int, int]:
    """The process and the reading ends of what it writes."""
    (out, out_end), (err, err_end) = os.pipe(), os.pipe()
    # Ctrl-C must not be raised in a copy before it leaves this function's callers behind: they would clean up twice.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    pid = os.fork()
    if not pid:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    if pid:
        os.close(out_end)
        os.close(err_end)
        return pid, out, err
    for end, stream in ((os.open(os.devnull, os.O_RDONLY), 0), (out_end, 1), (err_end, 2)):
        os.dup2(end, stream)
    os.chdir(cwd)
    os.environ.update(env)
    # A copy has none of the threads that OpenMP started in the copied process, and would wait for them for ever.
    threadpool_limits(1)
    code: Any = 0
    try:
        getattr(importlib.import_module(call.module), call.function)(*call.arguments)
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code or 0)


def _ended(copies: list[tuple[int, int, int]], deadline: float) -> list[tuple[int, str, str]]:
    """Exit code, stdout and stderr of each."""
    said = {pipe: b"" for _, *pipes in copies for pipe in pipes}
    with selectors.DefaultSelector() as selector:
        for pipe in said:
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(max(0.0, deadline - time.monotonic()))
            if not ready:
                for pid, *_ in copies:
                    os.kill(pid, signal.SIGKILL)  # a process that has ended is still there until it is waited for
                deadline += 60.0
            for key, _ in ready:
                if part := os.read(key.fd, 65_536):
                    said[key.fd] += part
                else:
                    selector.unregister(key.fd)
                    os.close(key.fd)
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid, *_ in copies]
    return [(code, said[out].decode(), said[err].decode()) for code, (_, out, err) in zip(codes, copies, strict=True)]
