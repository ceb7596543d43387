"""Sample and aggregate: one record moves one block, by the diameter."""

import math

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans

from skdp.cluster._sample_aggregate import block_sum, clipped_differences
from skdp.sensitivity import RowLattice, blocks_l1, blocks_l2


class Turncoat(BaseEstimator):
    """Puts all centres at one corner of the bounds, or at the opposite one if a given record is in the block."""

    def fit(self, X, y=None):
        self.cluster_centers_ = np.full((4, X.shape[1]), 1.0 if np.any(X == 0.75) else -1.0)
        return self


def setting(d=3, k=4, n_rows=60, radius=1000.0):
    lattice = RowLattice(np.full(d, -1.0), np.full(d, 1.0))
    X = np.random.default_rng(0).choice([0.25, 0.5], size=(n_rows, d))
    return lattice, X, np.zeros((k, d)), np.full(k, radius), [0] * 6


@pytest.mark.parametrize("d", [1, 3, 20])
def test_a_turncoat_attains_both_bounds(d):
    lattice, X, reference, radii, seeds = setting(d)
    labels = np.arange(60) % 6
    record = np.full((1, d), 0.75)
    for block in range(6):
        with_record = block_sum(
            np.vstack([X, record]), np.append(labels, block), 6, Turncoat(), lattice, reference, radii, seeds
        )
        without = block_sum(X, labels, 6, Turncoat(), lattice, reference, radii, seeds)
        difference = with_record - without
        assert 0.9999 * blocks_l2(4, d) <= np.linalg.norm(difference) <= blocks_l2(4, d)
        assert 0.9999 * blocks_l1(4, d) <= np.abs(difference).sum() <= blocks_l1(4, d)
        # What a mean over q blocks moves by: 2 r sqrt(k) / q.
        assert np.linalg.norm(difference) / 6 == pytest.approx(2 * math.sqrt(4) / 6, rel=1e-4)


def test_one_record_by_brute_force():
    rng = np.random.default_rng(1)
    lattice, _, reference, radii, seeds = setting(2, radius=2.0**17)
    reference = lattice.encode(rng.uniform(-1, 1, (4, 2)))
    estimator = KMeans(4, init=lattice.decode(reference), n_init=1)
    largest = 0.0
    for _ in range(60):
        n_rows = int(rng.integers(0, 50))
        X = rng.uniform(-1.2, 1.2, (n_rows, 2))
        labels = rng.integers(6, size=n_rows)
        record = rng.choice([-5.0, 5.0, 0.0], size=(1, 2))
        with_record = np.vstack([X, record]), np.append(labels, rng.integers(6))
        sums = [block_sum(*data, 6, estimator, lattice, reference, radii, seeds) for data in ((X, labels), with_record)]
        difference = sums[1] - sums[0]
        assert np.linalg.norm(difference) <= blocks_l2(4, 2)
        assert np.abs(difference).sum() <= blocks_l1(4, 2)
        largest = max(largest, np.linalg.norm(difference))
    assert largest > 1.0


def test_differences_lie_in_the_unit_ball():
    rng = np.random.default_rng(2)
    steps = clipped_differences(rng.normal(size=(50, 7)) * 1e6, np.zeros((50, 7)), np.geomspace(1, 1e7, 50))
    lengths = np.linalg.norm(steps * 2.0**-20, axis=1)
    assert lengths.max() <= blocks_l2(1, 7) / 2
    assert lengths.max() >= 0.99999
