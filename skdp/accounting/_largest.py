"""The largest epsilon at which a fit is admitted. The cost of a fit follows from its parameters, without any data."""

from __future__ import annotations

import math
from collections.abc import Callable

from ._budget import MAX_EPSILON, MIN_EPSILON

#: The answer is this close to the largest epsilon, relative to it.
_TOLERANCE = 2e-4

#: Above these, a power law of the cost is not trusted.
_SLOPES = (0.8, 3.0)


def largest_epsilon(portion: Callable[[float], float | None], ceiling: float, first: float) -> float | None:
    """Return approximately the largest admitted epsilon.

    Parameters
    ----------
    portion : callable
        Portion of the remaining budget that a fit with this epsilon uses. It is at most 1 if the fit is admitted,
        infinite if it is refused, and NaN if it is admitted but the portion is not known. None if no cost is known for
        this epsilon, for instance because it is too small to be divided among the releases of a fit.
    ceiling : float
        Ceiling on epsilon. A fit with a larger epsilon can be admitted if its delta is smaller than that of the budget.
    first : float
        First value to try, so that a simple answer is exact.

    Returns
    -------
    epsilon : float or None
        An admitted epsilon, 0 if none is admitted, and None if no cost is known.
    """
    if ceiling == math.inf:
        return ceiling
    low, high = MIN_EPSILON, math.inf
    known: list[tuple[float, float]] = []
    best, refused = 0.0, False
    guess = min(max(first, MIN_EPSILON), MAX_EPSILON)
    while high > low * (1 + _TOLERANCE):
        used = portion(guess)
        if used == math.inf:
            high, refused = guess, True
        else:
            low = guess
            if used is not None:
                best = guess
                known = [*known[-1:], (guess, used)]
        if low >= MAX_EPSILON:
            break
        guess = _next(known, low, high)
    return best if best or refused else None


def _next(known: list[tuple[float, float]], low: float, high: float) -> float:
    """Return the next value to try: where a power law would use all of the rest, or the middle."""
    middle = math.sqrt(low * high) if high < math.inf else 2 * low
    if not known or known[-1][0] < low:
        # Half of a value that is too large is often too small.
        return float(f"{max(middle, high / 2 if high < math.inf else middle):.9g}")
    epsilon, used = known[-1]
    if not 0 < used <= 1:
        return float(f"{middle:.9g}")
    slope = 2.0
    if len(known) == 2 and 0 < known[0][1] < used and known[0][0] < epsilon:
        slope = math.log(used / known[0][1]) / math.log(epsilon / known[0][0])
    slope = min(max(slope, _SLOPES[0]), _SLOPES[1])
    guess = epsilon * max(used ** (-1 / slope) * (1 - _TOLERANCE / 4), 1 + 0.9 * _TOLERANCE)
    creeps = len(known) == 2 and epsilon < known[0][0] * (1 + _TOLERANCE)
    if creeps or not low < guess < high / (1 + _TOLERANCE / 4):
        guess = middle
    return float(f"{guess:.9g}")
