"""Drawing, verdicts, audit, refit: everything around the page, on a run that took no time."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from punce.cli.fit import _say_outcome
from punce.cli.review import _rows_to_draw
from punce.cli.terminal import Terminal
from punce.errors import InputError
from punce.judging.sampling import QUANTITIES
from punce.product.fit import run_fit
from punce.product.plan import DataOptions, ModelOptions, RunOptions
from punce.product.review.job import (
    Goal,
    State,
    draw_rows,
    finding,
    gain,
    is_reached,
    new_verdicts,
    open_to,
    progress_to,
    state_of,
    why_no_audit,
)
from punce.product.review.page import judged_by_people
from punce.product.review.refit import reviewed_rows
from punce.product.review.run import ScoredRun, scored_run
from punce.product.review.store import Before, ReviewFolder, Verdict
from punce.report import ReportContent
from punce.report.content import Interval
from tests.copies import punce_command

from .runs import filled_in, finished_run, truth_of, write_table


def take_verdicts(scored: ScoredRun, files: list[Path], who: str | None) -> tuple[int, list[str]]:
    """As the command takes them: how many were new, and what was not usable."""
    new, problems = new_verdicts(scored, files, who)
    ReviewFolder(scored.folder).append(new)
    return len(new), problems


def reviewed(run: Path, n_rows: int = 60) -> State:
    """The run after `n_rows` true verdicts more."""
    scored = scored_run(run)
    data = scored.data()
    plan = draw_rows(scored, data, "share", n_rows, seed=0)
    lines = [f"{one.key},{int(truth_of()[one.row])}" for one in plan.rounds[-1].drawn]
    file = run / "verdicts.csv"
    file.write_text("key,verdict\n" + "\n".join(lines) + "\n")
    take_verdicts(scored, [file], None)
    found = state_of(scored)
    assert found is not None
    return found


def test_rows_are_drawn_with_the_chances_that_are_written_down(run: Path) -> None:
    scored = scored_run(run)
    plan = draw_rows(scored, scored.data(), "share", 60, seed=0)
    one = json.loads((run / "review" / "draw.json").read_text())["rounds"][0]
    assert len(one["strata"]) == len(scored.rows) == sum(one["free"])
    assert sum(chance * free for chance, free in zip(one["chances"], one["free"], strict=True)) == pytest.approx(60)
    assert all(0 < chance <= 1 for chance in one["chances"])
    assert len(plan.drawn) == 60
    assert {row.row for row in plan.drawn.values()} <= set(scored.rows.tolist())


def test_more_rows_are_new_rows_and_rounds_combine(run: Path) -> None:
    first = reviewed(run)
    both = reviewed(run, 100)
    assert len(both.plan.drawn) == 160
    assert both.audit is not None
    assert first.audit is not None
    assert both.audit.verdicts == 160
    truth = truth_of()[both.run.rows].mean()
    assert both.audit.share.low <= truth <= both.audit.share.high
    assert both.audit.share.high - both.audit.share.low < first.audit.share.high - first.audit.share.low
    reviewed(run, 1000)
    with pytest.raises(InputError, match="every unlabelled row"):
        reviewed(run, 1)


def test_verdicts_that_contradict_the_labels_are_said_to(tmp_path: Path) -> None:
    table = write_table(tmp_path / "table.csv")
    agrees, contradicts = (reviewed(finished_run(tmp_path / str(share), table, share=share)) for share in (0.35, 0.06))
    assert agrees.disagreements == []
    assert agrees.share is not None
    assert agrees.audit is not None
    assert agrees.share.high - agrees.share.low < agrees.audit.share.high - agrees.audit.share.low
    assert "share" in contradicts.disagreements
    assert contradicts.audit is not None
    assert contradicts.share == contradicts.audit.share
    assert (agrees.share_rests_on_labels, contradicts.share_rests_on_labels) == (True, False)


@pytest.mark.parametrize(
    ("option", "needs"),
    [
        (("--for", "recall"), "a draw; add --rows"),
        (("--out", "more.csv"), "rows to judge, and all that were drawn are judged; add --rows"),
        (("--show-probability",), "rows to judge, and all that were drawn are judged; add --rows"),
    ],
)
def test_an_option_without_rows_is_refused(option: tuple[str, ...], needs: str, run: Path) -> None:
    reviewed(run, 12)
    done = punce_command("review", run, *option)
    assert done.returncode == 2
    assert f"{option[0]} has no effect here: it needs {needs}" in done.stderr


@pytest.mark.parametrize("options", [(), ("--serve",)])
def test_a_refused_aim_takes_no_verdicts(run: Path, tmp_path: Path, options: tuple[str, ...]) -> None:
    assert punce_command("review", run, "--rows", 12).returncode == 0
    filled = filled_in(run / "review" / "review.csv", tmp_path / "filled.csv")
    rows = pd.read_csv(filled, dtype=str, keep_default_na=False)
    rows[:-1].to_csv(filled, index=False)  # a row stays open: the page draws no more
    done = punce_command("review", run, "--verdicts", filled, "--for", "recall", *options, timeout=60.0)
    assert done.returncode == 2
    assert "--for has no effect here: it needs a draw" in done.stderr
    assert "verdicts taken" not in done.stdout
    assert not ReviewFolder(run).verdicts()


def test_a_refused_draw_takes_no_verdicts(run: Path, tmp_path: Path) -> None:
    assert punce_command("review", run, "--rows", 1000).returncode == 0
    filled = filled_in(run / "review" / "review.csv", tmp_path / "filled.csv")
    done = punce_command("review", run, "--verdicts", filled, "--rows", 5)
    assert done.returncode == 2
    assert "every unlabelled row is drawn already" in done.stderr
    assert not ReviewFolder(run).verdicts()


def test_a_draw_from_a_file_that_has_gone_takes_no_verdicts(run: Path, tmp_path: Path) -> None:
    assert punce_command("review", run, "--rows", 12).returncode == 0
    filled = filled_in(run / "review" / "review.csv", tmp_path / "filled.csv")
    (tmp_path / "table.csv").unlink()
    done = punce_command("review", run, "--verdicts", filled, "--rows", 5)
    assert done.returncode == 2
    assert "is not here; name it with --data" in done.stderr
    assert not ReviewFolder(run).verdicts()


@pytest.mark.parametrize("text", ["precision±0.03", "precision+-0.03", "precision +/- 0.03", "precision=3%"])
def test_goals(text: str) -> None:
    assert Goal.of(text) == Goal("precision", 0.03)


@pytest.mark.parametrize("text", ["precision", "f1±0.03", "precision±0", "precision±3", "±0.03", "share±0.0.3"])
def test_goals_that_are_none(text: str) -> None:
    with pytest.raises(InputError, match="--stop-when"):
        Goal.of(text)


def test_when_enough_is_judged(run: Path) -> None:
    found = reviewed(run)
    assert is_reached(Goal("share", 0.3), found)
    assert "enough rows are judged" in progress_to(Goal("share", 0.3), found)
    assert not is_reached(Goal("share", 0.001), found)
    assert "more verdicts" in progress_to(Goal("share", 0.05), found)
    assert "nearly all of the" in progress_to(Goal("share", 0.001), found)


def test_why_verdicts_show_nothing_yet(run: Path) -> None:
    state = reviewed(run, 6)
    assert progress_to(Goal("share", 0.3), state) == "fewer than 10 rows are judged: too few to say anything"
    done = punce_command("review", run)
    assert done.stdout.splitlines()[-2:] == ["6 rows judged, 0 open", why_no_audit(state)]
    seen = replace(reviewed(run, 20), audit=None)  # by a model that was trained with them
    assert why_no_audit(seen) == "fewer than 10 of the judged rows can audit this model: too few to say anything"


# A new fit ---------------------------------------------------------------------------------------------------------


def test_a_refit_gets_the_truths_of_judged_rows_and_their_share(run: Path, tmp_path: Path) -> None:
    state = reviewed(run)
    source = DataOptions(str(tmp_path / "table.csv"), "label", id="name", drop=("b",))  # other columns, same rows
    rows = reviewed_rows(run, source, source.read())
    assert rows.judged.sum() == 60
    assert np.array_equal(rows.labels[rows.judged] == 1, truth_of()[rows.judged])
    assert state.share is not None
    assert rows.prior == (state.share.value, state.share.low, state.share.high)
    assert "np.float64" not in repr(rows.prior)  # the model card shows it
    rows.carry(tmp_path / "next")
    plan = ReviewFolder(tmp_path / "next").plan()
    assert plan is not None
    assert (len(plan.rounds), plan.before[0].verdicts) == (1, 60)
    assert len(ReviewFolder(tmp_path / "next").verdicts()) == 60


@pytest.mark.usefixtures("quick_tables")
@pytest.mark.parametrize(("verdicts", "given", "rests"), [(60, "auto", True), (6, "auto", False), (60, 0.3, False)])
def test_a_refit_says_that_its_share_rests_on_verdicts_only_where_it_does(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], verdicts: int, given: float | str, rests: bool
) -> None:
    reviewed(run, verdicts)
    source = DataOptions(str(tmp_path / "table.csv"), "label", id="name", drop=("note",))
    options = RunOptions(review=run)
    outcome = run_fit(source, ModelOptions(prior=given), tmp_path / "again", options, say=lambda _: None)
    _say_outcome(Terminal(), outcome)
    said = " ".join(capsys.readouterr().out.split())
    assert f"the model learned from {verdicts} verdicts" in said
    assert ("the share of positives is based on them and on the labels;" in said) == rests
    card, page = ((tmp_path / "again" / name).read_text() for name in ("MODEL_CARD.md", "report.html"))
    numbers = (tmp_path / "again" / "metrics.json").read_text()
    assert all(("verdicts of a review" in text) == rests for text in (card, page, numbers))
    assert ('"method": "given"' in numbers) == (given == 0.3)
    assert f"unlabelled rows; {verdicts} judged row" in card
    assert "no negatives were known" not in card


def test_a_refit_that_cannot_learn_from_verdicts_does_not_say_that_it_did(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reviewed(run)
    source = DataOptions(str(tmp_path / "table.csv"), "label", id="name", drop=("note",))
    model = ModelOptions(encoder="mlp", loss=None, risk="upu", epochs=1)
    outcome = run_fit(source, model, tmp_path / "again", RunOptions(review=run), say=lambda _: None)
    _say_outcome(Terminal(), outcome)
    said = " ".join(capsys.readouterr().out.split())
    assert "the model did not learn from 60 verdicts, but the share of positives is based on them" in said
    assert "with 60 judged rows" not in said
    assert "unlabelled rows; not from 60 judged rows" in (tmp_path / "again" / "MODEL_CARD.md").read_text()
    assert not scored_run(tmp_path / "again").learned_from_verdicts


@pytest.mark.parametrize(("prior", "is_compared"), [(0.06, True), ("auto", True), ([0.06, 0.0, 0.12], False)])
def test_the_share_of_a_refit_is_compared_with_the_verdicts_unless_it_rests_on_them(
    run: Path, tmp_path: Path, prior: object, is_compared: bool
) -> None:
    reviewed(run)
    source = DataOptions(str(tmp_path / "table.csv"), "label", id="name")
    first = reviewed_rows(run, source, source.read())
    again = finished_run(tmp_path / "again", tmp_path / "table.csv", share=0.06)
    config = json.loads((again / "config.json").read_text())
    config |= {"review": first.as_config(), "model": {"prior": prior}}
    (again / "config.json").write_text(json.dumps(config))
    first.carry(again)
    state = state_of(scored_run(again))
    assert state is not None
    assert ("share was said to be 0.060" in finding(state)) is is_compared
    assert ("the given share of positives does not fit" in finding(state)) is (prior == 0.06)


@pytest.mark.parametrize("seen", [False, True])
def test_a_refit_of_a_refit_rests_on_the_labels_and_on_all_verdicts_once(run: Path, tmp_path: Path, seen: bool) -> None:
    """Without a new verdict the share stays, also if the refit was trained with every judged row."""
    reviewed(run)
    source = DataOptions(str(tmp_path / "table.csv"), "label", id="name")
    first = reviewed_rows(run, source, source.read())
    again = finished_run(tmp_path / "again", tmp_path / "table.csv", share=0.2)  # it claims what it was told
    config = json.loads((again / "config.json").read_text())
    (again / "config.json").write_text(json.dumps({**config, "review": first.as_config()}))
    listed = pd.read_csv(again / "scores.csv")
    listed["judged"] = np.array(first.said())[listed["row"]]
    listed.assign(seen_in_training=seen).to_csv(again / "scores.csv", index=False)
    first.carry(again)
    second = reviewed_rows(again, source, source.read())
    assert np.array_equal(second.labels, first.labels)
    assert first.prior is not None
    assert second.prior == pytest.approx(first.prior, abs=0.01)
    assert (second.state.audit is None) is seen


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("a", "1 reviewed row has changed"),
        ("label", "labels"),
        ("name", "1 row has another name than in"),
        ("row", "rows"),
    ],
)
def test_a_file_that_changed_is_refused(run: Path, tmp_path: Path, change: str, why: str) -> None:
    state = reviewed(run)
    frame = pd.read_csv(tmp_path / "table.csv")
    row = next(iter(state.plan.drawn.values())).row
    if change == "row":
        frame = frame.iloc[:-1]
    else:
        frame.loc[row, change] = "other" if change == "name" else 1
    frame.to_csv(tmp_path / "table.csv", index=False)
    source = DataOptions(str(tmp_path / "table.csv"), "label", id="name")
    with pytest.raises(InputError, match=why):
        reviewed_rows(run, source, source.read())


def test_the_review_of_another_file_is_refused_by_its_rows(run: Path, tmp_path: Path) -> None:
    """And not for want of a column that only the other file has."""
    reviewed(run)
    pd.DataFrame({"x": range(50), "label": [1] * 10 + [0] * 40}).to_csv(tmp_path / "other.csv", index=False)
    source = DataOptions(str(tmp_path / "other.csv"), "label")
    with pytest.raises(InputError, match=r"has 50 rows and .* was fitted on"):
        reviewed_rows(run, source, source.read())


@pytest.mark.parametrize(
    ("changed", "mend"),
    [
        ({"id": None}, "have other names than in .*, which was fitted with --id 'name': do so again"),
        ({"positive": "0"}, "the labels of .* are not those of .*, which was fitted with --label 'label': do so again"),
    ],
)
def test_a_refit_that_reads_the_file_otherwise_is_told_the_options_of_the_run(
    run: Path, tmp_path: Path, changed: dict[str, str | None], mend: str
) -> None:
    reviewed(run)
    source = replace(DataOptions(str(tmp_path / "table.csv"), "label", id="name"), **changed)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=mend):
        reviewed_rows(run, source, source.read())


def test_a_review_without_verdicts_cannot_be_learned_from(run: Path, tmp_path: Path) -> None:
    source = DataOptions(str(tmp_path / "table.csv"), "label", id="name")
    with pytest.raises(InputError, match="no verdicts yet"):
        reviewed_rows(run, source, source.read())


# The command -------------------------------------------------------------------------------------------------------


def test_the_command_from_draw_to_page(run: Path, tmp_path: Path) -> None:
    drawn = punce_command("review", run, "--rows", 50, "--for", "precision")
    assert drawn.returncode == 0, drawn.stderr
    file = run / "review" / "review.csv"
    frame = pd.read_csv(file, dtype=str, keep_default_na=False)
    assert list(frame.columns) == ["key", "id", "verdict", "a", "b", "note"]
    assert set(frame["note"]) == {"'=1+1", "<script>window.hacked = 1</script>"}
    first = filled_in(file, tmp_path / "filled.csv", yes="1.0", no="FALSE")
    done = punce_command("review", run, "--verdicts", first, "--stop-when", "precision+-0.2")
    assert done.returncode == 0, done.stderr
    assert "50 rows judged, 0 open" in done.stdout
    assert "enough rows are judged" in done.stdout
    page = ReportContent.read(run / "report.json")
    assert page.judged is not None
    assert [number.name for number in page.judged.numbers] == list(QUANTITIES)
    assert "Judged by people" in (run / "report.html").read_text()
    assert json.loads((run / "review" / "audit.json").read_text())["verdicts"] == 50


@pytest.mark.parametrize(("low", "sure"), [(0.0, "may be chance"), (0.5, "do not overlap")])
def test_after_a_refit_it_is_said_what_was_gained_for_how_many_verdicts(run: Path, low: float, sure: str) -> None:
    state = reviewed(run)
    assert gain(state) == ""
    then = Interval(0.5, low, 0.55 if low else 1.0)
    before = Before("first", 40, {}, {"accuracy": then})
    state = replace(state, plan=replace(state.plan, before=(before,)))
    said = gain(state)
    assert state.audit is not None
    assert (
        f"learned from 40 verdicts: the judged accuracy went from 0.500 (first) to {state.audit.accuracy.value:.3f}"
        in said
    )
    assert sure in said
    unused = replace(state.run, config={**state.run.config, "ran": {"known_unused": {"judged rows": 40}}})
    assert "The refit had 40 verdicts: " in gain(replace(state, run=unused))
    judged = judged_by_people(state)
    assert judged is not None
    assert said in judged.finding


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--for", "f1"], "--for must be one of"),
        (["--stop-when", "soon"], "--stop-when must name"),
        (["--verdicts", "nowhere.csv"], "no review yet"),
        (["--port", "8000"], "--port has no effect here: it needs --serve"),
        (["--serve", "--judge", " "], "--judge is empty"),
        (["--judge", "ann"], "--judge has no effect here"),
        (["--serve", "--out", "rows.csv"], "--out has no effect here"),
        (["--verdicts", "nowhere.csv", "--show-probability"], "--show-probability has no effect here"),
    ],
)
def test_mistakes_are_one_line(run: Path, arguments: list[str], why: str) -> None:
    done = punce_command("review", run, *arguments)
    assert done.returncode == 2
    assert why in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (run / "review" / "draw.json").exists()


def test_neither_the_file_of_the_run_nor_another_file_is_replaced(run: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text("my notes\n")
    for path, why in ((tmp_path / "table.csv", "would replace what the command reads"), (other, "would be replaced")):
        before = path.read_bytes()
        done = punce_command("review", run, "--rows", 5, "--out", path)
        assert done.returncode == 2
        assert why in done.stderr
        assert path.read_bytes() == before
    assert not (run / "review" / "draw.json").exists()


def test_a_command_to_copy_has_paths_with_spaces_in_quotes(run: Path, tmp_path: Path) -> None:
    file = tmp_path / "my rows.csv"
    said = punce_command("review", run, "--rows", 5, "--out", file).stdout
    (command,) = (line for line in said.splitlines() if "--verdicts" in line)
    assert shlex.split(command) == ["punce", "review", str(run), "--verdicts", str(file)]


def test_a_refused_draw_draws_nothing(run: Path) -> None:
    assert punce_command("review", run, "--rows", 20).returncode == 0
    file = run / "review" / "review.csv"
    rows = pd.read_csv(file, dtype=str, keep_default_na=False)
    rows.assign(verdict="yes").drop(columns="key").to_csv(file, index=False)
    done = punce_command("review", run, "--rows", 5)
    assert done.returncode == 2
    assert "holds verdicts that were not handed in" in done.stderr
    plan = ReviewFolder(run).plan()
    assert plan is not None
    assert len(plan.rounds) == 1


def test_two_people_whose_files_have_one_name_are_not_one_person(run: Path, tmp_path: Path) -> None:
    scored = scored_run(run)
    plan = draw_rows(scored, scored.data(), "share", 12, seed=0)
    files = [tmp_path / name / "review.csv" for name in ("ann", "bob")]
    for file, verdict in zip(files, ("yes", "no"), strict=True):
        file.parent.mkdir()
        file.write_text("key,verdict\n" + "".join(f"{key},{verdict}\n" for key in plan.drawn))
    with pytest.raises(InputError, match="have the same name, which stands for the person"):
        take_verdicts(scored, files, None)
    assert take_verdicts(scored, files[:1] * 2, None) == (12, [])  # one file, named twice
    new, (note,) = take_verdicts(scored, files[1:], None)
    assert new == 12
    assert note.startswith("12 verdicts of review.csv changed between yes and no")
    assert take_verdicts(scored, files[1:], "bob") == (12, [])


def test_a_named_judge_gets_the_rows_of_others_before_new_ones_are_drawn(tmp_path: Path) -> None:
    run = finished_run(tmp_path / "run", write_table(tmp_path / "table.csv", n=40))
    scored = scored_run(run)
    plan = draw_rows(scored, scored.data(), "share", 40, seed=0)
    ReviewFolder(run).append(Verdict(key, "yes", "page") for key in plan.drawn)
    state = state_of(scored)
    assert state is not None
    assert open_to(state, "bob") == list(plan.drawn.values())
    own = [Verdict(key, "no", "bob") for key in plan.drawn]
    assert len(open_to(state, "bob", own[1:])) == 1  # verdicts of the same command, which are not kept yet
    assert open_to(state, "bob", own) == open_to(state, None) == []


@pytest.mark.parametrize(("n", "drawn"), [(400, 60), (40, 0)])
def test_a_page_with_nothing_open_draws_rows_while_there_are_any(tmp_path: Path, n: int, drawn: int) -> None:
    run = finished_run(tmp_path / "run", write_table(tmp_path / "table.csv", n=n))
    scored = scored_run(run)
    plan = draw_rows(scored, scored.data(), "share", 40, seed=0)
    state = state_of(scored)
    verdicts = [Verdict(key, "yes", "page") for key in plan.drawn]
    for judge in ("page", None):
        assert _rows_to_draw(state, None, verdicts[1:], is_served=True, judge=judge) == 0
        assert _rows_to_draw(state, None, verdicts, is_served=True, judge=judge) == drawn
        assert _rows_to_draw(state, 7, verdicts, is_served=True, judge=judge) == 7


def test_a_file_that_moved_can_be_named(run: Path, tmp_path: Path) -> None:
    table = (tmp_path / "table.csv").rename(tmp_path / "moved.csv")
    with pytest.raises(InputError, match="--data"):
        scored_run(run).data()
    done = punce_command("review", run, "--data", table, "--rows", 5)
    assert "5 rows to judge" in done.stdout


def test_what_is_no_finished_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a run folder"):
        scored_run(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(InputError, match="not finished"):
        scored_run(tmp_path)


@pytest.mark.parametrize(
    ("name", "value"),
    [("labels", 5), ("label", ["a"]), ("image_size", "x"), ("skip_unreadable", "no"), ("drop", [1]), ("path", None)],
)
def test_a_run_folder_whose_options_have_other_types_is_refused(run: Path, name: str, value: object) -> None:
    config = json.loads((run / "config.json").read_text())
    config["data"][name] = value
    (run / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match=rf"config\.json is damaged or was changed \(data\.{name} is "):
        scored_run(run)
