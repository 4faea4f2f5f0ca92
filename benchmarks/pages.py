"""Put measured numbers into docs/ and the README, between marks such as `<!-- numbers -->` and its end.

    python benchmarks/pages.py          # every page, from the files in benchmarks/results

tests/test_doc_numbers.py compares each page with what its files give, so a page cannot say what no file says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fault_pages import fuzz_page, kills_page
from features_summary import features_page
from honesty_pages import biased_features_page, biased_page, honesty_page
from image_pages import image_page
from peer_pages import peer_page
from prior_pages import prior_page
from review_pages import negatives_page, review_page
from row_probability_page import row_probabilities_page
from rows import rows_of
from scale_page import scale_section
from when_punce_page import when_punce_page

ROOT = Path(__file__).parents[1]
RESULTS, DOCS = ROOT / "benchmarks" / "results", ROOT / "docs"
MARK = re.compile("<!-- (numbers|demo|biased|biased features|when|kills|fuzz) -->")
"""Marks that this file fills; others belong to the commands that their pages name."""


def read(name: str) -> dict[str, Any]:
    """benchmarks/results/<name>.json."""
    return dict(json.loads((RESULTS / f"{name}.json").read_text()))


def between_marks(place: str) -> str:
    """What a page says between its marks; the place is a page, or "page#mark" where that is not "numbers"."""
    page, begin, end = marks_of(place)
    return page.read_text().split(begin, 1)[1].split(end, 1)[0].strip("\n")


def put_between_marks(place: str, text: str) -> None:
    page, begin, end = marks_of(place)
    before, rest = page.read_text().split(begin, 1)
    after = rest.split(end, 1)[1]
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}")


def marks_of(place: str) -> tuple[Path, str, str]:
    name, _, word = place.partition("#")
    word = word or "numbers"
    return DOCS / name, f"<!-- {word} -->", f"<!-- end of {word} -->"


# --- README.md -------------------------------------------------------------------------------------------------------


def readme() -> str:
    tables, prior = read("tabular"), read("priors")["accuracy"]
    cells, known = prior["cells"], prior["known"]["all"]
    ours, bbe = prior["estimators"]["combined"], prior["estimators"]["bbe"]
    speed, at = read("loss_speed"), "8192"

    def three(method: str) -> str:
        auc, accuracy, ece = (100 * tables["methods"][method][key] for key in ("auc", "accuracy", "ece"))
        return f"{auc:.1f} / {accuracy:.1f} / {ece:.1f}"

    def cost(loss: str) -> str:
        return f"{speed['seconds'][at][loss]:.2f} s, {speed['extra_memory_mb'][at][loss]:,.0f} MB"

    rows = [
        [
            f"{len(tables['sets']['reported'])} open tables, {tables['runs']['reported']['runs']} runs: AUC / accuracy "
            "/ calibration error, per cent ([tables](docs/tables.md))",
            three("punce default"),
            f"pulearn bagging {three('pulearn bagging')}; pu-toolbox nnPU with the true prior "
            f"{three('pu-toolbox nnPU, true prior')}; oracle (true labels) {three('oracle')}",
        ],
        [
            f"Share of positives, {cells} draws from nine sets ([priors](docs/priors.md))",
            f"mean error {ours['mae']:.3f}, 90 % intervals cover {100 * ours['coverage']:.0f} %; without the "
            f'{100 * ours["cannot"]:.0f} % "cannot be known": {known["absolute"]:.3f}',
            f"BBE {bbe['mae']:.3f}, intervals cover {100 * bbe['coverage']:.0f} %",
        ],
        _images(),
        _both_classes(),
        [
            f"Loss at 8,192 views, best of {speed['setting']['rounds']} rounds ([benchmarks](docs/benchmarks.md))",
            cost("punce PuNCE"),
            f"pytorch-metric-learning {cost('pytorch-metric-learning SupConLoss')}",
        ],
    ]
    return rows_of(["", "punce", "for comparison"], rows)


def _images() -> list[str]:
    """Images under PU-Bench's protocol, learned from scratch."""
    mnist, cifar = (read("public")["PU-Bench"][name] for name in ("mnist", "cifar10"))
    draws = f"{mnist['seeds']} and {cifar['seeds']} draw" + ("s" if cifar["seeds"] > 1 else "")
    (first, spread), (second, _) = (own["ours"]["accuracy"] for own in (mnist, cifar))
    published = " / ".join(f"{own['published']['accuracy']:.1f}" for own in (mnist, cifar))
    return [
        f"Images from scratch, PU-Bench's protocol: accuracy on MNIST / CIFAR-10, {draws} "
        "([benchmarks](docs/benchmarks.md))",
        f"{first:.1f} ± {spread:.1f} / {second:.1f} %",
        f"best of PU-Bench, told the true share: {published} %",
    ]


