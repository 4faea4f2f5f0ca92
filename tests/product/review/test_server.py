"""The local page's server: who may ask it, what it keeps, and that nothing else gets out."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from punce.data.image_files import ImageFiles
from punce.data.user_data import UserData
from punce.errors import InputError
from punce.product.page import _shown
from punce.product.review.files import image_of
from punce.product.review.job import draw_rows
from punce.product.review.run import scored_run
from punce.product.review.server import Desk, ReviewServer
from punce.product.review.store import ReviewFolder, Verdict
from tests.copies import Call, command, run_copies

from .runs import finished_run, write_table

ME = {"Content-Type": "application/json"}


class Client:
    def __init__(self, server: ReviewServer) -> None:
        self.server, self.session = server, ""

    def ask(self, path: str, body: Any = None, **headers: str) -> tuple[int, Any, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.server_port, timeout=10)
        sent = {"X-Punce-Session": self.session, **({} if body is None else ME), **headers}
        text = body if isinstance(body, str | None) else json.dumps(body)
        connection.request(
            "GET" if body is None else "POST", path, text, {k.replace("_", "-"): v for k, v in sent.items()}
        )
        answer = connection.getresponse()
        content = answer.read()
        is_json = answer.headers.get_content_type() == "application/json"
        return answer.status, json.loads(content) if is_json else content, answer.headers

    def open(self) -> None:
        self.session = self.ask("/session", {"token": self.server.desk.token})[1]["session"]


@pytest.fixture
def client(run: Path) -> Iterator[Client]:
    scored = scored_run(run)
    data = scored.data()
    draw_rows(scored, data, "share", 20, seed=0)
    with ReviewServer(Desk(scored, data, None, "ann")) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield Client(server)
        server.shutdown()
        thread.join()


def test_the_token_opens_one_session(client: Client) -> None:
    token = client.server.desk.token
    assert client.ask("/session", {"token": "guess"})[0] == 403
    status, answer, _ = client.ask("/session", {"token": token})
    assert status == 200
    assert client.ask("/session", {"token": token})[0] == 403
    assert client.ask("/state")[0] == 403
    client.session = answer["session"]
    assert client.ask("/state")[0] == 200


def test_the_page_holds_no_data_and_admits_only_its_own_script(client: Client) -> None:
    status, html, headers = client.ask("/")
    assert status == 200
    plan = ReviewFolder(client.server.desk.run.folder).plan()
    assert plan is not None
    assert not any(one.id.encode() in html or key.encode() in html for key, one in plan.drawn.items())
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'sha256-" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    "headers", [{"Host": "evil.example"}, {"Host": ""}, {"Origin": "http://evil.example"}, {"Origin": "null"}]
)
def test_other_names_and_origins_get_nothing(client: Client, headers: dict[str, str]) -> None:
    client.open()
    for path in ("/", "/state"):
        assert client.ask(path, **headers)[0] == 403
    assert client.ask("/verdict", {"key": "x", "verdict": "yes"}, **headers)[0] == 403


@pytest.mark.parametrize(
    "path", ["/../config.json", "/review/draw.json", "/row?key=../../config.json", "/row", "/%2e%2e/"]
)
def test_nothing_but_drawn_rows_is_reached(client: Client, path: str) -> None:
    client.open()
    assert client.ask(path)[0] == 404
    assert client.ask(path, {"key": "x"})[0] == 404


def test_requests_that_are_no_small_json_objects_are_refused(client: Client) -> None:
    client.open()
    assert client.ask("/verdict", "x" * 5000)[0] == 413
    assert client.ask("/verdict", "{")[0] == 400
    assert client.ask("/verdict", "[1]")[0] == 400
    assert client.ask("/verdict", {"key": "x", "verdict": 1})[0] == 400
    assert client.ask("/verdict", "{}", Content_Type="text/plain")[0] == 415
    assert client.ask("/verdict", {"key": "nothing", "verdict": "yes"})[0] == 404


def test_a_verdict_is_on_disk_before_it_is_answered(client: Client) -> None:
    client.open()
    cards = client.ask("/state")[1]["cards"]
    assert [card["verdict"] for card in cards] == [""] * 20
    key = cards[0]["key"]
    assert client.ask("/verdict", {"key": key, "verdict": "perhaps"})[0] == 400
    status, state, _ = client.ask("/verdict", {"key": key, "verdict": "yes"})
    assert (status, state["cards"][0]["verdict"]) == (200, "yes")
    said = ReviewFolder(client.server.desk.run.folder).verdicts()
    assert [(one.key, one.verdict, one.who) for one in said] == [(key, "yes", "ann")]
    for card in cards[1:]:
        state = client.ask("/verdict", {"key": card["key"], "verdict": "no"})[1]
    assert [number["name"] for number in state["numbers"]] == ["Share of positives", "Precision", "Recall", "Accuracy"]


def test_a_row_shows_its_columns_and_no_probability_unless_asked_for(client: Client) -> None:
    client.open()
    key = client.ask("/state")[1]["cards"][0]["key"]
    row = client.ask(f"/row?key={key}")[1]
    assert [name for name, _ in row["columns"]] == ["a", "b", "note"]
    assert "probability" not in row
    client.server.desk.show_probability = True
    assert 0 <= client.ask(f"/row?key={key}")[1]["probability"] <= 1
    assert client.ask(f"/image?key={key}")[0] == 404


def test_whole_numbers_of_a_row_keep_all_their_digits(client: Client) -> None:
    desk = client.server.desk
    desk.data = UserData(
        "table",
        pd.DataFrame({"account": [12345678901234567] * 400, "rate": [0.5] * 400, "gone": [None] * 400}),
        None,
        pd.RangeIndex(400),
        "rows",
    )
    client.open()
    key = client.ask("/state")[1]["cards"][0]["key"]
    assert client.ask(f"/row?key={key}")[1]["columns"] == [
        ["account", "12345678901234567"],
        ["rate", "0.5"],
        ["gone", None],
    ]


def test_another_person_judges_all_rows_again(client: Client) -> None:
    client.open()
    key = client.ask("/state")[1]["cards"][0]["key"]
    client.ask("/verdict", {"key": key, "verdict": "yes"})
    client.server.desk.who = "bob"
    assert client.ask("/state")[1]["cards"][0]["verdict"] == "yes"
    client.server.desk.is_named = True
    assert client.ask("/state")[1]["cards"][0]["verdict"] == ""


@pytest.mark.parametrize("kind", ["text", "image"])
def test_cards_of_texts_and_pictures(client: Client, kind: Literal["text", "image"]) -> None:
    desk = client.server.desk
    texts, pictures = ["<img src=x onerror=alert(1)> \ud800 text"] * 400, np.zeros((400, 1, 5, 5), dtype=np.uint8)
    desk.data = UserData(kind, texts if kind == "text" else pictures, None, pd.RangeIndex(400), "rows")
    client.open()
    key = client.ask("/state")[1]["cards"][0]["key"]
    row = client.ask(f"/row?key={key}")[1]
    status, content, _ = client.ask(f"/image?key={key}")
    if kind == "image":
        assert (row["text"], row["image"], status, content[:4]) == (None, True, 200, b"\x89PNG")
    else:
        assert (row["text"], row["image"], status) == ("<img src=x onerror=alert(1)> \ufffd text", False, 404)


def test_pictures_are_made_anew(tmp_path: Path) -> None:
    Image.new("RGB", (3000, 20), "red").save(tmp_path / "a.png")
    data = UserData("image", ImageFiles(tmp_path, ("a.png",), 8, 3), None, pd.Index(["a.png"]), "pictures")
    shown = image_of(data, 0, 900)
    assert shown is not None
    assert shown.size == (900, 6)
    array = UserData("image", np.zeros((1, 1, 9, 9), dtype=np.uint8), None, pd.Index(["0"]), "array")
    shown = image_of(array, 0, 900)
    assert shown is not None
    assert shown.size == (9, 9)


@pytest.mark.parametrize("shape", [(3, 6, 3), (3, 4, 4), (1, 4, 4), (1, 7, 3)])
def test_narrow_pictures_keep_their_pixels(shape: tuple[int, int, int]) -> None:
    """By its shape alone an image of three or four columns could have its channels last."""
    pixels = np.arange(np.prod(shape), dtype=np.uint8).reshape(1, *shape)
    data = UserData("image", pixels, None, pd.Index(["0"]), "array")
    by_hand = Image.fromarray(pixels[0, 0] if shape[0] == 1 else np.ascontiguousarray(pixels[0].transpose(1, 2, 0)))
    assert image_of(data, 0, 900) == by_hand
    assert _shown(data, pixels, np.array([0]))["images"][0].shape == (*shape[1:], shape[0])


def test_a_picture_is_shown_as_the_fit_reads_it(tmp_path: Path) -> None:
    """Deep grey is brought to 8 bits, where convert() alone gives white, and a photograph is turned upright."""
    deep = np.linspace(0, 65_535, 64 * 64).reshape(64, 64).astype(np.uint16)
    Image.fromarray(deep).save(tmp_path / "deep.png")
    turned = Image.new("RGB", (40, 20), "red")
    turned.getexif()[0x0112] = 6  # orientation: a quarter turn
    turned.save(tmp_path / "turned.jpg", exif=turned.getexif())
    (tmp_path / "spoilt.png").write_bytes(b"no picture")
    names = ("deep.png", "turned.jpg", "spoilt.png")
    data = UserData("image", ImageFiles(tmp_path, names, 8, 3), None, pd.Index(names), "pictures")
    grey, upright = image_of(data, 0, 900), image_of(data, 1, 900)
    assert grey is not None
    assert upright is not None
    assert np.asarray(grey).mean() == pytest.approx(127, abs=2)
    assert upright.size == (20, 40)
    with pytest.raises(InputError, match=r"spoilt\.png cannot be shown"):
        image_of(data, 2, 900)


# Ctrl-C ------------------------------------------------------------------------------------------------------------


def interrupted_page(*arguments: str) -> None:
    """``punce ARGUMENTS``, with Ctrl-C as soon as the page is served; for a process of its own."""
    ReviewServer.serve_forever = lambda _: os.kill(os.getpid(), signal.SIGINT)  # type: ignore[method-assign]
    command(*arguments)


def after_interrupt(run: Path) -> subprocess.CompletedProcess[str]:
    call = Call(__name__, "interrupted_page", ["review", str(run), "--serve"])
    return run_copies([call], timeout=60.0)[0]


@pytest.mark.faults
def test_ctrl_c_ends_the_page_and_the_numbers_are_told(run: Path) -> None:
    done = after_interrupt(run)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-2:] == ["stopped", "0 rows judged, 60 open"]


@pytest.mark.faults
def test_an_error_after_ctrl_c_is_told(run: Path) -> None:
    scored = scored_run(run)
    plan = draw_rows(scored, scored.data(), "share", 20, seed=0)
    ReviewFolder(run).append(Verdict(key, "yes", "page") for key in list(plan.drawn)[1:])
    (run / "review" / "audit.json").mkdir()  # where the numbers would be written
    done = after_interrupt(run)
    assert done.returncode == 3
    (line,) = done.stderr.splitlines()
    assert line.startswith("punce: ")
    assert "audit.json" in line


def test_verdicts_on_all_rows_can_be_corrected(tmp_path: Path) -> None:
    run = finished_run(tmp_path / "run", write_table(tmp_path / "table.csv", n=40))
    scored = scored_run(run)
    plan = draw_rows(scored, scored.data(), "share", 40, seed=0)
    ReviewFolder(run).append(Verdict(key, "yes", "page") for key in plan.drawn)
    done = after_interrupt(run)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("every unlabelled row is drawn and judged")
    assert "judge here: http://" in done.stdout
