"""The page says what a person needs, in order, and leaves out what is not there."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from punce.cli.report import comparison
from punce.report import ReportContent, render_report
from punce.report.charts import curve_panel, review_chart, tick_label, ticks
from punce.report.content import (
    ColumnImportance,
    DataFacts,
    Importances,
    Interval,
    PriorFacts,
    Quality,
    ReviewCurve,
    RowReason,
    SensitivityRow,
    Threshold,
    TopRow,
    TopRows,
)
from punce.report.words import (
    count,
    decimals_of,
    flatten,
    headline,
    number,
    percent,
    percent_range,
    review_goals,
    shorten,
    sort_key,
)

from .samples import content

DATA = DataFacts("a.csv", "table", 1417, 80, 1337)


def text_of(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", html)).replace("\u00a0", " ")


def test_headline_is_the_first_thing_said() -> None:
    prior = PriorFacts(0.2334, 0.2094, 0.2618, "bbe")
    said = "About 312 of 1,337 unlabelled rows are positive (90 % interval 280–350)."
    assert (headline(DATA, prior) or "").replace("\u00a0", " ") == said
    html = render_report(ReportContent("t", data=DATA, prior=prior))
    assert re.findall(r"<h1>(.*?)</h1>", html)[0].replace("\u00a0", " ") == said


def test_a_page_of_drawn_rows_says_so_first() -> None:
    """The terminal and the ranked list are of all rows of the file."""
    content = ReportContent("t", data=replace(DATA, drawn_from=50_000), prior=PriorFacts(0.2334, 0.2094, 0.2618, "bbe"))
    said = text_of(render_report(content))
    assert "About 312 of 1,337 drawn unlabelled rows are positive" in said
    assert "1,417 rows (table) drawn from 50,000, 80 labelled positive" in said
    assert "Rows on this page are drawn ones; the ranked list in the run folder has every row" in said
    assert "drawn" not in text_of(render_report(replace(content, data=DATA)).partition("<main")[0])


@pytest.mark.parametrize(("called", "said"), [(0, "0 unlabelled rows are"), (1, "1 unlabelled row is")])
def test_one_row_that_is_called_positive_is_no_rows(called: int, said: str) -> None:
    page = render_report(ReportContent("t", data=DATA, threshold=Threshold(0.5, "best estimated accuracy", called)))
    assert f"{said} called positive" in text_of(page)


def test_headline_without_interval_or_without_prior() -> None:
    given = headline(DATA, PriorFacts(0.5))
    assert given is not None
    assert given.endswith("positive, if the given share of 50.0\u00a0% is right.")
    assert headline(DATA, None) is None
    assert "<h1>only a title</h1>" in render_report(ReportContent("only a title"))


def test_a_share_that_cannot_be_known_is_drawn_nowhere() -> None:
    """A placeholder beside "cannot be estimated" would be read as the estimate."""
    full = content()
    unknown = PriorFacts(0.1, 0.0, 1.0, "assumed", unknown="2 rows are labelled")
    assert "estimated positive" in render_report(full)
    html = render_report(replace(full, prior=unknown, review=None, sensitivity=()))
    said = text_of(html)
    assert "cannot be estimated. 10.0 % was assumed" in said
    assert "cannot be estimated.</h1>" in html  # the reason follows in small letters
    assert "<p>2 rows are labelled.</p>" in html
    assert "are called positive, with an assumed share of 10.0 %" in said
    for words in ("is estimated to be", "estimated positive", "expected positive", "Expected positive"):
        assert words not in said
    for anchor in re.findall(r'href="#([\w-]+)"', html):
        assert f'id="{anchor}"' in html, anchor


def test_a_group_that_stands_for_the_positives_is_not_called_labelled() -> None:
    full = content()
    assert full.quality is not None
    random, biased = (
        text_of(render_report(replace(full, quality=replace(full.quality, n_positive=243, by_groups=flag))))
        for flag in (False, True)
    )
    assert "on 243 labelled positives" in random
    assert "243 labelled positives" not in biased
    assert "hold if the labelled rows are a random sample" not in biased
    assert "if that group is the positives" in biased


def test_a_missing_number_stands_under_the_numbers() -> None:
    rows = (TopRow(1, "a", 0.9, (1.5, "x")), TopRow(2, "b", 0.8, (None, None)))
    html = render_report(ReportContent("t", top=TopRows(rows, ("amount", "kind"))))
    assert html.count('<td class="num"><bdi>–</bdi></td>') == 1
    assert html.count('<td class="text"><bdi>–</bdi></td>') == 1


def test_a_dash_in_what_if_is_explained_whichever_number_is_missing() -> None:
    whole = SensitivityRow(0.3, 30.0, 20, recall=0.9, precision=0.8, accuracy=0.9, f1=0.85)
    for missing in ("", "precision", "accuracy"):
        row = replace(whole, **{missing: None}) if missing else whole
        said = text_of(render_report(replace(content(), sensitivity=(whole, row)))).partition("What if the share")[2]
        assert ("A dash: so many positives" in said) == bool(missing)


def test_a_question_as_the_name_of_a_column_does_not_fill_the_table() -> None:
    """The head of a column of numbers is narrow, and stays in view: it would cover the rows of a phone."""
    question = "How satisfied are you with the time it took until somebody answered your letter?"
    html = render_report(ReportContent("t", top=TopRows((TopRow(1, "a", 0.9, (1.5, "x")),), (question, "short"))))
    head = html.partition('id="top-table"')[2].partition("</thead>")[0]
    assert f'<bdi title="{question}">How satisfied are you with' in head
    assert head.count(question) == 1
    assert "<bdi>short</bdi>" in head


def test_a_stage_that_trained_several_times_is_several_lines() -> None:
    panel = curve_panel("pretrain", "loss", [1.0, 2.0, 3.0, 1.0, 2.0, 1.0], [3.0, 2.0, 1.0, 2.5, 1.5, 2.0])
    assert panel.count('class="series metric"') == 2  # the last run has one epoch


def test_sections_come_in_order_and_only_when_filled() -> None:
    order = ["comparison", "quality", "scores", "review", "map", "columns", "top", "sensitivity", "training"]
    order += ["data", "configuration", "warnings"]
    full = render_report(content())
    assert re.findall(r'<section id="(\w+)">', full) == order
    assert re.findall(r'<li><a href="#(\w+)">', full) == order
    empty = render_report(ReportContent("t"))
    assert "<section" not in empty
    assert 'id="map-data"' not in empty


def test_every_figure_has_words_and_numbers() -> None:
    html = render_report(content())
    pictures = re.findall(r"<svg [^>]*>", html)
    assert pictures
    for picture in pictures:
        assert 'aria-hidden="true"' in picture or re.search(r'aria-label="[^"]{20,}"', picture), picture
    assert html.count("<figcaption") == 3
    assert html.count("What it cannot tell.") >= 5
    assert html.count("The numbers of this figure") == 2
    for table in re.findall(r"<table.*?</table>", html, flags=re.S):
        assert 'scope="' in table


def test_every_table_scrolls_in_a_box_of_its_own() -> None:
    """A table that is wider than a phone would move the whole page sideways."""
    html = render_report(content())
    assert html.count("<table") > 8
    boxed = re.findall(r'<div class="scroll[^"]*" tabindex="0" role="region" aria-label="[^"]+">\s*<table', html)
    assert len(boxed) == html.count("<table")


def test_warnings_of_all_parts_are_listed_once_and_announced_at_the_top() -> None:
    page = content()
    assert page.prior is not None
    page = replace(page, prior=replace(page.prior, warnings=("the two priors differ by 0.08", "another")))
    html = render_report(page)
    assert "2 warnings" in html
    assert html.index("2 warnings") < html.index('<section id="quality">')
    assert html.count("the two priors differ by 0.08") == 1


@pytest.mark.parametrize(("share", "is_below"), [(0.3, True), (0.008, False)])
def test_the_words_at_a_small_share_do_not_lie_on_the_axis(share: float, is_below: bool) -> None:
    review = content().review
    assert review is not None
    drawn = str(review_chart(review, share, 640))
    words = re.search(r' y="([\d.]+)"[^>]*>precision in random order', drawn)
    assert words is not None
    assert (float(words[1]) > 290.0 - 250.0 * share) is is_below  # the line, in a frame from 290 up to 40


def test_undefined_and_unusual_measures() -> None:
    quality = Quality(
        {"precision": Interval(None, reason="no row is called positive"), "lift at 10": Interval(0.3, 0.2, 0.4)}
    )
    said = text_of(render_report(ReportContent("t", quality=quality)))
    assert "Cannot be estimated: no row is called positive." in said
    assert "lift at 10" in said


def test_awkward_content_renders() -> None:
    flat = ({"epoch": 1.0, "loss": 2.0, "risk": None}, {"loss": 2.0})
    page = ReportContent(
        "t",
        training={"one epoch": flat[:1], "flat": flat, "none": ()},
        comparison={"a": {"x": 1.0}, "b": {"y": None}, "c": {}},
        configuration={"empty": {}, "nothing": None, "list": []},
        review=ReviewCurve((1,), (Interval(None),), (Interval(None),), 1),
    )
    said = text_of(render_report(page))
    assert "risk: no values" in said
    assert "review the top" not in said


@pytest.mark.parametrize(
    ("low", "high", "most", "expected"),
    [(0, 1, 5, [0, 0.2, 0.4, 0.6, 0.8, 1]), (0, 1337, 4, [0, 500, 1000]), (3, 3, 4, [3]), (-0.2, 0.9, 3, [0, 0.5])],
)
def test_ticks_are_round(low: float, high: float, most: int, expected: list[float]) -> None:
    assert ticks(low, high, most) == pytest.approx(expected)


def test_number_formats() -> None:
    assert [number(v) for v in (None, True, 3, 12345, 0.123456, 1e-9, float("nan"), "x")] == [
        "–", "True", "3", "12,345", "0.1235", "1e-09", "–", "x",
    ]  # fmt: skip
    assert [number(v) for v in (10**18, 10**5000)] == ["1,000,000,000,000,000,000", "1.000e+5000"]
    assert [sort_key(v) for v in (2, 0.5, 10**5000, float("inf"), True, "x")] == ["2.0", "0.5", None, None, None, None]
    assert [number(v, decimals_of([0.9, 0.123456, 12])) for v in (0.9, 0.123456, 12)] == ["0.9000", "0.1235", "12"]
    assert (count(1336.6), percent(0.5, 0), tick_label(2500.0)) == ("1,337", "50\u00a0%", "2,500")
    assert percent_range(Interval(0.5)) == "–"
    assert shorten("abcdef", 4) == "abc…"
    assert flatten({"a": {"b": 1, "c": [1, 2]}, "d": 0.1}) == [("a.b", "1"), ("a.c", "1, 2"), ("d", "0.1")]


def test_review_goals_name_the_first_enough() -> None:
    part = tuple(Interval(v) for v in (0.4, 0.8, 0.85, 1.0))
    curve = ReviewCurve((10, 20, 30, 40), part[::-1], part, 40)
    assert [(goal, rows) for goal, rows, _ in review_goals(curve)] == [(0.5, 20), (0.8, 20), (0.9, 40), (0.95, 40)]


def test_a_precision_that_could_be_anything_is_no_number_of_a_review_goal() -> None:
    curve = ReviewCurve((10,), (Interval(0.77, 0.21, 1.0),), (Interval(1.0, 0.9, 1.0),), 40)
    assert {(there.value, there.low, there.high) for _, _, there in review_goals(curve)} == {(None, 0.21, 1.0)}


def test_a_recall_that_could_be_anything_reaches_no_review_goal() -> None:
    """It said that the top 10 rows hold half of the positives, where it may be a tenth of them or nearly all."""
    known = (Interval(0.9, 0.8, 1.0),) * 2
    curve = ReviewCurve((10, 40), known, (Interval(0.6, 0.1, 0.9), Interval(1.0, 0.9, 1.0)), 40)
    assert [(goal, rows) for goal, rows, _ in review_goals(curve)] == [(0.8, 40), (0.9, 40), (0.95, 40)]


def test_no_line_is_drawn_where_a_number_cannot_be_estimated() -> None:
    sure, vague = Interval(0.9, 0.8, 1.0), Interval(0.6, 0.1, 0.9)
    curve = ReviewCurve((1, 2, 3, 4, 5), (sure, sure, vague, sure, sure), (vague,) * 5, 5)
    drawn = str(review_chart(curve, None, 640))
    pieces = re.findall(r'<path [^>]*class="series (\w+)"', drawn)
    assert pieces == ["precision", "precision"]  # before and after the gap, and nothing of the recall
    assert "a share that cannot be estimated of all positives are found" in drawn
    said = text_of(render_report(ReportContent("t", review=curve)))
    assert "How many rows it takes to find a given share of the positives cannot be estimated." in said
    assert "60.0" not in said


def test_the_histogram_says_that_the_ranked_list_is_calibrated_on_all_rows() -> None:
    said = text_of(render_report(content()))
    assert "is calibrated without that row; in the ranked list all rows take part" in said


@pytest.mark.parametrize("kind", ["images", "texts", "table"])
def test_a_large_page_stays_under_two_megabytes(kind: str) -> None:
    page = content(3000, 100, images=kind == "images", texts=kind == "texts", size=32)
    assert len(render_report(page).encode()) < 2_000_000


def test_shares_of_several_runs_are_shown_in_per_cent_and_sort_by_number() -> None:
    runs = {"a": {"prior": 0.31234, "auc": 0.98765, "seconds": 12}, "b": {"prior": None, "auc": 1.0, "seconds": 7}}
    page = render_report(ReportContent("runs", comparison=runs)).replace("\u00a0", " ")
    assert '<td class="num" data-value="0.31234">31.2 %</td>' in page
    assert '<td class="num" data-value="1.0">100.0 %</td>' in page
    assert "Share of positives" in page
    assert "<bdi>12</bdi>" in page
    assert '<td class="num"><bdi>–</bdi></td>' in page
    assert "one run on the same data" in page


def test_runs_on_other_data_are_not_compared_without_a_word() -> None:
    both = (DataFacts("a.csv", "table", 10, 2, 8), DataFacts("b.csv", "table", 10, 2, 8))
    runs = comparison({facts.name[0]: ReportContent("t", data=facts) for facts in both})
    page = render_report(ReportContent("runs", comparison=runs))
    assert "b.csv" in page
    assert "one run on the same data" not in page
    same = comparison({name: ReportContent("t", data=both[0]) for name in "xy"})
    assert "data" not in same["x"]


def test_runs_for_other_rows_are_not_compared_without_a_word() -> None:
    contents = {
        over: ReportContent("t", quality=Quality({}, over=over)) for over in ("the unlabelled rows", "new rows")
    }
    runs = comparison(contents)
    assert [numbers["over"] for numbers in runs.values()] == list(contents)
    assert "does not say which model is better" in render_report(ReportContent("runs", comparison=runs))
    same = comparison(dict.fromkeys("xy", contents["new rows"]))
    assert "over" not in same["x"]


def test_columns_and_reasons_are_shown_with_what_is_not_known() -> None:
    columns = (
        ColumnImportance("amount", 0.1234, 0.08, 0.16),
        ColumnImportance("age", 0.001, -0.002, 0.004),
        ColumnImportance("rare", 0.0),
    )
    row = TopRow(1, "r", 0.9, reasons=(RowReason("amount = 3", 1.234), RowReason("age = 40", -0.5)))
    html = render_report(ReportContent("t", importances=Importances(columns, of=40), top=TopRows((row,))))
    said = text_of(html)
    assert "amount 12.3 8.0 to 16.0" in said
    assert "age 0.1 −0.2 to 0.4" in said
    assert "rare not measured" in said
    assert "The other 37 columns" in said
    assert re.findall(r'class="unsure"><bdi>(\w+)', html) == ["age", "rare"]
    assert "amount = 3 +1.23" in said
    assert "age = 40 −0.50" in said
    assert '<span class="down">−0.50' in html
    assert "Why a row ranks high" not in said
    without = text_of(render_report(ReportContent("t", top=TopRows((replace(row, reasons=()),)))))
    assert "Why a row ranks high" in without


def test_short_row_names_are_not_broken() -> None:
    top = TopRows((TopRow(1, "P-0108", 0.9), TopRow(2, "a name that is rather long and may wrap", 0.8)))
    page = render_report(ReportContent("rows", top=top))
    assert '<th scope="row" class="name short"><bdi>P-0108</bdi></th>' in page
    assert '<th scope="row" class="name"><bdi>a name' in page
