"""The numbers of docs/images.md, from results/images.json, images_cifar.jsonl and cifar_scratch.jsonl."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean, stdev
from typing import Any

from rows import rows_of

_CLAIMS = ("prior", "recall", "precision", "accuracy")


Lines = Sequence[Mapping[str, Any]]


def image_page(parts: Mapping[str, Any], cells: Lines, scratch: Lines) -> str:
    tables = [
        cifar_table(cells),
        folder_table(parts["folder"]),
        untrained_folder_table(parts["folder from scratch"]),
        speed_table(parts),
    ]
    return "\n\n".join([*tables, scratch_table(scratch)])


def scratch_table(lines: Lines) -> str:
    """A row for each run: what its last epoch gives, and the epoch that the held-out PU risk would choose."""
    header = [
        "CIFAR-10 from scratch, 1,000 labels, true share",
        "epochs",
        "CPU minutes",
        "test accuracy",
        "at the lowest held-out PU risk",
    ]
    runs: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for line in sorted(lines, key=lambda line: (line["seed"], line["cpu_minutes"])):
        runs.setdefault((line["recipe"], line["seed"], line.get("epochs", "")), []).append(line)
    rows = [
        [
            f"{recipe}, seed {seed}",
            str(epochs),
            f"{run[-1]['cpu_minutes']:.1f}",
            f"{run[-1]['test_accuracy']:.1f}",
            _chosen(run) if epochs else "",
        ]
        for (recipe, seed, epochs), run in runs.items()
        if run[-1].get("epoch", epochs) == epochs  # a run that has not ended says nothing yet
    ]
    return f"{rows_of(header, rows)}\n\n![Test accuracy by CPU minutes](images/cifar_scratch.svg)"


def _chosen(run: Lines) -> str:
    best = min(run, key=lambda line: float(line["held_out_risk"]))
    return f"{best['test_accuracy']:.1f} (epoch {best['epoch']})"


def spread(values: Sequence[float]) -> str:
    return f"{100 * mean(values):.1f}" + (f" ± {100 * stdev(values):.1f}" if len(values) > 1 else "")


def cifar_table(cells: Lines) -> str:
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for cell in cells:
        groups.setdefault((cell["rows"], cell["labelled"], cell["prior"]), []).append(cell)
    header = ["CIFAR-10, rows", "labelled", "prior", "accuracy", "AUC", "said accuracy holds", "labelled sets"]
    rows = []
    for (n, labelled, prior), own in sorted(groups.items()):
        said = [(cell["claimed_accuracy"], cell["accuracy"]) for cell in own]
        held = sum(low <= true <= high for (_, low, high), true in said if low is not None)
        numbers = (spread([cell[name] for cell in own]) for name in ("accuracy", "auc"))
        rows.append([f"{n:,}", f"{labelled:,}", prior, *numbers, f"{held} of {len(own)}", str(len(own))])
    return rows_of(header, rows)


def folder_table(found: Mapping[str, Any]) -> str:
    header = ["600 mixed photographs", "said (90 % interval), true", "intervals that hold the truth"]
    rows = []
    for name in _CLAIMS:
        own = [one[name] for one in found["sets"]]
        first = own[0]
        if first["low"] is None:
            said = f"cannot be estimated, {first['true']:.3f}"
        else:
            said = f"{first['said']:.3f} ({first['low']:.3f} to {first['high']:.3f}), {first['true']:.3f}"
        claimed = [one["holds"] for one in own if one["holds"] is not None]
        rows.append([name, said, f"{sum(claimed)} of {len(claimed)}"])
    later = [one["seconds"] for one in found["sets"][1:]]
    rows.append(["from command to report", f"{found['first_seconds']:.0f} s (goal 120)", ""])
    if later:
        rows.append(["from command to report, other labels (features are cached)", f"{mean(later):.0f} s", ""])
    return rows_of(header, rows)


def untrained_folder_table(found: Mapping[str, Any]) -> str:
    """The same photographs without a pretrained encoder, one labelled set."""
    header = ["the 600 photographs without a pretrained encoder", "measured"]
    seconds = f"{found['first_seconds']:.0f} s (goal 180)"
    return rows_of(header, [["from command to report", seconds], ["intervals that hold the truth", found["held"]]])


def speed_table(parts: Mapping[str, Any]) -> str:
    speed, memory = parts["speed"], {n: each for n, each in parts["memory"].items() if n != "machine"}
    header = ["`punce predict` on a folder, one thread", "measured", "goal"]
    rows = [
        ["images a second, JPEG files of 400 pixels, from folder to scores", f"{speed['a_second']:.1f}", ""],
        ["share of the bare encoder's speed", f"{speed['ratio']:.2f}", f"{speed['goal']:.2f}"],
    ]
    rows += [[f"peak memory, {int(n):,} images", f"{each['peak_mb']:,} MB", "flat"] for n, each in memory.items()]
    return rows_of(header, rows)
