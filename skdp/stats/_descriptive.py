"""Counts, sums, means, variances and standard deviations of columns, and histograms and distribution functions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import isotonic_regression

from ..accounting import Budget
from ..checks.params import check_integer
from ..mechanisms import within_reach
from ..parts.arrays import rowwise
from ..release.estimates import Around, Each, Estimate, Quotient, combination
from ..release.session import Theorem
from ..sensitivity import POLYNOMIAL_BITS, POLYNOMIAL_ROWS, exact_sum, sum_over_rows
from ._call import COUNTS, Call, Numbers, Sensitivity, counts_estimate, numbers_of, statistic, with_and_without_delta
from ._moments import LABEL, THEOREM, in_units, moment_design, warn_of_moments
from ._quantiles import counted, released_numbers, single

Array = NDArray[np.float64]


@statistic(bounds=False)
def count(call: Call) -> Estimate:
    r"""Estimate the number of records, or of records with a value in columns of numbers.

    Parameters
    ----------
    X : array-like or table
        Rows. With `columns`, a table with the columns of `schema`.
    columns : str or list of str, default=None
        Names of columns of numbers whose values that are not missing are counted. If None, rows are counted.
    %(shared)s

    Returns
    -------
    estimate : Estimate
        An integer, or one integer for each column. It may be negative.

    Notes
    -----
    **Privacy.** One record changes each count by at most 1 (:ref:`statistics, theorem 2 <statistics-theorem-2>`). In
    intervals for noise and sampling together, the number of records follows a Poisson law.

    Examples
    --------
    >>> from skdp import stats
    >>> 990 < stats.count([[1.0]] * 1000, epsilon=1.0, random_state=0).value < 1010
    True
    """
    if call.chosen is None:
        rows = _rows_to_count(call)
        numbers = Numbers(rows, np.zeros(1), np.ones(1), False, (), True)
    else:
        numbers = replace(numbers_of(call), may_lack=True)
    size = numbers.width
    moves = Sensitivity(float(size), math.sqrt(size), size, integers=True)
    mechanism, plan = single(call, "counts", moves, COUNTS)
    session, values = call.open(plan, numbers.values)
    counts = np.rint(session.release("counts", counted(numbers, values))).astype(np.int64)
    return counts_estimate(_shaped(counts, numbers), combination(mechanism, 1.0), plan, numbers.names)


def _rows_to_count(call: Call) -> NDArray:
    """Return an entry for each row."""
    if call.schema is not None:
        return call.read(_zeros, [next(iter(call.schema))])
    return rowwise(_zero_rows, call.table)


def _zeros(column: Any, entries: Any) -> NDArray:
    return np.zeros(len(entries))


def _zero_rows(table: Any) -> NDArray:
    return np.zeros((_number_of_rows(table), 1))


def _number_of_rows(table: Any) -> int:
    if isinstance(table, str | bytes | Mapping) or not (hasattr(table, "shape") or hasattr(table, "__len__")):
        raise TypeError("X must hold rows. A table of columns requires schema. Nothing was charged")
    return int(table.shape[0]) if hasattr(table, "shape") else len(table)


def _shaped(values: NDArray, numbers: Numbers) -> Any:
    return values[0].item() if numbers.single else values


@statistic()
def sum(call: Call) -> Estimate:
    r"""Estimate sums of columns.

    Returns
    -------
    estimate : Estimate
        One number for each column. Intervals are for noise alone, because a sum has no value in a population.

    Notes
    -----
    **Privacy.** One record changes the sum of a column by at most the larger absolute value of its bounds
    (:ref:`statistics, theorem 2 <statistics-theorem-2>`). For 2 % of the budget, the numbers of values within the
    bounds, beyond them and missing are released, for warnings.

    Examples
    --------
    >>> from skdp import stats
    >>> 2900 < stats.sum([3.0] * 1000, bounds=(0, 10), epsilon=1.0, random_state=0).value < 3100
    True
    """
    numbers = numbers_of(call)
    most, d = np.maximum(np.abs(numbers.lower), np.abs(numbers.upper)), numbers.width
    moves = Sensitivity(d, math.sqrt(d) * (1 + 2.0**-50), d)
    mechanism, plan = single(call, "sums", moves, COUNTS, numbers)
    session, values = call.open(plan, numbers.values)
    released_numbers(session, numbers, values)

    lower, upper, may_lack = numbers.lower, numbers.upper, numbers.may_lack

    def block(rows: NDArray) -> NDArray:
        inside = np.clip(rows, lower, upper, dtype=np.float64)
        # A bound becomes 2**POLYNOMIAL_BITS with a relative error of at most 2**-51, which rounding removes.
        inside *= 2.0**POLYNOMIAL_BITS / most
        if may_lack:
            inside[np.isnan(inside)] = 0.0
        return np.rint(inside, out=inside).sum(axis=0).astype(np.int64)

    exact = exact_sum(block, values, block_rows=POLYNOMIAL_ROWS) * 2.0**-POLYNOMIAL_BITS
    found = most * session.release("sums", within_reach(mechanism, exact))
    # Sums of values of one sign have that sign.
    found = np.clip(found, np.where(numbers.lower >= 0, 0.0, -np.inf), np.where(numbers.upper <= 0, 0.0, np.inf))
    law = combination(mechanism, 1.0)
    spread = Around(_shaped(found, numbers), law, unit=_shaped(most, numbers))
    error = _shaped(most * math.sqrt(law.variance), numbers)
    return Estimate(_shaped(found, numbers), error, plan, numbers.names, {}, spread)


@statistic()
def mean(call: Call) -> Estimate:
    r"""Estimate means of columns.

    Returns
    -------
    estimate : Estimate
        One number for each column. ``details["count"]`` holds the noisy numbers of records. The noise is proportional
        to the distance of the bounds. Intervals are for the mean of values that are clipped to the bounds.

    See Also
    --------
    min_max : Range of most values, which can be the `bounds` of a mean.
    median : Statistic whose noise does not depend on the bounds.
    describe : Means and other statistics of all columns of a table.

    Notes
    -----
    **Privacy.** One record changes the released sums by at most 1 for each column in L1 norm. :ref:`Statistics, theorem
    1 <statistics-theorem-1>` also bounds the change in L2 norm. The number of records, the mean and its sampling error
    are computed from these sums.

    References
    ----------
    .. [1] E. C. Fieller, "Some Problems in Interval Estimation", Journal of the Royal Statistical Society B 16, 1954.

    Examples
    --------
    >>> from skdp import stats
    >>> round(stats.mean([2.0, 3.0, 4.0] * 1000, bounds=(0, 10), epsilon=1.0, random_state=0).value, 1)
    3.0
    """
    return _moments(call)


@statistic()
def var(call: Call) -> Estimate:
    r"""Estimate [[what: variances]] of columns.

    Returns
    -------
    estimate : Estimate
        One number for each column. ``details`` holds the noisy numbers of records and the means.

    Notes
    -----
    **Privacy.** The release is that of :func:`mean`, with polynomials of degree 4 (:ref:`statistics, theorem 1
    <statistics-theorem-1>`). The degrees above 2 are for the sampling error. Sums of squares are divided by the number
    of records, as in ``numpy.[[name: var]]``.

    Examples
    --------
    >>> from skdp import stats
    >>> round(stats.[[name: var]]([2.0, 3.0, 4.0] * 10_000, bounds=(0, 10), random_state=0).value, 1)
    [[value: 0.7]]
    """
    return _moments(call)


@statistic(like=var, what="standard deviations", name="std", value="0.8")
def std(call: Call) -> Estimate:
    return _moments(call)


def _moments(call: Call) -> Estimate:
    """Release moments, and compute the mean, variance or standard deviation, by the name of the call."""
    numbers, degree = numbers_of(call), 2 if call.name == "mean" else 4

    def build(budget: Budget) -> Any:
        return budget, moment_design(budget, 1.0, degree, numbers.width, 1, numbers.may_lack, call.unit.rows)

    budget, design = with_and_without_delta(call.budget, build, lambda found: found[1].cost)
    plan = call.plan(budget, (LABEL, design.mechanism, 1.0, THEOREM), events=[design.event])
    session, values = call.open(plan, numbers.values)
    sums = design.power_sums(session.release(LABEL, design.sums(values, numbers)))[0]
    warn_of_moments(design, sums, numbers)
    details: dict[str, Any] = {"count": sums[:, 0]}
    if call.name != "mean":
        details["mean"] = in_units("mean", design, sums, numbers.centre, numbers.half)[0]
    value, error, spread = in_units(call.name, design, sums, numbers.centre, numbers.half)
    if numbers.single:
        details = {name: float(one[0]) for name, one in details.items()}
        return Estimate(float(value[0]), float(error[0]), plan, numbers.names, details, replace(spread, shape=()))
    return Estimate(value, error, plan, numbers.names, details, spread)


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
    count and the sum of its two parts, weighted by their precision. For 2 % of the budget, the numbers of values within
    the bounds, beyond them and missing are released, for warnings.

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
    mechanism, plan = single(call, "counts of a tree", moves, TREE, numbers)
    session, values = call.open(plan, numbers.values)
    released_numbers(session, numbers, values)
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
