"""Quantiles, and bounds of data whose range is unknown, by the exponential mechanism on public grids."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..accounting import check_delta, check_epsilon
from ..checks.data import FLOATS, check_quietly
from ..checks.params import check_integer
from ..checks.silence import discreet
from ..checks.values import shown
from ..checks.warn import warn
from ..exceptions import ResolutionWarning
from ..mechanisms import NoiseSource, quantile_mechanism
from ..parts.arrays import rowwise, unchecked
from ..parts.collections import in_parts
from ..release.session import PrivacyGuarantee, Release, ReleaseSession, check_accountant
from ..release.theorems import Theorem
from ..release.units import ONE_RECORD, Unit
from ..schema.encoding import Encoding
from ..schema.grid import SCALES, check_grid
from ..schema.mixin import unit_of
from ..schema.schema import as_schema
from ..sensitivity import cell_counts

Array = NDArray[np.float64]

QUANTILES = "quantiles"
BOUNDS = "bounds"
THEOREM = Theorem("Preprocessing", 2)

#: Quantiles are taken to be multiples of one over this.
_WHOLE = 10_000

MOST_CELLS = 2**16

#: How the grids of quantiles may be spaced.
QUANTILE_SCALES = ("auto", *SCALES)

# So many columns are named in a warning.
_MOST_NAMED = 10

#: What an edge of private_bounds loses in the logarithm of its weight for each step that it is farther from 0.
_PER_STEP = 2.0


def quantile_plan(
    label: str,
    epsilon: float,
    delta: float,
    levels: tuple[int, ...],
    whole: int,
    n_columns: int,
    weights: tuple[float, ...] = (),
    counted: Unit = ONE_RECORD,
) -> PrivacyGuarantee:
    """Return the one release."""
    mechanism, event = quantile_mechanism(epsilon, delta, 1.0, levels, whole, n_columns, weights, counted.rows)
    return counted.stated(PrivacyGuarantee(epsilon, delta, (event,), (Release(label, mechanism, 1.0, THEOREM),)))


def _columns(X: Any) -> tuple[NDArray, bool]:
    """Return validated rows, and whether there was only one column, without a second dimension."""
    array = check_quietly(X, dtype=list(FLOATS), ensure_2d=False, ensure_min_samples=0)
    if array.ndim == 0:
        raise ValueError("X must have one column or more")
    return (rowwise(_as_column, array), True) if array.ndim == 1 else (array, False)


def _as_column(values: NDArray) -> NDArray:
    return values[:, None]


def _check_levels(quantiles: Any) -> NDArray[np.intp]:
    """Return quantiles as multiples of 1 / _WHOLE."""
    try:
        array = np.array(quantiles, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.array(np.nan)
    levels = np.rint(np.nan_to_num(array) * _WHOLE).astype(np.intp)
    if array.ndim > 1 or not array.size or not np.all((levels > 0) & (levels < _WHOLE) & (array > 0) & (array < 1)):
        raise ValueError(f"quantiles must be a number or a sequence of numbers, from {1 / _WHOLE:g} to 1 less that")
    if len(np.unique(levels)) < levels.size:
        raise ValueError(f"quantiles must differ by {1 / _WHOLE:g} or more")
    return levels


@discreet
def private_quantiles(
    X: Any,
    quantiles: Any,
    *,
    epsilon: float,
    delta: float = 0.0,
    bounds: Any = None,
    grid_size: int = 4096,
    scale: str = "auto",
    unit: float = 1.0,
    rows_per_group: int | None = None,
    groups: Any = None,
    schema: Any = None,
    accountant: Any = None,
    random_state: Any = None,
) -> Any:
    r"""Release quantiles of columns.

    Parameters
    ----------
    X : array-like of shape (n_samples,) or (n_samples, n_features)
        Finite numbers; there may be no rows.
    quantiles : float or array-like of float
        Between 0 and 1; rounded to multiples of 0.0001.
    epsilon : float
        Privacy budget, for all quantiles of all columns together. ``inf`` gives no privacy.
    delta : float, default=0.0
        Privacy budget, in [0, 1). With 0, epsilon is divided by the number of columns, and by the depth of the search.
        Otherwise, composition under Gaussian DP divides it by about the square root.
    bounds : tuple (lower, upper)
        Between which quantiles are sought: numbers, or one for each column, from public knowledge. Values beyond count
        as if they were at the bounds.
    grid_size : int, default=4096
        Number of cells between the bounds. Quantiles are edges of eighths of these cells.
    scale : {"auto", "linear", "log", "symlog"}, default="auto"
        How the cells are spaced. ``"linear"`` spaces the cells evenly. ``"log"`` spaces the cells evenly in
        logarithms and needs positive bounds. ``"symlog"`` spaces the cells evenly in the inverse hyperbolic sine of
        values over `unit`, for wide bounds of any sign. ``"auto"`` takes half of the edges from ``"linear"`` and half
        from ``"symlog"``, so that bounds may be much wider than the data. The cells depend on `bounds`, `unit` and
        `grid_size` only.
    unit : float, default=1.0
        Where ``"symlog"`` turns from linear to logarithmic. With ``"auto"``, the least of `unit` and ``2**-24`` times
        the largest bound is used.
    rows_per_group : int, default=None
        How many records of a group (all rows of one person, for instance) count at most, drawn at random. The guarantee
        is then for adding or removing all records of a group. None: each record by itself.
    groups : array-like of shape (n_samples,), default=None
        Which group each row belongs to, by a number or a text; for `rows_per_group`.
    schema : Schema, default=None
        Public facts about the columns of a table, in place of `bounds`, `rows_per_group` and `groups`; these count if
        they are given. X is then the table itself, of which all columns must be declared as `Number`, with
        ``missing="error"``.
    accountant : BudgetAccountant, default=None
        Budget that is charged before anything is drawn.
    random_state : int, RandomState, Generator or None, default=None
        None takes random bits from the operating system's cryptographic generator. Anything else makes draws that can
        be reproduced: for tests only.

    Returns
    -------
    values : float or ndarray
        As :func:`numpy.quantile` returns them along the first axis: of shape (n_quantiles, n_features), without the
        first axis for a single quantile, and without the second for one-dimensional X.

    Raises
    ------
    BudgetError
        If the accountant does not admit it. Nothing is computed from the data then.

    See Also
    --------
    private_bounds : For data whose range is unknown.
    DPQuantileBinner : Bins between quantiles.

    Notes
    -----
    **Privacy.** Each quantile is drawn by the exponential mechanism among the edges of a public grid, by ranks; further
    ones of a column among the records on either side of one that was drawn. Each record counts as evenly spread over
    its cell. With `rows_per_group`, the exponent is divided by it. See the user guide. Not covered: that an error is
    raised for values that are not finite, and how long it takes.

    **Warnings.** If two or more quantiles are asked for, and all quantiles of a column lie within one cell, a
    `ResolutionWarning` is raised. The warning depends on released values only.

    References
    ----------
    .. [1] A. Smith, "Privacy-preserving Statistical Estimation with Optimal Convergence Rates", STOC 2011.
    .. [2] H. Kaplan, S. Schnapp and U. Stemmer, "Differentially Private Approximate Quantiles", ICML 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.preprocessing import private_quantiles
    >>> x = np.arange(10_000) / 100
    >>> private_quantiles(x, [0.25, 0.5], epsilon=1.0, bounds=(0, 1000), random_state=0).round().tolist()
    [25.0, 50.0]
    """
    accountant = check_accountant(accountant)
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    levels = _check_levels(quantiles)
    declared = None if schema is None else as_schema(schema)
    X = in_parts(X, groups=groups, rows_per_group=rows_per_group or (declared and declared.group))
    rows_per_group, groups = unit_of(declared, rows_per_group, groups, X)
    encoding = None if declared is None else Encoding(declared, "values")
    bounds = encoding.bounds if encoding is not None and bounds is None else bounds
    grid = check_grid(bounds, check_cells(grid_size), scale, unit, QUANTILE_SCALES)
    counted = Unit.of(rows_per_group)
    source = NoiseSource(random_state)
    numbers = counted.numbers(groups, X)
    rows, single = _columns(X if encoding is None else rowwise(encoding.encode, X))
    rows, _, members = counted.members(numbers, rows)
    grid = grid.of(rows.shape[1])
    order = np.argsort(levels, axis=None)
    sought = tuple(np.ravel(levels)[order].tolist())
    plan = quantile_plan(QUANTILES, epsilon, delta, sought, _WHOLE, rows.shape[1], counted=counted)

    session = ReleaseSession(
        plan, accountant=accountant, source=source, estimator="private_quantiles", validate=unchecked(rows)
    )
    rows, _ = counted.counted(source, members, rows)
    positions = grid.positions(session.release(QUANTILES, grid.shares(rows)))
    warn_of_one_cell(positions)
    sorted_values = grid.values(positions)
    values = np.empty((levels.size, rows.shape[1]))
    values[order] = sorted_values.T
    out: Any = values[:, 0] if single else values
    return out[0] if levels.ndim == 0 else out


def warn_of_one_cell(positions: Array) -> None:
    """Warn of columns whose released quantiles, two or more, all lie within one cell."""
    within = np.max(positions, axis=1) <= np.floor(np.min(positions, axis=1)) + 1
    columns = np.flatnonzero(within) if positions.shape[1] > 1 else np.array([])
    if len(columns):
        names = ", ".join(f"{j:d}" for j in columns[:_MOST_NAMED]) + (", ..." if len(columns) > _MOST_NAMED else "")
        warn(
            f"all released quantiles of column {names} lie within one cell of the grid. Many records share a value "
            "there, or bounds are much wider than the data. In the second case, set narrower bounds, or a larger "
            "grid_size. The budget was charged",
            ResolutionWarning,
        )


def check_cells(grid_size: object) -> int:
    """Return a number of cells."""
    return check_integer(grid_size, "grid_size", least=2, most=MOST_CELLS)


def _dyadic_edges(exponents: Any) -> Array:
    """Return zero and powers of two of both signs."""
    try:
        low, high = exponents
    except (TypeError, ValueError):
        raise ValueError(f"exponents must be a pair of integers, got {shown(exponents)}") from None
    low, high = (check_integer(end, "exponents", least=-300) for end in (low, high))
    if not low < high <= 300:
        raise ValueError(f"exponents must increase, from -300 to 300, got {shown(exponents)}")
    positive = np.ldexp(1.0, np.arange(low, high + 1))
    return np.concatenate([-positive[::-1], [0.0], positive])


@discreet
def private_bounds(
    X: Any,
    *,
    epsilon: float,
    delta: float = 0.0,
    tail: float = 0.01,
    exponents: tuple[int, int] = (-20, 40),
    rows_per_group: int | None = None,
    groups: Any = None,
    accountant: Any = None,
    random_state: Any = None,
) -> Any:
    r"""Release bounds of columns whose range is unknown: zero or powers of two.

    Parameters
    ----------
    X : array-like of shape (n_samples,) or (n_samples, n_features)
        Finite numbers; there may be no rows.
    epsilon : float
        Privacy budget, for all columns together. ``inf`` gives no privacy.
    delta : float, default=0.0
        Privacy budget, in [0, 1). With 0, epsilon is divided by twice the number of columns. Otherwise, the cuts are
        composed under Gaussian DP, which leaves more for each where there are three columns or more.
    tail : float, default=0.01
        Share of the records that may lie beyond, on either side.
    exponents : tuple (least, largest), default=(-20, 40)
        Exponents of the powers of two among which bounds are sought, from public knowledge.
    rows_per_group : int, default=None
        How many records of a group (all rows of one person, for instance) count at most, drawn at random. The guarantee
        is then for adding or removing all records of a group. None: each record by itself.
    groups : array-like of shape (n_samples,), default=None
        Which group each row belongs to, by a number or a text; for `rows_per_group`.
    accountant : BudgetAccountant, default=None
        Budget that is charged before anything is drawn.
    random_state : int, RandomState, Generator or None, default=None
        None takes random bits from the operating system's cryptographic generator. Anything else makes draws that can
        be reproduced: for tests only.

    Returns
    -------
    lower, upper : float, or ndarray of shape (n_features,)
        Each lower bound is below its upper bound: fit to be the `bounds` of what follows.

    Raises
    ------
    BudgetError
        If the accountant does not admit it. Nothing is computed from the data then.

    See Also
    --------
    private_quantiles : Finer, between bounds that are known.

    Notes
    -----
    **Privacy.** The two bounds of a column are drawn by the exponential mechanism, by ranks, as quantiles are. Among
    edges with the same rank, those nearer to zero have public weights in their favour, so that bounds are not far
    beyond the data. Some hundred records over epsilon are needed for that, times the number of columns and
    `rows_per_group`; with far fewer, bounds are close to zero. Not covered: that an error is raised for values that
    are not finite, and how long it takes.

    The tails are clipped by what follows: choose a `tail` that you can spare.

    References
    ----------
    .. [1] R. J. Wilson, C. Y. Zhang, W. Lam, D. Desfontaines, D. Simmons-Marengo and B. Gipson, "Differentially Private
       SQL with Bounded User Contribution", PoPETs 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.preprocessing import private_bounds
    >>> x = np.linspace(0, 90_000, 10_000)
    >>> private_bounds(x, epsilon=1.0, random_state=2)
    (0.0, 131072.0)
    """
    accountant = check_accountant(accountant)
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    edges = _dyadic_edges(exponents)
    try:
        level = int(_check_levels(tail))
    except (TypeError, ValueError):
        level = _WHOLE
    if 2 * level >= _WHOLE:
        raise ValueError(f"tail must lie in [{1 / _WHOLE:g}, 0.5), got {shown(tail)}")
    counted = Unit.of(rows_per_group)
    source = NoiseSource(random_state)
    numbers = counted.numbers(groups, X)
    rows, single = _columns(in_parts(X, groups=groups, rows_per_group=rows_per_group))
    rows, _, members = counted.members(numbers, rows)
    middle = len(edges) // 2
    weights = tuple((-_PER_STEP * np.abs(np.arange(len(edges)) - middle)).tolist())
    plan = quantile_plan(BOUNDS, epsilon, delta, (level, _WHOLE - level), _WHOLE, rows.shape[1], weights, counted)

    session = ReleaseSession(
        plan, accountant=accountant, source=source, estimator="private_bounds", validate=unchecked(rows)
    )
    rows, _ = counted.counted(source, members, rows)

    def cells(block: NDArray) -> NDArray:
        return np.searchsorted(edges[1:-1], block, side="right")

    counts = cell_counts(cells, rows, rows.shape[1], len(edges) - 1)
    lower, upper = _postprocess_bounds(session.release(BOUNDS, counts), edges)
    return (float(lower[0]), float(upper[0])) if single else (lower, upper)


def _postprocess_bounds(positions: Array, edges: Array) -> tuple[Array, Array]:
    """Return the edges at released positions, one step apart at least."""
    low, high = positions.astype(np.intp).T
    equal = low == high
    low = np.where(equal, np.maximum(low - 1, 0), low)
    high = np.where(equal, np.minimum(high + 1, len(edges) - 1), high)
    return edges[low], edges[high]
