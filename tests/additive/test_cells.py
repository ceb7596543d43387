"""How released counts merge cells to bins, and the shares of records in cells.

Nothing is left to chance: seeds are fixed.
"""

import numpy as np
import pytest

from skdp.additive._cells import bins_of, merged, merged_evenly, smoothed_shares
from skdp.additive._features import GroupedLayout
from skdp.schema.columns import Columns
from skdp.schema.declared import Grid
from skdp.schema.entries import Categories


def columns(*sizes, declared=None):
    return Columns(tuple(np.arange(size + 1.0) for size in sizes), Grid(np.zeros(0), np.ones(0), 4))


def is_a_partition(bins):
    """Neighbouring cells share a bin, and bins are numbered in their order."""
    return bins[0] == 0 and set(np.diff(bins)) <= {0, 1}


def test_cells_are_merged_to_even_shares_and_common_values_are_alone():
    shares = np.full(100, 0.006)
    shares[40] = 0.4 + 0.006
    cells = merged_evenly(shares / shares.sum(), 8)
    assert np.bincount(cells).max() <= 20
    assert np.flatnonzero(cells == cells[40]).tolist() == [40]
    assert np.all(np.diff(cells) >= 0)
    np.testing.assert_array_equal(merged_evenly(np.ones(5) / 5, 8), np.arange(5))


@pytest.mark.parametrize("most", [2, 3, 8, 31])
def test_bins_hold_about_even_shares(most):
    rng = np.random.default_rng(most)
    for _ in range(50):
        shares = rng.exponential(size=256) ** rng.choice([1, 4, 9])
        shares /= shares.sum()
        bins = merged_evenly(shares, most)
        assert is_a_partition(bins)
        sums, sizes = np.bincount(bins, shares), np.bincount(bins)
        # A bin of several cells has less than an even share, and one cell more.
        assert np.all((sums <= 1 / most + shares.max() + 1e-9) | (sizes == 1))
        assert len(sums) <= 2 * most


def test_common_values_are_alone_wherever_they_are():
    for place in (0, 17, 18, 255):
        counts = np.full(256, 20.0)
        counts[place] = 1000.0
        (bins,) = bins_of(columns(256), 8, [counts], counts.sum(), 5.0)
        assert is_a_partition(bins)
        assert np.flatnonzero(bins == bins[place]).tolist() == [place]
        # All other values together have about as many bins as without it.
        assert 7 <= bins[-1] + 1 <= 12


def test_bins_are_finer_where_records_are():
    counts = np.append(np.full(64, 500.0), np.zeros(192))
    (bins,) = bins_of(columns(256), 8, [counts], counts.sum(), 5.0)
    assert bins[63] >= 6
    assert bins[-1] <= 9


@pytest.mark.parametrize("noise", [2000.0, 1e9])
def test_under_much_noise_bins_are_even(noise):
    rng = np.random.default_rng(0)
    counts = rng.uniform(0, 200, 256)
    assert noise * 8 * 3 > counts.sum()
    (bins,) = bins_of(columns(256), 8, [counts], counts.sum(), noise)
    np.testing.assert_array_equal(bins, np.arange(256) // 32)
    (bins,) = bins_of(columns(256), 8, [counts], counts.sum(), 1.0)
    assert not np.array_equal(bins, np.arange(256) // 32)


def test_few_cells_and_categories_stay_apart():
    kinds = np.arange(9.0), Categories.codes(40), np.arange(31.0)
    own = Columns(kinds, Grid(np.zeros(0), np.ones(0), 4))
    counts = [np.full(size, 100.0) for size in own.sizes]
    bins = bins_of(own, 8, counts, 4000.0, 1.0)
    np.testing.assert_array_equal(bins[0], np.arange(8))
    np.testing.assert_array_equal(bins[1], np.arange(40))
    assert bins[2][-1] == 7


@pytest.mark.parametrize("noise", [1.0, 1e6])
def test_cells_of_other_entries_stay_apart(noise):
    own = Columns((np.arange(65.0),), Grid(np.zeros(0), np.ones(0), 4), declared={0: 62})
    assert own.sizes == (64,)
    counts = np.full(64, 100.0)
    (bins,) = bins_of(own, 8, [counts], 6400.0, noise)
    assert is_a_partition(bins)
    assert bins[61] == 7
    assert bins[62:].tolist() == [8, 9]
    layout = GroupedLayout.of(own, (bins,), 0.8)
    # A value in no cell is in no bin.
    assert layout.codes(np.array([[0, 61, 62, 63, 64]]))[0].tolist() == [0, 7, 8, 9, 10]


def test_merged_cells_have_even_sizes():
    for size, most in ((1, 5), (5, 5), (7, 3), (100, 16)):
        bins = merged(size, most)
        assert is_a_partition(bins)
        assert bins[-1] + 1 == min(size, most)
        assert np.ptp(np.bincount(bins)) <= 1


@pytest.mark.parametrize("n_cells", [1, 2, 3, 37, 256])
def test_shares_of_noise_alone_are_even(n_cells):
    noise = 50.0 * np.random.default_rng(0).standard_normal(n_cells)
    shares = smoothed_shares(noise, True, 50.0)
    assert np.all(shares > 0)
    assert shares.sum() == pytest.approx(1)
    if n_cells > 2:
        # Even parts of the column, and what noise of more than a deviation adds.
        assert np.abs(np.add.reduceat(shares, [0, n_cells // 2]) - 0.5).max() < 0.5
    np.testing.assert_allclose(smoothed_shares(np.arange(1.0, 9), True, 0.0), np.arange(1.0, 9) / 36, rtol=1e-2)


def test_noise_in_many_empty_cells_does_not_add_up():
    rng = np.random.default_rng(0)
    for ordered in (True, False):
        outside = []
        for _ in range(20):
            counts = np.append(2000.0, np.zeros(199)) + 10 * rng.standard_normal(200)
            outside.append(1 - smoothed_shares(counts, ordered, 10.0)[0])
        # The sum of positive noise alone would be a quarter.
        assert np.mean(outside) < 0.1


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("n_cells", [1, 2, 21, 256])
def test_any_counts_give_bins_and_shares(n_cells, ordered):
    """Noise can make counts negative, huge, or equal."""
    rng = np.random.default_rng(0)
    column = np.arange(n_cells + 1.0) if ordered else Categories.codes(n_cells)
    own = Columns((column,), Grid(np.zeros(0), np.ones(0), 4))
    forced = [
        np.zeros(n_cells),
        np.full(n_cells, -1e6),
        np.full(n_cells, 1e12),
        np.full(n_cells, 7.0),
        rng.choice([-1e9, 0.0, 1e9], n_cells),
        np.append(1e12, np.zeros(n_cells - 1)),
    ]
    for counts in forced:
        for noise in (0.0, 1e-3, 5.0, 1e7):
            for total in (1.0, 1e4, 1e12):
                (bins,) = bins_of(own, 4, [counts], total, noise)
                assert is_a_partition(bins)
                layout = GroupedLayout.of(own, (bins,), 0.9)
                (shares,) = layout.probabilities([counts], noise)
                assert np.all(shares > 0)
                assert shares.sum() == pytest.approx(1)
                assert len(shares) == bins[-1] + 1
