"""The job behind ``punce fit``: read, check, learn, and leave a run folder behind.

    RUN/config.json       what was asked for; "finished", "reading" and what "ran" when everything below is there
    RUN/model/            the classifier (safetensors + JSON), for ``punce predict`` and PUClassifier.load
    RUN/scores.parquet    the unlabelled rows, ranked, with their probability (or scores.csv)
    RUN/metrics.json      the prior and the quality, with intervals and what they were counted on
    RUN/report.html       the page, and report.json from which ``punce report`` rebuilds it
    RUN/MODEL_CARD.md     what the model is, in a page of text
    RUN/history.jsonl     training, one line per epoch
    RUN/review/           with --review: the rounds and verdicts so far, and what they say of this run
    RUN/unreadable.csv    images that --skip-unreadable left out, if any, with the reason

An unfinished run of the same configuration resumes from its checkpoints; one of another is refused, and so is a folder
in which another process is fitting (RUN/.lock).
"""

from __future__ import annotations

import json
import warnings
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from punce import __version__
from punce.classifier import PUClassifier, ScorerWarning
from punce.columns.encoder import not_learned_from
from punce.data import DataCheck, UserData
from punce.data.image_files import ImageFiles
from punce.errors import InputError, number_of
from punce.judging.estimates import Estimate
from punce.judging.judgement import Mix
from punce.judging.mixes import MixMetrics
from punce.judging.used_prior import is_given, usable_prior
from punce.labels import POSITIVE, UNLABELLED, Labels, RowLabels
from punce.models.image import look
from punce.options import ALWAYS, automatic_encoder, check_options
from punce.priors import PriorEstimate
from punce.product.insight import reasons_column, shown_importances
from punce.product.page import are_held_out, method_in_words, report_content, started_map
from punce.product.plan import (
    DataOptions,
    ModelOptions,
    RunFolder,
    RunOptions,
    Say,
    option_in_words,
    read_and_check,
)
from punce.product.ranking import Ranking, ranking_of
from punce.product.review.refit import Reviewed, finish_review
from punce.ran import KNOWN_UNUSED, known_in_words, ran_in_words
from punce.report import write_report
from punce.storage.files import replacing, write_text
from punce.storage.formulas import defused_frame
from punce.storage.json_tree import encode
from punce.training import collectives


@dataclass(frozen=True)
class FitOutcome:
    """What a finished run found."""

    folder: Path
    classifier: PUClassifier
    data: UserData
    warnings: tuple[str, ...]
    ranking: Ranking
    reviewed: Reviewed | None = None
    checked: DataCheck | None = None

    @property
    def beyond_check(self) -> tuple[str, ...]:
        """The warnings without what the data check has told above, such as columns that cannot be learned from."""
        findings = () if self.checked is None else self.checked.findings
        names = [name for one in findings if one.code in ("text_column", "unsupported_column") for name in one.where]
        columns, told = tuple(map(not_learned_from, names)), {one.message for one in findings}
        return tuple(text for text in self.warnings if not text.startswith(columns) and text not in told)

    @property
    def rests_on_verdicts(self) -> bool:
        """Whether the share of positives is that of a review: not with a few verdicts, or where --prior gives it."""
        share = None if self.reviewed is None else self.reviewed.prior
        return share is not None and self.classifier.prior == share


