"""The page for judging rows, asked by somebody else: another origin, a wrong name, bodies without an end."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from punce.product.review.store import ReviewFolder
from tests.product.review.conftest import run
from tests.product.review.test_server import Client, client

__all__ = ["client", "run"]  # fixtures


def raw(client: Client, request: bytes, timeout: float = 10.0) -> bytes:
    """What the server answers to these bytes."""
    with socket.create_connection(("127.0.0.1", client.server.server_port), timeout=timeout) as connection:
        connection.sendall(request)
        with contextlib.suppress(OSError):  # the server may have refused, answered and closed already
            connection.shutdown(socket.SHUT_WR)
        parts = []
        while part := connection.recv(65_536):
            parts.append(part)
        return b"".join(parts)


def verdicts(client: Client) -> int:
    return len(ReviewFolder(client.server.desk.run.folder).verdicts())


ORIGINS = [
    "http://evil.example",
    "https://127.0.0.1",
    "http://127.0.0.1.evil.example",
    "null",
    "file://",
    "http://[::1]",
]


@pytest.mark.parametrize("origin", ORIGINS)
def test_a_page_of_another_site_can_neither_read_nor_judge(client: Client, origin: str) -> None:
    """A form or fetch of another page: the browser says where it comes from, and has no session anyway."""
    token = client.server.desk.token
    assert client.ask("/session", {"token": token}, Origin=origin)[0] == 403
    client.open()  # the token was not used up
    key = client.ask("/state")[1]["cards"][0]["key"]
    status, _, headers = client.ask("/verdict", {"key": key, "verdict": "yes"}, Origin=origin)
    assert status == 403
    assert headers.get("Access-Control-Allow-Origin") is None
    client.session = ""
    assert client.ask("/verdict", {"key": key, "verdict": "yes"})[0] == 403
    assert verdicts(client) == 0


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "multipart/form-data", "text/plain"])
def test_what_a_form_can_send_is_refused(client: Client, kind: str) -> None:
    """These types need no permission from the server, so a page of another site could send them blindly."""
    client.open()
    body = json.dumps({"key": "x", "verdict": "yes"})
    assert client.ask("/verdict", body, Content_Type=kind)[0] == 415


@pytest.mark.parametrize("method", ["OPTIONS", "PUT", "DELETE", "TRACE", "HEAD", "CONNECT"])
def test_other_methods_are_not_there(client: Client, method: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", client.server.server_port, timeout=10)
    connection.request(method, "/state")
    answer = connection.getresponse()
    assert answer.status == 501
    assert answer.headers.get("Access-Control-Allow-Methods") is None


@pytest.mark.parametrize(
    "path", ["/../../etc/passwd", "//etc/passwd", "/%2e%2e%2f%2e%2e%2fetc/passwd", "/row?key=%00", "/image?key=../x"]
)
def test_no_path_leads_to_a_file(client: Client, path: str) -> None:
    client.open()
    status, content, _ = client.ask(path)
    assert status == 404
    assert "root:" not in str(content)


def test_an_address_that_is_none_is_no_bug(client: Client) -> None:
    host = f"127.0.0.1:{client.server.server_port}"
    answer = raw(client, f"GET http://[ HTTP/1.0\r\nHost: {host}\r\n\r\n".encode())
    assert answer.split()[1] == b"400"
    assert b"bug" not in answer


@pytest.mark.parametrize("length", ["-1", "1e9", "9" * 5000, "0x10", "²", "", "5, 5", str(1 << 40)])
def test_lengths_that_are_none(client: Client, length: str) -> None:
    head = (
        f"POST /session HTTP/1.1\r\nHost: 127.0.0.1:{client.server.server_port}\r\nContent-Type: application/json\r\n"
    )
    answer = raw(client, head.encode() + b"Content-Length: " + length.encode("utf-8") + b'\r\n\r\n{"token": "x"}')
    assert answer.split(b"\r\n")[0].split()[1] in (b"400", b"403", b"411", b"413")


@pytest.mark.parametrize(
    "body", ["{" * 4000, '{"token": "\\ud800"}', '{"token": "' + "x" * 4000 + '"}', "[" * 4000, "\0"]
)
def test_bodies_that_are_no_small_objects(client: Client, body: str) -> None:
    assert client.ask("/session", body)[0] in (400, 403)
    assert client.ask("/session", {"token": client.server.desk.token})[0] == 200


def test_headers_without_an_end(client: Client) -> None:
    many = b"".join(b"X-%d: y\r\n" % k for k in range(5000))
    assert raw(client, b"GET / HTTP/1.1\r\n" + many + b"\r\n").split()[1] == b"431"
    assert raw(client, b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n").split()[1] == b"414"


@pytest.fixture
def slow_clients(client: Client) -> Iterator[list[socket.socket]]:
    """Two hundred connections that begin a request and never end it."""
    opened = []
    for _ in range(200):
        connection = socket.create_connection(("127.0.0.1", client.server.server_port), timeout=5)
        connection.sendall(b"POST /verdict HTTP/1.1\r\nHost: 127")
        opened.append(connection)
    yield opened
    for connection in opened:
        connection.close()


def test_slow_clients_keep_nobody_waiting(client: Client, slow_clients: list[socket.socket]) -> None:
    started = time.monotonic()
    client.open()
    key = client.ask("/state")[1]["cards"][0]["key"]
    assert client.ask("/verdict", {"key": key, "verdict": "yes"})[0] == 200
    assert time.monotonic() - started < 8.0
    assert verdicts(client) == 1


def test_a_silent_connection_is_closed(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client.server.RequestHandlerClass, "timeout", 0.3)
    with socket.create_connection(("127.0.0.1", client.server.server_port), timeout=10) as connection:
        connection.sendall(b"POST /session HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n\r\n{")
        started = time.monotonic()
        while connection.recv(4096):
            pass
        assert time.monotonic() - started < 8.0


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(request=st.binary(max_size=300) | st.text(max_size=200).map(lambda text: f"POST {text} HTTP/1.1".encode()))
def test_any_bytes_leave_the_server_there(client: Client, request: bytes) -> None:
    raw(client, request + b"\r\n\r\n")
    assert client.ask("/")[0] == 200


def test_an_error_of_the_server_is_no_traceback(client: Client, capfd: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise RuntimeError("secret path")

    client.open()
    monkeypatch.setattr(client.server.desk, "state", fails)
    status, answer, _ = client.ask("/state")
    assert status == 500
    assert "secret" not in str(answer)
    assert "Traceback" not in capfd.readouterr().err
