"""Sums of polynomials: what one record can change in them, by brute force, and that sums hold the powers."""

import numpy as np
import pytest

from skdp.sensitivity import (
    POLYNOMIAL_BITS,
    bernstein_l1,
    bernstein_l2,
    bernstein_matrix,
    chebyshev_l2,
    chebyshev_matrix,
    polynomial_values,
)

VALUES = np.concatenate([np.random.default_rng(0).uniform(-1, 1, 5000), np.linspace(-1, 1, 4097), [1.0, -1.0]])
WEIGHTS = [(1.0, 1.0), (1.0, 1.0, 0.375), (1.0, 1.0, 0.6875, 0.375, 0.375)]


def parts(matrix, values=VALUES):
    return polynomial_values(matrix, values) * 2.0**-POLYNOMIAL_BITS


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 6])
def test_bernstein_moves_by_one_at_most_and_attains_it(degree):
    own = parts(bernstein_matrix(degree))
    assert np.all(own >= 0)
    for claim, norm in ((bernstein_l1, 1), (bernstein_l2, 2)):
        largest = np.linalg.norm(own, norm, axis=0).max()
        assert 0.99999 * claim(degree, 1) <= largest <= claim(degree, 1)
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


def test_a_missing_value_adds_nothing():
    assert not parts(bernstein_matrix(2), np.array([np.nan])).any()
    assert not parts(chebyshev_matrix(WEIGHTS[1]), np.array([np.nan])).any()


def test_a_value_is_mapped_by_itself():
    whole = polynomial_values(bernstein_matrix(4), VALUES)
    one_by_one = np.stack([polynomial_values(bernstein_matrix(4), VALUES[i : i + 1])[:, 0] for i in range(100)], axis=1)
    np.testing.assert_array_equal(whole[:, :100], one_by_one)


@pytest.mark.parametrize("degree", [2, 4])
def test_powers_as_they_stand_would_move_by_more(degree):
    # The bound has teeth: without the change of basis, it does not hold.
    powers = np.stack([VALUES**k for k in range(degree + 1)])
    assert np.abs(powers).sum(axis=0).max() > degree * bernstein_l1(degree, 1)