def run_fit(
    source: DataOptions, model: ModelOptions, out: Path, run: RunOptions | None = None, *, say: Say
) -> FitOutcome:
    """Do the whole job; `say` is handed what a person should see on the way (text or anything rich can print)."""
    run = run or RunOptions()
    PUClassifier(**model.arguments()).check_arguments()
    RunFolder(out, {}).refuse_finished()
    data, checked = read_and_check(source, model, run, say, look=partial(_look, model))
    reviewed = run.reviewed(source, data)
    model = model.with_share(reviewed)
    classifier = PUClassifier(**model.arguments(), progress=True).set_params(kind=data.kind)
    config = run.config(source, model, data, reviewed)
    folder = RunFolder(out, config)
    with folder.held(say):
        X = data.features  # images were decoded once, while they were read
        noted = _fit(classifier, X, data.labels, folder, reviewed)
        if data.drawn is not None:
            _tell_of_file(classifier, data.drawn.labels)
            noted = (f"{data.drawn.in_words()}; every row is scored", *noted)
        outcome = FitOutcome(out, classifier, data, noted, ranking_of(classifier, data, source), reviewed, checked)
        if collectives.rank() == 0:
            ran = {"setting": classifier.setting_, **classifier.ran_}
            _write_results(outcome, checked, X, {**config, "ran": ran})
            # After all files: "finished" promises them. The audit follows, because it reads a finished run.
            folder.finish(reading=_reading(data), ran=ran)
            if reviewed is not None:
                finish_review(out)
    return outcome


def _look(model: ModelOptions, files: ImageFiles) -> None:
    """The one pass over a folder of images: it says which cannot be read, and leaves what the fit needs."""
    encoder = automatic_encoder("image", files.shape, model.encoder)
    check_options("image", {**model.arguments(), "encoder": encoder}, model.chosen)
    look(files, encoder, model.device, progress=True)


def _reading(data: UserData) -> dict[str, Any]:
    """What the reader chose and new rows must share: size and channels of images, names of columns, how numbers
    are written."""
    if isinstance(data.features, ImageFiles):
        return {"pictures": {"size": data.features.size, "channels": data.features.channels}}
    columns = {"columns": list(data.source_columns)} if data.source_columns else {}
    numbers = data.number_forms.to_json()
    return columns | ({"numbers": numbers} if numbers else {})


def _write_results(outcome: FitOutcome, checked: DataCheck, X: Any, config: dict[str, Any]) -> None:
    out, classifier, data = outcome.folder, outcome.classifier, outcome.data
    map_of_rows = started_map(classifier, data, X)
    shown_importances(classifier)  # before the classifier is saved, which keeps what was measured
    classifier.save(out / "model")
    if data.unreadable:
        listed = pd.DataFrame(data.unreadable.items(), columns=["file", "reason"])
        write_text(out / "unreadable.csv", defused_frame(listed).to_csv(index=False))
    if outcome.reviewed is not None:
        outcome.reviewed.carry(out)
    _write_scores(outcome, config["scores"], X if config.get("reasons") else None)
    write_text(out / "history.jsonl", "".join(json.dumps(row) + "\n" for row in classifier.history_))
    write_text(out / "metrics.json", json.dumps(summary_numbers(classifier), indent=1) + "\n")
    content = report_content(classifier, data, checked, X, outcome.beyond_check, config, map_of_rows)
    write_text(out / "report.json", json.dumps(content.to_json()) + "\n")
    write_report(content, out / "report.html")
    write_text(out / "MODEL_CARD.md", model_card(classifier, data, outcome.warnings))


