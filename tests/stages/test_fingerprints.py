"""Histories and weights of every stage equal those in ``fingerprints.json``: one process, two ranks, resumed.

A change that should not change numbers must leave these bits as they are. A change that should records them again:

    python -m tests.stages.test_fingerprints

Bits depend on the processor and on torch's version. Where either is another, histories are compared within a tolerance.
"""

from __future__ import annotations

import hashlib
import json
import platform
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from punce.datasets.generated_text import WORDS, generated_reviews
from punce.encoders import Encoder, Transformer
from punce.encoders.encoder import projector
from punce.encoders.tiny_roberta import write_tiny_roberta
from punce.losses import DCL, SCL, ContrastiveLoss, InfoNCE, PuNCE
from punce.risks import NNPU, PN, UPU, VPU, PvU, Risk
from punce.stages.fewshot import FewshotConfig, fewshot
from punce.stages.finetune import FinetuneConfig, finetune
from punce.stages.pretrain import PretrainConfig, pretrain
from punce.stages.probe import LinearHead, ProbeConfig, probe
from punce.stages.pupl import pupl
from punce.stages.selfpu import SelfPUConfig, selfpu
from punce.stages.vpu import VPUConfig, train_vpu
from punce.training import collectives
from punce.views import Embedding, Text
from tests.ranks import run_ranks
from tests.stages.digits import Interruption, interrupted_at

RECORD = Path(__file__).with_name("fingerprints.json")
N, SIZE, PRIOR = 70, 6, 0.4
INTERRUPTED = 5  # in the middle of the second of three epochs
Folder = Path | None
Result = tuple[list[dict[str, Any]], dict[str, Tensor]]

_RANDOM = np.random.default_rng(0)
Y = _RANDOM.integers(0, 2, N)
X = torch.from_numpy(_RANDOM.normal(Y[:, None], 1.0, (N, SIZE)).astype(np.float32))
LABELS = np.where((Y == 1) & (np.arange(N) < 36), 1, 0).astype(np.int8)
BOTH = np.where((Y == 0) & (np.arange(N) < 20), -1, LABELS).astype(np.int8)
WEIGHTS = torch.from_numpy(_RANDOM.uniform(0, 1, N).astype(np.float32))


