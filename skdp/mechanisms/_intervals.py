"""Decimal interval arithmetic, in the current decimal context."""

from __future__ import annotations

import decimal
from decimal import Decimal

Interval = tuple[Decimal, Decimal]


def squared(x: Interval) -> Interval:
    """Enclose the square."""
    ends = sorted((x[0] * x[0], x[1] * x[1]))
    return (Decimal(0) if x[0] < 0 < x[1] else ends[0], ends[1])


def product(x: Interval, y: Interval) -> Interval:
    """Enclose the product."""
    ends = [a * b for a in x for b in y]
    return min(ends), max(ends)


def pad(x: Interval) -> Interval:
    """Widen by more than the rounding errors of a short chain of decimal operations."""
    slack = max(abs(x[0]), abs(x[1]), Decimal(1)).scaleb(-(decimal.getcontext().prec - 10))
    return x[0] - slack, x[1] + slack
