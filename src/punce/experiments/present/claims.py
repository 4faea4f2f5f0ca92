"""The paper's claims, each with the places that test it, and questions beyond the paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from punce.experiments.present.grid import Grid
from punce.experiments.present.paper_numbers import paper_figure
from punce.experiments.present.verdicts import Answer, Book, Finding, Line, Ref
from punce.experiments.tables import shown

LABELS = ("1k", "3k", "10k")
_COSTLY = 1.0  # points
_RIVALS = ("pn", "pvu", "upu", "nnpu", "vpu", "selfpu")


def paper_claims(grids: Mapping[str, Grid]) -> list[Finding]:
    """What the paper says, against what these results say."""
    book = Book(grids)
    found: list[Finding] = []
    for network in ("mnist/mlp", "cifar10/resnet18"):
        found += _losses(book, network)
    for network in ("mnist/mlp", "cifar10/resnet18", "cifar10/allconv"):
        found += _methods(book, network)
    for network in ("mnist/mlp", "cifar10/resnet18"):
        found += _transfer(book, network)
        found += _downstream(book, network)
    return [*found, *_both_classes(book), *_few_shot(book)]


def _name(network: str) -> str:
    return ", ".join(shown(part) for part in network.split("/"))


# Table 1, Figures 3 and 4a ---------------------------------------------------------------------------------------


def _losses(book: Book, network: str) -> list[Finding]:
    def at(n_p: str, loss: str) -> Ref:
        return Ref("table1", f"{network}/{n_p}", loss)

    def ahead(better: str, worse: str) -> tuple[Line, ...]:
        return tuple(book.ahead(n_p, [at(n_p, better)], [at(n_p, worse)]) for n_p in LABELS)

    name = _name(network)
    found = [
        Finding(f"{name}: puNCE is ahead of {shown(other)}", "Table 1", ahead("punce", other))
        for other in ("infonce", "dcl", "scl")
    ]
    found.append(Finding(f"{name}: SCL is ahead of InfoNCE", "Section 5.1, Table 1", ahead("scl", "infonce")))
    few, many = ([at(n_p, "punce")] for n_p in ("1k", "10k"))
    lead = book.ahead("lead at 1k − lead at 10k", [*few, at("10k", "scl")], [*many, at("1k", "scl")])
    found.append(Finding(f"{name}: puNCE's lead over SCL is larger with fewer labels", "Table 1, caption", (lead,)))
    more = tuple(book.ahead(f"{shown(x)}, 10k − 1k", [at("10k", x)], [at("1k", x)]) for x in ("scl", "punce"))
    found.append(Finding(f"{name}: SCL and puNCE improve with labels", "Section 5.1, Figure 4a", more))
    return [*found, _separation(book, network)]


def _separation(book: Book, network: str) -> Finding:
    panels = {panel: Ref("tsne", network, panel, "purity") for panel in ("infonce", "punce 1k", "punce 3k")}
    lines = (
        book.ahead("puNCE 1k − InfoNCE", [panels["punce 1k"]], [panels["infonce"]]),
        book.ahead("puNCE 3k − puNCE 1k", [panels["punce 3k"]], [panels["punce 1k"]]),
    )
    text = (
        "classes lie further apart in t-SNE with puNCE, and further with more labels (share of like neighbours, points)"
    )
    return Finding(f"{_name(network)}: {text}", "Figure 3", lines)


# Table 2, Figure 1 -----------------------------------------------------------------------------------------------


def _methods(book: Book, network: str) -> list[Finding]:
    def at(method: str, n_p: str) -> Ref:
        return Ref("table2", f"{network}/{method}", n_p)

    name = _name(network)
    over_nnpu = tuple(book.ahead(n_p, [at("punce", n_p)], [at("nnpu", n_p)]) for n_p in LABELS)
    over_best = tuple(line for n_p in LABELS for line in _over_best(book, network, n_p))
    return [
        Finding(f"{name}: puNCE with a probe is ahead of nnPU from scratch", "Table 2, Figure 1", over_nnpu),
        Finding(f"{name}: puNCE with a probe is ahead of the best other PU method", "Table 2, Figure 1", over_best),
        Finding(f"{name}: puNCE reaches the paper's level", "Table 2", _levels(book, network)),
    ]


def _over_best(book: Book, network: str, n_p: str) -> list[Line]:
    """Against the method that comes closest to puNCE, or passes it, over the seeds it shares with puNCE.

    A method that was not measured might be that one: it has a line of its own.
    """
    punce = Ref("table2", f"{network}/punce", n_p)
    others = {method: Ref("table2", f"{network}/{method}", n_p) for method in _RIVALS}
    leads = {method: lead.mean for method, ref in others.items() if (lead := book.contrast([punce], [ref]))}
    if not leads:
        return [Line(Answer.MISSING, f"{n_p}: not measured")]
    best = min(leads, key=lambda method: leads[method])
    unknown = [shown(method) for method in _RIVALS if method not in leads]
    lines = [book.ahead(f"{n_p}, against {shown(best)}", [punce], [others[best]])]
    return [*lines, Line(Answer.MISSING, f"{n_p}, against {', '.join(unknown)}: not measured")] if unknown else lines


def _levels(book: Book, network: str) -> tuple[Line, ...]:
    lines = []
    for n_p in LABELS:
        printed = paper_figure("Table 2", f"{network}/punce", n_p)
        if printed is not None:
            lines.append(book.reaches(n_p, Ref("table2", f"{network}/punce", n_p), printed.value))
    return tuple(lines)


# Table 3, Figures 4b and 4c --------------------------------------------------------------------------------------


def _transfer(book: Book, network: str) -> list[Finding]:
    def at(n_p: str, transfer: str) -> Ref:
        return Ref("table3", f"{network}/{n_p}", transfer)

    ahead = tuple(book.ahead(n_p, [at(n_p, "lp")], [at(n_p, "ft")]) for n_p in LABELS)
    gap = book.ahead("gap at 1k − gap at 10k", [at("1k", "lp"), at("10k", "ft")], [at("1k", "ft"), at("10k", "lp")])
    name = _name(network)
    return [
        Finding(f"{name}: a linear probe is ahead of fine-tuning", "Section 5.1, Table 3", ahead),
        Finding(f"{name}: the gap between them is larger with fewer labels", "Section 5.1, Table 3", (gap,)),
    ]


def _downstream(book: Book, network: str) -> list[Finding]:
    def risk(name: str, n_p: str) -> Ref:
        return Ref("ablation_probing", f"{network}/{name}", n_p)

    def curve(name: str, start: str, quantity: str) -> Ref:
        return Ref("ablation_stability", f"{network}/{name}", start, quantity)

    def calmer(quantity: str) -> tuple[Line, ...]:
        names = ("upu", "nnpu")
        pairs = [([curve(n, "random", quantity)], [curve(n, "punce", quantity)]) for n in names]
        return tuple(book.ahead(f"{shown(n)}, random − puNCE", *pair) for n, pair in zip(names, pairs, strict=True))

    better = tuple(
        book.ahead(f"{n_p}, against {shown(other)}", [risk("nnpu", n_p)], [risk(other, n_p)])
        for other in ("pn", "upu")
        for n_p in LABELS
    )
    name = _name(network)
    lost = "PU training from puNCE loses less from its best epoch to its last than from random weights"
    moved = "PU training from puNCE moves less from epoch to epoch (second half) than from random weights"
    return [
        Finding(f"{name}: nnPU is the best risk for the probe", "Section 5.1, Figure 4b", better),
        Finding(f"{name}: {lost}", "Section 5.1, Figure 4c", calmer("drop")),
        Finding(f"{name}: {moved}", "Section 5.1, Figure 4c", calmer("jitter")),
    ]


# Tables 4 and 5 --------------------------------------------------------------------------------------------------


def _both_classes(book: Book) -> list[Finding]:
    def ahead(other: str) -> tuple[Line, ...]:
        rows = {share: f"cifar10/allconv/{share}" for share in ("1%", "5%", "10%")}
        return tuple(
            book.ahead(share, [Ref("table4", row, "punce")], [Ref("table4", row, other)]) for share, row in rows.items()
        )

    return [
        Finding(f"PNU CIFAR, AllConv: puNCE is ahead of {shown(other)}", "Section 5.2, Table 4", ahead(other))
        for other in ("infonce", "scl")
    ]


def _few_shot(book: Book) -> list[Finding]:
    def ahead(other: str) -> tuple[Line, ...]:
        rows = {n: f"sst2/roberta/{n}" for n in ("20", "100", "1000")}
        return tuple(
            book.ahead(n, [Ref("table5", row, "ce+punce")], [Ref("table5", row, other)]) for n, row in rows.items()
        )

    return [
        Finding(f"Few-shot SST-2: CE + puNCE is ahead of {shown(other)}", "Section 5.3, Table 5", ahead(other))
        for other in ("ce", "ce+scl")
    ]


# Beyond the paper ------------------------------------------------------------------------------------------------


def further_questions(grids: Mapping[str, Grid]) -> list[Finding]:
    """What the paper does not ask."""
    book = Book(grids)
    return [*_wrong_prior(book), _estimated_prior(book, grids), *_other_labels(book)]


def _wrong_prior(book: Book) -> list[Finding]:
    def cost(row: str) -> tuple[Line, ...]:
        right = Ref("sensitivity_prior", row, "0")
        wrong = {error: Ref("sensitivity_prior", row, error) for error in ("-0.2", "-0.1", "+0.1", "+0.2")}
        return tuple(
            book.costs_less(f"prior {e.replace('-', '−')}", [right], [ref], _COSTLY) for e, ref in wrong.items()
        )

    rows = {"puNCE (in loss and probe)": "mnist/mlp/loss and probe", "nnPU from scratch": "mnist/mlp/nnpu"}
    return [
        Finding(f"MNIST, 1k: a wrong prior costs {name} less than one point", "beyond the paper", cost(row))
        for name, row in rows.items()
    ]


def _estimated_prior(book: Book, grids: Mapping[str, Grid]) -> Finding:
    rows: Sequence[str] = grids["prior_methods"].experiment.rows if "prior_methods" in grids else ()
    right = Ref("prior_methods", "mnist/mlp/true", "punce")
    refs = {row.rpartition("/")[2]: Ref("prior_methods", row, "punce") for row in rows if row != right.row}
    lines = tuple(book.costs_less(shown(method), [right], [ref], _COSTLY) for method, ref in refs.items())
    return Finding("MNIST, 1k: an estimated prior costs puNCE less than one point", "beyond the paper", lines)


def _other_labels(book: Book) -> list[Finding]:
    scenarios = tuple(
        book.ahead(
            f"{shown(scenario)}, {n_p}",
            [Ref("scenarios", f"mnist/mlp/{scenario}/{n_p}", "punce")],
            [Ref("scenarios", f"mnist/mlp/{scenario}/{n_p}", "nnpu")],
        )
        for scenario in ("single_set", "case_control")
        for n_p in ("1k", "10k")
    )
    biased = tuple(
        book.ahead(
            f"strength {strength}",
            [Ref("biased_labels", "mnist/mlp/punce", strength)],
            [Ref("biased_labels", "mnist/mlp/nnpu", strength)],
        )
        for strength in ("0.5", "1", "2")
    )
    return [
        Finding("MNIST: puNCE is ahead of nnPU in either scenario", "beyond the paper", scenarios),
        Finding("MNIST, 1k: puNCE is ahead of nnPU when labels prefer bright images", "beyond the paper", biased),
    ]