def _both_classes() -> list[str]:
    """Table 4 on MNIST at scale laptop."""
    cells = json.loads((ROOT / "results" / "summary.json").read_text())["scales"]["laptop"]["experiments"]["table4"]
    shares = ("1%", "5%", "10%")

    def accuracies(loss: str) -> str:
        return " / ".join(f"{cells[f'mnist/mlp/{share} {loss}']['test_accuracy']['mean']:.1f}" for share in shares)

    seeds = {
        cells[f"mnist/mlp/{share} {loss}"]["test_accuracy"]["n"] for share in shares for loss in ("scl", "posterior")
    }
    return [
        f"MNIST odd/even, 1 / 5 / 10 % labelled of both classes, {min(seeds)} seeds ([results](docs/results.md))",
        f"puNCE with row probabilities: {accuracies('posterior')} %",
        f"SCL {accuracies('scl')}; puNCE as printed {accuracies('punce')}",
    ]


def demo() -> str:
    """The table of the README's demo; demo.json is a copy of what `make demo` leaves in demo-out/results.json."""
    rows = [
        [
            result["method"],
            f"{result['hidden']:.0f} ({result['hidden_low']:.0f} to {result['hidden_high']:.0f})",
            f"{100 * result['estimated_accuracy']:.1f} % "
            f"({100 * result['estimated_low']:.0f} to {100 * result['estimated_high']:.0f})",
            f"{100 * result['true_accuracy']:.1f} %",
            f"{result['seconds']:.1f}",
        ]
        for result in read("demo")["results"]
    ]
    hidden = read("demo")["results"][0]["true_hidden"]
    header = ["run", f"unlabelled odd digits, estimated (really {hidden})", "accuracy, estimated without negatives"]
    return rows_of([*header, "true test accuracy", "seconds"], rows)


# --- docs/benchmarks.md ----------------------------------------------------------------------------------------------


def benchmarks() -> str:
    import public  # needs none of its data to write its table

    speed = [
        _loss_speed(read("loss_speed"), read("loss_speed_large"), read("loss_speed_amd")),
        _step(read("step")),
        _views(read("views")),
    ]
    fits = [_busy(read("busy")), _embeddings(read("embeddings")["sizes"]), scale_section(read("scale"))]
    return "\n\n".join([public.markdown(read("public")), *fits, *speed, _mnist_tuning()])


def _busy(found: dict[str, Any]) -> str:
    small = found["small"]
    sizes = {
        **{
            f"{small['rows']:,} × {small['columns']}, {how}": one for how, one in small.items() if isinstance(one, dict)
        },
        **{f"{found[kind]['rows']:,} × {found[kind]['columns']:,}, alone": found[kind] for kind in ("wide", "long")},
    }
    fits = [
        [name, f"{one['seconds']:.1f}", f"{one['cpu_seconds']:.1f}", f"{one['peak_gb']:.2f}"]
        if "seconds" in one
        else [name, one["not measured"], "", ""]
        for name, one in sizes.items()
    ]
    answers = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in found["answers_seconds"].items())
    twice = small["two at once"]["seconds"] / small["alone"]["seconds"]
    return (
        "### A table, from command to report (`benchmarks/busy.py`)\n\n"
        + rows_of(["`punce fit`", "seconds", "CPU seconds of each", "peak GB"], fits)
        + f"\n\nRounds: {small['rounds']}. Commands that train nothing answer: {answers}."
        + f"\nGoals for 3,000 × 10: 8 s alone: {_met(small['alone']['seconds'], 8)}; two at once 1.6 times as long: "
        + f"{_met(twice, 1.6)}. For the wide table 60 s: {_met(found['wide']['seconds'], 60)}.\n"
        + f"For the long one 180 s: {_met(found['long']['seconds'], 180)}; "
        + f"2 GB: {_met(found['long']['peak_gb'], 2)}."
    )


def _met(measured: float, goal: float) -> str:
    return f"met ({measured:.2f})" if measured <= goal else f"**missed** ({measured:.2f})"


def _embeddings(sizes: dict[str, Any]) -> str:
    rows = [
        [
            f"{one['rows']:,} × {one['numbers']:,}",
            f"{one['seconds']:.0f} (goal {one['goal']['seconds']:,})",
            f"{one['cpu_seconds']:.0f}",
            f"{one['peak_gb']:.1f}" + (f" (goal {one['goal']['gigabytes']:g})" if one["goal"]["gigabytes"] else ""),
        ]
        for one in sizes.values()
    ]
    return (
        "### Embeddings, from file to report (`benchmarks/embeddings.py`)\n\n"
        + rows_of(["`punce fit`, 1,000 labelled", "seconds", "CPU seconds", "peak GB"], rows)
        + "\n\nOne run each on two cores. Of more unlabelled rows a random 50,000 train; every row is scored."
    )


