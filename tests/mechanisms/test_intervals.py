"""Decimal intervals hold all results of the numbers in them, and no more ends than those."""

import decimal
import itertools
from decimal import Decimal

import pytest

from skdp.mechanisms.gaussian import pad, product, squared

INTERVALS = [(Decimal(a), Decimal(b)) for a, b in itertools.combinations_with_replacement(range(-3, 4), 2)]


@pytest.mark.parametrize("x", INTERVALS)
def test_squares_and_products(x):
    points = [x[0] + (x[1] - x[0]) * k / 12 for k in range(13)]
    # Where an interval holds 0, one of the points is 0.
    points += [Decimal(0)] * (x[0] < 0 < x[1])
    squares = [p * p for p in points]
    assert squared(x) == (min(squares), max(squares))
    for y in INTERVALS:
        products = [p * q for p in x for q in y]
        assert product(x, y) == (min(products), max(products))


def test_pads_are_wider_than_roundings():
    with decimal.localcontext(decimal.Context(prec=30)):
        for low, high in ((Decimal("1e-9"), Decimal("0.5")), (Decimal(-700), Decimal(3))):
            padded = pad((low, high))
            slack = max(abs(low), abs(high), Decimal(1)).scaleb(-20)
            assert padded == (low - slack, high + slack)
