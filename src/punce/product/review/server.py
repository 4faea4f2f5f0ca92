"""A page on this computer for judging rows one by one; every verdict is on disk before the next card shows.

Only this computer can reach it (127.0.0.1), and only with the link: its token opens one session, whose secret the
page sends with every request in a header. There are no cookies, which other local servers would see, and nothing that
a page of another site could forge. The page itself holds no data; rows arrive as JSON and become text nodes.
"""

from __future__ import annotations

import hmac
import io
import json
import secrets
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pandas as pd
from markupsafe import Markup

from punce.data import UserData
from punce.errors import InputError, PunceError
from punce.judging.sampling import QUANTITIES
from punce.product.review.files import image_of
from punce.product.review.job import Goal, State, is_reached, progress_to, state_of
from punce.product.review.run import ScoredRun
from punce.product.review.store import NO, UNSURE, YES, DrawnRow, ReviewFolder, Verdict
from punce.report.page import asset, content_policy, page_environment
from punce.report.rows import plain_cell
from punce.report.words import SHARES, printable
from punce.storage.files import as_argument
from punce.storage.json_tree import encode

_PACKAGE = "punce.product.review"
_LONGEST_BODY = 4096
_LONGEST_TEXT = 20_000
_MOST_COLUMNS = 200
_LARGEST_IMAGE = 900
_SECONDS = 20.0  # that a connection may stay silent
_NAMES = {"share": SHARES["prior"], **SHARES}


