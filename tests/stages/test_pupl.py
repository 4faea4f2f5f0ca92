from __future__ import annotations

import numpy as np
import pytest
import torch

from punce.errors import InputError
from punce.losses import PuNCE
from punce.stages.pretrain import PretrainConfig, pretrain
from punce.stages.probe import extract_features
from punce.stages.pupl import PuplConfig, _seeds, pseudo_labels, pupl
from tests.stages.digits import digits, small_encoder


def blobs(gap: float = 4.0, n: int = 200, n_labelled: int = 20) -> tuple[torch.Tensor, np.ndarray, np.ndarray]:
    """Two Gaussian clouds in five dimensions; the first half is positive."""
    generator = torch.Generator().manual_seed(0)
    h = torch.randn(2 * n, 5, generator=generator)
    h[:n, 0] += gap
    labels = np.zeros(2 * n, dtype=np.int8)
    labels[:n_labelled] = 1
    return h, labels, np.arange(2 * n) < n


@pytest.mark.parametrize("unit_rows", [True, False])
def test_two_clouds_are_told_apart_and_named_by_the_labelled_rows(unit_rows: bool) -> None:
    h, labels, is_positive = blobs(gap=6.0)
    config = PuplConfig(unit_rows=unit_rows)
    clusters = pseudo_labels(h - 3.0 * (torch.arange(5) == 0), labels, config)
    assert (clusters.is_positive.numpy() == is_positive).mean() > 0.95
    # Label the other cloud instead: the same clusters, the other way round.
    turned = pseudo_labels(h - 3.0 * (torch.arange(5) == 0), labels[::-1].copy(), config)
    assert (turned.is_positive.numpy() != is_positive).mean() > 0.95


def test_labelled_positives_stay_positive_even_in_the_other_cloud() -> None:
    h, labels, _ = blobs(gap=6.0)
    labels[-3:] = 1  # three labelled rows that lie among the others
    clusters = pseudo_labels(h, labels, PuplConfig(unit_rows=False))
    assert bool(clusters.is_positive[torch.from_numpy(labels == 1)].all())
    assert not bool(clusters.is_positive[-10:-3].any())


def test_the_potential_never_rises_and_centroids_are_the_means() -> None:
    h, labels, _ = blobs(gap=1.5)
    clusters = pseudo_labels(h, labels, PuplConfig(unit_rows=False, starts=3))
    assert len(clusters.potentials) > 1
    assert all(a >= b - 1e-6 for a, b in zip(clusters.potentials, clusters.potentials[1:], strict=False))
    torch.testing.assert_close(clusters.centroids[1], h[clusters.is_positive].mean(0))
    torch.testing.assert_close(clusters.centroids[0], h[~clusters.is_positive].mean(0))


def test_seeding_starts_at_the_labelled_mean_and_away_from_it() -> None:
    h = torch.zeros(101, 2)
    h[100, 0] = 1.0  # the only unlabelled row that is not where the labelled ones are
    is_p = torch.arange(101) < 50
    for start in range(5):
        negative, positive = _seeds(h, is_p, 0, start)
        assert positive.tolist() == [0.0, 0.0]
        assert negative.tolist() == [1.0, 0.0]


def test_more_starts_never_give_a_looser_clustering() -> None:
    h, labels, _ = blobs(gap=0.5)
    one, many = (pseudo_labels(h, labels, PuplConfig(unit_rows=False, starts=n)).potentials[-1] for n in (1, 12))
    assert many <= one


def test_the_negative_cluster_never_runs_empty() -> None:
    h = torch.tensor([[0.0], [10.0], [5.0], [5.0]])  # the labelled mean lies on both unlabelled rows but for a hair
    h[3] += 1e-3
    labels = np.array([1, 1, 0, 0], dtype=np.int8)
    clusters = pseudo_labels(h, labels, PuplConfig(unit_rows=False))
    assert int((~clusters.is_positive).sum()) >= 1
    assert bool(clusters.centroids.isfinite().all())


def test_the_head_works_like_a_probe_on_a_pretrained_encoder() -> None:
    d, encoder = digits(), small_encoder()
    pretrain(encoder, d.view, d.X, d.labels, PuNCE(d.prior), PretrainConfig(epochs=12, batch_size=256, lr=3e-3))
    head = pupl(extract_features(encoder, d.view, d.X), d.labels)
    assert d.accuracy(encoder, head) > 0.75
    assert head.history[-1]["potential"] <= head.history[0]["potential"]
    again = pupl(extract_features(encoder, d.view, d.X), d.labels)
    assert torch.equal(head.weight, again.weight)


@pytest.mark.parametrize("l2", [1.0, 1e-3])
def test_no_direction_leads_further_down(l2: float) -> None:
    h, labels, _ = blobs()
    head = pupl(h, labels, PuplConfig(l2=l2))
    x = torch.column_stack([(h - head.mean) / head.scale, torch.ones(len(h))]).double()
    wrong = head(h).double().sigmoid() - pseudo_labels(h, labels).is_positive.double()
    penalty = torch.cat([l2 * head.weight.double(), torch.zeros(1)])
    assert float((x.T @ wrong + penalty).abs().max()) < 1e-3


def bad_features() -> torch.Tensor:
    h = blobs()[0]
    h[7, 2] = torch.inf
    return h


@pytest.mark.parametrize(
    ("features", "labels", "message"),
    [
        (blobs()[0][:5], blobs()[1], r"one row per label: got \(5, 5\) and 400"),
        (blobs()[0], np.zeros(400, dtype=np.int8), "no labelled positive"),
        (blobs()[0], -blobs()[1], "labelled negative"),
        (blobs()[0], np.r_[np.ones(399, dtype=np.int8), np.int8(0)], "at least 2 unlabelled"),
        (bad_features(), blobs()[1], "row 7 of the features holds a non-finite value"),
        (torch.ones(400, 5), blobs()[1], "constant encoder"),
    ],
)
def test_bad_input_is_refused(features: torch.Tensor, labels: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        pupl(features, labels)


def test_bad_settings_are_refused() -> None:
    with pytest.raises(InputError, match="starts"):
        PuplConfig(starts=0)