def _loss_speed(found: dict[str, Any], large: dict[str, Any], amd: dict[str, Any]) -> str:
    at, most, ours = "8192", "32768", "punce PuNCE"
    seconds, limit = found["seconds"][at], found["arithmetic_limit"][at]
    setting, goals = found["setting"], found["goals"]
    faster = f"times faster at {at}"
    plain, plain_on_amd = (run["goals"][faster]["plain masked SupCon"] for run in (found, amd))
    own, of_torch = (amd["arithmetic_limit"][at][name] for name in ("gemm_seconds", "torch_gemm_seconds"))
    missing = " and ".join(name for name in seconds if name not in large["seconds"][most])
    return f"""### The loss (`benchmarks/loss_speed.py`)

One forward and backward pass at d = {setting["d"]} on two quiet cores, best of {setting["rounds"]} at {int(at):,} views
({_cpu(found)}) and of {large["setting"]["rounds"]} at {int(most):,} ({_cpu(large)}{_before_products(large)}).
`F.cross_entropy` and lightly compute InfoNCE only.

{_costs(found, at, ours)}

{_costs(large, most, ours)}

At {int(most):,} views {missing} would need more memory than there is. 65,536 views need
{goals["MB at 65536 views"]:.0f} MB extra. Of puNCE's {seconds[ours]:.2f} s at {int(at):,} views the matrix products
alone need {limit["gemm_seconds"]:.2f} s. The goal was ten times the plain masked version; {plain:.1f} was reached.

On an {_cpu(amd)} (`loss_speed_amd.json`) puNCE takes {amd["seconds"][at][ours]:.2f} s at {int(at):,} views and is
{plain_on_amd:.1f} times as fast as the plain masked version. torch's own float32 products, which that version uses,
take {of_torch:.2f} s there; those of the loss (`punce.training.products`) take {own:.2f} s, at the same precision."""


def _before_products(found: dict[str, Any]) -> str:
    """Runs on AMD's CPUs from before punce.training.products did not record torch's own products beside the loss's."""
    is_after = any("torch_gemm_seconds" in limit for limit in found["arithmetic_limit"].values())
    return "" if is_after else ", before its products were faster"


def _cpu(found: dict[str, Any]) -> str:
    return str(found["machine"]["processor"]).replace("(R)", "").removesuffix(" Processor")


def _costs(found: dict[str, Any], at: str, ours: str) -> str:
    """Seconds and memory of every implementation at so many views, the fastest first."""
    seconds, memory = found["seconds"][at], found["extra_memory_mb"][at]
    rows = [
        [name, f"{seconds[name]:.2f}", f"{seconds[name] / seconds[ours]:.1f}", f"{memory[name]:,.0f}"]
        for name in sorted(seconds, key=lambda name: float(seconds[name]))
    ]
    return rows_of([f"{int(at):,} views", "seconds", "times puNCE's", "extra memory, MB"], rows)


def _step(found: dict[str, Any]) -> str:
    rows = [
        [
            f"MLP, width {r['width']:g}, {r['optimizer']}",
            f"{r['full_ms']:,.0f}",
            f"{r['ratio']:.2f}",
            f"{r['goal']:.2f}",
        ]
        for r in found["results"]
    ]
    before = "" if "faster_products" in found else ", before its products were faster"
    header = ["batches of 1,024 rows, two threads", "milliseconds", "times the bare encoder's step", "goal"]
    return f"""### A pretraining step (`benchmarks/step.py`)

{rows_of(header, rows)}

A full step is views, encoder, loss, monitor and optimiser. The bare step has the encoder and the optimiser only.
Measured on an {_cpu(found)}{before}."""


def _views(found: dict[str, Any]) -> str:
    runs = found["runs"]
    header = ["threads", "images a second, two views each", "kornia's fastest", "ratio", "views' share of a step"]
    rows = [
        [
            str(run["threads"]),
            f"{two['punce']['images_per_s']:,.0f}",
            f"{max(r['images_per_s'] for name, r in two.items() if name != 'punce'):,.0f}",
            f"{run['speed']['times_faster']:.1f}",
            f"{100 * run['step']['views_share']:.1f} %",
        ]
        for run in runs
        for two in [run["speed"]["two_views_of_512"]]
    ]
    return f"""### The views (`benchmarks/views.py`)

The CIFAR recipe on 512 images, best of {found["rounds"]} rounds on two cores. The step is one of
{runs[0]["step"]["encoder"]}.

{rows_of(header, rows)}"""


