"""Counts, sums, means, variances and standard deviations of columns, and histograms and distribution functions.

Statistics of groups of records.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..accounting import Budget
from ..checks.params import check_choice, is_list, shown
from ..mechanisms import within_reach
from ..parts.arrays import PartedArray, is_collection, rowwise
from ..release.counts import warn_of_mismatch
from ..release.estimates import Around, Estimate, combination
from ..release.session import PrivacyGuarantee, Release, Reserved, Theorem
from ..schema.declared import Number
from ..schema.entries import check_index
from ..sensitivity import POLYNOMIAL_BITS, POLYNOMIAL_ROWS, exact_sum
from ._call import (
    COUNTS,
    Call,
    Numbers,
    Sensitivity,
    cells_in,
    check_known,
    choosing,
    counts_estimate,
    label_names,
    numbers_of,
    private_labels,
    statistic,
    with_and_without_delta,
)
from ._moments import LABEL, THEOREM, Design, in_units, moment_design, moment_parts
from ._quantiles import (
    OF_COUNT,
    RECORDS,
    WHOLE,
    as_values,
    count_mechanism,
    counted,
    edges_of,
    quantiles_at,
    rank_counts,
    released_numbers,
    single,
)
from ._tables import OCCURRING, occurring_mechanism, released_labels, warn_of_cells

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

    Returns
    -------
    estimate : Estimate
        An integer, or one integer for each column. It may be negative.

    Notes
    -----
    **Privacy.** One record changes each count by at most 1 (:ref:`statistics, theorem 2 <statistics-theorem-2>`). In
    intervals for noise and sampling together, the number of records has a Poisson distribution.

    Examples
    --------
    >>> from skdp import stats
    >>> stats.count([[1.0]] * 1000, epsilon=1.0, random_state=0).value
    997
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
        raise TypeError("X must hold rows. A table of columns requires schema")
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
    >>> found = stats.sum([3.0] * 1000, bounds=(0, 10), random_state=0)
    >>> round(found.value)
    3006
    """
    numbers = numbers_of(call)
    largest, d = np.maximum(np.abs(numbers.lower), np.abs(numbers.upper)), numbers.width
    moves = Sensitivity(d, math.sqrt(d) * (1 + 2.0**-50), d)
    mechanism, plan = single(call, "sums", moves, COUNTS, numbers)
    session, values = call.open(plan, numbers.values)
    released_numbers(session, numbers, values)

    lower, upper, may_lack = numbers.lower, numbers.upper, numbers.may_lack

    def block(rows: NDArray) -> NDArray:
        inside = np.clip(rows, lower, upper, dtype=np.float64)
        # A bound becomes 2**POLYNOMIAL_BITS with a relative error of at most 2**-51, which rounding removes.
        inside *= 2.0**POLYNOMIAL_BITS / largest
        if may_lack:
            inside[np.isnan(inside)] = 0.0
        return np.rint(inside, out=inside).sum(axis=0).astype(np.int64)

    exact = exact_sum(block, values, block_rows=POLYNOMIAL_ROWS) * 2.0**-POLYNOMIAL_BITS
    sums = largest * session.release("sums", within_reach(mechanism, exact))
    # Sums of values of one sign have that sign.
    sums = np.clip(sums, np.where(numbers.lower >= 0, 0.0, -np.inf), np.where(numbers.upper <= 0, 0.0, np.inf))
    law = combination(mechanism, 1.0)
    spread = Around(_shaped(sums, numbers), law, unit=_shaped(largest, numbers))
    error = _shaped(largest * math.sqrt(law.variance), numbers)
    return Estimate(_shaped(sums, numbers), error, plan, numbers.names, {}, spread)


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
    are computed from these sums. For 2 % of the budget, the numbers of values within the bounds, beyond them and
    missing are released (:ref:`statistics, theorem 2 <statistics-theorem-2>`), for warnings.

    References
    ----------
    .. [1] E. C. Fieller, "Some Problems in Interval Estimation", Journal of the Royal Statistical Society B 16, 1954.

    Examples
    --------
    >>> from skdp import stats
    >>> round(
    ...     stats.mean(
    ...         [2.0, 3.0, 4.0] * 1000, bounds=(0, 10), epsilon=1.0, random_state=0
    ...     ).value,
    ...     1,
    ... )
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
    >>> heights = [2.0, 3.0, 4.0] * 10_000
    >>> found = stats.[[name: var]](heights, bounds=(0, 10), random_state=0)
    >>> round(found.value, 1)
    [[value: 0.7]]
    """
    return _moments(call)


@statistic(like=var, what="standard deviations", name="std", value="0.8")
def std(call: Call) -> Estimate:
    return _moments(call)


def _moments(call: Call) -> Estimate:
    """Release moments, and compute the mean, variance or standard deviation, by the name of the call."""
    numbers, degree, share = numbers_of(call), 2 if call.name == "mean" else 4, 1 - OF_COUNT

    def build(budget: Budget) -> Any:
        return budget, moment_design(budget, share, degree, numbers.width, 1, numbers.may_lack, call.unit.rows)

    budget, design = with_and_without_delta(call.budget, build, lambda choice: choice[1].cost)
    of_count, event = count_mechanism(budget, OF_COUNT, numbers, call.unit.rows)
    parts = [(LABEL, design.mechanism, share, THEOREM), (RECORDS, of_count, OF_COUNT, COUNTS)]
    plan = call.plan(budget, *parts, events=[design.event, event])
    session, values = call.open(plan, numbers.values)
    sums = design.power_sums(session.release(LABEL, design.sums(values, numbers)))[0]
    released_numbers(session, numbers, values, moment_parts(design, sums, numbers))
    details: dict[str, Any] = {"count": sums[:, 0]}
    if call.name != "mean":
        details["mean"] = in_units("mean", design, sums, numbers.centre, numbers.half)[0]
    value, error, spread = in_units(call.name, design, sums, numbers.centre, numbers.half)
    if numbers.single:
        details = {name: float(one[0]) for name, one in details.items()}
        return Estimate(float(value[0]), float(error[0]), plan, numbers.names, details, replace(spread, shape=()))
    return Estimate(value, error, plan, numbers.names, details, spread)


STATISTICS = ("count", "mean", "std", "var", "median")

# Number of cells of a column for medians of groups.
_CELLS = 2**11

_LABELS, _MEDIANS = "labels that occur", "medians"

# Share of moments that only show whether numbers and groups are as declared.
_OF_CHECK = 0.02

MEDIANS = Theorem("Statistics", 6)


@statistic(bounds=False)
def group_by(call: Call, by: Any, statistics: Any) -> dict[str, Estimate]:
    r"""Estimate statistics of columns in each group of the records of a table.

    Parameters
    ----------
    by : str, list of str, ndarray or Series
        Name, or list of names, of columns of categories of the schema, possibly with its target if `X` has this column.
        Otherwise, an array or a series with a label for each row, where the list of labels is private. In this case,
        `delta` must be positive, and only groups with enough records are released.
    statistics : str, list of str or dict
        ``"count"``, ``"mean"``, ``"var"``, ``"std"`` or ``"median"``, or a list of them, for all `columns` of numbers.
        A dict has such names for each column by name. Medians use half of the budget if there are also other
        statistics, and else all but 4 %, which is for warnings about columns and categories that are not as declared.
        They have no intervals.
    columns : str or list of str, default=None
        Names of columns of numbers, if `statistics` is not a dict. If None, all columns of numbers are used.

    Returns
    -------
    found : dict of str to Estimate
        Estimates by column and statistic, such as ``"income_mean"``. Each has one entry for each group. ``names`` holds
        the names of the groups.

    Notes
    -----
    **Privacy.** Each record is in one group. Therefore it changes only the moments of one group (:ref:`statistics,
    theorem 1 <statistics-theorem-1>`), and the counts for the medians of one group (:ref:`statistics, theorem 6
    <statistics-theorem-6>`). The noise does not depend on the number of groups. If the list of groups is private, half
    of the budget is spent on the groups whose noisy counts exceed a threshold (:ref:`statistics, theorem 3
    <statistics-theorem-3>`). The units of `groups` are not the groups of `by`.

    Examples
    --------
    >>> from skdp import Number, Schema, stats
    >>> schema = Schema(
    ...     {"sex": ["f", "m"], "height": Number(100, 220, missing="error")}
    ... )
    >>> X = {"sex": ["f", "m"] * 1000, "height": [165.0, 178.0] * 1000}
    >>> found = stats.group_by(
    ...     X,
    ...     "sex",
    ...     {"height": "mean"},
    ...     schema=schema,
    ...     epsilon=1.0,
    ...     random_state=0,
    ... )
    >>> found["height_mean"].names
    ('f', 'm', 'not in list', 'missing')
    >>> found["height_mean"].value[:2].round().tolist()
    [165.0, 178.0]
    """
    if call.schema is None:
        raise ValueError("schema must be given, because it declares the columns of a table")
    if isinstance(statistics, str) or is_list(statistics):
        statistics = dict.fromkeys(call.names(Number)[0], statistics)
    elif call.chosen is not None:
        raise ValueError("columns must be None if statistics is a dict, which names columns")
    asked = _check_statistics(statistics)
    call = choosing(call, list(asked))
    for column in asked:
        check_known(call.schema, column, "statistics")  # type: ignore[arg-type]
    degree = 4 if {"var", "std"} & {name for wanted in asked.values() for name in wanted} else 2
    medians = tuple(j for j, wanted in enumerate(asked.values()) if "median" in wanted)
    numbers = numbers_of(call)
    only_medians = all(set(wanted) == {"median"} for wanted in asked.values())
    design, sums, drawn, names, plan = group_releases(call, by, degree, medians, only_medians)
    estimates, law = {}, combination(design.mechanism, design.powers[0])
    for j, (column, wanted) in enumerate(asked.items()):
        details = {"count": sums[:, j, 0]}
        for name in wanted:
            if name == "median":
                value = drawn[:, medians.index(j)]
                estimate = Estimate(value, np.full(len(value), np.nan), plan, names, details)
            elif name == "count":
                estimate = counts_estimate(sums[:, j, 0], law, plan, names, details)
            else:
                value, error, spread = in_units(name, design, sums[:, j], numbers.centre[j], numbers.half[j])
                estimate = Estimate(value, error, plan, names, details, spread)
            estimates[f"{column}_{name}"] = estimate
    return estimates


def _check_statistics(statistics: Any) -> dict[str, list[str]]:
    if not isinstance(statistics, Mapping) or not statistics:
        raise TypeError(f"statistics must map names of columns to names of statistics, got {shown(statistics)}")
    checked = {}
    for column, wanted in statistics.items():
        names = list(wanted) if is_list(wanted) else [wanted]
        if not names:
            raise ValueError(f"statistics must name at least one statistic of column {column!r}")
        if is_list(wanted) and not all(isinstance(n, str) and n in STATISTICS for n in names):
            # A list may be a column that is passed by mistake, of which no entry is shown.
            raise ValueError(f"statistics of column {column!r} must be among {STATISTICS}")
        checked[column] = [check_choice(name, f"the statistic of column {column!r}", STATISTICS) for name in names]
    return checked


def group_releases(
    call: Call, by: Any, degree: int, medians: tuple[int, ...] = (), only_medians: bool = False
) -> tuple[Design, Array, Any, tuple[str, ...], PrivacyGuarantee]:
    """Release moments of the columns and medians of some columns by group.

    Return the design of the moments, power sums by group and column, medians by group and column, names of the groups,
    and the plan.
    """
    numbers, rows = numbers_of(call), call.unit.rows
    # The type of `by` decides whether labels are public.
    declared = isinstance(by, str | list | tuple)
    # Without other statistics, the moments only show whether groups are as declared, and counts whether numbers are.
    of_moments = _OF_CHECK if only_medians else 0.5 if medians else 1.0
    of_medians = 1 - of_moments - OF_COUNT * only_medians
    # If the list of groups is private, all shares are of the half of the budget that the list leaves.
    half = 1.0 if declared else 0.5

    def moments(budget: Budget, n_cells: int) -> Design:
        return moment_design(budget, of_moments, degree, numbers.width, n_cells, numbers.may_lack, rows)

    def build(budget: Budget, n_cells: int) -> tuple[Budget, Design, Any]:
        # A record is in one group. Therefore the costs of cuts add up over columns only.
        quantiles = quantiles_at(budget, of_medians, (WHOLE // 2,), len(medians), rows) if medians else None
        return budget, moments(budget, n_cells), quantiles

    def cost(choice: Any) -> float:
        return choice[2][0].scale if only_medians else choice[1].cost

    names: tuple[str, ...] = ()
    cells: Any = None
    budget = call.budget
    if declared:
        grouped = choosing(call, [by] if isinstance(by, str) else list(by))
        advice = "" if isinstance(by, str) else " Pass labels of rows as an array or a Series."
        check_known(grouped.schema, by, "by", advice)  # type: ignore[arg-type]
        cells = cells_in(grouped)
        names, label = _product_names(cells.labels), None
        budget, design, quantiles = with_and_without_delta(call.budget, lambda tried: build(tried, len(names)), cost)
        chosen, parts, events = budget, [(LABEL, design.mechanism, of_moments, THEOREM)], [design.event]
    else:
        if isinstance(numbers.values, PartedArray) or is_collection(by):
            raise TypeError("by must name columns of categories of the schema if X is a Dask collection")
        check_index(call.table, by, "by")
        labels, known = private_labels(by)
        if len(labels) != len(numbers.values):
            raise ValueError("by must name columns of categories of the schema, or be an array with one label per row")
        rest = Budget(call.budget.epsilon / 2 * (1 - 2.0**-40), call.budget.delta / 2)
        label, event = occurring_mechanism(rest, rows)
        chosen, design, quantiles = with_and_without_delta(rest, lambda tried: build(tried, 16), cost)
        parts = [(_LABELS, label, half, OCCURRING), (LABEL, Reserved(design.event), half * of_moments, THEOREM)]
        events = [event, design.event]
    if quantiles:
        parts.append((_MEDIANS, quantiles[0], half * of_medians, MEDIANS))
        events.append(quantiles[1])
    if only_medians:
        of_count, event = count_mechanism(chosen, OF_COUNT, numbers, rows)
        parts.append((RECORDS, of_count, half * OF_COUNT, COUNTS))
        events.append(event)
    plan = call.plan(budget, *parts, events=events)
    if declared:
        session, values, codes = call.open(plan, numbers.values, cells.flat)
    else:
        session, values, labels, known = call.open(plan, numbers.values, labels, known)
        occurring = released_labels(session, _LABELS, labels[known], label)[0]
        names = label_names(occurring)
        design = moments(chosen, max(len(names), 1))
        session.refine(LABEL, [Release(LABEL, design.mechanism, half * of_moments, THEOREM)], [design.event])
        known = known & np.isin(labels, occurring)
        values, codes = values[known], np.searchsorted(occurring, labels[known]).astype(np.int64)
    released = design.power_sums(session.release(LABEL, design.sums(values, numbers, codes)))
    if declared:
        warn_of_cells(cells, released[:, 0, 0], combination(design.mechanism, design.powers[0]))
    if only_medians:
        released_numbers(session, numbers, values)
    else:
        warn_of_mismatch(moment_parts(design, released, numbers), labels=None)
    sums, drawn = released[: len(names)], None
    if quantiles:
        drawn = _medians(session, numbers, values, codes, len(names), list(medians))
    return design, sums, drawn, names, plan


def _medians(session: Any, numbers: Numbers, values: NDArray, codes: NDArray, n: int, columns: list[int]) -> Array:
    """Release the medians of columns by group, of shape (n_groups, n_columns)."""
    of_medians = replace(
        numbers, lower=numbers.lower[columns], upper=numbers.upper[columns],
        scales=tuple(numbers.scales[j] for j in columns),
    )  # fmt: skip
    edges = edges_of(of_medians, _CELLS)
    # If there are no groups, one group without records is released, and then left out.
    if isinstance(values, PartedArray):
        parts = [rowwise(partial(_of_group, group, columns), values, codes) for group in range(max(n, 1))]
        counts = [rank_counts(edges, of_group) for of_group in parts]
    else:
        order = np.argsort(codes, kind="stable")
        groups = np.split(order, np.searchsorted(codes[order], np.arange(1, max(n, 1))))
        counts = [rank_counts(edges, values[rows][:, columns]) for rows in groups]
    released = session.release(_MEDIANS, np.concatenate(counts)).reshape(-1, len(columns), 1)
    return np.array([as_values(edges, each, of_medians)[:, 0] for each in released])[:n]


def _of_group(group: int, columns: list[int], values: NDArray, codes: NDArray) -> NDArray:
    return values[codes == group][:, columns]


def _product_names(labels: tuple[tuple[str, ...], ...]) -> tuple[str, ...]:
    names = [""]
    for i, of_column in enumerate(labels):
        names = [f"{name}, {label}" if i else label for name in names for label in of_column]
    return tuple(names)
