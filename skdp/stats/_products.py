"""Covariances, correlations and linear trends, from second moments of bounded rows."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..accounting import Budget
from ..mechanisms import Mechanism, within_reach
from ..release.estimates import Each, Estimate, Quotient
from ..release.laws import combination
from ..release.session import PrivacyGuarantee
from ..release.theorems import Theorem
from ..schema.grid import scaled
from ..sensitivity import exact_sum, moments_l1, moments_l2, rounded_norm
from ._call import Call, Numbers, numbers_of, statistic
from ._noise import Sensitivity, norm_mechanism, pure_mechanism, with_and_without_delta

Array = NDArray[np.float64]

THEOREM = Theorem("Statistics", 4)
_LABEL = "second moments"

# Entries of a record are integers of this many bits. Sums of products of two entries over a block are exact in doubles.
_BITS = 18


class Moments:
    """Released second moments of rows (1, v) with v in [-1, 1], with centred products and the law of their noise."""

    def __init__(self, released: Array, mechanism: Mechanism, size: int) -> None:
        self.mechanism = mechanism
        self._places = np.zeros((size, size), dtype=np.intp)
        rows, columns = np.triu_indices(size)
        self._places[rows, columns] = self._places[columns, rows] = np.arange(len(rows))
        # For the L2 norm, products off the diagonal are multiplied by a factor before their release.
        self._weights = np.where(rows == columns, 1.0, _weight(mechanism))
        gram = (released / self._weights)[self._places]
        noise = math.sqrt(combination(mechanism, 1.0).variance)
        self.count = gram[0, 0] if gram[0, 0] > 4 * noise else 0.0
        self.n = max(float(gram[0, 0]), 1.0)
        self.means = np.clip(gram[0, 1:] / self.n, -1.0, 1.0)
        self._gram = gram

    def terms(self, j: int, k: int) -> tuple[float, Array]:
        """Return a centred sum of products, and the coefficients of its noise."""
        a, b = self.means[j], self.means[k]
        out = np.zeros(len(self._weights))
        pairs = ((j + 1, k + 1, 1.0), (0, j + 1, -b), (0, k + 1, -a), (0, 0, a * b))
        for row, column, factor in pairs:
            place = self._places[row, column]
            out[place] += factor / self._weights[place]
        value = sum(factor * self._gram[row, column] for row, column, factor in pairs)
        # The bias of the product of noisy means is the covariance of their noise.
        if self.count:
            first, second = (self._mean_terms(i) for i in (j, k))
            value += float(first @ second) * combination(self.mechanism, 1.0).variance / self.n
        return float(value), out

    def _mean_terms(self, j: int) -> Array:
        out = np.zeros(len(self._weights))
        out[self._places[0, j + 1]] = 1 / self._weights[self._places[0, j + 1]]
        out[self._places[0, 0]] = -self.means[j]
        return out

    def quotient(self, j: int, k: int) -> Quotient:
        """Return a covariance with the sampling error of normal columns."""
        value, top = self.terms(j, k)
        own = {pair: self.terms(*pair)[0] / self.n for pair in ((j, j), (k, k))}
        count = np.zeros(len(top))
        count[0] = 1.0
        covariance = value / self.n
        record = max(own[j, j], 0.0) * max(own[k, k], 0.0) + covariance**2
        low = 0.0 if j == k else -1.0
        kind = "proportional" if j == k else "fixed"
        return Quotient(value, self.count, self.mechanism, top, count, record, low, 1.0, kind, 1 / 3 if j == k else 0.0)


def _weight(mechanism: Mechanism) -> float:
    return 1.0 if mechanism.norm == "L1" else 1.375


def released_moments(call: Any, numbers: Numbers) -> tuple[Moments, PrivacyGuarantee]:
    """Release second moments of the records without missing values."""
    d = numbers.width
    size = (d + 1) * (d + 2) // 2
    # For the L2 norm, products off the diagonal have the weight 1.375 < sqrt(2). The norm is then at most that of svec.
    norm = rounded_norm(math.sqrt(d + 1), d + 1, 2.0**-_BITS)
    moves = Sensitivity(moments_l1(norm, d + 1.0, 0.0, 0.0), moments_l2(norm, 0.0, 0.0), size)

    def build(budget: Budget) -> Any:
        makers = [norm_mechanism] if budget.delta > 0 else [pure_mechanism, norm_mechanism]
        found = [make(budget, 1.0, moves, call.unit.rows) for make in makers]
        return (*min(found, key=lambda one: _cost(one[0])), budget)

    mechanism, event, budget = with_and_without_delta(call.budget, build, lambda found: _cost(found[0]))
    plan = call.plan(budget, (_LABEL, mechanism, 1.0, THEOREM), events=[event])
    session, values = call.open(plan, numbers.values)
    upper = np.triu_indices(d + 1)
    weights = np.where(upper[0] == upper[1], 8.0, 8.0 * _weight(mechanism))

    centre, half = numbers.centre, numbers.half

    def block(rows: NDArray) -> NDArray:
        complete = rows[~np.isnan(rows).any(axis=1)]
        one = np.full((len(complete), d + 1), 2.0**_BITS)
        one[:, 1:] = np.rint(scaled(complete.astype(np.float64), centre, half, 2.0**_BITS))
        # Integers of at most 2**36, sums over 2**11 rows, and weights of three bits keep the results below 2**53.
        return np.asarray((one.T @ one)[upper] * weights).astype(np.int64)

    exact = exact_sum(block, values) * 2.0 ** -(2 * _BITS + 3)
    released = session.release(_LABEL, within_reach(mechanism, exact))
    return Moments(released, mechanism, d + 1), plan


def _cost(mechanism: Mechanism) -> float:
    return combination(mechanism, 1.0).variance / _weight(mechanism) ** 2


@statistic()
def covariance(call: Call) -> Estimate:
    r"""Estimate the [[what: covariance]] matrix of columns.

    Parameters
    ----------
    X : array-like or table
        Numbers between `bounds`, or a table with the columns of `schema`. Records with a missing value in any of the
        columns are left out.
    %(shared)s

    Returns
    -------
    estimate : Estimate
        Symmetric matrix of shape (n_columns, n_columns)[[range: . With much noise, it may have negative eigenvalues.
        Sums are divided by the number of records]]. In intervals, the sampling error is that of normal columns.

    Notes
    -----
    **Privacy.** One record adds the products of the entries of (1, v), where v holds its values, scaled to [-1, 1]
    (:ref:`statistics, theorem 4 <statistics-theorem-4>`).

    Examples
    --------
    >>> from skdp import stats
    >>> stats.[[what: covariance]]([[1.0, 2.0], [3.0, 5.0]] * 500, bounds=(0, 10), random_state=0).value.shape
    (2, 2)
    """
    return _matrix(call, correlation=False)


@statistic(like=covariance, what="correlation", range=", with entries in [-1, 1] and ones on the diagonal")
def correlation(call: Call) -> Estimate:
    return _matrix(call, correlation=True)


def _matrix(call: Any, correlation: bool) -> Estimate:
    numbers = numbers_of(call)
    moments, plan = released_moments(call, numbers)
    d = numbers.width
    rules = []
    for j in range(d):
        for k in range(d):
            own = moments.quotient(min(j, k), max(j, k))
            unit = float(numbers.half[j] * numbers.half[k])
            rules.append(_correlated(moments, j, k) if correlation else replace(own, scale=unit))
    values, errors = (np.array([getattr(one, name) for one in rules]) for name in ("value", "standard_error"))
    details = {"count": moments.n, "mean": numbers.centre + numbers.half * moments.means}
    shape = (d, d)
    return Estimate(
        values.reshape(shape), errors.reshape(shape), plan, numbers.names, details, Each(tuple(rules), shape)
    )


def _correlated(moments: Moments, j: int, k: int) -> Quotient:
    """Return a correlation as a quotient of a covariance and of the square root of the product of two variances."""
    j, k = min(j, k), max(j, k)
    (top, a), (first, b), (second, c) = (moments.terms(*pair) for pair in ((j, k), (j, j), (k, k)))
    noise = math.sqrt(combination(moments.mechanism, b).variance), math.sqrt(combination(moments.mechanism, c).variance)
    if j == k or not moments.count or first < 2 * noise[0] or second < 2 * noise[1]:
        # The denominator counts as 0, which gives the widest interval. The interval of a column with itself is a point.
        at = 1.0 if j == k else 0.0
        return Quotient(at, 0.0, moments.mechanism, 0 * a, 0 * a, 0.0, at if j == k else -1.0, 1.0, "fixed", at)
    bottom = math.sqrt(first * second)
    slope = (b * second + c * first) / (2 * bottom)
    at = min(max(top / bottom, -1.0), 1.0)
    # Variance of one record, in units in which the denominator is a number of records.
    unit = bottom / moments.n
    record = (1 - at**2) ** 2
    return Quotient(top / unit, moments.n, moments.mechanism, a / unit, slope / unit, record, -1.0, 1.0)


@statistic()
def linear_trend(call: Call) -> Estimate:
    r"""Estimate the slope of the least-squares line between two columns.

    Parameters
    ----------
    X : array-like or table
        Two columns of numbers between `bounds`, or a table with the columns of `schema`. The first column is the
        explanatory variable, and the second column is the response.
    %(shared)s

    Returns
    -------
    estimate : Estimate
        The slope. ``details["intercept"]`` holds the intercept. In intervals, the sampling error is that of residuals
        with equal variance.

    Notes
    -----
    **Privacy.** The release is that of :func:`covariance` of both columns. The interval is Fieller's interval. It is
    unbounded if the noise hides the variance of the first column.

    Examples
    --------
    >>> from skdp import stats
    >>> rows = [[1.0, 3.0], [5.0, 5.0], [9.0, 7.0]] * 5000
    >>> round(stats.linear_trend(rows, bounds=(0, 10), epsilon=1.0, random_state=0).value, 1)
    0.5
    """
    numbers = numbers_of(call)
    if numbers.width != 2:
        raise ValueError(f"X must have two columns (the explanatory variable first), got {numbers.width}")
    moments, plan = released_moments(call, numbers)
    (xy, a), (xx, b), (yy, _) = (moments.terms(*pair) for pair in ((0, 1), (0, 0), (1, 1)))
    unit = max(xx, 1e-9) / moments.n
    slope = xy / (unit * moments.n)
    # The variance of a residual, divided by the variance of the first column.
    record = max(yy / moments.n - slope**2 * unit, 0.0) / unit
    count = moments.n if moments.count and xx > 2 * math.sqrt(combination(moments.mechanism, b).variance) else 0.0
    most = 2 * math.sqrt(max(yy / moments.n, 1e-3) / unit) if count else math.inf
    scale = float(numbers.half[1] / numbers.half[0])
    rule = Quotient(
        xy / unit, count, moments.mechanism, a / unit, b / unit, record, -math.inf, math.inf, default=0.0, scale=scale
    )
    value = rule.value if abs(rule.value) <= most * scale else math.copysign(most * scale, rule.value)
    centre = numbers.centre + numbers.half * moments.means
    details = {"intercept": float(centre[1] - value * centre[0]), "count": moments.n}
    return Estimate(value, rule.standard_error, plan, numbers.names, details, rule)
