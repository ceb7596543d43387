"""Counts, sums, means, variances and standard deviations of columns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..accounting import Budget, PrivacyEvent
from ..checks.params import check_choice
from ..mechanisms import within_reach
from ..parts.arrays import rowwise
from ..release.estimates import Around, Estimate
from ..release.laws import combination
from ..release.session import Release, Reserved
from ..sensitivity import POLYNOMIAL_BITS, POLYNOMIAL_ROWS, exact_sum
from ._call import COUNTS, Call, Numbers, numbers_of, statistic
from ._moments import LABEL, THEOREM, Design, in_units, means, moment_design, variances
from ._noise import Sensitivity, with_and_without_delta
from ._quantiles import (
    LEAST_RECORDS,
    RangePart,
    count_mechanism,
    counted,
    range_part,
    width_of_counts,
)
from ._ranks import WHOLE

Array = NDArray[np.float64]

METHODS = ("auto", "direct")

# Shares of the budget for the number of records and for the range. The smallest sufficient share of the range is used.
_OF_COUNT, _OF_RANGE = 0.03, (0.02, 0.04, 0.08, 0.16, 0.25)

# A share that is divided further is reduced by this factor, so that rounding does not exceed the budget.
_MARGIN = 1 - 2.0**-40

# If the number of records times the square of epsilon is smaller, the noise of a mean is at least twice as large as any
# sampling error.
_FEW = 1.0


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
    mechanism, plan = call.single("counts", moves, COUNTS)
    session, values = call.open(plan, numbers.values)
    found = np.rint(session.release("counts", counted(numbers, values)))
    law = combination(mechanism, 1.0)
    error = np.full(len(found), math.sqrt(law.variance))
    spread = Around(_shaped(found, numbers), law, _shaped(np.sqrt(np.maximum(found, 0.0)), numbers), 0.0)
    value = _shaped(found.astype(np.int64), numbers)
    return Estimate(value, _shaped(error, numbers), plan, numbers.names, {}, spread)


def _rows_to_count(call: Call) -> NDArray:
    """Return an entry for each row."""
    if call.schema is not None:
        entries: NDArray = call.read(_zeros, [next(iter(call.schema))])
        return entries
    found: NDArray = rowwise(_zero_rows, call.table)
    return found


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
    (:ref:`statistics, theorem 2 <statistics-theorem-2>`).

    Examples
    --------
    >>> from skdp import stats
    >>> 2900 < stats.sum([3.0] * 1000, bounds=(0, 10), epsilon=1.0, random_state=0).value < 3100
    True
    """
    numbers = numbers_of(call)
    most, d = np.maximum(np.abs(numbers.lower), np.abs(numbers.upper)), numbers.width
    moves = Sensitivity(d, math.sqrt(d) * (1 + 2.0**-50), d)
    mechanism, plan = call.single("sums", moves, COUNTS)
    session, values = call.open(plan, numbers.values)

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
def mean(
    call: Call,
    *,
    method: str = "auto",
) -> Estimate:
    r"""Estimate means of columns.

    Parameters
    ----------
    X : array-like or table
        Numbers between `bounds`, or a table with the columns of `schema`.
    method : {"auto", "direct"}, default="auto"
        With ``"direct"``, the noise is proportional to the distance of the bounds. With ``"auto"``, 2 % to 25 % of the
        budget is spent on a range that contains nearly all values, and the noise is proportional to this range. If the
        noisy number of records is too small to find a range, ``"auto"`` uses the bounds, as ``"direct"`` does.
    %(shared)s

    Returns
    -------
    estimate : Estimate
        One number for each column. ``details["count"]`` holds the noisy numbers of records. With ``"auto"``,
        ``details["range"]`` holds the range, and intervals are for the mean of values that are clipped to the range.

    See Also
    --------
    describe : Means and other statistics of all columns of a table.

    Notes
    -----
    **Privacy.** One record changes the released sums by at most 1 for each column in L1 norm. :ref:`Statistics, theorem
    1 <statistics-theorem-1>` also bounds the change in L2 norm. If there are many records, the range is found on a
    sample of the records (:ref:`statistics, theorem 6 <statistics-theorem-6>`). The number of records, the mean and its
    sampling error are computed from these sums.

    References
    ----------
    .. [1] E. C. Fieller, "Some Problems in Interval Estimation", Journal of the Royal Statistical Society B 16, 1954.

    Examples
    --------
    >>> from skdp import stats
    >>> round(stats.mean([2.0, 3.0, 4.0] * 1000, bounds=(0, 10), epsilon=1.0, random_state=0).value, 1)
    3.0
    """
    return _moments(call, 2, 0.0, method)