def _mnist_tuning() -> str:
    parts = ["### MNIST: settings of puNCE, ordered without true labels (`benchmarks/mnist_tuning.py`)"]
    for n_labelled, found in read("mnist_tuning")["n_labelled"].items():
        probes = {f"{name}; probe: {what}": p for name, r in found.items() for what, p in r.get("probes", {}).items()}
        named = sorted({**found, **probes}.items(), key=lambda item: (item[1]["held_out_pu_risk"], item[0]))
        rows = [
            [name, f"{r['held_out_pu_risk']:.4f}", f"{r['held_out_auc']:.4f}", f"{r['oracle_accuracy']:.2f}"]
            for name, r in named
        ]
        header = ["variation", "held-out PU risk", "held-out AUC, corrected", "oracle: test accuracy"]
        parts.append(f"{int(n_labelled):,} labelled, one seed, best first:\n\n{rows_of(header, rows)}")
    parts.append(
        "The AUC of labelled against unlabelled rows is corrected for the positives among the unlabelled rows. The "
        "corrected estimate can exceed 1."
    )
    return "\n\n".join(parts)


# --- docs/tables.md --------------------------------------------------------------------------------------------------


def tables() -> str:
    import tabular_summary  # needs no rival to be installed to write its table

    return tabular_summary.markdown(read("tabular"))


# --- docs/text.md ----------------------------------------------------------------------------------------------------


def text() -> str:
    return "\n\n".join([_text_pu(read("text_pu")["table"]), _text_speed(read("text_speed")["results"])])


def _text_pu(table: Sequence[dict[str, Any]]) -> str:
    sets = {"sst2_sentence": "SST-2 sentences, 500 labelled", "sms_spam": "SMS spam, 100 labelled"}
    vectors = {"encoder": "MiniLM, frozen", "words": "word counts"}
    header = ["data", "texts as", "method", "AUC", "accuracy", "labelled sets"]
    chosen = sorted(table, key=lambda row: (list(sets).index(row["set"]), row["vectors"]))
    rows = [
        [
            sets[row["set"]],
            vectors[row["vectors"]],
            row["method"],
            *(f"{100 * row[key]['mean']:.1f} ± {100 * row[key]['sd']:.1f}" for key in ("auc", "accuracy")),
            str(row["seeds"]),
        ]
        for row in chosen
    ]
    return rows_of(header, rows)


def _text_speed(results: Sequence[dict[str, Any]]) -> str:
    header = ["one thread, MiniLM", "rows a second", "the bare transformer's", "paired time ratio (quartiles)", "goal"]
    rows = [
        [
            result["what"],
            f"{next(iter(result['rows_per_second'].values())):.1f}",
            f"{result['rows_per_second']['bare']:.1f}",
            "{:.3f} ({:.3f} to {:.3f})".format(result["ratio_to_bare"], *result["ratio_quartiles"]),
            f"{result['goal']:.2f}",
        ]
        for result in results
    ]
    return rows_of(header, rows)


# --- docs/images.md --------------------------------------------------------------------------------------------------


def images() -> str:
    cells, scratch = (
        [json.loads(line) for line in (RESULTS / f"{name}.jsonl").read_text().splitlines()]
        for name in ("images_cifar", "cifar_scratch")
    )
    return image_page(read("images"), cells, scratch)


PAGES: Mapping[str, Callable[[], str]] = {
    "../README.md": readme,
    "../README.md#demo": demo,
    "priors.md": lambda: prior_page(read("priors")),
    "peers.md": lambda: peer_page(read("peers")),
    "benchmarks.md": benchmarks,
    "tables.md": tables,
    "text.md": text,
    "images.md": images,
    "when-to-use.md": lambda: features_page(read("features")),
    "when-to-use.md#when": lambda: when_punce_page(read("when_punce")),
    "training.md": lambda: row_probabilities_page(read("row_probabilities")),
    "review.md": lambda: review_page(read("review")),
    "labels.md": lambda: negatives_page(read("negatives")),
    "labels.md#biased": lambda: biased_page(read("biased")),
    "labels.md#biased features": lambda: biased_features_page(read("biased_features")),
    "reliability.md#kills": lambda: kills_page(read("faults")),
    "reliability.md#fuzz": lambda: fuzz_page(read("fuzz")),
    "numbers.md": lambda: honesty_page(read("honesty")),
}


def main() -> None:
    for place, numbers in PAGES.items():
        put_between_marks(place, numbers())
        print("wrote", place)


if __name__ == "__main__":
    main()
