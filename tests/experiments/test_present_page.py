"""The page, the document and the files: complete, self-contained, harmless; the same results give the same bytes."""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from punce.errors import InputError
from punce.experiments import EXPERIMENTS
from punce.experiments.present import build_docs, write_all, write_docs
from punce.experiments.present.figures import for_page, pictures
from punce.experiments.present.figures.style import PALETTE, places_of
from punce.experiments.present.grid import Results
from punce.experiments.scales import find_scale
from punce.experiments.store import ResultStore

from ..browser import Elements
from ..report.samples import HOSTILE
from .synthetic import fill, write

ROOT = Path(__file__).parents[2]
LAPTOP = find_scale("laptop1")
SECOND_PROTOCOL = {"imbalance", "stability_probe"}
"""Experiments that the first protocol, whose cells never change, does not have."""


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Invented results of everything, presented."""
    results = tmp_path_factory.mktemp("results")
    fill(results)
    write_all(results, "laptop1")
    return results


def test_a_question_of_which_only_the_control_was_run_is_not_shown(tmp_path: Path) -> None:
    fill(tmp_path, ["table2"])
    parts = build_docs(tmp_path, "laptop1")[1][Path("results/tables.md")].split("\n## ")
    for title in ("Labels that prefer bright images", "Accuracy when the prior is wrong", "One sample or two"):
        (part,) = (part for part in parts if part.startswith(f"Beyond the paper: {title}"))
        assert "Not measured at this scale yet" in part


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Invented results of a table and a figure."""
    results = tmp_path_factory.mktemp("few")
    fill(results, ["table1", "tsne"])
    return results


# Files -----------------------------------------------------------------------------------------------------------


def test_every_experiment_is_written_in_three_languages(filled: Path) -> None:
    report = filled / "laptop1" / "report"
    assert {path.suffix for path in report.iterdir()} == {".md", ".tex", ".html", ".svg"}
    for name in set(EXPERIMENTS) - SECOND_PROTOCOL:
        for suffix in (".md", ".tex", ".html"):
            text = (report / f"{name}{suffix}").read_text()
            assert "PU-selected" in text or "chosen on" in text
            assert "oracle" in text
    drawn = {path.stem for path in report.glob("*.svg")}
    figures = {name for name, experiment in EXPERIMENTS.items() if experiment.kind != "table"}
    assert figures - SECOND_PROTOCOL <= drawn


@pytest.mark.slow
def test_only_what_was_named_is_written_but_the_page_has_all(filled: Path, tmp_path: Path) -> None:
    (page,) = write_all(filled, "laptop1", ["table3"], tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        "index.html",
        "table3.md",
        "table3.tex",
        "table3.html",
        "table3.svg",
    }
    assert 'id="table1"' in page.read_text()


def test_unknown_names_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="table9"):
        write_all(tmp_path, "laptop1", ["table9"])
    with pytest.raises(InputError, match="no scale"):
        write_all(tmp_path, "huge")


def test_nothing_measured_still_makes_a_page(tmp_path: Path) -> None:
    (page,) = write_all(tmp_path, "smoke")
    assert "39 were not measured" in page.read_text()
    assert "Not measured at this scale yet" in build_docs(tmp_path, "smoke")[1][Path("results/tables.md")]


# The page --------------------------------------------------------------------------------------------------------


