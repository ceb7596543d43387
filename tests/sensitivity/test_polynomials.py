"""Sums of polynomials: what one record can change in them, by brute force, and that sums hold the powers."""

import numpy as np
import pytest

from skdp.sensitivity import (
    POLYNOMIAL_BITS,
    POLYNOMIAL_ROWS,
    POLYNOMIAL_UNIT,
    bernstein_l1,
    bernstein_l2,
    bernstein_matrix,
    chebyshev_l2,
    chebyshev_matrix,
    exact_sum,
    polynomial_sums,
)

VALUES = np.concatenate([np.random.default_rng(0).uniform(-1, 1, 5000), np.linspace(-1, 1, 4097), [1.0, -1.0]])
WEIGHTS = [(1.0, 1.0), (1.0, 1.0, 0.375), (1.0, 1.0, 0.6875, 0.375, 0.375)]


def parts(matrix, values=VALUES):
    """What each value adds, of shape (n_polynomials, n_values): each is in a cell of its own."""
    steps = np.rint(values * 2.0**POLYNOMIAL_BITS)
    return polynomial_sums(matrix, steps, np.arange(len(values)), len(values)).T * POLYNOMIAL_UNIT


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_bernstein_moves_by_one_at_most_and_attains_it(degree):
    own = parts(bernstein_matrix(degree))
    # Up to degree 2, polynomials of rounded values are exact.
    assert np.all(own >= (0 if degree <= 2 else -(2.0**-18)))
    if degree <= 2:
        np.testing.assert_array_equal(own.sum(axis=0), 1.0)
    for claim, norm in ((bernstein_l1, 1), (bernstein_l2, 2)):
        largest = np.linalg.norm(own, norm, axis=0).max()
        assert 0.99998 * claim(degree, 1) <= largest <= claim(degree, 1)
        # Several columns with the same value.
        assert claim(degree, 7) >= np.linalg.norm(np.tile(own, (7, 1)), norm, axis=0).max()


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("shared", [True, False])
def test_chebyshev_moves_by_no_more_and_attains_it(weights, shared):
    own = parts(chebyshev_matrix(weights))
    every = np.concatenate([own[:1], np.tile(own[1:], (3, 1))]) if shared else np.tile(own, (3, 1))
    largest = np.linalg.norm(every, axis=0).max()
    assert 0.99999 * chebyshev_l2(weights, 3, shared) <= largest <= chebyshev_l2(weights, 3, shared)


@pytest.mark.parametrize("matrix", [bernstein_matrix(4), *map(chebyshev_matrix, WEIGHTS)], ids=len)
def test_polynomials_span_the_powers(matrix):
    own = parts(matrix).sum(axis=1)
    powers = np.linalg.inv(matrix) @ own
    exact = [(VALUES**k).sum() for k in range(len(matrix))]
    np.testing.assert_allclose(powers, exact, atol=0.05)


@pytest.mark.parametrize("matrix", [bernstein_matrix(2), bernstein_matrix(4), chebyshev_matrix(WEIGHTS[2])], ids=str)
def test_sums_are_exact(matrix):
    rng = np.random.default_rng(1)
    steps = np.rint(rng.uniform(-1, 1, 70_001) * 2.0**POLYNOMIAL_BITS)
    steps[:40_000] = 2.0**POLYNOMIAL_BITS
    codes = rng.integers(0, 3, len(steps))
    # By integers of any size, in another order.
    coefficients = [[int(16 * one) for one in row] for row in matrix.tolist()]
    expected = np.zeros((3, len(matrix)), dtype=object)
    for v, code in zip(steps[::-1].astype(int).tolist(), codes[::-1].tolist(), strict=True):
        square = int(np.rint(v * v * 2.0**-POLYNOMIAL_BITS))
        unit = 2**POLYNOMIAL_BITS
        powers = [unit**2, v * unit, v * v, v * square, square * square][: matrix.shape[1]]
        expected[code] += [sum(a * b for a, b in zip(row, powers, strict=True)) for row in coefficients]
    found = sum(
        polynomial_sums(matrix, steps[i : i + POLYNOMIAL_ROWS], codes[i : i + POLYNOMIAL_ROWS], 3).astype(object)
        for i in range(0, len(steps), POLYNOMIAL_ROWS)
    )
    assert np.array_equal(found, expected)
    total = exact_sum(lambda rows: polynomial_sums(matrix, rows), steps, block_rows=POLYNOMIAL_ROWS)
    np.testing.assert_array_equal(total[0], expected.sum(axis=0).astype(float))


@pytest.mark.parametrize("degree", [2, 4])
def test_powers_as_they_stand_would_move_by_more(degree):
    # The bound has teeth: without the change of basis, it does not hold.
    powers = np.stack([VALUES**k for k in range(degree + 1)])
    assert np.abs(powers).sum(axis=0).max() > degree * bernstein_l1(degree, 1)