def _fit(
    classifier: PUClassifier, X: Any, labels: Labels | None, folder: RunFolder, reviewed: Reviewed | None
) -> tuple[str, ...]:
    """Fit and return what was warned of; rows that cannot be learned from leave no folder behind."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            if reviewed is None:
                classifier.fit(X, labels, folder=folder.work)
            else:
                classifier.fit(X, reviewed.labels, judged=reviewed.judged, folder=folder.work)
        except InputError:
            folder.forget()
            raise
    # Warnings of other kinds (deprecations, overflows within a library) are for developers; a command has no scorers.
    told = (w for w in caught if issubclass(w.category, UserWarning) and not issubclass(w.category, ScorerWarning))
    warned = (str(w.message) for w in told)
    noted = [*classifier.notes_, *warned, *_about_seen(classifier, labels), *classifier.metrics_.notes]
    return tuple(dict.fromkeys(noted))


def _tell_of_file(classifier: PUClassifier, labels: Labels) -> None:
    """What rests on how many rows there are of each kind, for the whole file: the fit has counted the drawn rows.

    Quality over the population needs the shares from the start; it is not stated, and asking for it was refused.
    """
    scenario = classifier.scenario
    for name in ("prior_", "first_prior_", "second_prior_", "both_prior_"):
        if (prior := getattr(classifier, name)) is not None:
            setattr(classifier, name, prior.among(labels, scenario))
    if scenario == "case_control":  # the population is U, of which any random part tells the same
        return
    beta, gamma = RowLabels.of(labels).shares
    prior = usable_prior(classifier.prior_)
    share = Mix(prior, beta, gamma).share
    classifier.prior_ = replace(classifier.prior_, population_prior=share)
    none = Estimate.impossible("the labelled rows have another share among the drawn rows than in the file")
    population = MixMetrics(share, called=none, precision=none, accuracy=none, f1=none)
    classifier.metrics_ = replace(classifier.metrics_, population=population)
    if (seen := classifier._seen) is not None:
        scores = replace(seen.scores, labelled_share=beta - gamma * prior / (1.0 - prior))
        classifier._seen = replace(seen, scores=scores)


def _about_seen(classifier: PUClassifier, labels: Labels | None) -> tuple[str, ...]:
    """What to know about rows of the ranked list whose scores are not those of a model that never saw them."""
    if labels is None or not (seen := classifier.seen_in_training_[labels == UNLABELLED]).any():
        return ()
    quality = "; the numbers of quality rest on rows held out of all training"
    return (
        f"{int(seen.sum()):,} of {len(seen):,} rows of the ranked list were in the training of the model that scores "
        "them, as unlabelled rows, so positives among them may rank too low (column seen_in_training)"
        f"{quality if are_held_out(classifier, labels) else ''}",
    )


def summary_numbers(classifier: PUClassifier) -> dict[str, Any]:
    """The prior and the quality, as JSON."""
    metrics, five = classifier.metrics_, classifier.metrics_.five
    mixes = {
        name: {key: asdict(getattr(mix, key)) for key in ("precision", "accuracy", "f1", "called")}
        for name, mix in (("unlabelled", metrics.unlabelled), ("population", metrics.population))
    }
    second, both = classifier.second_prior_, classifier.both_prior_
    # encode: JSON has no NaN, undefined numbers become null.
    plain: dict[str, Any] = encode(
        {
            "setting": classifier.setting_,
            "basis": metrics.basis,
            "prior": _prior_numbers(classifier.prior_),
            "first_prior": _prior_numbers(classifier.first_prior_),
            "second_prior": None if second is None else second.as_dict(),
            "both_prior": None if both is None else both.as_dict(),
            "threshold": classifier.threshold_,
            "target": metrics.target,
            **{name: asdict(five[name]) for name in ("recall", "auc")},  # the same for every mix of rows
            **mixes,
            "held_out": {
                "labelled": metrics.n_positive,
                "unlabelled": metrics.n_unlabelled,
                "negative": metrics.n_negative,
            },
            "notes": list(metrics.notes),
            "labelling": asdict(classifier.labelling_),
        }
    )
    return plain


def _prior_numbers(prior: PriorEstimate) -> dict[str, Any]:
    """The estimate as JSON; of a review it says so, as the card and the page do, and not that a person gave it."""
    return {**prior.as_dict(), "method": method_in_words(prior)}


def _write_scores(outcome: FitOutcome, form: str, X: Any = None) -> None:
    """The ranked list: the unlabelled rows from the most to the least probable; with the rows `X` also why.

    A row is seen in training where the model that scored it was trained with the row among the unlabelled ones.
    """
    ranking = outcome.ranking
    rows = ranking.order()
    columns: dict[str, Any] = {
        "rank": np.arange(1, len(rows) + 1),
        "row": rows,
        "id": ranking.ids[rows].astype(str),
        "probability": ranking.probability[rows],
        "score": ranking.scores[rows],
        "seen_in_training": ranking.seen[rows],
    }
    if outcome.reviewed is not None:
        columns["judged"] = np.array(outcome.reviewed.said())[rows]
    if X is not None:
        columns["reasons"] = reasons_column(outcome.classifier, X, rows)
    with replacing(outcome.folder / f"scores.{form}") as temporary:
        listed = pd.DataFrame(columns)
        write = defused_frame(listed).to_csv if form == "csv" else listed.to_parquet
        write(temporary, index=False)


def model_card(classifier: PUClassifier, data: UserData, noted: tuple[str, ...]) -> str:
    """A page of plain text on what the model is, learned from, and is good for."""
    assert data.labels is not None
    prior = classifier.prior_
    metrics = classifier.metrics_
    numbers = [f"  - {name}: {estimate.in_words()}" for name, estimate in metrics.five.items() if not estimate.reason]
    numbers += [f"  - {', '.join(names)}: cannot be estimated: {reason}" for reason, names in metrics.reasons.items()]
    share = f"{prior.value:.3f} ({prior.low:.3f} to {prior.high:.3f}, {method_in_words(prior)})"
    share = f"{prior.value:g} ({prior.method})" if is_given(prior) and prior.low == prior.high else share
    share = f"cannot be estimated; {prior.value:.3f} was assumed" if prior.reason else share
    n_p, n_u = (int((data.labels == kind).sum()) for kind in (POSITIVE, UNLABELLED))
    unused = known_in_words(classifier.ran_, KNOWN_UNUSED)
    known = known_in_words(classifier.ran_) or (f"not from {unused}" if unused else "no negatives were known")
    labelled = number_of(n_p, "labelled positive", "labelled positives")
    is_counted = metrics.basis == "pnu"
    sample = (
        f"labelled rows are {'random samples of their classes' if is_counted else 'a random sample of the positives'}"
    )
    sample = "rows grouped with the labelled ones are the positives" if classifier.labelling == "biased" else sample
    is_held_out = are_held_out(classifier, data.labels)
    on = "on rows held out of training" if is_held_out else "by a model that saw the labelled row"
    caution = "Judge" if is_counted else "They are estimates without negatives: judge"
    lines = [
        "# Model card",
        "",
        f"A positive-unlabelled classifier made by punce {__version__} from {data.source} ({classifier.kind_}).",
        "",
        f"- setting {classifier.setting_}: learned from {labelled} and {n_u:,} unlabelled rows; {known}",
        f"- share of positives among the unlabelled rows: {share}",
        f"- {metrics.basis_in_words}, {on}, for {target_in_words(classifier)}:",
        *numbers,
        f"- a row is called positive from probability {classifier.threshold_:.3f} on",
        f'- trained: {ran_in_words(classifier.ran_)}; the settings of every stage are under "ran" in config.json',
        f"- options: {_options_in_words(classifier)}",
        "",
        f"These numbers hold if the {sample} and new rows come from the same",
        f"source. {caution} some rows with `punce review` before you rely on them.",
        *(["", "Warnings:", ""] + [f"- {text}" for text in noted] if noted else []),
        "",
    ]
    return "\n".join(lines)


def target_in_words(classifier: PUClassifier) -> str:
    """Which rows the numbers are for."""
    return "the unlabelled rows" if classifier.metrics_.target == "unlabelled" else "new rows of the population"


def _options_in_words(classifier: PUClassifier) -> str:
    """The arguments that had an effect."""
    asked = {**classifier.get_params(deep=False), "encoder": classifier.encoder_}
    way = check_options(classifier.kind_, asked)
    names = [name for name in ("encoder", *ALWAYS, *way.options) if name != "epochs" or asked[name] is not None]
    return ", ".join(f"{name} {option_in_words(asked[name])}" for name in names)
