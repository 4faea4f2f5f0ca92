"""Three languages, and no text that becomes markup in any of them."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from punce.experiments.present.markup import Cell, Table, escape_latex, escape_markdown, html, latex, markdown
from punce.experiments.present.numbers import plain, signed, with_interval
from punce.experiments.present.statistics import summarise

from ..report.samples import HOSTILE

TABLE = Table(
    caption="Losses",
    head=(Cell("data"), Cell("n_P"), Cell("puNCE", is_number=True)),
    rows=(
        (Cell("MNIST"), Cell("1k"), Cell("94.70 ± 0.19", True, True)),
        (Cell("MNIST"), Cell("3k"), Cell("– (96.01)", True)),
        (Cell("CIFAR"), Cell("1k"), Cell("−1.00 †", True)),
    ),
    notes=("Per cent.",),
    label="losses",
    n_group=1,
)


def test_markdown() -> None:
    assert markdown(TABLE).splitlines() == [
        "| data | n\\_P | puNCE |",
        "| --- | --- | ---: |",
        "| MNIST | 1k | **94.70 ± 0.19** |",
        "| MNIST | 3k | – (96.01) |",
        "| CIFAR | 1k | −1.00 † |",
        "",
        "Per cent.",
    ]


def test_latex() -> None:
    assert latex(TABLE).splitlines() == [
        r"\begin{table}",
        r"\centering",
        r"\caption{Losses}",
        r"\label{tab:losses}",
        r"\begin{tabular}{@{}llr@{}}",
        r"\toprule",
        r"data & n\_P & puNCE \\",
        r"\midrule",
        r"MNIST & 1k & \textbf{94.70 $\pm$ 0.19} \\",
        r" & 3k & -- (96.01) \\",
        r"\midrule",
        r"CIFAR & 1k & $-$1.00 $^\dagger$ \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\par\footnotesize Per cent.",
        r"\end{table}",
    ]


def test_html_names_a_group_above_its_rows() -> None:
    found = html(TABLE)
    assert found.count('<th scope="rowgroup" colspan="2"><bdi>MNIST</bdi></th>') == 1
    assert '<td class="num"><bdi><strong>94.70 ± 0.19</strong></bdi></td>' in found
    assert '<th scope="col"><bdi>data</bdi></th>' not in found


def hostile_table(text: str) -> Table:
    return Table(text, (Cell(text), Cell(text, True)), ((Cell(text), Cell(text, True, True)),), (text,), n_group=0)


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.attributes: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.attributes |= {name for name, _ in attrs}


anything = st.text(max_size=40) | st.sampled_from(HOSTILE)


@given(anything)
def test_no_text_becomes_an_element(text: str) -> None:
    found = Tags(html(hostile_table(text)))
    assert found.seen == Tags(html(hostile_table("word"))).seen
    assert found.attributes == {"class", "tabindex", "role", "aria-label", "scope"}


@given(anything)
def test_no_text_leaves_its_markdown_cell(text: str) -> None:
    lines = markdown(hostile_table(text)).split("\n")
    rows = [line for line in lines if line.startswith("|")]
    bars = [len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) for row in rows]
    assert bars == [3, 3, 3]
    assert not re.search(r"<(?!br>)", "".join(lines))
    assert not re.search(r"(?<!\\)(?:\\\\)*[`_\[\]]", escape_markdown(text))


@given(anything)
def test_no_text_leaves_its_latex_cell(text: str) -> None:
    escaped = escape_latex(text)
    assert re.fullmatch(r"[\x20-\x7e]*", escaped)
    known = r"\\text(backslash|asciitilde|asciicircum|less|greater|bar)\{\}|\\ldots\{\}|\$[^$]*\$|\\[&%$#_{}]"
    assert not re.search(r"[\\&%$#_{}^]", re.sub(known, "", escaped))


@pytest.mark.parametrize(
    ("value", "expected"), [(0.0, "0.00"), (-0.001, "0.00"), (-1.234, "−1.23"), (2.0, "+2.00"), (None, "–")]
)
def test_differences_have_a_sign_and_zero_has_none(value: float | None, expected: str) -> None:
    assert signed(value) == expected


def test_other_numbers() -> None:
    assert plain(94.704) == "94.70"
    assert plain(None) == "–"
    assert with_interval(summarise([94.7])) == "94.70, 1 seed"
    assert with_interval(summarise([1.0, 2.0, 3.0]), sign=True) == "+2.00 [−0.48 to +4.48], 3 seeds"
