"""What the documents say exists, and what they show runs."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from punce import PUClassifier
from punce.experiments.true_metrics import true_metrics
from punce.models.saved import _OfTheFit

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = [README, *(ROOT / name for name in ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "benchmarks/README.md"))]
PAGES += sorted((ROOT / "docs").rglob("*.md"))
TOP_FOLDERS = ("src", "tests", "benchmarks", "examples", "docs")

_SHOWN = ("training.md",)  # whose first block stands by itself

_ENDINGS = {"_page.py", "_pages.py", "_summary.py"}  # of files that make tables

pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def parts(page: Path) -> list[tuple[str | None, str]]:
    """(language, text) of every code block, and (None, line) of every line outside of one."""
    found: list[tuple[str | None, str]] = []
    language, block = None, ""
    for line in page.read_text().splitlines():
        if line.startswith("```") and language is None:
            language, block = line[3:], ""
        elif line.startswith("```"):
            found.append((language, block))
            language = None
        elif language is None:
            found.append((None, line))
        else:
            block += line + "\n"
    return found


def prose_code(page: Path) -> list[str]:
    """Code spans outside of code blocks."""
    return [span for kind, line in parts(page) if kind is None for span in re.findall(r"`([^`]+)`", line)]


def blocks(page: Path, language: str) -> list[str]:
    return [text for kind, text in parts(page) if kind == language]


# Python ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(3))
def test_python_blocks_of_the_readme_and_the_stages_run_and_learn(number: int) -> None:
    torch.manual_seed(0)
    namespace: dict[str, Any] = {"__name__": "readme"}
    namespace["print"] = lambda *_: None
    shown = [*blocks(README, "python"), *(blocks(ROOT / "docs" / name, "python")[0] for name in _SHOWN)]
    assert len(shown) == 3
    exec(compile(shown[number], f"block {number}", "exec"), namespace)
    if "probabilities" in namespace:
        assert true_metrics(namespace["y"], namespace["probabilities"], threshold=0.5).accuracy > 0.75
    elif "scores" in namespace:
        scores = namespace["scores"].numpy()
        assert true_metrics(namespace["digits"].test.y_true, scores).accuracy > 0.75
    else:
        assert float(namespace["value"].detach()) < 5.3  # 5.5 at the first step


def test_the_blocks_of_the_stages_run_with_an_encoder_of_ones_own() -> None:
    torch.manual_seed(0)
    namespace: dict[str, Any] = {"__name__": "training"}
    for number, block in enumerate(blocks(ROOT / "docs" / "training.md", "python")[:2]):
        exec(compile(block, f"block {number} of training.md", "exec"), namespace)
    assert type(namespace["encoder"]) is namespace["Own"]
    assert true_metrics(namespace["digits"].test.y_true, namespace["scores"].numpy()).accuracy > 0.75


@pages
def test_dotted_names_can_be_imported(page: Path) -> None:
    names = {match for span in prose_code(page) for match in re.findall(r"\bpunce(?:\.\w+)+", span)}
    for name in sorted(names):
        assert resolve(name) is not None, f"{page.name}: {name}"


@cache
def resolve(dotted: str) -> Any:
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[length:]:
            found = getattr(found, attribute, None)
        return found
    return None


@pages
def test_modules_that_are_run_can_be_imported(page: Path) -> None:
    named = {name for span in prose_code(page) for name in re.findall(r"\bpython -m (tests(?:\.\w+)+)", span)}
    for name in sorted(named):
        module = importlib.util.find_spec(name)
        assert module is not None, f"{page.name}: {name}"
        if name != "tests.report.screenshots" or importlib.util.find_spec("playwright"):
            importlib.import_module(name)


# Files -----------------------------------------------------------------------------------------------------------


@pages
def test_no_page_holds_the_marks_of_a_merge(page: Path) -> None:
    assert not re.findall(r"^(?:<{7}|>{7}|={7}$).*", page.read_text(), flags=re.MULTILINE)


def test_the_list_of_changes_is_short_enough_to_read() -> None:
    lines = (ROOT / "CHANGELOG.md").read_text().splitlines()
    assert len(lines) <= 120
    assert max(map(len, lines)) <= 200


@pages
def test_links_lead_somewhere(page: Path) -> None:
    prose = "\n".join(re.sub(r"`[^`]*`", "", line) for kind, line in parts(page) if kind is None)
    links = [link.partition("#") for link in re.findall(r"\]\(([^)]+)\)", prose) if "://" not in link]
    for file, _, heading in links:
        target = page.parent / file if file else page
        assert target.exists(), file
        assert not heading or heading in headings(target), f"{file}#{heading}"


def headings(page: Path) -> set[str]:
    """What a link to a heading ends with, here and on the site, which write most headings alike."""
    titles = [re.sub(r"^#+ ", "", line) for kind, line in parts(page) if kind is None and re.match(r"#+ ", line)]
    words = [re.sub(r"[^\w\s-]", "", title.lower()) for title in titles]
    return {word.replace(" ", "-") for word in words} & {re.sub(r"[-\s]+", "-", word) for word in words}


@pages
def test_paths_and_tests_exist(page: Path) -> None:
    for span in prose_code(page):
        for path, test in re.findall(
            rf"((?:{'|'.join(TOP_FOLDERS)})/[\w./-]*\w|\b\w+\.(?:txt|toml))/?(?:::(\w+))?", span
        ):
            assert (ROOT / path).exists(), f"{page.name}: {path}"
            assert not test or f"def {test}(" in (ROOT / path).read_text(), f"{page.name}: {path}::{test}"


def test_the_recipes_name_the_file_of_each_dictionary() -> None:
    pairs = re.findall(r"A line in `([A-Z]+)`\s*\(`([^`]+)`\)", (ROOT / "CONTRIBUTING.md").read_text())
    assert {name for name, _ in pairs} == {"LOSSES", "ENCODERS", "RISKS", "PRIORS", "DATASETS", "VIEWS"}
    for name, path in pairs:
        assert re.search(rf"^{name}\b.* = \{{", (ROOT / path).read_text(), flags=re.MULTILINE), f"{name} in {path}"


def test_the_recipes_name_what_is_in_the_files_they_name() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    pairs = re.findall(r"`(\w+)`\s*(?:of|in|\()\s*`([\w/]+\.py)`", text)
    assert len(pairs) >= 12
    for name, path in pairs:
        assert re.search(rf"^(class )?{name}\b", (ROOT / path).read_text(), flags=re.MULTILINE), f"{name} in {path}"


def test_the_api_page_has_what_is_exported_and_what_the_pages_call() -> None:
    text = (ROOT / "docs" / "api.md").read_text()
    found = re.findall(r"::: ([\w.]+)\n(?: .*\n)*? +members: \[([^\]]+)\]", text)
    listed = {name: set(members.split(", ")) for name, members in found}
    ours = [kind for kind in PUClassifier.__mro__[1:] if kind.__module__.startswith("punce.")]
    inherited = re.search(r"inherited_members: \[([^\]]+)\]", text)
    assert inherited is not None
    own = {name: value for kind in ours for name, value in vars(kind).items() if not name.startswith("_")}
    public = {name for name, value in own.items() if not isinstance(value, _OfTheFit)} - {"explains_quickly"}
    assert set(inherited[1].split(", ")) == public
    inner = {"LOSSES", "RISKS", "ENCODERS", "VIEWS", "row_options", "cifar"}  # of the product and of stored results
    for name in ("punce.losses", "punce.risks", "punce.encoders", "punce.views"):
        assert listed[name] == set(importlib.import_module(name).__all__) - inner, name
    used = "".join(blocks(ROOT / "docs" / "training.md", "python"))
    for module, names in re.findall(r"from (punce\.(?:stages|training)\.[\w.]+) import ([\w, ]+)", used):
        for name in names.split(", "):
            assert f"::: {module}.{name}" in text, name


def test_the_api_page_has_what_messages_send_a_person_to_and_every_stage_of_its_page() -> None:
    listed, sent = set(re.findall(r"\w+", (ROOT / "docs" / "api.md").read_text())), []
    for file in (ROOT / "src").rglob("*.py"):
        nodes = list(ast.walk(ast.parse(file.read_text())))
        docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        texts = [node.value for node in nodes if isinstance(node, ast.Constant) and id(node) not in docstrings]
        sent += [name for text in texts if isinstance(text, str) for name in re.findall(r"\bpunce(?:\.\w+){2,}", text)]
    paths = {name: ROOT / "src" / name.replace(".", "/") for name in sent}
    modules = {name for name, path in paths.items() if path.is_dir() or path.with_suffix(".py").exists()}
    assert {name.rpartition(".")[2] for name in sent if name not in modules} - listed == set()
    stages = re.search(
        r"Each stage is one function around one loop: (.*)\. ", (ROOT / "docs" / "training.md").read_text()
    )
    assert stages is not None
    assert set(re.findall(r"`(\w+)`", stages[1])) - listed == set()


def test_the_tree_of_the_readme_names_what_is_there() -> None:
    tree = next(block for block in blocks(README, "") if block.startswith("src/punce/"))
    package = ROOT / "src" / "punce"
    named = {name for line in tree.splitlines() for name in re.findall(r"^  (\w+/|\w+\.py)| (\w+\.py) ", line)}
    inside = {first or second for first, second in named}
    assert {name for name in inside if not (package / name).exists()} == set()
    assert {f"{path.parent.name}/" for path in package.glob("*/__init__.py")} <= inside
    for line in tree.splitlines():
        assert line.startswith("  ") or (ROOT / line.split()[0]).exists(), line


def test_the_list_of_benchmarks_names_every_script_and_result() -> None:
    folder, results = ROOT / "benchmarks", ROOT / "benchmarks" / "results"
    listed = (folder / "README.md").read_text()
    named = set(re.findall(r"\b\w+\.(?:py|jsonl?)\b", listed))
    scripts = {path.name for path in folder.glob("*.py") if not re.search(r"_(pages?|summary)$", path.stem)}
    assert scripts - named == set()
    written = {path.name for path in results.glob("*.json")}
    assert written - named - {f"{script.removesuffix('.py')}.json" for script in named} == set()
    assert {name for name in named if not (folder / name).exists() and not (results / name).exists()} <= _ENDINGS


# Commands --------------------------------------------------------------------------------------------------------


@pages
def test_make_targets_exist(page: Path) -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    code = prose_code(page) + blocks(page, "")
    named = {target for text in code for target in re.findall(r"^make ([\w-]+)", text, flags=re.MULTILINE)}
    assert named <= targets


@pages
def test_punce_commands_exist(page: Path) -> None:
    from punce.cli import app

    commands = {command.name or getattr(command.callback, "__name__", "") for command in app.registered_commands}
    code = prose_code(page) + blocks(page, "")
    named = {command for text in code for command in re.findall(r"^punce (\w+)", text, flags=re.MULTILINE)}
    assert named <= commands


@pages
def test_options_of_punce_commands_exist(page: Path) -> None:
    """`punce fit DATA --label COL` takes --label, and so on; torchrun and Dask have options of their own."""
    from typer.main import get_command

    from punce.cli import app

    commands = get_command(app).commands  # type: ignore[attr-defined]
    for text in prose_code(page) + blocks(page, "") + blocks(page, "console"):
        for name, rest in re.findall(r"(?:^(?:\$ )?|-m )punce (\w+)([^#\n]*)", text, flags=re.MULTILINE):
            taken = {option for parameter in commands[name].params for option in parameter.opts}
            assert set(re.findall(r"--[a-z][\w-]*", rest)) <= taken | {"--help"}, f"{page.name}: punce {name}{rest}"


def test_every_experiment_has_its_command_in_the_page_of_the_paper() -> None:
    from punce.experiments import EXPERIMENTS

    named = re.findall(r"`punce reproduce ([\w ]+) --scale", (ROOT / "docs" / "paper.md").read_text())
    assert {name for names in named for name in names.split()} == {"all", *EXPERIMENTS}