class RefusedError(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass
class Desk:
    """What the page works on: the rows and the verdicts. Everything it knows is in the folder, too."""

    run: ScoredRun
    data: UserData
    goal: Goal | None
    who: str
    show_probability: bool = False
    is_named: bool = False
    """Whether `who` judges on their own: then rows that others judged are open to them."""
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    _rows: dict[str, DrawnRow] = field(default_factory=dict)
    _session: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def session(self, token: str) -> str:
        """The secret of the session, for the first request with the token."""
        with self._lock:
            if not self.token or not hmac.compare_digest(token.encode("utf-8", "replace"), self.token.encode()):
                raise RefusedError(HTTPStatus.FORBIDDEN, "this link was used already; start punce review --serve again")
            self.token = ""
        return self._session

    def admits(self, session: str) -> bool:
        """Whether a request comes from the page."""
        return hmac.compare_digest(session.encode("utf-8", "replace"), self._session.encode())

    def state(self) -> dict[str, Any]:
        """Every row with its verdict, and the numbers so far."""
        found = _known(self.run)
        said = {} if self.is_named else found.settled.words
        said |= {one.key: one.verdict for one in ReviewFolder(self.run.folder).verdicts() if one.who == self.who}
        numbers = {name: found.audit.of(name) for name in QUANTITIES} if found.audit else {}
        return {
            "cards": [{"key": key, "verdict": said.get(key, "")} for key in found.plan.drawn],
            "numbers": [{"name": _NAMES[name], **encode(number)} for name, number in numbers.items()],
            "goal": progress_to(self.goal, found) if self.goal else "",
            "reached": bool(self.goal and is_reached(self.goal, found)),
        }

    def card(self, key: str) -> dict[str, Any]:
        """What a person sees of a row."""
        drawn = self._drawn(key)
        shown = {"key": key, "name": printable(drawn.id), "image": self.data.kind == "image", "text": None}
        if self.data.kind == "text":
            shown["text"] = printable(str(self.data.features[drawn.row])[:_LONGEST_TEXT])
        if isinstance(self.data.features, pd.DataFrame):
            # Column by column, because a row of a frame turns whole numbers beside others into floats.
            columns = self.data.features.iloc[:, :_MOST_COLUMNS].items()
            shown["columns"] = [[printable(str(name)), _as_text(column.iloc[drawn.row])] for name, column in columns]
        if self.show_probability:
            place = int(self.run.rows.searchsorted(drawn.row))
            shown["probability"] = float(self.run.probability[place])
        return encode(shown)  # type: ignore[no-any-return]

    def image(self, key: str) -> bytes:
        """The image of a row as PNG, made anew: bytes of a user's file never reach the browser."""
        image = image_of(self.data, self._drawn(key).row, _LARGEST_IMAGE)
        if image is None:
            raise RefusedError(HTTPStatus.NOT_FOUND, "this row has no image")
        buffer = io.BytesIO()
        image.save(buffer, "PNG")
        return buffer.getvalue()

    def judge(self, key: str, verdict: str) -> None:
        """Keep a verdict; it is on disk when this returns."""
        self._drawn(key)
        if verdict not in (YES, NO, UNSURE):
            raise RefusedError(HTTPStatus.BAD_REQUEST, "a verdict is yes, no or unsure")
        with self._lock:
            ReviewFolder(self.run.folder).append([Verdict(key, verdict, self.who)])

    def _drawn(self, key: str) -> DrawnRow:
        if key not in self._rows:  # the first time, or another process has drawn more rows
            self._rows = _known(self.run).plan.drawn
        if key not in self._rows:
            raise RefusedError(HTTPStatus.NOT_FOUND, "no such row in this review")
        return self._rows[key]


def _as_text(value: Any) -> str | None:
    """A cell for the page; as text, because JavaScript rounds whole numbers of more than 15 digits."""
    cell = plain_cell(value, _LONGEST_TEXT)
    return None if cell is None else str(cell)


def _known(run: ScoredRun) -> State:
    found = state_of(run)
    if found is None:
        raise InputError(f"{run.folder} has no review yet: draw rows first with punce review {as_argument(run.folder)}")
    return found


def _page() -> tuple[bytes, str]:
    """The page and its policy: its own script and style by their hashes, requests to this server only."""
    style, script = asset("review.css", _PACKAGE), asset("review.js", _PACKAGE)
    policy = content_policy(style, script).replace("img-src data:", "img-src blob: data:") + "; connect-src 'self'"
    html = page_environment(_PACKAGE).get_template("review.html")
    text = html.render(title="Review", policy=policy, style=Markup(style), script=Markup(script))
    return text.encode(), f"{policy}; frame-ancestors 'none'"


class ReviewServer(ThreadingHTTPServer):
    """Serves one desk on 127.0.0.1."""

    daemon_threads = True

    def __init__(self, desk: Desk, port: int = 0) -> None:
        self.desk = desk
        self.html, self.policy = _page()
        super().__init__(("127.0.0.1", port), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that broke off is not worth a traceback in the terminal."""

    @property
    def link(self) -> str:
        """What opens the page, once; the part after # stays in the browser."""
        return f"http://127.0.0.1:{self.server_port}/#{self.desk.token}"


class _Handler(BaseHTTPRequestHandler):
    """Answers requests at the desk of its server."""

    server: ReviewServer
    timeout = _SECONDS
    server_version, sys_version = "punce", ""

    def do_GET(self) -> None:
        """The page, the state, a row or its image."""
        self._answer(self._get)

    def do_POST(self) -> None:
        """The token for a session, or a verdict."""
        self._answer(self._post)

    def _get(self) -> tuple[str, bytes]:
        try:
            url = urlsplit(self.path)
        except ValueError:  # "http://[" is no address
            raise RefusedError(HTTPStatus.BAD_REQUEST, "this is no address") from None
        if url.path == "/":
            return "text/html; charset=utf-8", self.server.html
        self._require_session()
        key = parse_qs(url.query).get("key", [""])[0]
        if url.path == "/image":
            return "image/png", self.server.desk.image(key)
        if url.path == "/state":
            return _json(self.server.desk.state())
        if url.path == "/row":
            return _json(self.server.desk.card(key))
        raise RefusedError(HTTPStatus.NOT_FOUND, "there is nothing here")

    def _post(self) -> tuple[str, bytes]:
        body = self._body()
        if self.path == "/session":
            return _json({"session": self.server.desk.session(body.get("token", ""))})
        self._require_session()
        if self.path != "/verdict":
            raise RefusedError(HTTPStatus.NOT_FOUND, "there is nothing here")
        self.server.desk.judge(body.get("key", ""), body.get("verdict", ""))
        return _json(self.server.desk.state())

    def _body(self) -> dict[str, str]:
        """A small JSON object of strings."""
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or len(length) > len(str(1 << 64)):
            raise RefusedError(HTTPStatus.LENGTH_REQUIRED, "the length of the request is missing")
        if int(length) > _LONGEST_BODY:
            self.close_connection = True  # what was not read must not be taken for the next request
            raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the request is too large")
        if self.headers.get_content_type() != "application/json":
            raise RefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "requests are JSON")
        try:
            body = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            raise RefusedError(HTTPStatus.BAD_REQUEST, "the request is not JSON") from None
        if not isinstance(body, dict) or not all(isinstance(value, str) for value in body.values()):
            raise RefusedError(HTTPStatus.BAD_REQUEST, "the request is not an object of strings")
        return body

    def _require_session(self) -> None:
        if not self.server.desk.admits(self.headers.get("X-Punce-Session", "")):
            raise RefusedError(HTTPStatus.FORBIDDEN, "open the link that punce review --serve printed")

    def _require_own_name(self) -> None:
        """A site whose name was made to point here must get nothing, and no page of another origin either."""
        port = self.server.server_port
        names = {f"127.0.0.1:{port}", f"localhost:{port}"}
        origin = self.headers.get("Origin")
        if self.headers.get("Host") not in names or (origin and origin.removeprefix("http://") not in names):
            raise RefusedError(HTTPStatus.FORBIDDEN, "this page is reached by its own link only")

    def _answer(self, work: Callable[[], tuple[str, bytes]]) -> None:
        status = HTTPStatus.OK
        try:
            self._require_own_name()
            kind, content = work()
        except RefusedError as refusal:
            status, (kind, content) = refusal.status, _json({"error": str(refusal)})
        except PunceError as error:
            status, (kind, content) = HTTPStatus.INTERNAL_SERVER_ERROR, _json({"error": str(error)})
        except OSError:
            raise  # of the connection: there is nobody to answer
        except Exception as error:  # the page must say something, and the terminal is not the place for it
            words = f"a bug in punce ({type(error).__name__}); please report it"
            status, (kind, content) = HTTPStatus.INTERNAL_SERVER_ERROR, _json({"error": words})
        self.send_response(status)
        headers = {
            "Content-Type": kind,
            "Content-Length": str(len(content)),
            "Content-Security-Policy": self.server.policy,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Cache-Control": "no-store",
        }
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the terminal shows the link and the result."""


def _json(tree: Any) -> tuple[str, bytes]:
    return "application/json", json.dumps(tree).encode()


def serve_review(
    run: ScoredRun, goal: Goal | None, port: int, who: str | None, *, show_probability: bool, say: Callable[[Any], None]
) -> None:
    """Serve the page until Ctrl-C."""
    desk = Desk(run, run.data(), goal, who or "page", show_probability, is_named=who is not None)
    try:
        server = ReviewServer(desk, port)
    except OSError as error:
        raise InputError(f"port {port} cannot be used: {error.strerror or error}; leave --port out") from error
    with server, _until_interrupted():
        say(f"judge here: {server.link}")
        say("the link opens once; every verdict is saved at once; Ctrl-C ends it")
        server.serve_forever()
    say("stopped")


@contextmanager
def _until_interrupted() -> Iterator[None]:
    """Let Ctrl-C end the block and nothing else: the command goes on, and what then goes wrong is told.

    The command line takes Ctrl-C for the end of the whole command, and says nothing of errors that come after it.
    """
    before = signal.getsignal(signal.SIGINT)
    # A job in the background ignores Ctrl-C, and other threads than the first one get no signals.
    if not callable(before) or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGINT, before)
