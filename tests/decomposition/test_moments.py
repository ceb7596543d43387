"""Sums of centred and clipped rows: what they are, that they are exact, and how far one record moves them."""

import tracemalloc

import numpy as np
import pytest

from skdp.decomposition._base import row_sums, second_moments
from skdp.sensitivity import entry_step


def data(n_rows=5000, d=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n_rows, d)) + 0.3


@pytest.mark.parametrize("private", [True, False])
def test_moments_of_clipped_rows(private):
    X, centre = data(), np.full(4, 0.2)
    rows = X - centre
    rows *= np.minimum(1, 1.5 / np.linalg.norm(rows, axis=1))[:, None]
    sums = second_moments(X, centre, 1.5, private)
    np.testing.assert_allclose(sums.gram, rows.T @ rows, rtol=1e-5, atol=0.02)
    np.testing.assert_allclose(sums.total, rows.sum(axis=0), atol=0.02)
    assert sums.count == len(X)
    rows = X * np.minimum(1, 1.5 / np.linalg.norm(X, axis=1))[:, None]
    total, count = row_sums(X, 1.5, private)
    np.testing.assert_allclose(total, rows.sum(axis=0), atol=0.02)
    assert count == len(X)


def test_order_does_not_matter_and_entries_lie_on_a_lattice():
    X, order = data(), np.random.default_rng(1).permutation(5000)
    one, other = (second_moments(rows, np.zeros(4), 2.0, True) for rows in (X, X[order]))
    np.testing.assert_array_equal(one.gram, other.gram)
    np.testing.assert_array_equal(one.total, other.total)
    np.testing.assert_array_equal(one.gram / entry_step(2.0) ** 2 % 1, 0)


@pytest.mark.parametrize("d", [1, 3, 40])
@pytest.mark.parametrize("size", [0.01, 1.0, 1e9, 1e307])
def test_one_record_has_a_norm_of_at_most_the_bound(d, size):
    rng = np.random.default_rng(d)
    norm = 0.77
    largest = 0.0
    for x in [*rng.normal(size=(50, d)), np.ones(d), np.eye(d)[0]]:
        sums = second_moments(size * x[None], np.full(d, 0.1), norm, True)
        assert np.trace(sums.gram) <= norm**2
        assert np.linalg.eigvalsh(sums.gram)[-1] <= norm**2 * (1 + 1e-15)
        assert np.linalg.norm(sums.total) <= norm
        assert np.linalg.norm(row_sums(size * x[None], norm, True)[0]) <= norm
        largest = max(largest, np.trace(sums.gram))
    if size >= 1e9:
        assert largest >= 0.999 * norm**2


def test_nothing_of_nothing():
    sums = second_moments(np.empty((0, 3)), np.zeros(3), 1.0, True)
    np.testing.assert_array_equal(sums.gram, np.zeros((3, 3)))
    assert sums.count == 0


def test_memory_is_bounded():
    peaks = []
    for n_rows in (20_000, 80_000):
        X = np.zeros((n_rows, 20), dtype=np.float32)
        tracemalloc.start()
        second_moments(X, np.ones(20), 1.0, True)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.1 * peaks[0]
    assert peaks[0] < 4e6
