"""Counts in cells: histograms, categories, proportions, contingency tables and distribution functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import isotonic_regression

from ..accounting import ApproximateEvent, Budget, PrivacyEvent, PureEvent
from ..checks.params import check_integer, increasing_edges, is_list, misspelling, shown
from ..mechanisms import Mechanism, NoNoise, StabilityCounts
from ..parts.arrays import rowwise
from ..release.counts import table_parts, warn_of_mismatch
from ..release.estimates import Each, Estimate, Law, Quotient, combination
from ..release.session import PrivacyGuarantee, Theorem
from ..schema.declared import Category, missing_cell, read_cells
from ..schema.entries import read_column
from ..sensitivity import sum_over_rows
from ._call import (
    COUNTS,
    Call,
    Cells,
    Numbers,
    Sensitivity,
    cells_in,
    choosing,
    counts_estimate,
    label_names,
    numbers_of,
    private_labels,
    statistic,
)
from ._quantiles import released_numbers, single

Array = NDArray[np.float64]

OCCURRING = Theorem("Statistics", 3)

_MOST_CELLS, _MOST_NAMED = 2**22, 10

# Up to this number of bins, values are compared with one edge after the other.
_FEW_BINS = 32

# Smallest delta of one record.
_LEAST_DELTA = 1e-290


def released_table(
    call: Call,
    rows: NDArray,
    shape: tuple[int, ...],
    cells: Callable[[NDArray], NDArray] = lambda codes: codes,
    count: Callable[[NDArray], NDArray] | None = None,
    numbers: Numbers | None = None,
) -> tuple[NDArray, Any, PrivacyGuarantee]:
    """Release the number of records in each cell of a table. Rows with a negative cell are in no cell.

    If the rows are `numbers`, it is also released how many are beyond the bounds or missing.
    """
    size = math.prod(shape)
    if size > _MOST_CELLS:
        raise ValueError(
            f"the table would have {size} cells, but the limit is {_MOST_CELLS}. Choose fewer bins or columns"
        )
    mechanism, plan = single(call, "counts", Sensitivity(1.0, 1.0, size, integers=True), COUNTS, numbers)
    session, rows = call.open(plan, rows)
    if numbers is not None:
        released_numbers(session, numbers, rows)

    def block(some: NDArray) -> NDArray:
        codes = cells(some)
        # The first count is the number of rows in no cell.
        return np.bincount(codes + 1, minlength=1 + size)[1:]

    exact = sum_over_rows(count or block, rows, block_rows=max(2**16, size))
    counts = np.rint(session.release("counts", exact.astype(np.float64))).astype(np.int64)
    return counts.reshape(shape), mechanism, plan


def warn_of_cells(cells: Cells, counts: NDArray, law: Law) -> None:
    """Warn of columns with many entries in no category, by the released counts of their combinations."""
    parts = table_parts(cells.names, counts.reshape(cells.shape), dict(enumerate(cells.n_listed)), law.variance)
    warn_of_mismatch(parts, labels=None)


def cells_table(call: Call, cells: Cells) -> tuple[NDArray, Any, PrivacyGuarantee]:
    """Release the number of records in each combination of cells, and warn of categories that do not fit."""
    counts, mechanism, plan = released_table(call, cells.flat, cells.shape)
    warn_of_cells(cells, counts, combination(mechanism, 1.0))
    return counts, mechanism, plan


def _edges_of(bins: Any, numbers: Numbers) -> list[Array]:
    # As in NumPy, a list with as many entries as columns has one entry for each column.
    bins_of_columns = list(bins) if is_list(bins) and len(bins) == numbers.width > 1 else [bins] * numbers.width
    edges_of_columns = []
    for bins_of_column, low, high in zip(bins_of_columns, numbers.lower.tolist(), numbers.upper.tolist(), strict=True):
        edges = increasing_edges(bins_of_column) if is_list(bins_of_column) else None
        if edges is None:
            if is_list(bins_of_column):
                raise ValueError("bins must be a number of bins, or finite, increasing edges")
            edges = np.linspace(low, high, check_integer(bins_of_column, "bins", least=1, most=_MOST_CELLS) + 1)
        edges_of_columns.append(edges)
    return edges_of_columns


def _histogram(call: Call, bins: Any, is_single: bool) -> Estimate:
    if is_single and call.schema is None and call.bounds is None:
        edges_given = increasing_edges(bins) if is_list(bins) else None
        if edges_given is not None:
            # Public edges are bounds, beyond which values count in the outer bins.
            call = replace(call, bounds=(edges_given[0], edges_given[-1]))
    numbers = numbers_of(call)
    if is_single and numbers.width != 1:
        raise ValueError(f"histogram takes 1 column, got {numbers.width}. Use histogramdd")
    edges = _edges_of(bins, numbers)
    shape = tuple(len(of_column) - 1 for of_column in edges)

    def cells(rows: NDArray) -> NDArray:
        bins = [np.searchsorted(edges[j][1:-1], values, side="right") for j, values in enumerate(rows.T)]
        return np.where(np.isnan(rows).any(axis=1), -1, np.ravel_multi_index(tuple(bins), shape))

    count = (lambda rows: _few_bins(edges[0], rows[:, 0])) if is_single and shape[0] <= _FEW_BINS else None
    counts, mechanism, plan = released_table(call, numbers.values, shape, cells, count, numbers)
    return counts_estimate(
        counts, combination(mechanism, 1.0), plan, details={"bin_edges": edges[0] if is_single else edges}
    )


def _few_bins(edges: Array, values: NDArray) -> NDArray:
    """Count values by comparing all of them with each edge. For few edges, this is faster than a search."""
    present = np.count_nonzero(values == values)
    above = [present, *(np.count_nonzero(values >= edge) for edge in edges[1:-1]), 0]
    return -np.diff(np.array(above, dtype=np.int64))


@statistic()
def histogram(call: Call, bins: Any = 10) -> Estimate:
    """Estimate the number of records in each bin of [[columns: a column]].

    Parameters
    ----------
    X : array-like or table
        [[Columns: One column]] of numbers between `bounds`, or a table with the columns of `schema`.
    bins : [[type: int or array-like of float]], default=10
        Number of bins of equal width between the bounds, or public edges. Values beyond count in the outer bins.

    Returns
    -------
    estimate : Estimate
        Integers, which may be negative. ``details["bin_edges"]`` holds the edges[[of: ]].

    See Also
    --------
    skdp.synthetic.NoisyHistogram : Synthetic data from histograms, for models.

    Notes
    -----
    **Privacy.** One record changes one count by 1 (:ref:`statistics, theorem 2 <statistics-theorem-2>`). The noise does
    not depend on the number of bins. Records with a missing value are in no bin. For 2 % of the budget, the numbers of
    values of each column within the bounds, beyond them and missing are released, for warnings.

    Examples
    --------
    >>> from skdp import stats
    >>> rows = [[rows: [1.0, 6.0, 7.0] * 1000]]
    >>> found = stats.[[name: histogram]](rows, 2, bounds=(0, 10), random_state=0)
    >>> found.value
    [[counts: array([1000, 2001])]]
    """
    return _histogram(call, bins, True)


@statistic(
    like=histogram,
    columns="several columns",
    Columns="Columns",
    type="int, array-like of float, or a list of them",
    of=" of all columns",
    rows="[[1.0, 6.0], [7.0, 8.0]] * 1000",
    name="histogramdd",
    counts="array([[  -2, 1000],\n           [   0, 1000]])",
)
def histogramdd(call: Call, bins: Any = 10) -> Estimate:
    return _histogram(call, bins, False)


@statistic(bounds=False)
def value_counts(call: Call) -> Estimate:
    r"""Estimate the number of records with each category of a column.

    Parameters
    ----------
    X : array-like or table
        A table with the columns of `schema`. Without a schema, labels of any kind, whose list is private.
    columns : str, default=None
        Name of a column of categories. It may be None if there is only one such column.

    Returns
    -------
    estimate : Estimate
        Integers, with the names of the categories in ``names``, as text. With a schema, the result has all categories,
        and cells of other and of missing values. Without a schema, it has only labels whose noisy counts exceed
        ``details["threshold"]``.

    Notes
    -----
    **Privacy.** One record changes one count by 1 (:ref:`statistics, theorem 2 <statistics-theorem-2>`). Without a
    schema, the list of labels is private, and `delta` must be positive. The noise is then bounded, and only counts
    above a threshold are released. The noisy count of a label with a single record exceeds the threshold with a
    probability of at most `delta` (:ref:`statistics, theorem 3 <statistics-theorem-3>`).

    References
    ----------
    .. [1] D. Desfontaines, J. Voss, B. Gipson and C. Mandayam, "Differentially Private Partition Selection", PoPETs
       2022.

    Examples
    --------
    >>> from skdp import stats
    >>> found = stats.value_counts(
    ...     ["flu"] * 500 + ["cold"] * 300 + ["rare"], delta=1e-6, random_state=0
    ... )
    >>> found.names
    ('cold', 'flu')
    """
    if call.schema is not None:
        cells = cells_in(call)
        if len(cells.names) > 1:
            raise ValueError("columns must name one column of categories. Use contingency for several columns")
        counts, mechanism, plan = cells_table(call, cells)
        return counts_estimate(counts, combination(mechanism, 1.0), plan, cells.labels[0])
    mechanism, event = occurring_mechanism(call.budget, call.unit.rows)
    plan = call.plan(call.budget, ("labels and counts", mechanism, 1.0, OCCURRING), events=[event])
    session, labels, known = call.open(plan, *private_labels(call.table))
    names, counts, threshold = released_labels(session, "labels and counts", labels[known], mechanism)
    return counts_estimate(counts, combination(mechanism, 1.0), plan, label_names(names), {"threshold": threshold})


def occurring_mechanism(budget: Budget, rows: int) -> tuple[Mechanism, PrivacyEvent]:
    """Return the mechanism for counts of labels whose list is private, for units of at most `rows` records."""
    epsilon, delta = budget
    if epsilon == math.inf:
        return NoNoise(float(rows)), PureEvent(epsilon)
    if delta == 0:
        raise ValueError(
            "delta must be positive if the list of labels is private. Or pass a schema that declares the labels"
        )
    # By group privacy, the deltas of the records of a group add up with factors exp(k epsilon / rows).
    ratio = (
        1.0 if rows == 1 else math.exp(epsilon / rows - epsilon) * math.expm1(-epsilon / rows) / math.expm1(-epsilon)
    )
    delta_of_one = delta * ratio * (1 if rows == 1 else 1 - 2.0**-40)
    if delta_of_one < _LEAST_DELTA:
        raise ValueError(
            "epsilon is too large for this delta and rows_per_group: the delta of one record of a group would be 0"
        )
    epsilon_of_one = epsilon / rows * (1 if rows == 1 else 1 - 2.0**-40)
    return StabilityCounts(epsilon_of_one, delta_of_one, rows), ApproximateEvent(epsilon, delta)


def released_labels(session: Any, label: str, labels: NDArray, mechanism: Any) -> tuple[NDArray, NDArray, int]:
    """Release the labels whose counts exceed the threshold, with their counts."""
    threshold = getattr(mechanism, "threshold", 0)
    names, exact = np.unique(labels, return_counts=True)
    counts = session.release(label, exact).astype(np.int64)
    return names[counts > threshold], counts[counts > threshold], threshold


@statistic(bounds=False)
def proportion(call: Call, value: Any = True) -> Estimate:
    r"""Estimate the share of records with a value.

    Parameters
    ----------
    X : array-like or table
        Truth values, labels, or a table with the columns of `schema`.
    value : object, default=True
        Public value whose share is estimated, or a list of values.
    columns : str, default=None
        Name of a column of categories. It may be None if there is only one such column.

    Returns
    -------
    estimate : Estimate
        A number in [0, 1]. With a schema, records with a missing value are left out. If the categories of the schema
        are spelled otherwise in the data, the share is about 0, without a warning.

    Notes
    -----
    **Privacy.** A record adds 1 to one of two counts, of records with and without the value (:ref:`statistics, theorem
    2 <statistics-theorem-2>`). The interval inverts a test for each possible share, as the intervals of Wilson and
    Fieller do. It is also valid for small counts. If the number of records may be 0 within its noise, it is [0, 1].

    References
    ----------
    .. [1] E. B. Wilson, "Probable Inference, the Law of Succession, and Statistical Inference", Journal of the American
       Statistical Association 22, 1927.

    Examples
    --------
    >>> from skdp import stats
    >>> round(
    ...     stats.proportion(
    ...         [True] * 300 + [False] * 700, epsilon=1.0, random_state=0
    ...     ).value,
    ...     1,
    ... )
    0.3
    """
    wanted = list(value) if is_list(value) else [value]
    if call.schema is None:
        codes = rowwise(partial(_is_none_of, wanted), call.table)
    else:
        names, _ = call.names(Category)
        if len(names) > 1:
            raise ValueError("columns must name one column of categories")
        column: Any = call.schema[names[0]]
        unknown = [one for one in wanted if one not in column.values]
        if unknown:
            got = "a list with other entries" if is_list(value) else shown(unknown[0])
            raise ValueError(
                f"value must be a category of the column {names[0]!r}, got {got}. The categories are "
                f"{', '.join(map(repr, column.values[:_MOST_NAMED]))}{', ...' * (len(column.values) > _MOST_NAMED)}."
                f"{'' if is_list(value) else misspelling(unknown[0], column.values)}"
            )
        positions = [column.values.index(one) for one in wanted]
        codes = rowwise(partial(_outside, positions, missing_cell(column)), cells_in(choosing(call, names[0])).codes)
    counts, mechanism, plan = released_table(call, codes, (2,))
    with_value, n = float(counts[0]), float(counts.sum())
    spread = Quotient(with_value, n, mechanism, np.array([1.0, 0.0]), np.ones(2), None, 0.0, 1.0, default=0.5)
    return Estimate(spread.value, spread.standard_error, plan, (), {"count": int(n)}, spread)


def _is_none_of(wanted: list[Any], entries: Any) -> NDArray[np.intp]:
    # Each entry is compared separately, because NumPy would convert all entries to one type.
    return np.where(read_cells(Category(wanted), read_column(entries, "X")) < len(wanted), 0, 1)


def _outside(positions: list[int], missing: int, codes: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return 0 for cells at some positions, -1 for the cell of missing values, and 1 for others."""
    cells = codes[:, 0]
    return np.where(cells == missing, -1, np.where(np.isin(cells, positions), 0, 1))


