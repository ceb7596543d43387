r"""Means, variances and standard deviations of all records, or by group; covariances, correlations and linear trends.

The latter follow from second moments of bounded rows. For the former, and for each column, one joint release holds the
sums of a basis of the polynomials of a clipped and scaled value (see ``sensitivity/_polynomials.py``). The number of
records and all power sums follow by a linear map. The degree is 2 for means and 4 for variances, so that their sampling
errors are known.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..accounting import Budget, PrivacyEvent
from ..mechanisms import Mechanism, within_reach
from ..release.counts import AT_BOUND_SHARE, Part, bound_parts, few_parts, warn_of_incomplete, warn_of_mismatch
from ..release.estimates import Each, Estimate, Quotient, combination
from ..release.session import PrivacyGuarantee, Theorem
from ..schema.declared import scaled
from ..sensitivity import (
    POLYNOMIAL_BITS,
    POLYNOMIAL_ROWS,
    POLYNOMIAL_UNIT,
    bernstein_l1,
    bernstein_l2,
    bernstein_matrix,
    chebyshev_l2,
    chebyshev_matrix,
    exact_sum,
    moments_l1,
    moments_l2,
    polynomial_sums,
    rounded_norm,
)
from ._call import (
    COUNTS,
    Call,
    Numbers,
    Sensitivity,
    mechanisms,
    norm_mechanism,
    numbers_of,
    pure_mechanism,
    quietest,
    statistic,
    with_and_without_delta,
)

Array = NDArray[np.float64]
Reach = tuple[float, float]
# Coefficients of the noise of a release by place. Few are not zero, although a release has a place for each pair of
# columns.
Terms = dict[int, float]

_PRODUCTS_THEOREM = Theorem("Statistics", 4)
_LABEL, _SQUARES = "second moments", "squared deviations"

# Share of the budget for the sampling errors.
_OF_SQUARES = 0.1

# Least released squares, in standard deviations of their noise.
_LEAST_SQUARES = 0.25

# Entries of a record are integers of this many bits. Sums of products of two entries over a block are exact in doubles.
_BITS = 18

# Numbers of a block of records in all pairs of columns.
_ENTRIES = 2**21


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
        self.gram = gram
        self.noise = noise
        self._variances: dict[int, float] = {}

    def terms(self, j: int, k: int) -> tuple[float, Terms]:
        """Return a centred sum of products, and the coefficients of its noise by place."""
        a, b = float(self.means[j]), float(self.means[k])
        pairs = ((j + 1, k + 1, 1.0), (0, j + 1, -b), (0, k + 1, -a), (0, 0, a * b))
        value, out = 0.0, dict.fromkeys((int(self._places[pair[:2]]) for pair in pairs), 0.0)
        for row, column, factor in pairs:
            position = int(self._places[row, column])
            out[position] += factor / float(self._weights[position])
            value += factor * float(self.gram[row, column])
        # The bias of the product of noisy means is the covariance of their noise.
        if self.count:
            of_both = a * b + (j == k) / float(self._weights[self._places[0, j + 1]]) ** 2
            value += of_both * self.noise**2 / self.n
        return value, out

    def variance(self, j: int) -> float:
        """Return the variance of a column, or 0 if it does not exceed its noise."""
        if j not in self._variances:
            value, terms = self.terms(j, j)
            error = math.sqrt(combination(self.mechanism, list(terms.values())).variance)
            self._variances[j] = value / self.n if self.count and value > 3 * error else 0.0
        return self._variances[j]


@dataclass(frozen=True)
class _Ratio:
    """A quotient of the centred sum of products of columns `j` and `k`, in units of `unit`, by a number of records."""

    # The denominator is `of_n` times the number of records, plus the centred sums of squares of both columns, divided
    # by the last two numbers. It counts as 0 if noise hides a variance.
    j: int
    k: int
    least: float
    most: float
    unit: float = 1.0
    of_n: float = 0.0
    of_squares: tuple[float, float] = (math.inf, math.inf)
    hidden: bool = False
    scale: float = 1.0

    def coefficients(self, moments: Moments) -> tuple[float, float, float, float]:
        """Return the coefficients of what a record adds to the numerator, less the quotient times the denominator.

        These are the coefficients of the product of its centred values, of both squares, and of 1.
        """
        at = moments.terms(self.j, self.k)[0] / moments.n / self.unit
        # Only a covariance may be beyond its limits here.
        at = at if self.of_n else min(max(at, self.least), self.most)
        first, second = self.of_squares
        return (0.0,) * 4 if self.hidden else (1 / self.unit, -at / first, -at / second, -at * self.of_n)

    def quotient(self, moments: Moments, record: float, reach: Reach) -> Quotient:
        """Return the quotient with its intervals, by the variance and the reach of a record's contribution."""
        pairs = (self.j, self.k), (self.j, self.j), (self.k, self.k)
        (value, *_), terms = zip(*(moments.terms(*pair) for pair in pairs), strict=True)
        positions = list(dict.fromkeys(position for of_pair in terms for position in of_pair))
        products, first, second = np.array(
            [[of_pair.get(position, 0.0) for position in positions] for of_pair in terms]
        )
        top = products / self.unit
        bottom = self.of_n * (np.array(positions) == 0) + first / self.of_squares[0] + second / self.of_squares[1]
        used = (top != 0) | (bottom != 0)
        count = 0.0 if self.hidden else moments.count if self.of_n else moments.n
        return Quotient(
            value / self.unit, count, moments.mechanism, top[used], bottom[used], record, self.least, self.most,
            default=1 / 3 if self.least == 0 else 0.0, scale=self.scale, reach=reach,
        )  # fmt: skip