def test_the_page_is_self_contained_and_its_policy_fits(filled: Path) -> None:
    seen = Elements((filled / "laptop1" / "report" / "index.html").read_text())
    tags = [tag for tag, _ in seen.elements]
    assert "script" not in tags
    assert tags.count("style") == 1
    policy = next(a["content"] for _, a in seen.elements if a.get("http-equiv") == "Content-Security-Policy")
    digest = base64.b64encode(hashlib.sha256("".join(seen.raw["style"]).encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in str(policy)
    assert "script-src 'none'" in str(policy)
    for tag, attributes in seen.elements:
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        assert (attributes.get("href") or "#").startswith(("#", "data:,"))
        assert tag != "img" or (str(attributes["src"]).startswith("data:image/svg+xml;base64,") and attributes["alt"])


def test_every_box_that_scrolls_can_be_reached_by_keyboard(filled: Path) -> None:
    seen = Elements((filled / "laptop1" / "report" / "index.html").read_text())
    boxes = [attributes for _, attributes in seen.elements if attributes.get("class") == "scroll"]
    assert {(box.get("tabindex"), box.get("role")) for box in boxes} == {("0", "region")}
    names = [box.get("aria-label") for box in boxes]
    assert all(names)
    assert len(set(names)) == len(names)


def test_every_link_leads_to_a_section(filled: Path) -> None:
    seen = Elements((filled / "laptop1" / "report" / "index.html").read_text())
    ids = {attributes["id"] for _, attributes in seen.elements if "id" in attributes}
    links = {str(a["href"])[1:] for tag, a in seen.elements if tag == "a"}
    assert links <= ids
    assert set(EXPERIMENTS) - SECOND_PROTOCOL <= ids


@pytest.mark.parametrize("text", HOSTILE[:-1])
def test_a_hostile_error_stays_text_everywhere(tmp_path: Path, text: str) -> None:
    store = ResultStore(tmp_path, "laptop1")
    write(store, EXPERIMENTS["table1"].cells(LAPTOP)["mnist/mlp/1k", "punce"][0], None, text)
    (page,) = write_all(tmp_path, "laptop1", ["table1"])
    seen = Elements(page.read_text())
    assert "script" not in [tag for tag, _ in seen.elements]
    assert not [a for _, a in seen.elements if any(name.startswith("on") for name in a)]
    document, appendix = build_docs(tmp_path, "laptop1")
    pages = [document, *(text for path, text in appendix.items() if path.suffix == ".md")]
    assert not any(re.search(r"<(?!/?(details|summary|br)\b)", text) for text in pages)
    assert any("seed 0 failed" in text for text in pages)


def test_commentary_by_hand_is_merged(tmp_path: Path) -> None:
    results = tmp_path / "results"
    fill(results, ["table5"])
    (results / "laptop1" / "reading.md").write_text("The **views** matter.\n\n<b>Second</b> thought.\n")
    document, _ = build_docs(results, "laptop1")
    assert "## Commentary\n\nThe **views** matter.\n\n<b>Second</b> thought." in document
    (page,) = write_all(results, "laptop1", ["table5"])
    assert "&lt;b&gt;Second&lt;/b&gt; thought." in page.read_text()
    (results / "laptop1" / "reading.md").write_bytes(b"\xff")
    with pytest.raises(InputError, match=r"reading\.md is not UTF-8"):
        build_docs(results, "laptop1")


# Figures ---------------------------------------------------------------------------------------------------------


def drawn(results: Path, *names: str) -> dict[str, str]:
    made = Results(results, LAPTOP)
    return {p.name: p.svg for name in names or EXPERIMENTS for p in pictures(made.grid(EXPERIMENTS[name]))}


def on_disk(filled: Path) -> dict[str, str]:
    return {path.stem: path.read_text() for path in (filled / "laptop1" / "report").glob("*.svg")}


@pytest.mark.slow
def test_figures_are_the_same_bytes_every_time(filled: Path) -> None:
    first = on_disk(filled)
    assert first == drawn(filled)
    for svg in first.values():
        assert not re.search(r"<dc:date|matplotlib\.org|\d{4}-\d\d-\d\d", svg, flags=re.IGNORECASE)


def test_figures_are_well_formed_and_say_what_is_what(filled: Path) -> None:
    for name, svg in on_disk(filled).items():
        ElementTree.fromstring(svg)
        ElementTree.fromstring(for_page(svg))
        if name == "figure1":
            assert all(f">{method}<" in svg for method in ("puNCE", "nnPU", "Self-PU", "10k"))


def legends(svg: str) -> list[ElementTree.Element]:
    return [one for one in ElementTree.fromstring(svg).iter() if (one.get("id") or "").startswith("legend_")]


def test_every_series_of_a_panel_has_a_colour_of_its_own(filled: Path) -> None:
    found = {name: legends(svg) for name, svg in on_disk(filled).items()}
    assert {name for name, some in found.items() if not some} == {"tsne"}
    for name, some in found.items():
        for legend in some:
            labels = [one for one in legend.iter() if one.tag.endswith("}text")]
            text = ElementTree.tostring(legend, encoding="unicode")
            assert len([colour for colour in PALETTE if colour in text]) == len(labels) > 1, name


def test_known_methods_keep_their_place_and_others_get_a_free_one() -> None:
    assert places_of(["loss and probe", "loss", "probe", "nnPU"]) == [0, 2, 3, 1]
    assert places_of(["PN", "random", "puNCE"]) == [6, 1, 0]
    assert places_of(["InfoNCE", "nnPU"]) == [1, 0], "the first keeps a place that two have"
    assert sorted(places_of([str(n) for n in range(len(PALETTE))])) == list(range(len(PALETTE)))
    with pytest.raises(ValueError, match="7 series apart, got 8"):
        places_of([str(n) for n in range(8)])


def test_a_users_matplotlib_style_does_not_leak_in(filled: Path) -> None:
    import matplotlib as mpl

    before = on_disk(filled)["tsne"]
    with mpl.rc_context({"lines.linewidth": 9.0, "font.size": 30.0, "svg.fonttype": "path"}):
        assert drawn(filled, "tsne")["tsne"] == before
        assert mpl.rcParams["lines.linewidth"] == 9.0


def test_on_the_page_ink_follows_dark_mode_and_data_colours_stay(filled: Path) -> None:
    svg = on_disk(filled)["figure1"]
    themed = for_page(svg)
    assert "prefers-color-scheme:dark" in themed
    assert "fill: var(--ground)" in themed
    assert themed.count(PALETTE[0]) == svg.count(PALETTE[0]) > 0


def test_one_seed_draws_no_band(tmp_path: Path) -> None:
    one, three = (tmp_path / name for name in ("one", "three"))
    fill(one, ["biased_labels"], seeds=[0])
    fill(three, ["biased_labels"], seeds=[0, 1, 2])
    one_svg, three_svg = (drawn(results, "biased_labels")["biased_labels"] for results in (one, three))
    assert "FillBetweenPolyCollection" not in one_svg
    assert "FillBetweenPolyCollection" in three_svg


# The document ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_document_does_not_depend_on_the_order_of_files(few: Path, tmp_path: Path) -> None:
    results = tmp_path / "copy"
    (results / "laptop1").mkdir(parents=True)
    for path in sorted((few / "laptop1").glob("*.json"), reverse=True):
        shutil.copy(path, results / "laptop1")
    assert build_docs(results, "laptop1") == build_docs(few, "laptop1")


def test_the_document_and_its_figures_are_written_and_stale_ones_removed(few: Path, tmp_path: Path) -> None:
    path = tmp_path / "docs" / "results.md"
    stale = path.parent / "images" / "results" / "paper-figure1.svg"
    mine = path.parent / "results" / "mine.md"
    for file in (stale, mine):
        file.parent.mkdir(parents=True)
        file.write_text("<svg/>")
    assert write_docs(few, "laptop1", path) == [path]
    assert not stale.exists()
    mine.unlink()  # it was left alone
    links = re.findall(r"\]\(\.\./(images/[^)]+)\)", (path.parent / "results" / "tables.md").read_text())
    assert links
    links += re.findall(r"\]\((images/[^)]+)\)", path.read_text())
    assert sorted(links) == sorted(p.relative_to(path.parent).as_posix() for p in stale.parent.iterdir())
    behind = re.findall(r"\]\((results/[^)]+)\)", path.read_text())
    assert sorted(behind) == sorted(p.relative_to(path.parent).as_posix() for p in (path.parent / "results").iterdir())


def test_the_command_presents_without_running(few: Path, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from punce.cli import app

    path = tmp_path / "docs" / "results.md"
    arguments = ["reproduce", "table1", "--scale", "laptop1", "--results", str(few), "--no-run", "--docs", str(path)]
    before = sorted((few / "laptop1").glob("*.json"))
    ran = CliRunner().invoke(app, arguments)
    assert ran.exit_code == 0, ran.output
    assert path.read_text() == build_docs(few, "laptop1")[0]
    assert (few / "laptop1" / "report" / "table1.tex").exists()
    assert sorted((few / "laptop1").glob("*.json")) == before


def test_each_place_has_a_table_of_its_claims_and_only_the_scales_that_measured_one() -> None:
    document = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    places = document.split("\n### ")[1:]
    assert len(places) >= 5
    for place in places:
        head, _, *rows = [line.strip("|").split("|") for line in place.splitlines() if line.startswith("|")]
        assert not any(place.partition("\n")[0] in row[0] for row in rows)
        assert all(any(row[column].strip() for row in rows) for column in range(len(head)))
    captions = re.findall(r"^\*.*\*$", document, flags=re.MULTILINE)
    assert len(captions) == len(set(captions)) > 0


def test_the_committed_document_is_what_the_committed_results_give() -> None:
    document, results = ROOT / "docs" / "results.md", ROOT / "results"
    assert list((results / "laptop").glob("*.json"))
    text, appendix = build_docs(results, "laptop")
    assert document.read_text(encoding="utf-8") == text
    behind = [*(document.parent / "images" / "results").glob("*.svg"), *(document.parent / "results").glob("*.md")]
    assert {path.relative_to(document.parent) for path in behind} == set(appendix)
    for name, content in appendix.items():
        assert (document.parent / name).read_text(encoding="utf-8") == content, name