class Small(Encoder):
    """BatchNorm, whose statistics ranks share, and dropout, whose masks must resume."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Linear(SIZE, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Dropout(0.2), nn.Linear(12, 5)
        )
        self.projector = projector(5, 7, 4)
        self.online_head = nn.Linear(5, 1)


def encoder() -> Small:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return Small()


def observed(score: Callable[[Tensor], Tensor]) -> dict[str, float]:
    with torch.no_grad():
        return {"mean_score": float(score(X[:9]).mean())}


def state_of(network: nn.Module | None, head: LinearHead | None) -> dict[str, Tensor]:
    state = {} if network is None else dict(network.state_dict())
    parts = () if head is None else ("weight", "bias", "mean", "scale")
    return {**state, **{f"head.{name}": getattr(head, name) for name in parts}}


def first_ranks(folder: str) -> Path:
    """The folder of this name on the first rank, which all ranks use."""
    told = [folder]
    if collectives.world_size() > 1:
        torch.distributed.broadcast_object_list(told)
    return Path(told[0])


# The stages -------------------------------------------------------------------------------------------------------


def pretrained(loss: ContrastiveLoss, folder: Folder, labels: Any = LABELS, **settings: Any) -> Result:
    network, config = encoder(), PretrainConfig(epochs=3, batch_size=24, seed=2, **settings)
    history = pretrain(network, Embedding(), X, labels, loss, config, folder=folder)
    return history, state_of(network, None)


def probed(risk: Risk, folder: Folder, **options: Any) -> Result:
    config = ProbeConfig(epochs=3, batch_size=24, seed=1)
    head = probe(X, LABELS, risk, config, prior=PRIOR, folder=folder, observer=observed, **options)
    return head.history, state_of(None, head)


def linear_head() -> LinearHead:
    return LinearHead(*(torch.linspace(0.1 + i, 0.5 + i, 5) if i != 1 else torch.tensor(0.3) for i in range(4)))


def tuned(stage: Any, risk: Risk, folder: Folder, *, start: bool = False, augment: bool = False, **options: Any) -> Any:
    network, config = encoder(), FinetuneConfig(epochs=3, batch_size=20, augment=augment, seed=3)
    given = {**options, **({"head": linear_head()} if start else {})}
    head = stage(network, Embedding(), X, LABELS, risk, config, prior=PRIOR, folder=folder, observer=observed, **given)
    return head.history, state_of(network, head)


def variational(folder: Folder, *, from_scratch: bool) -> Result:
    network, config = encoder(), VPUConfig(epochs=3, batch_size=20, from_scratch=from_scratch, lr=1e-2)
    head = train_vpu(network, Embedding(), X, LABELS, config, folder=folder, observer=observed)
    return [*head.history, {"scale": head.scale}], state_of(network, head.linear)


def two_networks(folder: Folder) -> Result:
    network = encoder()
    config = SelfPUConfig(epochs=3, batch_size=20, select_from=1, select_until=2, select_every=1)
    head = selfpu(network, Embedding(), X, LABELS, config, prior=PRIOR, folder=folder, observer=observed)
    return head.history, state_of(network, head)


def few(loss: ContrastiveLoss | None, folder: Folder, *, project: bool = False) -> Result:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = Transformer(tiny_roberta())
    train, dev = generated_reviews(40), generated_reviews(12, seed=9)
    signs, dev_signs = (np.where(part.y_true == 1, 1, -1).astype(np.int8) for part in (train, dev))
    labels = np.where(np.arange(40) < 14, signs, 0).astype(np.int8)
    tokens, dev_tokens = network.tokens(train.X), network.tokens(dev.X)
    config = FewshotConfig(steps=7, batch_size=8, lr=1e-3, evaluate_every=3, project=project, ce_weight=0.4)
    given: dict[str, Any] = {"validation": (dev_tokens, dev_signs), "folder": folder}
    fitted = fewshot(
        network, Text(), tokens, labels, loss, config, **given, observer=lambda f: {"mean": float(f(tokens).mean())}
    )
    accuracy = {"validation_accuracy": fitted.validation_accuracy}
    return [*fitted.history, accuracy], state_of(network, fitted.head)


@cache
def tiny_roberta() -> Path:
    folder = first_ranks(tempfile.mkdtemp())  # transformers writes on the first rank only
    write_tiny_roberta(folder, WORDS[:40], hidden_size=8, num_hidden_layers=1)
    if collectives.world_size() > 1:
        torch.distributed.barrier()
    return folder


def clustered(folder: Folder) -> Result:
    head = pupl(X, LABELS)
    return head.history, state_of(None, head)


CASES: dict[str, Callable[[Folder], Any]] = {
    "pretrain infonce": partial(pretrained, InfoNCE()),
    "pretrain scl": partial(pretrained, SCL()),
    "pretrain punce": partial(pretrained, PuNCE(PRIOR)),
    "pretrain punce pnu": partial(pretrained, PuNCE(PRIOR), labels=BOTH),
    "pretrain punce posterior": partial(pretrained, PuNCE(PRIOR, weighting="posterior"), labels=BOTH),
    "pretrain dcl": partial(pretrained, DCL()),
    "pretrain lars": partial(pretrained, PuNCE(PRIOR), optimizer="lars", lr=1.0, warmup_epochs=2.0),
    "probe pn": partial(probed, PN()),
    "probe pvu": partial(probed, PvU(PRIOR)),
    "probe pvu weights made": partial(probed, PvU(PRIOR, correction="weighted")),
    "probe pvu weights given": partial(probed, PvU(PRIOR, correction="weighted"), weights=WEIGHTS),
    "probe upu": partial(probed, UPU(PRIOR)),
    "probe nnpu": partial(probed, NNPU(PRIOR)),
    "probe vpu": partial(probed, VPU()),
    "finetune nnpu": partial(tuned, finetune, NNPU(PRIOR)),
    "finetune from a head": partial(tuned, finetune, NNPU(PRIOR), start=True, augment=True),
    "finetune pvu weights made": partial(tuned, finetune, PvU(PRIOR, correction="weighted")),
    "finetune pn": partial(tuned, finetune, PN()),
    "from scratch nnpu": partial(tuned, finetune, NNPU(PRIOR), from_scratch=True),
    "from scratch pvu weights given": partial(
        tuned, finetune, PvU(PRIOR, correction="weighted"), weights=WEIGHTS, from_scratch=True
    ),
    "vpu from scratch": partial(variational, from_scratch=True),
    "vpu from given weights": partial(variational, from_scratch=False),
    "selfpu": two_networks,
    "fewshot ce": partial(few, None),
    "fewshot scl": partial(few, SCL(0.3)),
    "fewshot punce projected": partial(few, PuNCE(PRIOR, 0.3), project=True),
    "pupl": clustered,
}
RESUMED_ON_RANKS = (  # one of each stage
    "pretrain punce",
    "pretrain punce posterior",
    "probe pvu weights made",
    "finetune from a head",
    "from scratch nnpu",
    "vpu from scratch",
    "selfpu",
    "fewshot punce projected",
)
ON_RANKS = (  # of what differs between ranks: losses and risks over the global batch, weights that one rank makes
    *RESUMED_ON_RANKS,
    "pretrain punce pnu",
    "pretrain dcl",
    "finetune pvu weights made",
    "vpu from given weights",
    "fewshot ce",
)


# Running, recording and comparing ----------------------------------------------------------------------------------


def fingerprint(case: str, folder: Folder = None) -> dict[str, Any]:
    history, state = CASES[case](folder)
    digest = hashlib.sha256()
    for name, value in sorted(state.items()):
        digest.update(name.encode() + value.detach().contiguous().numpy().tobytes())
    return {"history": history, "sha256": digest.hexdigest()}


def resumed(case: str, folder: Path) -> dict[str, Any]:
    """Interrupted within a step, then called again with its folder."""
    if case == "pupl":  # which has no steps
        return fingerprint(case)
    with interrupted_at(INTERRUPTED), pytest.raises(Interruption):
        CASES[case](folder)
    assert any((folder / "checkpoints").iterdir())
    torch.rand(7)  # another process would be elsewhere in torch's stream
    return fingerprint(case, folder)


@contextmanager
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def on_a_rank(rank: int, world: int) -> dict[str, Tensor]:
    """Cases on this rank, and one of each stage resumed, as JSON in a tensor."""
    found = {case: fingerprint(case) for case in ON_RANKS}
    with tempfile.TemporaryDirectory() as own:
        shared = first_ranks(own)
        again = {case: resumed(case, shared / case.replace(" ", "-")) for case in RESUMED_ON_RANKS}
        torch.distributed.barrier()
    text = json.dumps({"whole": found, "resumed": again}).encode()
    return {"json": torch.frombuffer(bytearray(text), dtype=torch.uint8)}


def on_two_ranks(folder: Path) -> list[dict[str, Any]]:
    results = run_ranks(2, on_a_rank, folder, timeout=240.0)
    return [json.loads(result["json"].numpy().tobytes()) for result in results]


def machine() -> dict[str, str]:
    """What decides the last bits: the processor's instructions and torch's kernels."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    fields = dict(line.split(":", 1) for line in lines if ":" in line)
    named = {key.strip(): value.strip() for key, value in fields.items()}
    model = " ".join(named.get(key, "?") for key in ("model name", "cpu family", "model"))
    return {"cpu": f"{platform.machine()} {model}", "torch": torch.__version__}