@statistic(bounds=False)
def contingency(call: Call) -> Estimate:
    r"""Estimate the number of records with each combination of categories.

    Returns
    -------
    estimate : Estimate
        Integers, with one axis for each column. ``details["labels"]`` holds the names of the cells along each axis.
        ``details["margins"]`` holds the counts of each column alone, as sums of the table.

    See Also
    --------
    chi2_contingency : Test of independence.

    Notes
    -----
    **Privacy.** One record changes one count by 1 (:ref:`statistics, theorem 2 <statistics-theorem-2>`). Margins are
    post-processing, and are consistent with the table.

    Examples
    --------
    >>> from skdp import Schema, stats
    >>> schema = Schema({"sex": ["f", "m"], "smokes": [True, False]})
    >>> X = {"sex": ["f", "m"] * 500, "smokes": [True, False, False, False] * 250}
    >>> stats.contingency(X, schema=schema, random_state=0).value[:2, :2]
    array([[248, 250],
           [ -2, 500]])
    """
    cells = cells_in(call)
    counts, mechanism, plan = cells_table(call, cells)
    axes = range(counts.ndim)
    margins = [counts.sum(axis=tuple(other for other in axes if other != axis)) for axis in axes]
    return counts_estimate(
        counts, combination(mechanism, 1.0), plan, details={"labels": cells.labels, "margins": margins}
    )


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
    >>> found = stats.ecdf(
    ...     np.arange(10_000) / 1e4, bounds=(0, 1), depth=1, random_state=0
    ... )
    >>> found.value.round(1).tolist()
    [0.0, 0.5, 1.0]
    """
    depth = check_integer(depth, "depth", least=1, most=_MOST_DEPTH)
    numbers = numbers_of(call)
    if numbers.width != 1:
        raise ValueError(f"ecdf takes one column, got {numbers.width}")
    size, levels = 2**depth, depth + 1
    moves = Sensitivity.of_counts(levels, 2 * size - 1)
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
    for level, counts in enumerate(levels):
        position = edges >> (depth - level)
        used = position % 2 == 1
        out[used] += counts[position[used] - 1]
        spread[used] += variance[level]
    return out, spread
