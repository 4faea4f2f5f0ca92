"""Where attempts run: in this process, in worker processes of this machine (loky), or on a Dask cluster."""

from __future__ import annotations

import os
import warnings
from concurrent.futures import Future
from typing import Any

from punce.experiments.attempt import Report, Task, attempt
from punce.training.cluster import connect

_IDLE_SECONDS = 600  # a cell may take long while the other workers have nothing to do


class InProcess:
    """One cell after the other in this process: nothing to start, and errors are easy to follow."""

    lost: tuple[type[BaseException], ...] = ()
    """What breaks the future of a task whose worker died."""
    runner: int | None = None
    """The process that workers end with; None where they are not its children."""

    @property
    def slots(self) -> int:
        """How many tasks can run at once, now."""
        return 1

    def submit(self, task: Task) -> Future[Report]:
        """Start a task; here it is done on return."""
        future: Future[Report] = Future()
        future.set_result(attempt(task))
        return future

    def close(self, *, now: bool) -> None:
        """Let the workers go; `now` ends what they are doing."""


class Workers(InProcess):
    """`jobs` processes of this machine, through joblib's loky, which starts them anew when one dies."""

    def __init__(self, jobs: int, threads: int) -> None:
        from joblib.externals.loky.process_executor import BrokenProcessPool

        self._jobs, self.runner, self.lost = jobs, os.getpid(), (BrokenProcessPool,)
        # Set in the environment as well: some libraries read it once, when they are loaded.
        names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
        self._env = dict.fromkeys(names, str(threads))
        # loky replaces a worker whose memory has grown, between tasks, and warns as if something were wrong.
        warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)

    @property
    def slots(self) -> int:
        """One for each process."""
        return self._jobs

    def submit(self, task: Task) -> Future[Report]:
        """Hand the task to a worker."""
        future: Future[Report] = self._executor().submit(attempt, task)
        return future

    def close(self, *, now: bool) -> None:
        """Shut the workers down; `now` kills them."""
        self._executor().shutdown(wait=True, kill_workers=now)

    def _executor(self) -> Any:
        """The executor, a new one if the last is broken."""
        from joblib.externals.loky import get_reusable_executor

        return get_reusable_executor(self._jobs, timeout=_IDLE_SECONDS, env=self._env)


class Cluster(InProcess):
    """The workers of a Dask scheduler. It runs the tasks of a killed worker on another, three times over.

    Workers must see the results folder under the same path and should have one thread each (cells of one process wait
    for each other).
    """

    def __init__(self, address: str, patience: float = 10.0) -> None:
        self._client = connect(address, patience)
        self._executor = self._client.get_executor(pure=False)  # a repeated task is an attempt, not the same answer
        import distributed

        self.lost = (distributed.KilledWorker,)

    @property
    def slots(self) -> int:
        """One for each worker process; workers come and go."""
        return max(1, len(self._client.nthreads()))

    def submit(self, task: Task) -> Future[Report]:
        """Hand the task to the scheduler."""
        future: Future[Report] = self._executor.submit(attempt, task)
        return future

    def close(self, *, now: bool) -> None:
        """Cancel what is queued and leave the cluster as it is."""
        self._executor.shutdown(wait=not now)  # without waiting, Dask cancels
        self._client.close()
