from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from punce.data import Dataset, MissingFilesError, load

Answer = Callable[[BaseHTTPRequestHandler], None]


@dataclass
class Server:
    """A real HTTP server on 127.0.0.1 whose answers a test sets; `hits` lists the paths asked for."""

    url: str
    answers: dict[str, Answer] = field(default_factory=dict)
    hits: list[str] = field(default_factory=list)

    def serve(self, path: str, body: bytes, *, sent: int | None = None) -> str:
        """Serve `body`; with `sent`, announce all of it and close the connection after that many bytes."""

        def answer(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(200)
            handler.send_header("Content-Length", str(len(body)))
            handler.end_headers()
            handler.wfile.write(body[:sent])
            handler.close_connection = True

        self.answers[path] = answer
        return self.url + path

    def serve_unannounced(self, path: str, body: bytes) -> str:
        """Serve without Content-Length, so that only the hash can tell a cut-off file."""

        def answer(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(200)
            handler.end_headers()
            handler.wfile.write(body)
            handler.close_connection = True

        self.answers[path] = answer
        return self.url + path


def everything_in(folder: Path) -> list[str]:
    """Every file and folder below, hidden ones too."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def real(name: str) -> Dataset:
    """A real benchmark set, or a skip that says what is missing."""
    try:
        return load(name, download=False)
    except MissingFilesError:
        pytest.skip(f"the files of {name} are in no directory of PUNCE_DATA")