@statistic()
def var(call: Call, method: str = "auto") -> Estimate:
    r"""Estimate [[what: variances]] of columns.

    Parameters
    ----------
    X : array-like or table
        Numbers between `bounds`, or a table with the columns of `schema`.
    method : {"auto", "direct"}, default="auto"
        With ``"auto"``, a part of the budget is spent on a range that contains nearly all values, as in :func:`mean`.
    %(shared)s

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
    return _moments(call, 4, 1.0, method)


@statistic(like=var, what="standard deviations", name="std", value="0.8")
def std(call: Call, method: str = "auto") -> Estimate:
    return _moments(call, 4, 0.5, method)


def _moments(call: Call, degree: int, power: float, method: str) -> Estimate:
    """Release moments. The power is 0 for means, 1 for variances, and 0.5 for standard deviations."""
    steps, numbers = check_choice(method, "method", METHODS) == "auto", numbers_of(call)
    rest = 1 - _OF_COUNT * steps

    def moments(budget: Budget, share: float, degree: int = degree) -> Design:
        return moment_design(budget, share, degree, numbers.width, 1, numbers.may_lack, call.unit.rows)

    def build(budget: Budget) -> Any:
        return budget, moments(budget, rest)

    budget, design = with_and_without_delta(call.budget, build, lambda found: found[1].cost)
    if not steps:
        plan = call.plan(budget, (LABEL, design.mechanism, 1.0, THEOREM), events=[design.event])
        session, values = call.open(plan, numbers.values)
        sums = design.power_sums(session.release(LABEL, design.sums(values, numbers)))[0]
        return moment_estimate(design, sums, numbers, plan, power)
    of_count = count_mechanism(budget, _OF_COUNT, width_of_counts(numbers), call.unit.rows)
    plan = call.plan(
        budget,
        ("number of records", of_count[0], _OF_COUNT, COUNTS),
        (LABEL, Reserved(design.event), rest, THEOREM),
        events=[of_count[1], design.event],
    )
    session, values = call.open(plan, numbers.values)
    n = float(np.min(session.release("number of records", counted(numbers, values))))
    share, part = _range_share(budget, n, numbers.width, call.unit.rows)
    levels = part.levels(n) if part else (0, WHOLE)
    inner, label = numbers, "moments in range" if part else LABEL
    first: list[Release] = []
    events: list[PrivacyEvent] = []
    if part:
        first, events = [part.release(levels, share)], [part.event]
        rest = (rest - share) * _MARGIN
        design = moments(budget, rest)
    elif degree == 2 and n * budget.epsilon**2 <= _FEW:
        design = moments(budget, rest, 1)
    session.refine(LABEL, [*first, Release(label, design.mechanism, rest, THEOREM)], [*events, design.event])
    if part:
        low, high = part.ends(session, numbers, values)
        # Values beyond the range are clipped. A margin that grows with their share keeps the bias small.
        margin = (0.25 + 5 * levels[0] / WHOLE) * np.maximum(high - low, 1e-3 * numbers.half)
        lower, upper = np.maximum(low - margin, numbers.lower), np.minimum(high + margin, numbers.upper)
        inner = replace(numbers, lower=lower, upper=upper)
    sums = design.power_sums(session.release(label, design.sums(values, inner)))[0]
    found = moment_estimate(design, sums, inner, plan, power)
    ends = (inner.lower, inner.upper) if not numbers.single else (float(inner.lower[0]), float(inner.upper[0]))
    return replace(found, details={**found.details, "range": ends})


def _range_share(budget: Budget, n: float, width: int, rows: int) -> tuple[float, RangePart | None]:
    """Return the share of the budget that finds a range, from a released number of records."""
    for share in _OF_RANGE:
        part = range_part(budget, share, width, rows, n)
        wanted = LEAST_RECORDS * (1 if share == _OF_RANGE[-1] else 2)
        if n * part.rate >= wanted * part.mechanism.scale:
            return share, part
    return 0.0, None


def moment_estimate(design: Design, sums: Array, numbers: Numbers, plan: Any, power: float) -> Estimate:
    """Return the means of the columns, or (with a positive power) powers of their variances."""
    shape = () if numbers.single else (numbers.width,)
    own_means = means(design, sums)
    found = in_units(own_means, numbers.centre, numbers.half, shape)
    details: dict[str, Any] = {"count": sums[:, 0].reshape(shape)}
    if power:
        details["mean"] = found[0]
        found = in_units(variances(design, sums, power), np.zeros(1), numbers.half ** (2 * power), shape)
    value: Any = found[0]
    error: Any = found[1]
    if not shape:
        value, error, details = float(value), float(error), {name: float(one) for name, one in details.items()}
    return Estimate(value, error, plan, numbers.names, details, found[2])
