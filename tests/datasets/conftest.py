from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.serving import Server


@pytest.fixture
def server() -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 10  # a stuck client must not hold the test

        def do_GET(self) -> None:
            state.hits.append(self.path)
            answer = state.answers.get(self.path)
            if answer is None:
                self.send_error(404)
            else:
                answer(self)

        def log_message(self, *args: object) -> None:
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.daemon_threads = True
    state = Server(f"http://127.0.0.1:{httpd.server_address[1]}")
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    yield state
    httpd.shutdown()
    httpd.server_close()
    thread.join(timeout=10)
