"""The distribution function of a column, from a tree of counts."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import isotonic_regression

from ..checks.params import check_integer
from ..release.estimates import Each, Estimate, Quotient
from ..release.session import Theorem
from ..sensitivity import sum_over_rows
from ._call import Call, numbers_of, statistic
from ._noise import Sensitivity

Array = NDArray[np.float64]

TREE = Theorem("Statistics", 5)

_MOST_DEPTH = 16


@statistic()
def ecdf(call: Call, *, depth: int = 8) -> Estimate:
    r"""Estimate the distribution function of a column at the edges of a grid.

    Parameters
    ----------
    X : array-like or table
        One column of numbers between `bounds`, or a table with the columns of `schema`.
    depth : int, default=8
        The grid has ``2**depth`` cells of equal width between the bounds. The error of the function grows as a power of
        the depth, but not of the number of cells.
    %(shared)s

    Returns
    -------
    estimate : Estimate
        Numbers that increase from 0 to 1, at the points ``details["edges"]``. Each interval holds for one point.

    Notes
    -----
    **Privacy.** A record is counted in one node of each level of a binary tree (:ref:`statistics, theorem 5
    <statistics-theorem-5>`). Counts are then combined, from the leaves up. Each node becomes the average of its own
    count and the sum of its two parts, weighted by their precision.

    References
    ----------
    .. [1] M. Hay, V. Rastogi, G. Miklau and D. Suciu, "Boosting the Accuracy of Differentially Private Histograms
       Through Consistency", PVLDB 2010.
    .. [2] J. Honaker, "Efficient Use of Differentially Private Binary Trees", TPDP 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import stats
    >>> found = stats.ecdf(np.arange(10_000) / 1e4, bounds=(0, 1), depth=1, random_state=0)
    >>> found.value.round(1).tolist()
    [0.0, 0.5, 1.0]
    """
    depth = check_integer(depth, "depth", least=1, most=_MOST_DEPTH)
    numbers = numbers_of(call)
    if numbers.width != 1:
        raise ValueError(f"ecdf takes one column, got {numbers.width}")
    size, levels = 2**depth, depth + 1
    moves = Sensitivity(float(levels), math.sqrt(levels) * (1 + 2.0**-50), 2 * size - 1, integers=True)
    mechanism, plan = call.single("counts of a tree", moves, TREE)
    session, values = call.open(plan, numbers.values)
    edges = np.linspace(numbers.lower[0], numbers.upper[0], size + 1)

    def block(rows: NDArray) -> NDArray:
        present = rows[~np.isnan(rows[:, 0]), 0]
        return np.bincount(np.searchsorted(edges[1:-1], present, side="right"), minlength=size)

    exact = [sum_over_rows(block, values, block_rows=2**16).astype(np.float64)]
    while len(exact[0]) > 1:
        exact.insert(0, exact[0].reshape(-1, 2).sum(axis=1))
    noisy = session.release("counts of a tree", np.concatenate(exact))
    from_below, precision = _from_leaves(noisy, depth)
    below, variance_below = _prefixes(from_below, precision)
    above, variance_above = _prefixes([level[::-1] for level in from_below], precision)
    above, variance_above = above[::-1], variance_above[::-1]
    rules = tuple(
        Quotient(a, a + b, mechanism, np.array([s, 0.0]), np.array([s, t]), None, 0.0, 1.0, default=0.5)
        for a, b, s, t in zip(
            below.tolist(),
            above.tolist(),
            np.sqrt(variance_below).tolist(),
            np.sqrt(variance_above).tolist(),
            strict=True,
        )
    )
    shares = np.array([0.0, *(rule.value for rule in rules[1:-1]), 1.0])
    value = isotonic_regression(shares, y_min=0.0, y_max=1.0)
    error = np.array([0.0, *(rule.standard_error for rule in rules[1:-1]), 0.0])
    return Estimate(
        value, error, plan, (), {"edges": edges, "count": float(from_below[0][0])}, Each(rules, (size + 1,))
    )


def _from_leaves(noisy: Array, depth: int) -> tuple[list[Array], Array]:
    """Return estimates of the nodes of each level from their own and all lower counts, and relative variances."""
    levels = np.split(noisy, np.cumsum(2 ** np.arange(depth)))
    variance = np.ones(depth + 1)
    for level in range(depth - 1, -1, -1):
        weight = 2 * variance[level + 1] / (1 + 2 * variance[level + 1])
        levels[level] = weight * levels[level] + (1 - weight) * levels[level + 1].reshape(-1, 2).sum(axis=1)
        variance[level] = weight
    return levels, variance


def _prefixes(levels: list[Array], variance: Array) -> tuple[Array, Array]:
    """Return the number of records below each edge, from as few nodes as possible, and its relative variance."""
    depth = len(levels) - 1
    edges = np.arange(2**depth + 1)
    out, spread = np.zeros(len(edges)), np.zeros(len(edges))
    for level, own in enumerate(levels):
        place = edges >> (depth - level)
        used = place % 2 == 1
        out[used] += own[place[used] - 1]
        spread[used] += variance[level]
    return out, spread
