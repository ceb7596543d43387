"""The distribution function of a column by a tree of counts, and a test of independence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.isotonic import isotonic_regression

from ..accounting import Budget
from ..checks.params import check_integer
from ..mechanisms import rounded_normal
from ..release.theorems import Theorem
from ..sensitivity import sum_over_rows
from ._call import Call, cells_in, numbers_of, statistic
from ._groups import TestResult
from ._noise import Sensitivity, combination, quietest, with_and_without_delta
from ._result import Each, Estimate, Quotient
from ._tables import released_table

Array = NDArray[np.float64]

TREE = Theorem("Statistics", 5)

_MOST_DEPTH = 16

# Tables that are drawn under independence, for a p-value.
_TABLES = 1999

# Degrees of freedom of a test of independence, and entries of covariances that are in memory at once.
_MOST_FREEDOM, _MOST_ENTRIES = 256, 2**22


@statistic()
def ecdf(
    call: Call,
    *,
    depth: int = 8,
) -> Estimate:
    r"""Estimate the distribution function of a column, at all edges of a grid.

    Parameters
    ----------
    X : array-like or table
        One column of numbers between `bounds`, or a table with the columns of `schema`.
    depth : int, default=8
        The grid has ``2**depth`` cells of equal width between the bounds. The error of the function grows with the
        depth by a power of it only, and not with the number of cells.
    %(shared)s

    Returns
    -------
    estimate : Estimate
        Increases from 0 to 1; ``details["edges"]`` has the points. Intervals are for each point by itself.

    Notes
    -----
    **Privacy.** A record is counted in one node of each level of a binary tree (statistics, theorem 5). Counts are made
    consistent from the leaves up: each node is the average of its own count and the sum of its two parts, weighted by
    their precision.

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

    def build(budget: Budget) -> Any:
        return (*quietest(budget, 1.0, moves, call.unit.rows), budget)

    mechanism, event, budget = with_and_without_delta(
        call.budget, build, lambda found: combination(found[0], 1.0).variance
    )
    plan = call.plan(budget, ("counts of a tree", mechanism, 1.0, TREE), events=[event])
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
        Quotient(a, a + b, mechanism, np.array([s, 0.0]), np.array([s, t]), 0.0, 0.0, 1.0, "binomial", default=0.5)
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
    """Return estimates of the nodes of each level from themselves and from all below, and their relative variances."""
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


@dataclass(frozen=True, eq=False)
class _Independence:
    n: float
    variance: float
    df: int
    shape: tuple[int, int]

    def power(self, effect: Any, alpha: float) -> float:
        table = np.asarray(effect, dtype=np.float64)
        if table.shape != self.shape or not np.all(table >= 0) or not 0 < table.sum() < np.inf:
            raise ValueError(f"effect must be a table of shape {self.shape} of probabilities")
        table = table / table.sum()
        rows, columns = table.sum(axis=1), table.sum(axis=0)
        shift = _quadratic(self.n * (table - np.outer(rows, columns)), self.n, rows, columns, self.variance)
        return float(stats.ncx2.sf(stats.chi2.isf(alpha, self.df), self.df, float(shift)))


def _quadratic(residual: Array, n: Any, rows: Array, columns: Array, variance: float) -> Array:
    """Return squares of residuals of independence in the metric of their covariance under it, for one table or more."""
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
        found = np.einsum("...ij,...kl->...ikjl", first, second)
        return found.reshape(*found.shape[:-4], size, size)

    covariance = np.asarray(n)[..., None, None] * product(a, c) + variance * product(b, d)
    flat = inner.reshape(*inner.shape[:-2], size, 1)
    return np.asarray((flat * np.linalg.solve(covariance, flat)).sum(axis=(-1, -2)))


@statistic(bounds=False)
def chi2_contingency(call: Call) -> TestResult:
    r"""Test whether two columns of categories are independent.

    Parameters
    ----------
    X : table
        With the columns of `schema`.
    %(shared)s

    Returns
    -------
    result : TestResult
        ``details["table"]`` has the noisy table, with the cells of other and of missing entries. The test leaves these
        cells out.

    Notes
    -----
    **Privacy.** One record changes one count of the table by 1 (statistics, theorem 2). The statistic is the square of
    the residuals of independence in the metric of their covariance, to which sampling and noise contribute. Its law
    under independence is simulated from released numbers, so that p-values are multiples of 0.0005.

    References
    ----------
    .. [1] M. Gaboardi, H. Lim, R. Rogers and S. Vadhan, "Differentially Private Chi-Squared Hypothesis Testing:
       Goodness of Fit and Independence Testing", ICML 2016.

    Examples
    --------
    >>> from skdp import Schema, stats
    >>> schema = Schema({"sex": ["f", "m"], "smokes": ["yes", "no"]})
    >>> X = {"sex": ["f", "f", "m", "m"] * 500, "smokes": ["yes", "no", "no", "no"] * 500}
    >>> stats.chi2_contingency(X, schema=schema, random_state=0).pvalue
    0.0005
    """
    cells = cells_in(call)
    if len(cells.names) != 2:
        raise ValueError(f"columns must name two columns of categories, got {len(cells.names)}")
    assert call.schema is not None
    sizes = [len(call.schema[name].values) for name in cells.names]  # type: ignore[union-attr]
    if min(sizes) < 2:
        raise ValueError("both columns must have two categories or more")
    if (sizes[0] - 1) * (sizes[1] - 1) > _MOST_FREEDOM:
        raise ValueError(
            f"the test has {(sizes[0] - 1) * (sizes[1] - 1)} degrees of freedom, and may have {_MOST_FREEDOM} at most: "
            "declare fewer categories. Nothing was charged"
        )
    counts, mechanism, plan = released_table(call, cells.flat, cells.shape)
    table = counts[: sizes[0], : sizes[1]].astype(np.float64)
    variance = combination(mechanism, 1.0).variance
    found, count, rows, columns = _statistic(table, variance)
    value, n = float(found), float(count)
    df = (sizes[0] - 1) * (sizes[1] - 1)
    # The law under independence is simulated, because noise is not normal, and margins are estimated.
    stream = call.source.stream("tables under independence")
    expected = n * np.outer(rows, columns)
    normals = rounded_normal(2.0**20, _TABLES * expected.size, stream).reshape(_TABLES, *expected.shape) * 2.0**-20
    drawn = expected + np.sqrt(expected) * normals + mechanism.release(np.zeros(normals.shape), stream)
    # Covariances of a few tables at once take little memory.
    blocks = np.array_split(drawn, math.ceil(_TABLES * df**2 / _MOST_ENTRIES))
    beyond = sum(int(np.sum(_statistic(own, variance)[0] >= value)) for own in blocks)
    details = {"table": counts, "labels": cells.labels, "count": n}
    alternatives = _Independence(n, variance, df, (sizes[0], sizes[1]))
    return TestResult(value, (1 + beyond) / (1 + _TABLES), df, plan, details, alternatives)


def _statistic(tables: Array, variance: float) -> tuple[Array, Array, Array, Array]:
    """Return the statistics of noisy tables, with estimates of the numbers of records and of both margins."""
    n = np.maximum(tables.sum(axis=(-1, -2)), 1.0)
    shares = [np.maximum(tables.sum(axis=axis), math.sqrt(variance) + 0.5) for axis in (-1, -2)]
    rows, columns = (own / own.sum(axis=-1, keepdims=True) for own in shares)
    residual = tables - n[..., None, None] * rows[..., :, None] * columns[..., None, :]
    return _quadratic(residual, n, rows, columns, variance), n, rows, columns
