"""Second moments: exact sums, and what one record can change in them, by brute force."""

import math

import numpy as np
import pytest

from skdp.sensitivity import (
    entry_step,
    exact_moments,
    moments_l1,
    moments_l2,
    pack_symmetric,
    plain_moments,
    rounded_norm,
    unpack_symmetric,
)


def svec(gram):
    upper = np.triu_indices(len(gram), 1)
    return np.concatenate([np.diagonal(gram), math.sqrt(2) * gram[upper]])


def records(p, k, norm, target_norm, seed=0):
    """Random and corner records, scaled to the norms."""
    rng = np.random.default_rng(seed)
    rows = [*rng.normal(size=(50, p)), *np.eye(p), np.ones(p), rng.choice([-1.0, 1.0], size=p)]
    targets = [*rng.normal(size=(20, k)), *np.eye(k), np.ones(k), -np.ones(k)]
    for z in rows:
        for u in targets:
            yield norm * z / np.linalg.norm(z), target_norm * u / np.linalg.norm(u)


@pytest.mark.parametrize(("p", "k"), [(1, 1), (2, 1), (5, 1), (5, 3)])
@pytest.mark.parametrize("weight", [0.0, 0.7, 3.0])
def test_l2_of_one_record(p, k, weight):
    claim = moments_l2(1.5, 0.8, weight)
    moved = [
        np.linalg.norm(np.concatenate([svec(np.outer(z, z)), weight * np.outer(z, u).ravel()]))
        for z, u in records(p, k, 1.5, 0.8)
    ]
    assert max(moved) <= claim * (1 + 1e-12)
    assert min(moved) >= 0.999 * claim, "every record of full norms attains it"


@pytest.mark.parametrize("p", [1, 2, 5])
def test_l1_of_one_record(p):
    claim = moments_l1(1.5, 1.5 * math.sqrt(p))
    moved = [np.abs(np.outer(z, z)[np.triu_indices(p)]).sum() for z, _ in records(p, 1, 1.5, 0.8)]
    assert max(moved) <= claim * (1 + 1e-12)
    assert max(moved) >= 0.999 * claim


@pytest.mark.parametrize(("count", "total"), [(1.0, 1.0), (3.0, 1.6), (10.0, 1.0), (1.0, 10.0)])
def test_further_weights_of_the_constant_feature(count, total):
    constant, weight = 0.4, 0.7
    by_norm = moments_l2(1.5, 0.8, weight, constant, count, total)
    norms = []
    rng = np.random.default_rng(0)
    for _ in range(200):
        c = constant * rng.choice([0.0, 0.5, 1.0])
        z = np.append(rng.choice([math.sqrt(1.5**2 - c**2), rng.random()]), c)
        gram, cross = np.outer(z, z), weight * 0.8 * z
        gram[-1, -1] *= count
        cross[-1] *= total
        norms.append(np.linalg.norm(np.concatenate([svec(gram), cross])))
    assert 0.999 * by_norm <= max(norms) <= by_norm * (1 + 1e-12)


@pytest.mark.parametrize("largest", [1e-6, 0.3, 1.0, 1.0001, 7.0])
def test_entries_have_at_most_so_many_steps(largest):
    step = entry_step(largest)
    assert math.frexp(step)[0] == 0.5
    assert 2**19 < largest / step <= 2**20


def test_rounded_norm_bounds_rounded_rows():
    rng = np.random.default_rng(3)
    step = entry_step(1.0)
    rows = rng.normal(size=(2000, 7))
    rows *= 0.9 / np.linalg.norm(rows, axis=1)[:, None]
    rounded = np.rint(rows / step) * step
    assert np.linalg.norm(rounded, axis=1).max() <= rounded_norm(0.9, 7, step)
    assert rounded_norm(0.9, 7, step) < 0.9 * (1 + 1e-5)


def as_they_are(X, y):
    return X, y


@pytest.mark.parametrize("n_rows", [0, 1, 2047, 2048, 2049, 10_000])
def test_sums_are_exact_in_any_order(n_rows):
    rng = np.random.default_rng(n_rows)
    X = rng.integers(-(2**20), 2**20 + 1, size=(n_rows, 3)).astype(float)
    y = rng.integers(-(2**20), 2**20 + 1, size=(n_rows, 2)).astype(float)
    whole = np.hstack([X, y]).astype(object)
    exact = (X.astype(object).T @ whole) if n_rows else np.zeros((3, 5))
    order = rng.permutation(n_rows)
    for rows in (slice(None), order):
        np.testing.assert_array_equal(exact_moments(as_they_are, X[rows], y[rows]), exact.astype(float))
    np.testing.assert_allclose(plain_moments(as_they_are, X, y), exact.astype(float), rtol=1e-9, atol=1e6)


@pytest.mark.parametrize("n_rows", [2**11, 2**13, 2**14])
def test_largest_blocks_are_exact(n_rows):
    # 2^13 rows at the limit sum to 2^53; one step of difference must not get lost.
    X = np.full((n_rows, 1), 2.0**20)
    X[0] -= 1
    y = np.ones((n_rows, 1))
    gram, cross = exact_moments(as_they_are, X, y)[0]
    assert (int(gram), int(cross)) == (n_rows * 2**40 - 2**21 + 1 - (n_rows == 2**14), n_rows * 2**20 - 1)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_packed_matrices(size):
    half = np.random.default_rng(size).integers(-9, 9, size=(size, size)).astype(float)
    matrix = half + half.T
    packed = pack_symmetric(matrix, 0.5)
    np.testing.assert_array_equal(packed[:size], np.diagonal(matrix))
    np.testing.assert_array_equal(packed[size:], [matrix[i, j] / 2 for i in range(size) for j in range(i + 1, size)])
    np.testing.assert_array_equal(unpack_symmetric(packed, size, 0.5), matrix)
    assert np.linalg.norm(pack_symmetric(matrix, math.sqrt(2))) == pytest.approx(np.linalg.norm(matrix), rel=1e-14)
