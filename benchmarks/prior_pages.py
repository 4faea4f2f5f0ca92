"""The numbers of docs/priors.md, from results/priors.json."""

from __future__ import annotations

from typing import Any

from rows import rows_of


def prior_page(found: dict[str, Any]) -> str:
    """Everything between the marks."""
    errors = _prior_errors(found["accuracy"], found["others"])
    return "\n\n".join([errors, _simulated(found["simulated"]), _labelling_test(found), prior_speed(found["speed"])])


def _prior_errors(accuracy: dict[str, Any], others: dict[str, Any]) -> str:
    best = accuracy["estimators"]["combined"]
    header = ["estimator", "error", "separable sets", "bias", "worst", "covered", "width", "seconds"]
    rows = [
        [
            name + "*" * (name in others),
            *(f"{e[key]:.3f}" for key in ("mae", "mae_separable", "bias", "worst")),
            f"{100 * e['coverage']:.0f} %",
            f"{e['width']:.2f}",
            f"{e['seconds']:.2f}",
        ]
        for name, e in (accuracy["estimators"] | others).items()
    ]
    goals = (
        ("at most 0.08 overall", best["mae"] <= 0.08),
        ("at most 0.04 on separable sets", best["mae_separable"] <= 0.04),
        *(_covers(accuracy, key, what) for key, what in (("set", "every set"), ("share", "every share"))),
    )
    verdict = "; ".join(f"{goal}: {'met' if met else '**missed**'}" for goal, met in goals)
    return f"""`python benchmarks/priors.py accuracy`: {accuracy["cells"]} cells, {len(accuracy["seeds"])} seeds,
true shares 0.05, 0.3, 0.6 and 0.9, 100 and 1,000 labelled rows, at most 2,000 unlabelled rows
(`benchmarks/results/priors.json`). "Covered" is the share of 90 % intervals that hold the truth. Seconds are without
the scores of boosting, which take {accuracy["seconds_scores"]:.1f} s on a busy machine. Estimators with a star were
measured on the same draws by an earlier form, in which copies of labelled rows could be in another fold.

{rows_of(header, rows)}

The default's goals: {verdict}.
Separable sets (boosting on true labels has an out-of-fold AUC above 0.995): {", ".join(accuracy["separable"])}.

**The default, one by one.** "Cannot be known" is the share of cells whose interval is [0, 1] for a stated reason; they
count as covered and in the error. Settings were chosen on other draws of the sets with a star and on simulated scores.

{_prior_cells(accuracy)}

Where the share can be known:

{_prior_known(accuracy["known"])}

{_about_width(accuracy["known"]["all"]["covered"])} With 100 labels a share of 0.9 can rarely be told from useless
columns, and most of the error at 0.9 is that of placeholders."""


def _about_width(covered: float) -> str:
    if covered <= 0.95:
        return "The intervals hold the truth about as often as the 90 % they name."
    return "The intervals hold the truth more often than the 90 % they name: they are wider than these sets need."


def _simulated(rows: list[dict[str, Any]]) -> str:
    """Coverage by AUC and number of labels, the worst share named."""
    table = []
    for n_p, auc in sorted({(r["n_p"], r["auc"]) for r in rows}):
        here = [r for r in rows if (r["n_p"], r["auc"]) == (n_p, auc)]
        worst = min(here, key=lambda r: r["covered"])
        shares = [f"{r['bias']:+.3f}" if r["bias"] is not None else "–" for r in here]
        least = f"{100 * worst['covered']:.0f} %" + (f" at {worst['share']:g}" if worst["covered"] < 1 else "")
        table.append([str(n_p), f"{auc:g}", *shares, least])
    shares = [f"bias at {share:g}" for share in sorted({r["share"] for r in rows})]
    return f"""**Simulated scores** (`benchmarks/priors.py simulated`: two normal distributions of a given AUC, 2,000
unlabelled rows, {rows[0]["draws"]} draws; "–" where it cannot be known in any draw). Up to an AUC of about 0.8 the data
do not determine the share: the default is too high for a small one and too low for a large one.

{rows_of(["labelled", "AUC", *shares, "least covered"], table)}"""


def _covers(accuracy: dict[str, Any], key: str, what: str) -> tuple[str, bool]:
    least = min(row["combined"] for row in accuracy[f"coverage_by_{key}"].values())
    return f"90 % intervals covering at least 85 % on {what} (least: {100 * least:.0f} %)", least >= 0.85


def _prior_cells(accuracy: dict[str, Any]) -> str:
    rows = [
        [
            {"set": "", "share": "share ", "n_p": "labelled "}[key] + name + "*" * (name in accuracy["design"]),
            *(f"{accuracy[f'{what}_by_{key}'][name]['combined']:.3f}" for what in ("mae", "bias")),
            f"{accuracy[f'mae_by_{key}'][name]['bbe']:.3f}",
            *(f"{100 * accuracy[f'coverage_by_{key}'][name][method]:.0f} %" for method in ("combined", "bbe")),
            f"{accuracy[f'width_by_{key}'][name]['combined']:.2f}",
            f"{100 * accuracy[f'cannot_by_{key}'][name]['combined']:.0f} %",
        ]
        for key in ("set", "share", "n_p")
        for name in accuracy[f"mae_by_{key}"]
    ]
    return rows_of(["", "error", "bias", "error of bbe", "covered", "covered by bbe", "width", "cannot be known"], rows)


def _prior_known(known: dict[str, Any]) -> str:
    rows = [
        [who, f"{e['absolute']:.3f}", f"{e['error']:+.3f}", f"{100 * e['covered']:.1f} %", f"{e['width']:.2f}"]
        for who, e in known.items()
    ]
    return rows_of(["", "error", "bias", "covered", "width"], rows)


def _labelling_test(found: dict[str, Any]) -> str:
    alarms = 100 * found["accuracy"]["false_alarms_of_the_labelling_test"]
    biased = [r for r in found["representative"] if r["strength"]]
    low, high = (pick(r["mean_bbe"] for r in biased) for pick in (min, max))
    noticed = 100 * sum(r["noticed"] for r in biased) / len(biased)
    return f"""**Are the labelled rows a random sample?** A quick test warns if they seem not to be. It raises a false
alarm in {alarms:.0f} % of the cells above. `benchmarks/priors.py representative` labels positives with weights
exp(strength · first principal component). BBE's estimate of a true share of 0.5 then falls to between
{low:.2f} and {high:.2f}, and the test notices it in {noticed:.0f} % of the draws."""


def prior_speed(speed: dict[str, Any]) -> str:
    rows = [[what, f"{s['seconds']:.2f}", f"{s['goal']:g}", f"{s['peak_mb']}"] for what, s in speed.items()]
    return f"""<details markdown><summary>Seconds on two cores (<code>benchmarks/priors.py speed</code>)</summary>

{rows_of(["what", "seconds", "goal", "peak MB of the process"], rows)}

</details>"""