def _contributions(coefficients: Array, u: Any, v: Any) -> Any:
    # Only elementwise sums and products, so that the result of a record does not depend on other records.
    uv, uu, vv, constant = coefficients
    return uv * (u * v) + uu * (u * u) + vv * (v * v) + constant


def _reach(coefficients: Array, j: Any, k: Any, means: Array) -> Array:
    """Return the largest sizes of negative and of positive contributions of values between the bounds, by pair."""
    u, v = (np.linspace(-1 - means[places], 1 - means[places], 9) for places in (j, k))
    # The smallest and the largest are found row by row, because there may be many pairs.
    contributions = [_contributions(coefficients, row, v) for row in u]
    low, high = (limit([limit(of_row, axis=0) for of_row in contributions], axis=0) for limit in (np.min, np.max))
    return np.maximum([-low, high], 0.0).T


def _weight(mechanism: Mechanism) -> float:
    return 1.0 if mechanism.norm == "L1" else 1.375


def _release_ratios(
    call: Any, numbers: Numbers, n_pairs: int, ratios: Callable[[Moments], list[_Ratio]]
) -> tuple[Moments, list[Quotient], PrivacyGuarantee]:
    """Release second moments of the records without missing values, and mean squares of contributions to ratios."""
    d, rest = numbers.width, 1 - _OF_SQUARES
    size = (d + 1) * (d + 2) // 2
    # For the L2 norm, products off the diagonal have the weight 1.375 < sqrt(2). The norm is then at most that of svec.
    norm = rounded_norm(math.sqrt(d + 1), d + 1, 2.0**-_BITS)
    moves = Sensitivity(moments_l1(norm, d + 1.0), moments_l2(norm, 0.0, 0.0), size)
    of_squares = Sensitivity(float(n_pairs), math.sqrt(n_pairs) * (1 + 2.0**-50), n_pairs)

    def build(budget: Budget) -> Any:
        choices = mechanisms(budget, rest, moves, call.unit.rows)
        squares = quietest(budget, _OF_SQUARES, of_squares, call.unit.rows)
        return (*min(choices, key=lambda choice: _cost(choice[0])), *squares, budget)

    mechanism, event, noise, other, budget = with_and_without_delta(call.budget, build, lambda plan: _cost(plan[0]))
    parts = [(_LABEL, mechanism, rest, _PRODUCTS_THEOREM), (_SQUARES, noise, _OF_SQUARES, COUNTS)]
    plan = call.plan(budget, *parts, events=[event, other])
    session, values = call.open(plan, numbers.values)
    upper = np.triu_indices(d + 1)
    weights = np.where(upper[0] == upper[1], 8.0, 8.0 * _weight(mechanism))

    centre, half = numbers.centre, numbers.half

    def block(rows: NDArray) -> NDArray:
        complete = rows[~np.isnan(rows).any(axis=1)]
        pair = np.full((len(complete), d + 1), 2.0**_BITS)
        pair[:, 1:] = np.rint(scaled(complete.astype(np.float64), centre, half, 2.0**_BITS))
        # Integers of at most 2**36, sums over 2**11 rows, and weights of three bits keep the results below 2**53.
        return np.asarray((pair.T @ pair)[upper] * weights).astype(np.int64)

    exact = exact_sum(block, values) * 2.0 ** -(2 * _BITS + 3)
    moments = Moments(session.release(_LABEL, within_reach(mechanism, exact)), mechanism, d + 1)
    records, sums = float(moments.gram[0, 0]), moments.gram[0, 1:]
    if numbers.may_lack:
        warn_of_incomplete(numbers.names, records, moments.noise**2)
    deviation = moments.noise * math.hypot(1 - 2 * AT_BOUND_SHARE, 1 / _weight(mechanism))
    bounds = numbers.lower, numbers.upper
    warn_of_mismatch(bound_parts(numbers.names, bounds, records, sums, [deviation] * 2), labels=None)
    compared = ratios(moments)
    j, k = (np.array([getattr(ratio, name) for ratio in compared]) for name in ("j", "k"))
    coefficients = np.array([ratio.coefficients(moments) for ratio in compared]).T
    reaches = _reach(coefficients, j, k, moments.means)
    largest = reaches.max(axis=1)
    largest[largest == 0] = 1.0
    middle = moments.means

    def squares(rows: NDArray) -> NDArray:
        complete = rows[~np.isnan(rows).any(axis=1)]
        u = scaled(complete.astype(np.float64), centre, half, 1.0) - middle
        parts = _contributions(coefficients, u[:, j], u[:, k]) / largest
        return np.rint(np.minimum(parts * parts, 1.0) * 2.0**POLYNOMIAL_BITS).sum(axis=0).astype(np.int64)

    rows = min(POLYNOMIAL_ROWS, max(1, _ENTRIES // n_pairs))
    exact = exact_sum(squares, values, block_rows=rows) * 2.0**-POLYNOMIAL_BITS
    # Squares that their noise hides are not taken for 0, because an interval would then forget the sampling error.
    least = _LEAST_SQUARES * math.sqrt(combination(noise, 1.0).variance)
    released = np.maximum(session.release(_SQUARES, within_reach(noise, exact)), least)
    mean_squares = np.clip(released / moments.n, 0.0, 1.0) * largest**2
    rules = [
        ratio.quotient(moments, record, (low, high))
        for ratio, record, (low, high) in zip(compared, mean_squares.tolist(), reaches.tolist(), strict=True)
    ]
    return moments, rules, plan


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

    Returns
    -------
    estimate : Estimate
        Symmetric matrix of shape (n_columns, n_columns)[[range: . With much noise, it may have negative eigenvalues.
        Sums are divided by the number of records]].

    Notes
    -----
    **Privacy.** One record adds the products of the entries of (1, v), where v holds its values, scaled to [-1, 1]
    (:ref:`statistics, theorem 4 <statistics-theorem-4>`). For the sampling errors, 10 % of the budget is spent on sums
    of squares between 0 and 1 that depend on the first release (:ref:`statistics, theorem 2 <statistics-theorem-2>`).

    Examples
    --------
    >>> from skdp import stats
    >>> rows = [[1.0, 2.0], [3.0, 5.0], [5.0, 3.0]] * 500
    >>> found = stats.[[what: covariance]](rows, bounds=(0, 10), random_state=0)
    >>> found.value[0].round(1)
    [[values: array([2.7, 0.6])]]
    """
    return _matrix(call, correlation=False)


@statistic(
    like=covariance,
    what="correlation",
    range=", with entries in [-1, 1] and ones on the diagonal",
    values="array([1. , 0.3])",
)
def correlation(call: Call) -> Estimate:
    return _matrix(call, correlation=True)


def _matrix(call: Any, correlation: bool) -> Estimate:
    numbers = numbers_of(call)
    d, half = numbers.width, numbers.half.tolist()
    places = [(j, k) for j in range(d) for k in range(j + correlation, d)]

    def ratio(moments: Moments, j: int, k: int) -> _Ratio:
        if not correlation:
            return _Ratio(j, k, -1.0 if j < k else 0.0, 1.0, of_n=1.0, scale=half[j] * half[k])
        first, second = moments.variance(j), moments.variance(k)
        hidden, unit = not first * second, math.sqrt(first * second) or 1.0
        squares = (math.inf, math.inf) if hidden else (2 * first, 2 * second)
        return _Ratio(j, k, -1.0, 1.0, unit, of_squares=squares, hidden=hidden)

    moments, rules, plan = _release_ratios(
        call, numbers, max(len(places), 1), lambda released: [ratio(released, *pair) for pair in places or [(0, 0)]]
    )
    by_pair = dict(zip(places, rules, strict=False))
    if correlation:
        # The interval of a column with itself is a point.
        nothing = np.zeros(1)
        one = Quotient(1.0, 0.0, moments.mechanism, nothing, nothing, 0.0, 1.0, 1.0, default=1.0)
        by_pair |= {(j, j): one for j in range(d)}
    results = {pair: (one.value, one.standard_error) for pair, one in by_pair.items()}
    every = [(min(j, k), max(j, k)) for j in range(d) for k in range(d)]
    values, errors = np.array([results[pair] for pair in every]).T.reshape(2, d, d)
    details = {"count": moments.n, "mean": numbers.centre + numbers.half * moments.means}
    spread = Each(tuple(by_pair[pair] for pair in every), (d, d))
    return Estimate(values, errors, plan, numbers.names, details, spread)


@statistic()
def linear_trend(call: Call) -> Estimate:
    r"""Estimate the slope of the least-squares line between two columns.

    Parameters
    ----------
    X : array-like or table
        Two columns of numbers between `bounds`, or a table with the columns of `schema`. The first column is the
        explanatory variable, and the second column is the response.

    Returns
    -------
    estimate : Estimate
        The slope. ``details["intercept"]`` holds the intercept.

    Notes
    -----
    **Privacy.** The releases are those of :func:`covariance` of both columns. The interval is Fieller's interval. It
    is unbounded if the noise hides the variance of the first column.

    Examples
    --------
    >>> from skdp import stats
    >>> rows = [[1.0, 3.0], [5.0, 5.0], [9.0, 7.0]] * 5000
    >>> round(
    ...     stats.linear_trend(
    ...         rows, bounds=(0, 10), epsilon=1.0, random_state=0
    ...     ).value,
    ...     1,
    ... )
    0.5
    """
    numbers = numbers_of(call)
    if numbers.width != 2:
        raise ValueError(f"X must have two columns (the explanatory variable first), got {numbers.width}")
    scale = float(numbers.half[1] / numbers.half[0])

    def ratio(moments: Moments) -> _Ratio:
        variance = moments.variance(0)
        unit = variance or max(moments.terms(0, 0)[0], 1e-9) / moments.n
        return _Ratio(0, 1, -math.inf, math.inf, unit, of_squares=(unit, math.inf), hidden=not variance, scale=scale)

    moments, (rule,), plan = _release_ratios(call, numbers, 1, lambda released: [ratio(released)])
    value, variance = rule.value, moments.variance(0)
    if variance:
        most = 2 * math.sqrt(max(moments.terms(1, 1)[0] / moments.n, 1e-3) / variance) * scale
        value = min(max(value, -most), most)
    centre = numbers.centre + numbers.half * moments.means
    details = {"intercept": float(centre[1] - value * centre[0]), "count": moments.n}
    return Estimate(value, rule.standard_error, plan, numbers.names, details, rule)


THEOREM = Theorem("Statistics", 1)
LABEL = "moments"

# Weights of Chebyshev polynomials, by degree. For variances, degrees 3 and 4 are for intervals only.
_WEIGHTS = {2: (1.0, 1.0, 0.375), 4: (1.0, 1.0, 0.6875, 0.375, 0.375)}

# With fewer records than this many standard deviations of the noise of their number, a variance has no interval.
_FEWEST = 4.0

#: Variance of values that are uniform on [-1, 1].
_EVEN = 1 / 3


@dataclass(frozen=True, eq=False)
class Design:
    """The public design of a release of `width` columns in `n_cells` groups."""

    degree: int
    width: int
    n_cells: int
    shared: bool  # Whether the number of records is released once for all columns.
    matrix: Array
    mechanism: Mechanism
    event: PrivacyEvent

    @property
    def powers(self) -> Array:
        """Return the map from sums of polynomials to power sums."""
        return np.asarray(np.linalg.inv(self.matrix), dtype=np.float64)

    @property
    def cost(self) -> float:
        """Variance of the noise of a mean (degree 2) or variance (degree 4) of uniform values, times n**2."""
        gradient = np.zeros(self.degree + 1)
        gradient[2 if self.degree == 4 else 1] = 1.0
        gradient[0] = -_EVEN if self.degree == 4 else 0.0
        return combination(self.mechanism, gradient @ self.powers).variance

    def sums(self, values: NDArray, numbers: Numbers, cells: NDArray | None = None) -> Array:
        """Return the sums to be released, before the noise."""
        n, others, first = self.n_cells, self.matrix[int(self.shared) :], self.matrix[:1, :1]
        shared, width, may_lack = self.shared, self.width, numbers.may_lack
        centre, half = numbers.centre.tolist(), numbers.half.tolist()

        def block(rows: NDArray, codes: NDArray | None = None) -> NDArray:
            sums = []
            if shared:
                sums.append(polynomial_sums(first, np.zeros(len(rows)), codes, n))
            for j in range(width):
                # As many columns as numbers are released: the number of records, then those of each column.
                v = scaled(rows[:, j].astype(np.float64, copy=False), centre[j], half[j], 2.0**POLYNOMIAL_BITS)
                np.rint(v, out=v)
                codes_of_values = codes
                if may_lack:
                    is_value = ~np.isnan(v)
                    v, codes_of_values = v[is_value], None if codes is None else codes[is_value]
                sums.append(polynomial_sums(others, v, codes_of_values, n))
            return np.concatenate(sums, axis=1)

        arrays = (values,) if cells is None else (values, cells)
        return within_reach(self.mechanism, exact_sum(block, *arrays, block_rows=POLYNOMIAL_ROWS) * POLYNOMIAL_UNIT)

    def power_sums(self, released: Array) -> Array:
        """Return power sums by group, column and power, from 0 on."""
        if self.shared:
            of_columns = released[:, 1:].reshape(self.n_cells, self.width, self.degree)
            counts = np.broadcast_to(released[:, :1, None], (self.n_cells, self.width, 1))
            released = np.concatenate([counts, of_columns], axis=2)
        else:
            released = released.reshape(self.n_cells, self.width, self.degree + 1)
        return np.asarray(released @ self.powers.T)


def moment_design(
    budget: Budget, share: float, degree: int, width: int, n_cells: int, may_lack: bool, rows: int
) -> Design:
    """Return the design of the smallest cost."""
    designs = []
    if budget.delta == 0:
        moves = Sensitivity(bernstein_l1(degree, width), bernstein_l2(degree, width), n_cells * width * (degree + 1))
        basis = bernstein_matrix(degree)
        designs.append(
            Design(degree, width, n_cells, False, basis, *pure_mechanism(budget, share, moves, rows)),
        )
    weights, shared = _WEIGHTS[degree], not may_lack
    size = n_cells * (width * (degree + (not shared)) + shared)
    moves = Sensitivity(np.inf, chebyshev_l2(weights, width, shared), size)
    basis = chebyshev_matrix(weights)
    designs.append(Design(degree, width, n_cells, shared, basis, *norm_mechanism(budget, share, moves, rows)))
    return min(designs, key=lambda design: design.cost)


def means(design: Design, sums: Array) -> tuple[Quotient, ...]:
    """Return the means by group and column, relative to the middle of the bounds, in units of half their distance."""
    p = design.powers
    quotients = []
    for m in sums.reshape(-1, design.degree + 1):
        mean = min(max(m[1] / max(m[0], 1.0), -1.0), 1.0)
        record = min(max(m[2] / max(m[0], 1.0) - mean**2, 0.0), 1 - mean**2)
        quotients.append(Quotient(m[1], m[0], design.mechanism, p[1], p[0], record, -1.0, 1.0))
    return tuple(quotients)


def moment_parts(design: Design, sums: Array, numbers: Numbers) -> list[Part]:
    """Compare the numbers of values, and the means with the bounds, by power sums of shape (..., width)."""
    # The forms are of the sums over all groups, whose noise is independent.
    forms = np.zeros((2, design.degree + 1))
    forms[:, 0], forms[:, 1] = 2 * AT_BOUND_SHARE - 1, (-1, 1)
    root, totals = math.sqrt(design.n_cells), sums.reshape(-1, numbers.width, design.degree + 1).sum(axis=0)
    few = []
    if numbers.may_lack:
        variance = combination(design.mechanism, design.powers[0]).variance
        few = few_parts(numbers.names, totals[:, 0], root**2 * variance)
    deviations = [root * math.sqrt(combination(design.mechanism, form @ design.powers).variance) for form in forms]
    return bound_parts(numbers.names, (numbers.lower, numbers.upper), totals[:, 0], totals[:, 1], deviations) + few


def variances(design: Design, sums: Array, power: float = 1.0) -> tuple[Quotient, ...]:
    """Return the variances (with ``power=0.5``, standard deviations) by group and column, in the units of `means`."""
    powers, mechanism = design.powers, design.mechanism
    noise = math.sqrt(combination(mechanism, powers[0]).variance)
    quotients = []
    for totals in sums.reshape(-1, design.degree + 1):
        count = max(totals[0], 1.0)
        mean = min(max(totals[1] / count, -1.0), 1.0)
        # The sum of squared differences from the noisy mean, whose square is too large by the variance of its noise.
        form = powers[2] - 2 * mean * powers[1] + mean**2 * powers[0]
        excess = combination(mechanism, powers[1] - mean * powers[0]).variance / count
        squares = totals[2] - 2 * mean * totals[1] + mean**2 * totals[0] + excess
        variance = min(max(squares / count, 0.0), 1.0)
        # The squared difference of one record has this variance, and at most that of numbers at its two ends.
        largest = (1 + abs(mean)) ** 2
        fourth = np.array([mean**4, -4 * mean**3, 6 * mean**2, -4 * mean, 1.0]) @ totals / count
        of_record = min(max(fourth - variance**2, 0.0), variance * (largest - variance))
        n = totals[0] if totals[0] > _FEWEST * noise else 0.0
        reach = variance, largest - variance
        quotients.append(
            Quotient(
                squares, n, mechanism, form, powers[0], of_record, 0.0, 1.0, default=_EVEN, power=power, reach=reach
            )
        )
    return tuple(quotients)


def in_units(statistic: str, design: Design, sums: Array, centre: Array, half: Array) -> tuple[Array, Array, Each]:
    """Return "mean", "var" or "std" by group or column in units of the columns, standard errors, and intervals."""
    power = {"mean": 1.0, "var": 2.0, "std": 1.0}[statistic]
    rules = means(design, sums) if statistic == "mean" else variances(design, sums, power / 2)
    shifts = np.resize(centre if statistic == "mean" else 0.0, len(rules)).tolist()
    scales = np.resize(half**power, len(rules)).tolist()
    scaled_rules = tuple(
        replace(rule, shift=shift, scale=scale) for rule, shift, scale in zip(rules, shifts, scales, strict=True)
    )
    values, errors = (np.array([getattr(rule, name) for rule in scaled_rules]) for name in ("value", "standard_error"))
    return values, errors, Each(scaled_rules, values.shape)
