"""Writes the stored models that `test_stored_models.py` loads: ``python tests/models/stored/write.py``.

Run it with the version whose model folders must stay readable, never to make a failing test pass.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from punce import PUClassifier
from punce.models.network import build_encoder

HERE = Path(__file__).parent
ROWS = 32


def table(n: int = ROWS) -> pd.DataFrame:
    """Numbers with gaps, few and many distinct values, categories, truth values and dates."""
    rng = np.random.RandomState(0)
    gaps = rng.normal(size=n).round(3)
    gaps[rng.random_sample(n) < 0.2] = np.nan
    return pd.DataFrame(
        {
            "amount": np.exp(rng.normal(size=n) + 2 * labels(n)).round(3),
            "count": rng.randint(0, 5, n),
            "gaps": gaps,
            "colour": pd.Series(rng.choice(["red", "green", "blue", None], n), dtype="str"),
            "flag": rng.random_sample(n) < 0.5,
            "day": pd.to_datetime("2024-01-01") + pd.to_timedelta(rng.randint(0, 400, n), unit="D"),
        }
    )


def texts(n: int = ROWS) -> list[str]:
    """Short texts over a few words."""
    rng = np.random.RandomState(1)
    words = np.array(["pay", "invoice", "urgent", "hello", "lunch", "meeting", "offer", "winner", "free", "report"])
    return [" ".join(words[rng.randint(0, 5 if label else 10, 5)]) for label in labels(n)]


def labels(n: int = ROWS) -> np.ndarray[Any, Any]:
    """Every third row labelled."""
    return (np.arange(n) % 3 == 0).astype(int)


MODELS: dict[str, tuple[Any, dict[str, Any]]] = {
    "table": (table, {}),
    "table_network": (table, {"encoder": "mlp", "epochs": 1}),
    "words": (texts, {"encoder": "tfidf", "loss": "punce", "risk": "nnpu", "epochs": 1}),
}


def _make_small(classifier: PUClassifier) -> None:
    """Replace the encoder, whose width no option gives, by an untrained one that is a hundred times narrower."""
    network = classifier._route._model._network
    spec = network._encoder_spec
    spec["options"]["width"] = 0.004
    network._encoder = build_encoder(spec["name"], **spec["options"]).eval()


def main() -> None:
    for name, (rows, options) in MODELS.items():
        folder = HERE / name
        shutil.rmtree(folder, ignore_errors=True)
        classifier = PUClassifier(prior=0.3, **options).fit(rows(), labels())
        if name == "table_network":
            _make_small(classifier)
        classifier.save(folder)
        expected = {
            "scores": classifier.decision_function(rows()).tolist(),
            "embed": classifier.embed(rows()[:3]).tolist(),
        }
        (HERE / f"{name}.json").write_text(json.dumps(expected), encoding="utf-8")


if __name__ == "__main__":
    main()
