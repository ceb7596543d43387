"""Numbers of few bits, and sums that do not round."""

import math
from fractions import Fraction

import numpy as np
import pytest

from skdp.sensitivity import ExactTotal, bits_left, round_to, step_of, truncate


@pytest.mark.parametrize("largest", [1.0, 0.75, 1.0000001, 3.1, 1e-200, 1e200, 2.0**-30])
def test_step(largest):
    step = step_of(largest, 20)
    assert math.frexp(step)[0] == 0.5
    assert largest <= step * 2**20 < 2 * largest


def test_bits():
    assert bits_left(20, 1) == 33
    assert bits_left(20, 1024) == 23
    assert bits_left(20, 1025) == 22
    assert bits_left(20, 0) == 33


def test_truncation_shortens():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(50, 7))
    short = truncate(values.copy(), 2.0**-6)
    assert np.all(np.abs(short) <= np.abs(values))
    assert np.all(np.abs(short - values) < 2.0**-6)
    assert np.all(short % 2.0**-6 == 0)
    # The broken twin: rounding to the nearest makes some longer.
    assert np.any(np.abs(round_to(values.copy(), 2.0**-6)) > np.abs(values))


def test_rounding():
    np.testing.assert_array_equal(round_to(np.array([0.3, -0.3, 0.9]), 0.5), [0.5, -0.5, 1.0])


def test_both_work_in_place():
    values = np.array([0.3])
    assert truncate(values, 0.25) is values
    assert values[0] == 0.25
    assert round_to(values, 1.0) is values


@pytest.mark.parametrize("n_terms", [3, 64, 1000])
def test_products_are_exact_in_any_order(n_terms):
    rng = np.random.default_rng(n_terms)
    bits = bits_left(20, n_terms)
    # All entries near their largest size: the sum uses all the bits there are.
    a = rng.integers(2**20 - 50, 2**20 + 1, n_terms).astype(float) * 2.0**-20
    b = rng.integers(2**bits - 50, 2**bits + 1, n_terms).astype(float) * 2.0**-7
    exact = float(sum(Fraction(x) * Fraction(y) for x, y in zip(a.tolist(), b.tolist(), strict=True)))
    for _ in range(5):
        order = rng.permutation(n_terms)
        assert a[order] @ b[order] == exact
    # The broken twin: numbers of all bits depend on the order.
    a, b = rng.normal(size=(2, n_terms))
    if n_terms > 3:
        assert len({float(a[order] @ b[order]) for order in (rng.permutation(n_terms) for _ in range(50))}) > 1


def nearest_multiple(total, bits):
    """The multiple of 2**bits next to an integer, half way upwards, in integers of any length."""
    return (total + (1 << (bits - 1))) >> bits if bits > 0 else total


@pytest.mark.parametrize("most", [3, 2**26, 2**53])
def test_totals_are_those_of_integers_of_any_length(most):
    rng = np.random.default_rng(0)
    terms = rng.integers(-most, most, size=(40, 6), endpoint=True)
    terms[:, 0] = most
    terms[:, 1] = -most
    total = ExactTotal(6)
    for values in terms:
        total.add(values.astype(float))
    exact = terms.astype(object).sum(axis=0)
    for bits in (-3, 0, 1, 2, 25, 26, 27, 28, 52, 60, 88, 89, 500):
        expected = [nearest_multiple(int(t), bits) for t in exact]
        # Beyond 2**53, doubles round the result once more.
        np.testing.assert_array_equal(total.nearest(bits), np.array(expected, dtype=float))


def test_totals_half_way_between_multiples():
    for at in range(-9, 10):
        total = ExactTotal(1)
        total.add(np.array([float(at)]))
        assert total.nearest(2) == nearest_multiple(at, 2)
        total = ExactTotal(1)
        total.add(np.array([at * 2.0**28]))
        assert total.nearest(30) == nearest_multiple(at, 2)
