"""k-means on weighted points, against scikit-learn's."""

import numpy as np
import pytest
from sklearn.cluster import KMeans

from skdp.cluster._refinement import weighted_kmeans
from skdp.mechanisms import NoiseSource


def run(points, weights, k, starts=20, seed=0):
    return weighted_kmeans(points, weights, k, starts, 50, NoiseSource(seed).stream("starts"))


def inertia(points, weights, centres):
    return weights @ ((points[:, None] - centres[None]) ** 2).sum(axis=2).min(axis=1)


@pytest.mark.parametrize("d", [1, 2, 10])
@pytest.mark.parametrize("scale", [1e-90, 1.0, 1e90])
def test_as_good_as_scikit_learns(d, scale):
    rng = np.random.default_rng(d)
    points, weights = rng.normal(size=(60, d)), rng.uniform(1, 50, 60)
    theirs = KMeans(6, n_init=20, random_state=0).fit(points, sample_weight=weights)
    centres, labels = run(scale * points, weights, 6)
    assert inertia(points, weights, centres / scale) <= 1.05 * theirs.inertia_
    np.testing.assert_array_equal(labels, ((points[:, None] - centres / scale) ** 2).sum(axis=2).argmin(axis=1))


def test_centres_are_weighted_means():
    rng = np.random.default_rng(0)
    points, weights = rng.normal(size=(40, 3)), rng.uniform(1, 50, 40)
    centres, labels = run(points, weights, 4)
    for j in range(4):
        np.testing.assert_allclose(centres[j], np.average(points[labels == j], axis=0, weights=weights[labels == j]))


def test_points_that_coincide():
    centres, labels = run(np.ones((9, 2)), np.ones(9), 4)
    np.testing.assert_array_equal(centres, np.ones((4, 2)))
    assert np.all(labels == 0)


def test_heavy_points_are_found():
    # A start by chance alone would miss one of them most of the time.
    points = np.vstack([np.random.default_rng(0).normal(scale=0.1, size=(50, 2)), [[5, 5], [-5, 5], [5, -5]]])
    centres, _ = run(points, np.ones(53), 4)
    assert {tuple(c) for c in np.round(centres).astype(int)} == {(0, 0), (5, 5), (-5, 5), (5, -5)}
