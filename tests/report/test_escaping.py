"""No text can become markup: checked on the page's source, wherever Python runs.

What the browser would see is found with the standard library's HTML parser; a text that escaped its place would show
as another element, another attribute or another end of a script.
"""

from __future__ import annotations

import base64
import hashlib
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from punce.report import ReportContent, render_report
from punce.report.page import script_json
from punce.report.words import printable

from ..browser import Elements
from .samples import HOSTILE, content, hostile


def check_harmless(html: str) -> Elements:
    seen = Elements(html)
    tags = [tag for tag, _ in seen.elements]
    assert tags.count("script") == 2
    assert tags.count("style") == 1
    assert not seen.comments
    assert not {"iframe", "object", "embed", "base", "form", "foreignobject", "use"} & set(tags)
    for _, attributes in seen.elements:
        assert not [name for name in attributes if name.startswith("on") or name == "style" or "<" in name]
        assert (attributes.get("href") or "#").startswith(("#", "data:,"))
        assert (attributes.get("src") or "data:image/").startswith("data:image/")
    return seen


def test_hostile_texts_stay_texts() -> None:
    html = render_report(hostile())
    seen = check_harmless(html)
    shown = "".join(seen.words)
    for text in HOSTILE[:-1]:
        assert printable(text) in shown
    html.encode("utf-8")
    assert "\x00" not in html
    assert "49" not in "".join(seen.words[:3])  # {{ 7 * 7 }} was not evaluated


def test_the_shape_of_the_page_does_not_depend_on_texts() -> None:
    """The same numbers of rows with harmless texts give the same elements."""
    harmless = tuple(f"word {i} " + "x" * (len(text) - 7) for i, text in enumerate(HOSTILE))
    expected = [tag for tag, _ in Elements(render_report(hostile(harmless))).elements]
    assert [tag for tag, _ in Elements(render_report(hostile())).elements] == expected


FRAGMENTS = ("<b>", "</p>", "<script>", "</script>", "<!--", "-->", '"', "'", " onload=x ", "<", ">", "&lt;", "&#60;")
FRAGMENTS += ("</title>", "</style>", "]]>", "{{", "}}", "{%", "\\u003c", "\u2028", "\x00", "\r\n", "/")
# No lone surrogates here: a pandas column cannot hold them as a name. samples.HOSTILE has one.
markup = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=5), min_size=1, max_size=12).map("".join)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(markup, min_size=2, max_size=4, unique=True))
def test_no_text_escapes(texts: list[str]) -> None:
    page = hostile(tuple(texts))
    seen = check_harmless(render_report(page))
    payload = json.loads(next(raw for raw in seen.raw["script"] if raw.startswith("{")))
    assert page.map is not None
    # Names are cut at 300 characters, ours are shorter.
    assert [printable(name) for name in payload["names"]] == [printable(name) for name in page.map.names]


@given(st.text() | st.sampled_from(HOSTILE))
def test_script_json_cannot_end_its_element(text: str) -> None:
    written = str(script_json({text: [text, 1.5, None]}))
    assert not set("<>&\u2028\u2029") & set(written)
    assert json.loads(written) == {text: [text, 1.5, None]}


@given(st.text(st.characters(codec=None), max_size=50))
def test_printable_text_can_be_written(text: str) -> None:
    clean = printable(text)
    clean.encode("utf-8")
    assert "\x00" not in clean
    assert printable(clean) == clean


@pytest.mark.parametrize("make", [content, lambda: ReportContent("t")])
def test_policy_names_exactly_the_style_and_the_script(make: object) -> None:
    seen = Elements(render_report(make()))  # type: ignore[operator]
    policy = next(a["content"] for tag, a in seen.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    directives = dict(part.split(" ", 1) for part in policy.split("; "))
    program = "".join(raw for raw in seen.raw["script"] if not raw.startswith("{"))
    for directive, source in (("style-src", "".join(seen.raw["style"])), ("script-src", program)):
        digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
        assert directives[directive] == f"'sha256-{digest}'"
    assert directives["default-src"] == "'none'"
    assert "unsafe" not in policy
    assert "http" not in policy


def test_nothing_on_the_page_points_outside() -> None:
    html = render_report(content(images=True, n_points=20, n_top=5))
    assert "http://" not in html
    assert "https://" not in html
    assert "@import" not in html
