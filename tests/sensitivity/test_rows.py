"""Sums over rows, against plain sums and against exact ones."""

import math

import numpy as np
import pytest

from skdp.sensitivity import clip_rows, sum_over_rows


def column_sums(rows):
    return rows.sum(axis=0)


@pytest.mark.parametrize("n_rows", [0, 1, 2, 7, 100, 1000])
@pytest.mark.parametrize("block_rows", [1, 2, 3, 7, 64, 999, 1000, 1001, 10**6])
def test_equals_the_plain_sum(n_rows, block_rows):
    # Small integers: every sum is exact, in any order.
    X = np.random.default_rng(0).integers(-1000, 1000, size=(n_rows, 3)).astype(float)
    total = sum_over_rows(column_sums, X, block_rows=block_rows)
    assert total.shape == (3,)
    assert np.array_equal(total, X.sum(axis=0))


@pytest.mark.parametrize("block_rows", [1, 5, 2048])
def test_several_arrays_are_cut_alike(block_rows):
    rng = np.random.default_rng(1)
    X, y = rng.integers(-9, 9, size=(50, 4)).astype(float), rng.integers(0, 2, size=50)
    total = sum_over_rows(lambda rows, labels: rows.T @ labels, X, y, block_rows=block_rows)
    assert np.array_equal(total, X.T @ y)


def test_statistics_of_any_shape():
    X = np.arange(12.0).reshape(6, 2)
    assert sum_over_rows(lambda rows: np.sum(rows), X, block_rows=4) == 66
    assert sum_over_rows(len, X, block_rows=4) == 6
    assert sum_over_rows(lambda rows: rows.T @ rows, X, block_rows=4).shape == (2, 2)


def test_no_rows_give_the_statistic_of_none():
    calls = []

    def statistic(rows, labels):
        calls.append((rows.shape, labels.shape))
        return rows.T @ labels

    total = sum_over_rows(statistic, np.empty((0, 3)), np.empty(0))
    assert np.array_equal(total, np.zeros(3))
    assert calls == [((0, 3), (0,))]


def test_every_row_enters_once_and_in_order():
    seen = []

    def statistic(rows):
        seen.extend(rows.tolist())
        return np.zeros(())

    sum_over_rows(statistic, np.arange(1003), block_rows=10)
    assert seen == list(range(1003))


def test_lengths_that_differ():
    with pytest.raises(ValueError, match="same number of rows"):
        sum_over_rows(lambda a, b: a.sum(), np.zeros((3, 1)), np.zeros(4))


def test_the_data_are_not_changed():
    # The first block's statistic may be a view of the data: adding must not write into it.
    X = np.random.default_rng(2).normal(size=(9, 2))
    before = X.copy()
    total = sum_over_rows(lambda rows: rows[0], X, block_rows=1)
    assert np.array_equal(X, before)
    np.testing.assert_allclose(total, X.sum(axis=0), rtol=1e-14)


def test_memory_mapped_rows_are_read_in_blocks(tmp_path):
    X = np.random.default_rng(3).normal(size=(5000, 4))
    np.save(tmp_path / "rows.npy", X)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    sizes = []

    def statistic(rows):
        sizes.append(len(rows))
        return column_sums(rows)

    assert np.array_equal(sum_over_rows(statistic, mapped), sum_over_rows(column_sums, X))
    assert max(sizes) <= 2048
    assert sum(sizes) == 5000


class Depth:
    """A number that counts how often it was added up."""

    def __init__(self, weight=1, depth=0):
        self.weight, self.depth = weight, depth

    def __add__(self, other):
        return Depth(self.weight + other.weight, 1 + max(self.depth, other.depth))


@pytest.mark.parametrize("blocks", [1, 2, 3, 31, 32, 33, 1000, 1023, 1024])
def test_totals_are_added_in_pairs(blocks):
    def statistic(rows):
        return np.array([Depth(len(rows))], dtype=object)

    (total,) = sum_over_rows(statistic, np.zeros(blocks), block_rows=1)
    assert total.weight == blocks
    assert total.depth <= math.ceil(math.log2(blocks)) + 1 if blocks > 1 else total.depth == 0


def test_more_accurate_than_adding_one_by_one():
    x = np.random.default_rng(4).random(2**17)
    exact = math.fsum(x.tolist())
    naive = 0.0
    for v in x.tolist():
        naive += v
    blocks = float(sum_over_rows(column_sums, x[:, None], block_rows=1)[0])
    assert abs(blocks - exact) < abs(naive - exact) / 20
    # The textbook bound of pairwise summation.
    assert abs(blocks - exact) <= 18 * 2.0**-53 * exact


@pytest.mark.parametrize("constant", [0.0, 0.7])
@pytest.mark.parametrize("n_rows", [0, 1, 100, 20_000])
def test_weighted_gram(n_rows, constant):
    rng = np.random.default_rng(5)
    X, weights = rng.normal(size=(n_rows, 4)), rng.random(n_rows)
    weights[: n_rows // 3] = 0.0
    rows = clip_rows(X, 1.5, constant)
    gram = rows.weighted_gram(weights)
    np.testing.assert_allclose(gram, np.einsum("ij,i,ik->jk", rows[:], weights, rows[:]), rtol=1e-11, atol=1e-11)
    assert np.array_equal(gram, gram.T)
    assert np.linalg.eigvalsh(gram).min() >= -1e-12 * max(1.0, np.trace(gram))
