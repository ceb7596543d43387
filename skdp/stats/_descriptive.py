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
from ..release.session import Release, Reserved
from ..sensitivity import POLYNOMIAL_BITS, POLYNOMIAL_ROWS, exact_sum
from ._call import COUNTS, Call, Numbers, numbers_of, statistic
from ._moments import LABEL, THEOREM, Design, in_units, means, moment_design, variances
from ._noise import Sensitivity, combination, with_and_without_delta
from ._quantiles import (
    LEAST_RECORDS,
    RangePart,
    count_mechanism,
    counted,
    range_part,
    width_of_counts,
)
from ._ranks import WHOLE
from ._result import Around, Estimate

Array = NDArray[np.float64]

METHODS = ("auto", "direct")

# Parts of the budget of moments in two steps: of the number of records, and of the range, the smallest that suffices.
_OF_COUNT, _OF_RANGE = 0.03, (0.02, 0.04, 0.08, 0.16, 0.25)

# Of a part that is divided further, so that the rounding of the parts does not exceed it.
_MARGIN = 1 - 2.0**-40

# With fewer records, times the square of epsilon, the noise of a mean is at least twice as large as any sampling error.
_FEW = 1.0


@statistic(bounds=False)
def count(call: Call) -> Estimate:
    r"""Estimate the number of records, or of records with a value in columns of numbers.

    Parameters
    ----------
    X : array-like or table
        Rows. With `columns`, a table with the columns of `schema`.
    columns : str or list of str, default=None
        Names of columns of numbers, of which the values that are not missing are counted. If None, rows are counted.
    %(shared)s

    Returns
    -------
    estimate : Estimate
        An integer, or one for each column. It may be negative.

    Notes
    -----
    **Privacy.** One record changes each count by 1 at most (statistics, theorem 2). Integers get integer noise. In the
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
        raise TypeError("X must hold rows. A table of columns needs schema. Nothing was charged")
    return int(table.shape[0]) if hasattr(table, "shape") else len(table)


def _shaped(values: NDArray, numbers: Numbers) -> Any:
    return values[0].item() if numbers.single else values


@statistic()
def sum(call: Call) -> Estimate:
    r"""Estimate sums of columns.

    Returns
    -------
    estimate : Estimate
        One number for each column. It has intervals for noise alone, because a sum has no value in a population.

    Notes
    -----
    **Privacy.** One record changes the sum of a column by the larger of the sizes of its bounds at most (statistics,
    theorem 2).

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
        # A bound becomes 2**POLYNOMIAL_BITS up to a relative error of 2**-51, which rounding removes.
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
        With ``"direct"``, noise is in proportion to the distance of the bounds. With ``"auto"``, 2 % to 25 % of the
        budget find a range that holds nearly all values, and noise is in proportion to that range. If a noisy number
        of records is too small to find a range, ``"auto"`` does the same as ``"direct"``.
    %(shared)s

    Returns
    -------
    estimate : Estimate
        One number for each column. ``details["count"]`` has the noisy numbers of records. With ``"auto"``,
        ``details["range"]`` has the range, and intervals are for the mean of values that are clipped to it.

    See Also
    --------
    describe : Means and other statistics of all columns of a table.

    Notes
    -----
    **Privacy.** One record moves the sums that are released by at most 1 for each column in L1 norm, or as little in L2
    norm as theorem 1 of the user guide (statistics) says. A range is found on a sample of the records if there are
    many (statistics, theorem 6). The number of records, the mean, and the sampling error of
    the mean are computed from these sums.

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
        Whether a part of the budget finds a range that holds nearly all values, as for :func:`mean`.
    %(shared)s

    Returns
    -------
    estimate : Estimate
        One number for each column, with the noisy numbers of records and the means in ``details``.

    Notes
    -----
    **Privacy.** As for :func:`mean`, with polynomials of degree 4 (statistics, theorem 1). Higher powers are for the
    sampling error. Variances divide by the number of records, as ``numpy.[[name: var]]`` does.

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
    """Release moments; a power of 0 stands for means, 1 for variances and 0.5 for standard deviations."""
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
        # Records beyond the range are clipped. A margin that grows with their share keeps the bias small.
        margin = (0.25 + 5 * levels[0] / WHOLE) * np.maximum(high - low, 1e-3 * numbers.half)
        lower, upper = np.maximum(low - margin, numbers.lower), np.minimum(high + margin, numbers.upper)
        inner = replace(numbers, lower=lower, upper=upper)
    sums = design.power_sums(session.release(label, design.sums(values, inner)))[0]
    found = moment_estimate(design, sums, inner, plan, power)
    ends = (inner.lower, inner.upper) if not numbers.single else (float(inner.lower[0]), float(inner.upper[0]))
    return replace(found, details={**found.details, "range": ends})


def _range_share(budget: Budget, n: float, width: int, rows: int) -> tuple[float, RangePart | None]:
    """Return the part of the budget that finds a range, from a released number of records."""
    for share in _OF_RANGE:
        part = range_part(budget, share, width, rows, n)
        wanted = LEAST_RECORDS * (1 if share == _OF_RANGE[-1] else 2)
        if n * part.rate >= wanted * part.mechanism.scale:
            return share, part
    return 0.0, None


def moment_estimate(design: Design, sums: Array, numbers: Numbers, plan: Any, power: float) -> Estimate:
    """Return means, or with a positive power variances to that power, of the columns."""
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
