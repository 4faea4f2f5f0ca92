"""Jobs on the workers of a Dask scheduler (``--cluster tcp://HOST:PORT``), or one after the other in this process."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar
from urllib.parse import urlsplit

from punce.errors import InputError

Job = TypeVar("Job")
Result = TypeVar("Result")
Map = Callable[[Callable[[Any], Any], Sequence[Any]], Iterator[Any]]


def connect(address: str, patience: float = 10.0) -> Any:
    """A client of the scheduler; refuses where Dask is not installed or nothing answers."""
    try:
        import distributed
        from distributed.comm.core import CommClosedError
    except ImportError as error:
        raise InputError(f"--cluster needs Dask: pip install 'punce[cluster]' ({error})") from None
    make: Any = distributed.Client  # has no types
    try:
        _require_listener(address, patience)
        return make(address, timeout=patience, set_as_default=False)
    except CommClosedError as error:  # it listened a moment ago
        raise ConnectionError(
            f"the Dask scheduler was lost ({type(error).__name__}); repeat the command when it is back"
        ) from None
    except (OSError, ValueError) as error:  # a TimeoutError is an OSError
        raise InputError(
            f"no Dask scheduler answers at {address}: {error}; start one (dask scheduler), or correct the address"
        ) from None


def _require_listener(address: str, patience: float) -> None:
    """Fail early if nothing listens: a Dask client that cannot connect leaves threads and messages behind."""
    parts = urlsplit(address)
    if parts.scheme in ("tcp", "tls") and parts.hostname and parts.port:
        socket.create_connection((parts.hostname, parts.port), patience).close()


@contextmanager
def workers(address: str | None) -> Iterator[Map]:
    """A map over jobs, in their order: here, or on the workers of the scheduler at `address`.

    A job whose worker is lost runs again on another one, so it must be harmless to run a job twice.
    """
    if address is None:
        yield map
        return
    client = connect(address)
    with quiet_client():
        try:
            yield lambda function, jobs: _on_cluster(client, function, jobs)
        finally:
            client.close()


@contextmanager
def quiet_client() -> Iterator[None]:
    """Without the traceback that Dask's client writes about a lost scheduler: the commands say it in one line."""
    logger = logging.getLogger("distributed.client")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)


def _on_cluster(client: Any, function: Callable[[Job], Result], jobs: Sequence[Job]) -> Iterator[Result]:
    from concurrent.futures import CancelledError

    import distributed
    from distributed.comm.core import CommClosedError

    # not pure: a repeated command may find other files behind the same names
    futures = client.map(function, list(jobs), pure=False)
    try:
        for future in futures:
            yield future.result()
    except distributed.KilledWorker as error:
        raise ConnectionError(
            f"workers died on the same part again and again ({error}); look at their logs, then repeat the command: "
            "finished parts are kept"
        ) from None
    # Any other OSError is the job's own: a file that cannot be read.
    except (CancelledError, CommClosedError, ConnectionError, TimeoutError) as error:
        raise ConnectionError(
            f"the Dask scheduler was lost ({type(error).__name__}); repeat the command when it is back: finished parts "
            "are kept"
        ) from None
    finally:
        with suppress(OSError):  # there is nobody to ask if the scheduler was lost
            client.cancel(futures)
