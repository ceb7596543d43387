"""Tests of equal means, equal ranks, and independence."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..checks.params import check_integer, shown
from ..mechanisms import rounded_normal
from ..parts.arrays import rowwise
from ..release.counts import warn_of_incomplete
from ..release.estimates import Law, combination, drawn_noise
from ..release.session import PrivacyGuarantee
from ..schema.declared import Category, Number
from ._call import Call, cells_in, choosing, numbers_of, statistic
from ._descriptive import group_releases
from ._moments import means
from ._quantiles import edges_of
from ._tables import cells_table, released_table

Array = NDArray[np.float64]

# Number of statistics that are simulated under a hypothesis for a p-value.
_DRAWS = 1999

# Largest numbers of degrees of freedom of a test of independence, and of entries of covariances in memory.
_MOST_FREEDOM, _MOST_ENTRIES = 256, 2**22


@dataclass(frozen=True, eq=False)
class TestResult:
    """Result of a private test.

    Parameters
    ----------
    statistic : float
        Test statistic.
    pvalue : float
        Probability of a statistic that is at least as extreme, under the null hypothesis, with the known
        distribution of the noise.
    df : float
        Degrees of freedom.
    privacy_ : PrivacyGuarantee
        Guarantee of the call.
    details : dict
        Further released numbers.

    Examples
    --------
    >>> from skdp import Schema, stats
    >>> X = {
    ...     "sex": ["f", "f", "m", "m"] * 500,
    ...     "smokes": ["yes", "no", "no", "no"] * 500,
    ... }
    >>> schema = Schema({"sex": ["f", "m"], "smokes": ["yes", "no"]})
    >>> stats.chi2_contingency(X, schema=schema, random_state=0).df
    1
    """

    __test__ = False

    statistic: float
    pvalue: float
    df: float
    privacy_: PrivacyGuarantee
    details: dict[str, Any] = field(default_factory=dict)


@statistic(bounds=False)
def ttest_ind(call: Call, by: str) -> TestResult:
    r"""Test whether the means of a column are equal in two groups.

    Parameters
    ----------
    by : str
        Name of a column with two declared categories, possibly that of the target. Records with other or missing
        entries are left out.
    columns : str, default=None
        Name of the column of numbers. It may be None if there is only one such column.

    Returns
    -------
    result : TestResult
        Result of the test. ``details["difference"]`` holds the difference of the means, first minus second.

    See Also
    --------
    mannwhitneyu : Test by ranks, for small groups and wide bounds.

    Notes
    -----
    **Privacy.** The moments of both groups are one release (:ref:`statistics, theorem 1 <statistics-theorem-1>`). The
    statistic is Welch's statistic, with the variance of the noise added. Its p-value accounts for both the noise and
    the sampling error, whose variance allows for the most skewed columns between the bounds. Therefore the test rejects
    equal means less often than stated, and finds differences of small groups less often than a test of ranks.

    References
    ----------
    .. [1] B. L. Welch, "The Generalization of 'Student's' Problem when Several Different Population Variances are
       Involved", Biometrika 34, 1947.

    Examples
    --------
    >>> from skdp import Number, Schema, stats
    >>> schema = Schema(
    ...     {"sex": ["f", "m"], "height": Number(100, 220, missing="error")}
    ... )
    >>> X = {"sex": ["f", "m"] * 1000, "height": [165.0, 178.0] * 1000}
    >>> result = stats.ttest_ind(X, "sex", schema=schema, random_state=0)
    >>> f"{result.pvalue:.0e}"
    '1e-16'
    """
    call = _two_groups(call, by)
    half, rows = float(numbers_of(call).half[0]), call.unit.rows
    design, sums, _, _, plan = group_releases(call, by, 2)
    n, averages, laws, records, rates = [], [], [], [], []
    for rule in means(design, sums[:2, 0]):
        count = max(rule.b, 1.0)
        average = min(max(rule.a / count, -1.0), 1.0)
        noise, (record, growth) = rule.law(average), rule.sampling(average)
        n.append(count)
        averages.append(average)
        laws.append(Law(noise.normal / count, tuple((half * a / count, k) for a, k in noise.parts)))
        records.append(rows * record / count)
        rates.append([rows * rate / count for rate in growth])
    law = Law(half * math.hypot(*(of_mean.normal for of_mean in laws)), laws[0].parts + laws[1].parts)
    difference, sampled = half * (averages[0] - averages[1]), half**2 * sum(records)
    # If the means are equal, that of one group is higher than its estimate, and that of the other is lower.
    first, second = (0, 1) if difference > 0 else (1, 0)
    rate = half * max(rates[0][first], rates[1][second])
    spread = math.sqrt(law.variance + sampled + rate * abs(difference))
    value = difference / spread if spread else math.copysign(math.inf, difference) if difference else 0.0
    pvalue = min(1.0, 2 * law.tail(abs(difference), math.sqrt(sampled + rate * abs(difference))))
    details = {"difference": difference, "standard_error": math.sqrt(law.variance + sampled), "count": np.array(n)}
    return TestResult(value, pvalue, math.nan, plan, details)


def _two_groups(call: Call, by: Any) -> Call:
    """Return the call with the column of numbers of a test, and with `by`, possibly the target, in its schema."""
    if not isinstance(by, str):
        raise TypeError(
            f"by must name a column of two categories, got {shown(by)}. For two arrays, write "
            f"{call.name}({{'value': [*a, *b], 'group': ['a'] * len(a) + ['b'] * len(b)}}, 'group', "
            "schema={'value': (lower, upper), 'group': ['a', 'b']})"
        )
    # The target may be the groups, but not the numbers. Therefore these are read before it is a column.
    names = call.names(Number)[0]
    call = call.with_target(None)
    assert call.schema is not None
    column = call.schema.get(by)
    if not isinstance(column, Category) or len(column.values) != 2:
        raise ValueError(
            f"by must name a column of two categories of the schema, or its target if X has it, got {shown(by)}"
        )
    if len(names) != 1:
        raise ValueError(f"columns must name one column of numbers, got {', '.join(names)}")
    return replace(call, chosen=names[0])


@statistic(bounds=False)
def mannwhitneyu(call: Call, by: str, *, n_cells: int = 32) -> TestResult:
    r"""Test by ranks whether the values of a column are larger in one of two groups.

    Parameters
    ----------
    by : str
        Name of a column with two declared categories, possibly that of the target. Records with other or missing
        entries are left out.
    n_cells : int, default=32
        Number of cells between the bounds of the column. Half of the cells are spaced evenly, and half evenly in
        logarithms. Values in the same cell count as ties. More cells mean fewer ties and more noise.
    columns : str, default=None
        Name of the column of numbers. It may be None if there is only one such column.

    Returns
    -------
    result : TestResult
        Result of the test. ``statistic`` is the probability that a record of the first group is larger than a record of
        the second group, where ties count half. This is the Mann-Whitney U divided by its largest value.
        ``details["count"]`` holds the noisy numbers of records.

    Notes
    -----
    **Privacy.** One record changes one count by 1 in a table of groups and cells (:ref:`statistics, theorem 2
    <statistics-theorem-2>`). The distribution of the statistic under the null hypothesis is simulated from released
    numbers, with the released distribution of all records for both groups, and with noise in the counts. Therefore
    p-values are multiples of 0.0005.

    References
    ----------
    .. [1] S. Couch, Z. Kazan, K. Shi, A. Bray and A. Groce, "Differentially Private Nonparametric Hypothesis Testing",
       CCS 2019.

    Examples
    --------
    >>> from skdp import Number, Schema, stats
    >>> schema = Schema(
    ...     {"sex": ["f", "m"], "height": Number(100, 220, missing="error")}
    ... )
    >>> X = {"sex": ["f", "m"] * 1000, "height": [165.0, 178.0] * 1000}
    >>> stats.mannwhitneyu(X, "sex", schema=schema, random_state=0).pvalue
    0.0005
    """
    call = _two_groups(call, by)
    n_cells = check_integer(n_cells, "n_cells", least=2, most=2**12)
    numbers = numbers_of(call)
    inner = edges_of(numbers, n_cells)[0, 1:-1]
    cells = rowwise(partial(_cells_by_group, inner), numbers.values, cells_in(choosing(call, by)).codes)
    counts, mechanism, plan = released_table(call, cells, (2, n_cells))
    unit = math.sqrt(combination(mechanism, 1.0).variance)
    warn_of_incomplete([by, *numbers.names], float(counts.sum()), counts.size * unit**2)
    n = np.maximum(counts.sum(axis=1), 1.0)
    # Cells that hold only noise would make ties too rare.
    pooled = np.maximum(counts.sum(axis=0) - unit, 0.0)
    pooled = pooled / pooled.sum() if pooled.sum() else np.full(n_cells, 1 / n_cells)
    rng = call.source.simulator("groups with equal laws")
    # With groups, all rows of a group are equal in the simulation, where the statistic varies most.
    rows = call.unit.rows
    sizes = [max(int(count) // rows, 1) for count in n]
    drawn = np.stack([rows * rng.multinomial(size, pooled, _DRAWS) for size in sizes], axis=1)
    noise = drawn_noise(mechanism, _DRAWS, 2 * n_cells, rng).reshape(drawn.shape)
    under = np.sort(np.abs(_larger(drawn + noise) - 0.5))
    value = float(_larger(counts[None])[0])
    beyond = int(np.sum(under >= abs(value - 0.5) - 1e-12))
    details = {"count": n, "cell_edges": np.array([numbers.lower[0], *inner, numbers.upper[0]])}
    return TestResult(value, (1 + beyond) / (1 + _DRAWS), math.nan, plan, details)


def _cells_by_group(inner: Array, values: NDArray, codes: NDArray) -> NDArray[np.int64]:
    """Return cells of numbers by group, and -1 for missing numbers and other groups."""
    left_out = (codes[:, 0] > 1) | np.isnan(values[:, 0])
    places = np.searchsorted(inner, values[:, 0], side="right")
    return np.where(left_out, -1, codes[:, 0] * (len(inner) + 1) + places)


def _larger(counts: Array) -> Array:
    """Return the shares of pairs whose first record is larger, for tables of shape (n_tables, 2, n_cells)."""
    first, second = counts[:, 0], counts[:, 1]
    below = np.cumsum(second, axis=1) - second / 2
    pairs = np.maximum(first.sum(axis=1), 1.0) * np.maximum(second.sum(axis=1), 1.0)
    return np.asarray((first * below).sum(axis=1) / pairs)


def _quadratic(residual: Array, n: Any, rows: Array, columns: Array, variance: float) -> Array:
    """Return the quadratic forms of residuals with their inverse covariance under independence, for tables."""
    parts = []
    for share in (rows, columns):
        eye, across = np.eye(share.shape[-1]), share[..., :, None]
        centre = eye - across
        sampled = eye * across - across * share[..., None, :]
        parts.append((sampled[..., :-1, :-1], (centre @ centre.swapaxes(-1, -2))[..., :-1, :-1]))
    (a, b), (c, d) = parts
    inner = residual[..., :-1, :-1]
    size = inner.shape[-2] * inner.shape[-1]

    def product(first: Array, second: Array) -> Array:
        products = np.einsum("...ij,...kl->...ikjl", first, second)
        return products.reshape(*products.shape[:-4], size, size)

    covariance = np.asarray(n)[..., None, None] * product(a, c) + variance * product(b, d)
    flat = inner.reshape(*inner.shape[:-2], size, 1)
    return np.asarray((flat * np.linalg.solve(covariance, flat)).sum(axis=(-1, -2)))


@statistic(bounds=False)
def chi2_contingency(call: Call) -> TestResult:
    r"""Test whether two columns of categories are independent.

    Returns
    -------
    result : TestResult
        Result of the test. ``details["table"]`` holds the noisy table, including the cells of other and of missing
        entries, which the test leaves out.

    Notes
    -----
    **Privacy.** One record changes one count of the table by 1 (:ref:`statistics, theorem 2 <statistics-theorem-2>`).
    The statistic is the quadratic form of the residuals of independence with the inverse of their covariance, which
    includes sampling and noise. Its distribution under independence is simulated from released numbers. Therefore
    p-values are multiples of 0.0005.

    References
    ----------
    .. [1] M. Gaboardi, H. Lim, R. Rogers and S. Vadhan, "Differentially Private Chi-Squared Hypothesis Testing:
       Goodness of Fit and Independence Testing", ICML 2016.

    Examples
    --------
    >>> from skdp import Schema, stats
    >>> schema = Schema({"sex": ["f", "m"], "smokes": ["yes", "no"]})
    >>> X = {
    ...     "sex": ["f", "f", "m", "m"] * 500,
    ...     "smokes": ["yes", "no", "no", "no"] * 500,
    ... }
    >>> stats.chi2_contingency(X, schema=schema, random_state=0).pvalue
    0.0005
    """
    cells = cells_in(call)
    if len(cells.names) != 2:
        raise ValueError(f"columns must name two columns of categories, got {len(cells.names)}")
    assert call.schema is not None
    sizes = [len(call.schema[name].values) for name in cells.names]  # type: ignore[union-attr]
    if min(sizes) < 2:
        raise ValueError("both columns must have at least two categories")
    if (sizes[0] - 1) * (sizes[1] - 1) > _MOST_FREEDOM:
        raise ValueError(
            f"the test has {(sizes[0] - 1) * (sizes[1] - 1)} degrees of freedom, but the limit is {_MOST_FREEDOM}. "
            "Declare fewer categories"
        )
    counts, mechanism, plan = cells_table(call, cells)
    table = counts[: sizes[0], : sizes[1]].astype(np.float64)
    variance, m = combination(mechanism, 1.0).variance, call.unit.rows
    statistic_of_table, count, rows, columns = _statistic(table, variance, m)
    value, n = float(statistic_of_table), float(count)
    df = (sizes[0] - 1) * (sizes[1] - 1)
    # The law under independence is simulated, because noise is not normal and margins are estimated. The noise is that
    # of the mechanism, from a stream of its own.
    stream = call.source.stream("tables under independence")
    expected = n * np.outer(rows, columns)
    normals = rounded_normal(2.0**20, _DRAWS * expected.size, stream).reshape(_DRAWS, *expected.shape) * 2.0**-20
    drawn = expected + np.sqrt(m * expected) * normals + mechanism.release(np.zeros(normals.shape), stream)
    # Covariances are computed for a few tables at once, to save memory.
    blocks = np.array_split(drawn, math.ceil(_DRAWS * df**2 / _MOST_ENTRIES))
    beyond = sum(int(np.sum(_statistic(block, variance, m)[0] >= value)) for block in blocks)
    details = {"table": counts, "labels": cells.labels, "count": n}
    return TestResult(value, (1 + beyond) / (1 + _DRAWS), df, plan, details)


def _statistic(tables: Array, variance: float, m: int) -> tuple[Array, Array, Array, Array]:
    """Return the statistics of noisy tables, with estimates of the numbers of records and of both margins.

    With up to `m` records in a group, the covariance under sampling is at most `m` times that of independent records.
    """
    n = np.maximum(tables.sum(axis=(-1, -2)), 1.0)
    shares = [np.maximum(tables.sum(axis=axis), math.sqrt(variance) + 0.5) for axis in (-1, -2)]
    rows, columns = (share / share.sum(axis=-1, keepdims=True) for share in shares)
    residual = tables - n[..., None, None] * rows[..., :, None] * columns[..., None, :]
    return _quadratic(residual, m * n, rows, columns, variance), n, rows, columns
