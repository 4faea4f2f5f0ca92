from __future__ import annotations

import dataclasses
import functools
import hashlib
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from punce.data import DATASETS
from punce.datasets import download as download_module
from punce.datasets.catalogue import DataFile
from punce.datasets.download import DownloadError, fetch
from tests.serving import Server, everything_in

BODY = bytes(range(256)) * 4096  # 1 MB
SHA256 = hashlib.sha256(BODY).hexdigest()


def download(urls: Sequence[str], target: Path, *, compressed: bool = False) -> None:
    """Fetch a set of one file, whose content is BODY."""
    file = DataFile(target.name, SHA256, tuple(urls), compressed=compressed)
    fetch(dataclasses.replace(DATASETS["banknote"], files=(file,)), target.parent, [file])


def test_a_file_is_fetched_verified_and_nothing_else_is_left(server: Server, tmp_path: Path) -> None:
    target = tmp_path / "sets" / "one" / "file.bin"
    download([server.serve("/file", BODY)], target)
    assert target.read_bytes() == BODY
    assert everything_in(tmp_path) == ["sets", "sets/one", "sets/one/file.bin"]


def test_the_next_mirror_is_tried_when_one_fails(server: Server, tmp_path: Path) -> None:
    urls = [server.url + "/absent", server.serve("/wrong", BODY[:-1]), server.serve("/good", BODY)]
    download(urls, tmp_path / "file.bin")
    assert server.hits == ["/absent", "/wrong", "/good"]
    assert everything_in(tmp_path) == ["file.bin"]


def _refused(url: str, tmp_path: Path, *, compressed: bool = False) -> str:
    folder = tmp_path / "made" / "by" / "download"
    with pytest.raises(DownloadError) as error:
        download([url], folder / "file.bin", compressed=compressed)
    assert everything_in(tmp_path) == []
    return str(error.value)


_DIES = """
import os, signal, sys
from pathlib import Path
from punce.datasets.download import _scratch
with _scratch(Path(sys.argv[1])) as scratch:
    (scratch / "half of it").write_bytes(bytes(1000))
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.faults
def test_what_a_killed_download_left_goes_with_the_next(server: Server, tmp_path: Path) -> None:
    target = tmp_path / "sets" / "file.bin"
    killed = subprocess.run([sys.executable, "-c", _DIES, str(target.parent)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert any("half of it" in name for name in everything_in(tmp_path))
    download([server.serve("/file", BODY)], target)
    assert everything_in(tmp_path) == ["sets", "sets/file.bin"]


@pytest.mark.faults
def test_a_truncated_file_leaves_nothing_behind(server: Server, tmp_path: Path) -> None:
    message = _refused(server.serve("/cut", BODY, sent=300_000), tmp_path)
    assert "file.bin" in message
    assert "300,000 of 1,048,576 bytes" in message or "closed early" in message


@pytest.mark.faults
def test_a_server_that_dies_half_way_leaves_nothing_behind(server: Server, tmp_path: Path) -> None:
    def die(handler) -> None:  # type: ignore[no-untyped-def]
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(BODY)))
        handler.end_headers()
        handler.wfile.write(BODY[:500_000])
        handler.wfile.flush()
        # SO_LINGER 0: the client sees a reset in the middle of the body, as when a machine goes down
        handler.connection.setsockopt(1, 13, b"\x01\0\0\0\0\0\0\0")
        handler.connection.close()

    server.answers["/dies"] = die
    message = _refused(server.url + "/dies", tmp_path)
    assert "could not fetch file.bin" in message


@pytest.mark.faults
def test_a_cut_off_file_without_announced_length_fails_its_hash(server: Server, tmp_path: Path) -> None:
    message = _refused(server.serve_unannounced("/cut", BODY[:1000]), tmp_path)
    assert "wrong content of file.bin: sha256 is" in message


def test_a_wrong_hash_leaves_nothing_behind_and_names_both(server: Server, tmp_path: Path) -> None:
    message = _refused(server.serve("/wrong", b"something else"), tmp_path)
    assert SHA256 in message
    assert hashlib.sha256(b"something else").hexdigest() in message


def test_an_endless_answer_is_stopped(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limited = functools.partial(download_module.download, limit=1000)
    monkeypatch.setattr(download_module, "download", limited)
    assert "more than 1,000 bytes" in _refused(server.serve("/endless", BODY), tmp_path)


def test_a_missing_page_says_what_the_server_answered(server: Server, tmp_path: Path) -> None:
    assert "404" in _refused(server.url + "/absent", tmp_path)


@pytest.mark.parametrize("length", ["\u00b2", "9" * 5000, "-1", "1e9", "0x10"])
def test_an_announced_length_that_is_no_number_says_nothing(server: Server, tmp_path: Path, length: str) -> None:
    def answer(handler) -> None:  # type: ignore[no-untyped-def]
        handler.send_response(200)
        handler.send_header("Content-Length", length)
        handler.end_headers()
        handler.wfile.write(BODY)
        handler.close_connection = True

    server.answers["/odd"] = answer
    download([server.url + "/odd"], tmp_path / "file.bin")
    assert (tmp_path / "file.bin").read_bytes() == BODY


@pytest.mark.parametrize(
    "place", ["http://[", "http://" + "x" * 300 + ".example/", "file:///etc/passwd", "http://127.0.0.1:port/", "http:"]
)
def test_a_server_that_leads_to_no_address_is_refused(server: Server, tmp_path: Path, place: str) -> None:
    def answer(handler) -> None:  # type: ignore[no-untyped-def]
        handler.send_response(302)
        handler.send_header("Location", place)
        handler.end_headers()
        handler.close_connection = True

    server.answers["/on"] = answer
    assert "could not fetch file.bin" in _refused(server.url + "/on", tmp_path)


def test_no_connection_says_so(tmp_path: Path) -> None:
    assert "no connection" in _refused("http://127.0.0.1:9/file", tmp_path)


def test_other_protocols_are_refused(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("local")
    with pytest.raises(DownloadError, match="not an http address"):
        download([secret.as_uri()], tmp_path / "file.bin")


def test_an_existing_file_survives_a_failed_download(server: Server, tmp_path: Path) -> None:
    target = tmp_path / "file.bin"
    target.write_bytes(b"old")
    with pytest.raises(DownloadError):
        download([server.serve("/wrong", b"new")], target)
    assert target.read_bytes() == b"old"
    assert everything_in(tmp_path) == ["file.bin"]


def test_no_address_is_an_error_not_a_silence(tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="no public address"):
        download([], tmp_path / "file.bin")
