"""Sums over cells: exact, position-free, and moved by one record as far as the theorem says."""

import itertools
import math

import numpy as np
import pytest
from scipy import sparse

from skdp.sensitivity import CELLS_STEP, RowLattice, _cells, cell_sums, cells_l1, cells_l2, nearest
from skdp.sensitivity._cells import LARGEST_SUM, SUM_BITS

WEIGHTS = [(0.375, 0.375), (0.5, 0.0), (0.125, 0.875)]


def lattice_of(d, lower=-1.0, upper=2.0):
    return RowLattice(np.full(d, lower), np.full(d, upper))


def random_case(seed, d, n_rows=30, n_cells=5):
    rng = np.random.default_rng(seed)
    lattice = lattice_of(d)
    X = rng.uniform(-1.5, 2.5, (n_rows, d))
    centres = lattice.encode(rng.uniform(-1, 2, (n_cells, d)))
    radii = rng.uniform(0.02, 1.0, n_cells) * 2**lattice.bits
    return lattice, X, centres, radii


def naive(lattice, X, centres, radii, a, b):
    """The same in another way: Python integers, row by row."""
    out = np.zeros((len(centres), centres.shape[1] + 2))
    for row in X:
        clipped = np.minimum(np.maximum(row, lattice.lower), lattice.upper)
        point = [round(v) for v in (clipped - lattice.centre) / lattice.unit * 2**lattice.bits]
        distances = [sum((p - int(c)) ** 2 for p, c in zip(point, centre, strict=True)) for centre in centres]
        cell = distances.index(min(distances))
        length = max(math.sqrt(distances[cell]), radii[cell])
        out[cell, 0] += a
        out[cell, 1:-1] += [
            round((p - int(c)) / length * 2**SUM_BITS) / 2**SUM_BITS for p, c in zip(point, centres[cell], strict=True)
        ]
        out[cell, -1] += b * round(min(1, distances[cell] / radii[cell] ** 2) * 2**SUM_BITS) / 2**SUM_BITS
    return out


@pytest.mark.parametrize("d", [1, 2, 7, 64])
def test_sums_by_a_second_route(d):
    lattice, X, centres, radii = random_case(d, d)
    # Division by the unit and multiplication by its inverse may round to different steps.
    np.testing.assert_allclose(
        cell_sums(lattice.encode, X, centres, radii, 0.375, 0.375),
        naive(lattice, X, centres, radii, 0.375, 0.375),
        atol=2e-4,
    )


@pytest.mark.parametrize(("a", "b"), WEIGHTS)
@pytest.mark.parametrize("d", [1, 2, 7, 64])
def test_one_record_by_brute_force(d, a, b):
    l1, l2 = cells_l1(d, a, b), cells_l2(d, a, b)
    largest = 0.0
    for seed in range(25):
        lattice, X, centres, radii = random_case(seed, d)
        before = cell_sums(lattice.encode, X, centres, radii, a, b)
        corners = np.array(list(itertools.product([-9, 9], repeat=min(d, 2))))
        records = np.vstack(
            [X[:6], np.pad(corners, ((0, 0), (0, d - corners.shape[1])), constant_values=9), [centres[0]]]
        )
        for record in records:
            difference = cell_sums(lattice.encode, np.vstack([X, record]), centres, radii, a, b) - before
            assert np.abs(difference).sum() <= l1
            assert np.linalg.norm(difference) <= l2
            largest = max(largest, np.linalg.norm(difference))
        difference = cell_sums(lattice.encode, X[1:], centres, radii, a, b) - before
        assert np.linalg.norm(difference) <= l2
    assert largest >= 0.99 * l2


@pytest.mark.parametrize(("a", "b"), WEIGHTS)
@pytest.mark.parametrize("d", [1, 4, 50])
def test_a_corner_attains_both_bounds(d, a, b):
    lattice = lattice_of(d)
    centres, radii = np.zeros((2, d)), np.full(2, 1000.0)
    centres[1] = -lattice.half
    sums = cell_sums(lattice.encode, np.full((1, d), 5.0), centres, radii, a, b)
    assert 0.9999 * cells_l2(d, a, b) <= np.linalg.norm(sums) <= cells_l2(d, a, b)
    assert 0.9999 * cells_l1(d, a, b) <= np.abs(sums).sum() <= cells_l1(d, a, b)


def test_without_clipping_the_claim_is_broken():
    lattice = lattice_of(3)
    centres, radii = np.zeros((1, 3)), np.array([1000.0])
    record = np.full((1, 3), 5.0)
    unclipped = np.linalg.norm((lattice.encode(record) - centres) / radii)
    assert unclipped > 100 * cells_l2(3, 0.375, 0.375)


def test_sums_do_not_depend_on_where_a_row_stands():
    # Records half way between two centres, in blocks of all sizes: in floating point, some would change sides.
    lattice, X, centres, radii = random_case(3, 10, n_rows=9000, n_cells=2)
    centres[1] += (centres[0] + centres[1]) % 2
    X[::3] = lattice.decode((centres[:1] + centres[1:]) / 2)
    whole = cell_sums(lattice.encode, X, centres, radii, 0.375, 0.375)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(X))
        np.testing.assert_array_equal(cell_sums(lattice.encode, X[order], centres, radii, 0.375, 0.375), whole)
    parts = [cell_sums(lattice.encode, part, centres, radii, 0.375, 0.375) for part in np.array_split(X, 7)]
    np.testing.assert_array_equal(np.sum(parts, axis=0), whole)
    points = lattice.encode_once(X)
    np.testing.assert_array_equal(cell_sums(np.asarray, points, centres, radii, 0.375, 0.375), whole)


