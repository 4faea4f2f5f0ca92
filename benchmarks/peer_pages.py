"""The numbers of docs/peers.md, from results/peers.json."""

from __future__ import annotations

from typing import Any

from rows import rows_of

_KIND = {"InputError": "refused", "ValueError": "refused", "ValidationError": "refused"}


def peer_page(found: dict[str, Any]) -> str:
    """Everything between the marks."""
    parts = [_classifiers(found["classifiers"]), _bad_input(found["bad_input"]), _losses(found)]
    parts.insert(1, _abilities(found["abilities"]))
    return "\n\n".join([*parts, _bad_batch(found["bad_batch"]), _start(found["start"])])


def _classifiers(found: dict[str, Any]) -> str:
    rows = [
        [
            name,
            *(f"{100 * e[key]:.1f}" for key in ("accuracy", "auc")),
            "no probabilities" if e["calibration_error"] is None else f"{100 * e['calibration_error']:.1f}",
            "–" if e["calibration_error"] is None else f"{e['beyond_0_and_1']} of {e['runs']}",
            f"{e['seconds']:.1f}",
            f"{e['peak_mb']:.0f}",
        ]
        for name, e in found.items()
    ]
    header = [
        "",
        "accuracy",
        "AUC",
        "calibration error",
        "runs with probabilities beyond 0 and 1",
        "CPU seconds of the fit",
        "peak MB",
    ]
    runs = min(e["runs"] for e in found.values())
    return f"### Classifiers, mean of {runs} runs, per cent\n\n" + rows_of(header, rows)


def _abilities(found: dict[str, Any]) -> str:
    """Shares of positives, then classifiers; one table, as each has one run."""
    rows = []
    for name, e in found.items():
        if "failed" in e:
            rows.append([name, f"failed: {e['failed']}", ""])
            continue
        if "auc" in e:
            said = f"AUC {100 * e['auc']:.1f}"
        else:
            interval = "no interval" if e["interval"] is None else "{:.2f} to {:.2f}".format(*e["interval"])
            said = f"share {e['share']:.2f} ({interval}), in truth {e['true']:.2f}"
        rows.append([name, said, f"{e['seconds']:.1f}"])
    return "### The share of positives, and learning by contrast\n\n" + rows_of(["", "", "CPU seconds"], rows)


def _bad_input(found: dict[str, Any]) -> str:
    names = list(found)
    cases = list(found[names[0]])
    rows = [[case, *(_answer(found[name][case]) for name in names)] for case in cases]
    return "### What happens to bad input\n\n" + rows_of(["", *names], rows)


def _answer(said: str) -> str:
    if said.startswith("accepted"):
        return said
    kind = said.partition(":")[0]
    return _KIND.get(kind, f"{kind} from inside")


def _losses(found: dict[str, Any]) -> str:
    rows = []
    for name, e in found["losses"].items():
        ranks = found["ranks"].get(name, {})
        cost = ["not enough memory", "–"]
        if "seconds at 4096" in e:
            cost = [f"{e['seconds at 4096']:.2f}", f"{e['extra_mb at 4096']:.0f}"]
        errors = [f"{e[f'error of the gradient at {t}']:.0e}" for t in (0.5, 0.05)]
        rows.append([name, *errors, f"{ranks['gradient_off']:.0e}" if "gradient_off" in ranks else "failed", *cost])
    header = [
        "InfoNCE",
        "gradient's error, τ = 0.5",
        "τ = 0.05",
        "two ranks against one",
        "CPU seconds, 4,096 views",
        "extra MB",
    ]
    return "### Losses\n\n" + rows_of(header, rows)


def _bad_batch(found: dict[str, Any]) -> str:
    cases = list(dict.fromkeys(case for answers in found.values() for case in answers))
    rows = [[case, *(_of_batch(answers.get(case, "–")) for answers in found.values())] for case in cases]
    return "### What happens to bad batches\n\n" + rows_of(["", *found], rows)


def _of_batch(said: str) -> str:
    if said.startswith("the loss is"):
        return "not finite"
    kind, _, _ = said.partition(": ")
    return _KIND.get(kind, f"{kind} from inside" if kind.endswith("Error") else said)


def _start(found: dict[str, Any]) -> str:
    rows = [[name, f"{e['seconds']:.2f}"] for name, e in found.items()]
    return "### CPU seconds to start Python and import\n\n" + rows_of(["", "CPU seconds"], rows)