def record() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(RECORD.read_text())
    return content


def assert_as_recorded(found: dict[str, Any], kept: dict[str, Any]) -> None:
    if record()["machine"] == machine():
        assert found == kept
        return
    assert len(found["history"]) == len(kept["history"])
    for row, expected in zip(found["history"], kept["history"], strict=True):
        assert row.keys() == expected.keys()
        for key, value in expected.items():  # approx takes no words
            close = value if isinstance(value, str) else pytest.approx(value, rel=0.02, abs=0.02, nan_ok=True)
            assert row[key] == close, key


@pytest.mark.parametrize("case", CASES)
def test_one_process_whole_and_resumed(case: str, tmp_path: Path) -> None:
    with one_thread():
        whole, again = fingerprint(case), resumed(case, tmp_path)
    assert again == whole
    assert_as_recorded(whole, record()["alone"][case])


@pytest.mark.timeout(300)
def test_two_ranks_whole_and_resumed(tmp_path: Path) -> None:
    first, second = on_two_ranks(tmp_path)
    assert first == second
    assert first["resumed"] == {case: first["whole"][case] for case in RESUMED_ON_RANKS}
    kept = record()["two ranks"]
    assert first["whole"].keys() == kept.keys()
    for case, found in first["whole"].items():
        assert_as_recorded(found, kept[case])


def main() -> None:
    with one_thread(), tempfile.TemporaryDirectory() as folder:
        alone = {case: fingerprint(case) for case in CASES}
        first, _ = on_two_ranks(Path(folder))
    content = {"machine": machine(), "alone": alone, "two ranks": first["whole"]}
    RECORD.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    from tests.stages import test_fingerprints

    test_fingerprints.main()  # by its module's name, which the ranks import
