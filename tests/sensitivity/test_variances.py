"""Variances along directions, sums of rows and centred moments: what one record can change, by brute force."""

import math

import numpy as np
import pytest

from skdp.sensitivity import centred_moments_l2, energies_l1, energies_l2, row_sum_l2

NORM = 1.7


def rows(d, seed=0):
    """Random and corner rows, of all lengths up to the norm."""
    rng = np.random.default_rng(seed)
    found = [*rng.normal(size=(100, d)), *np.eye(d), np.ones(d), rng.choice([-1.0, 1.0], size=d)]
    for x in found:
        for length in (0.3, 0.9, 1.0):
            yield length * NORM * x / np.linalg.norm(x)


def energies(x, directions, weight):
    along = (directions @ x) ** 2
    return np.r_[along, x @ x - along.sum(), weight]


@pytest.mark.parametrize(("d", "k"), [(1, 1), (2, 1), (6, 3), (6, 6)])
@pytest.mark.parametrize("weight", [0.0, 0.4])
def test_energies_of_one_record(d, k, weight):
    directions = np.linalg.qr(np.random.default_rng(1).normal(size=(d, d)))[0].T[:k]
    moved = [energies(x, directions, weight) for x in [*rows(d), *(NORM * directions)]]
    assert max(np.abs(m).sum() for m in moved) <= energies_l1(NORM, weight)
    assert max(np.abs(m).sum() for m in moved) >= 0.999 * energies_l1(NORM, weight)
    assert max(np.linalg.norm(m) for m in moved) <= energies_l2(NORM, weight)
    assert max(np.linalg.norm(m) for m in moved) >= 0.999 * energies_l2(NORM, weight)


@pytest.mark.parametrize("d", [1, 5])
def test_sum_of_one_row(d):
    moved = [np.linalg.norm(np.r_[x, 0.6]) for x in rows(d)]
    assert 0.999 * row_sum_l2(NORM, 0.6) <= max(moved) <= row_sum_l2(NORM, 0.6)


@pytest.mark.parametrize("d", [1, 5])
@pytest.mark.parametrize(("sum_weight", "count_weight"), [(0.0, 0.0), (1.2, 0.7)])
def test_centred_moments_of_one_record(d, sum_weight, count_weight):
    moved = []
    for x in rows(d):
        gram = np.outer(x, x)
        svec = np.r_[np.diagonal(gram), math.sqrt(2) * gram[np.triu_indices(d, 1)]]
        moved.append(np.linalg.norm(np.r_[svec, sum_weight * x, count_weight]))
    claim = centred_moments_l2(NORM, sum_weight, count_weight)
    assert 0.999 * claim <= max(moved) <= claim
