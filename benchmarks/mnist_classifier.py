"""The default PUClassifier on MNIST odd/even with 1,000 labelled rows: are its probabilities and its numbers right?

    PUNCE_DATA=... python benchmarks/mnist_classifier.py

Nothing is given but images and labels: the prior is estimated, the network is the CPU-sized one. Printed and saved in
benchmarks/results/mnist_classifier.json: the estimates made without negatives beside the truth on the unlabelled mix
(test rows weighted to the share of positives among the unlabelled rows), and the calibration error there.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from machine import save

from punce import PUClassifier
from punce.data import load, simulate_pu
from punce.experiments.true_metrics import expected_calibration_error, true_metrics


def main() -> None:
    data = load("mnist")
    sample = simulate_pu(data.train.y_true, 1000, seed=0)
    start = time.perf_counter()
    classifier = PUClassifier(progress=True).fit(data.train.X, sample.labels)
    seconds = time.perf_counter() - start
    probability = classifier.predict_proba(data.test.X)[:, 1]
    truth = true_metrics(data.test.y_true, probability, np.nextafter(classifier.threshold_, 0))
    metrics = classifier.metrics_
    result: dict[str, Any] = {
        "setting": "MNIST odd/even, n_P = 1000, seed 0, defaults, prior estimated",
        "prior": {
            "estimated": classifier.prior_.value,
            "low": classifier.prior_.low,
            "high": classifier.prior_.high,
            "before_training": classifier.first_prior_.value,
            "on_learned_scores": second.value if (second := classifier.second_prior_) else None,
            "true": sample.prior,
        },
        "accuracy": {"estimated_without_negatives": metrics.unlabelled.accuracy.value, "true_on_test": truth.accuracy},
        "auc": {"estimated_without_negatives": metrics.auc.value, "true_on_test": truth.auc},
        "expected_calibration_error": expected_calibration_error(data.test.y_true, probability),
        "seconds": seconds,
    }
    for name, value in result.items():
        print(name, value)
    print("saved", save("mnist_classifier", result).name)


if __name__ == "__main__":
    main()