@pytest.mark.parametrize("bounds", [(-1.0, 2.0), (0.0, 1.0), (0.5, 3.0)])
@pytest.mark.parametrize("d", [1, 7, 64, 3000])
def test_sparse_rows_have_the_sums_of_dense_rows(d, bounds, monkeypatch):
    rng = np.random.default_rng(d)
    lattice = lattice_of(d, *bounds)
    X = rng.uniform(-1.5, 2.5, (300, d)) * (rng.random((300, d)) < 0.2)
    X[:60] = X[:1]
    X[:10] = 0.0
    centres = lattice.encode(rng.uniform(-1, 2, (5, d)))
    centres[3] = centres[1]
    squares = ((lattice.encode(X)[:, None] - centres) ** 2).sum(axis=2).min(axis=1)
    # Half of the rows are clipped, and the last cell has the most rows at its radius itself.
    radii = np.sqrt(np.array([np.median(squares), squares.max(), squares.min(), 0, squares[-1]]) + 1)
    dense = cell_sums(lattice.encode, X, centres, radii, 0.375, 0.375)
    for block in (2**20, 2**8):
        monkeypatch.setattr(_cells, "_BLOCK_ENTRIES", block)
        found = cell_sums(lattice.encode, sparse.csr_array(X), centres, radii, 0.375, 0.375)
        np.testing.assert_array_equal(found, dense)


@pytest.mark.parametrize("d", [1, 3, 64, 1000, 5000])
def test_nearest_is_exact(d):
    rng = np.random.default_rng(d)
    lattice = lattice_of(d)
    assert 4 * d * 4.0**lattice.bits <= 2.0**53
    points = lattice.encode(rng.choice([-1.0, 2.0, 0.5, 0.7], size=(20, d)))
    centres = lattice.encode(rng.choice([-1.0, 2.0, 0.3], size=(6, d)))
    centres[5] = centres[2]
    exact = ((points[:, None].astype(np.int64) - centres[None].astype(np.int64)) ** 2).sum(axis=2)
    for kind in (np.float64, np.float32):
        np.testing.assert_array_equal(nearest(points.astype(kind), centres), exact.argmin(axis=1))


def test_values_are_on_the_lattice_of_the_noise_and_bounded():
    lattice, X, centres, radii = random_case(0, 4)
    sums = cell_sums(lattice.encode, X, centres, radii, 0.375, 0.375) / CELLS_STEP
    np.testing.assert_array_equal(sums, np.rint(sums))
    # With a weight of 3/8, for instance, doubles hold the largest sum.
    assert 3 * LARGEST_SUM * 2.0**SUM_BITS <= 2.0**53


def test_large_sums_are_moved_back(monkeypatch):
    # At the corner of one cell, 40 records count 40, add 40 / sqrt(2) to both sums, and 40 to the squares.
    lattice, X = lattice_of(2), np.full((40, 2), 2.0)
    cell = np.zeros((1, 2)), np.ones(1)
    sums = np.array([[40, 40 / 2**0.5, 40 / 2**0.5, 40]])
    for largest in (100.0, 32.0, 16.0):
        monkeypatch.setattr(_cells, "LARGEST_SUM", largest)
        for rows, sign in ((X, [1, 1, 1, 1]), (1 - X, [1, -1, -1, 1])):
            found = cell_sums(lattice.encode, rows, *cell, 0.5, 0.25) / [0.5, 1, 1, 0.25]
            np.testing.assert_allclose(found, np.minimum(sums, largest) * sign, rtol=1e-5)


@pytest.mark.parametrize(("lower", "upper"), [(-1e-99, 1e-99), (-1e100, 1e100), (1e8, 1e8 + 1e-6), (0, 1)])
def test_lattice_holds_any_bounds(lower, upper):
    lattice = lattice_of(3, lower, upper)
    rows = np.array([[lower, upper, (lower + upper) / 2], [-1e308, 1e308, 0.0]])
    points = lattice.encode(rows)
    np.testing.assert_array_equal(points, np.rint(points))
    assert np.all(np.abs(points) <= lattice.half)
    back = lattice.decode(points)
    assert np.all((back >= lower) & (back <= upper))
    np.testing.assert_allclose(back[0], rows[0], atol=2e-6 * (upper - lower))


def test_lattice_uses_all_of_its_steps():
    # The widest column reaches both ends, and the other one half of the way, wherever the bounds lie.
    lattice = RowLattice(np.array([10.0, -7.0]), np.array([14.0, -5.0]))
    most = 2**lattice.bits
    assert most == 2**20
    corners = lattice.encode(np.array([[10.0, -7.0], [14.0, -5.0], [12.5, -6.0]]))
    np.testing.assert_array_equal(corners, [[-most, -most / 2], [most, most / 2], [most / 4, 0]])
    assert [lattice_of(d).bits for d in (2**11, 2**11 + 1)] == [20, 19]


def test_no_rows():
    lattice, X, centres, radii = random_case(0, 4)
    for rows in (X[:0], sparse.csr_array(X[:0])):
        np.testing.assert_array_equal(cell_sums(lattice.encode, rows, centres, radii, 0.5, 0.5), np.zeros((5, 6)))
