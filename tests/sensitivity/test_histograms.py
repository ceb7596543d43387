"""Histograms on grids: one record is in one cell of each column, and block by block is as good as at once."""

import numpy as np
import pytest

from skdp.sensitivity import PARTS, cell_counts, spread_counts

RNG = np.random.default_rng(0)
X = RNG.normal(5, 4, size=(5000, 3))


def places(rows):
    return rows[:, :2]


def test_by_a_loop():
    counts = cell_counts(places, X, 2, 10)
    expected = np.zeros((2, 10))
    for row in X:
        for column in range(2):
            expected[column, min(max(int(np.floor(row[column])), 0), 9)] += 1
    np.testing.assert_array_equal(counts, expected)
    np.testing.assert_array_equal(cell_counts(places, X[::-1], 2, 10), counts)


@pytest.mark.parametrize("value", [-1e300, -0.5, 0.0, 3.0, 9.999, 10.0, 1e300, np.inf, -np.inf])
def test_one_record_adds_one_to_one_cell_of_each_column(value):
    more = np.vstack([X, np.full(3, value)])
    change = cell_counts(places, more, 2, 10) - cell_counts(places, X, 2, 10)
    np.testing.assert_array_equal(np.sort(change, axis=1)[:, -1], 1)
    assert np.abs(change).sum() == 2


def test_no_rows():
    np.testing.assert_array_equal(cell_counts(places, X[:0], 2, 10), np.zeros((2, 10)))


def test_one_record_adds_shares_whose_sum_is_one():
    counts = np.random.default_rng(0).integers(0, 50, (3, 7)).astype(float)
    before = spread_counts(counts)
    assert before.shape == (3, 7 * PARTS)
    np.testing.assert_array_equal(before.reshape(3, 7, PARTS).sum(axis=2), counts)
    for cell in range(7):
        more = spread_counts(counts + (np.arange(7) == cell)) - before
        assert np.all(more >= 0)
        np.testing.assert_array_equal(more.sum(axis=1), 1)
