"""The plan of quantiles on public grids, and bounds of data of unknown range, by the exponential mechanism."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..accounting import check_delta, check_epsilon
from ..checks.data import FLOATS, check_quietly
from ..checks.params import check_integer, shown, warn
from ..checks.silence import discreet
from ..exceptions import ResolutionWarning
from ..mechanisms import NoiseSource, quantile_mechanism
from ..parts import in_parts
from ..parts.arrays import charge, row_check, rowwise
from ..release.counts import warn_of_outer_cells
from ..release.session import PrivacyGuarantee, Release, ReleaseSession, Theorem, check_accountant
from ..release.units import ONE_RECORD, Unit
from ..schema.declared import SCALES, Grid
from ..sensitivity import cell_counts

Array = NDArray[np.float64]

QUANTILES = "quantiles"
BOUNDS = "bounds"
THEOREM = Theorem("Preprocessing", 2)

#: Quantiles are multiples of one over this number.
_WHOLE = 10_000

MOST_CELLS = 2**16

#: Spacings of the grids of quantiles.
QUANTILE_SCALES = ("auto", *SCALES)

# Number of columns that a warning names.
_MOST_NAMED = 10

#: Decrease of the logarithm of the weight of an edge of private_bounds for each step away from 0.
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
    """Return validated rows, and whether X was one column without a second dimension."""
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
        raise ValueError(
            f"quantiles must be a number or a sequence of numbers between {1 / _WHOLE:g} and {1 - 1 / _WHOLE:g}"
        )
    if len(np.unique(levels)) < levels.size:
        raise ValueError(f"quantiles must differ by at least {1 / _WHOLE:g}")
    return levels


def warn_of_cells(names: Any, positions: Array, levels: Array, grid: Grid) -> None:
    """Warn of columns with most numbers at a bound, or whose quantiles, two or more, all lie within one cell."""
    bounds = grid.lower, grid.upper
    at_bound = warn_of_outer_cells(names, bounds, positions, levels, grid.n_cells)
    within = np.max(positions, axis=1) <= np.floor(np.min(positions, axis=1)) + 1
    columns = np.flatnonzero(within & ~at_bound) if positions.shape[1] > 1 else np.array([])
    if len(columns):
        shown_names = ", ".join(str(names[j]) for j in columns[:_MOST_NAMED])
        more = ", ..." if len(columns) > _MOST_NAMED else ""
        warn(
            f"all released quantiles of column {shown_names}{more} lie within one cell of the grid. Many records share "
            "a value there, or the bounds are much wider than the data (set narrower ones, or a larger grid_size), or "
            f"most of the data are beyond a bound (check its units). {charge()}",
            ResolutionWarning,
        )


def _dyadic_edges(exponents: Any) -> Array:
    """Return zero and powers of two of both signs."""
    try:
        low, high = exponents
    except (TypeError, ValueError):
        raise ValueError(f"exponents must be a pair of integers, got {shown(exponents)}") from None
    low, high = (check_integer(exponent, "exponents", least=-300) for exponent in (low, high))
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
        Finite numbers. There may be no rows.
    epsilon : float
        Privacy budget of all columns together. Must be strictly positive. ``inf`` gives no privacy.
    delta : float, default=0.0
        Privacy budget of all columns together, in [0, 1). If 0, epsilon is divided by twice the number of columns.
        Otherwise, the choices are composed under Gaussian DP, which is better for three columns or more.
    tail : float, default=0.01
        Fraction of the records that may lie beyond each bound.
    exponents : tuple (least, largest), default=(-20, 40)
        Public range of the exponents of the powers of two that can be bounds.
    rows_per_group : int, default=None
        Public limit on the rows of one group, such as a person. Further rows of a group are left out at random. The
        guarantee is then for all rows of a group together. If None, the guarantee is for one row.
    groups : array-like of shape (n_samples,), default=None
        Group of each row, as a number or a text. Required with `rows_per_group`, unless `schema` declares it.
    accountant : BudgetAccountant, default=None
        Accountant that is charged before any noise is drawn. If None, no charge is recorded.
    random_state : int, RandomState, Generator or None, default=None
        If None, random bits are cryptographically secure. Other values are for tests only, and give no privacy.

    Returns
    -------
    lower, upper : float, or ndarray of shape (n_features,)
        Bounds. Each lower bound is below its upper bound, so that they are valid `bounds` of a later step.

    Raises
    ------
    BudgetError
        If the accountant does not admit the call. Nothing is computed from the data then.

    See Also
    --------
    skdp.stats.min_max : Range of most values, between known bounds.

    Notes
    -----
    **Privacy.** The two bounds of a column are drawn by the exponential mechanism, by ranks, as quantiles are
    (:ref:`preprocessing, theorem 2 <preprocessing-theorem-2>`). Among edges with the same rank, public weights favour
    those nearer to zero, so that bounds are not far beyond the data. This needs some hundred records over epsilon,
    times the number of columns and `rows_per_group`. With far fewer records, bounds are close to zero. The guarantee
    covers neither an error for values that are not finite nor the time that the call takes.

    Later steps clip the tails. Choose a `tail` that you can afford to clip.

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
    X, groups = in_parts(X, groups)
    numbers = counted.numbers(groups, X)
    rows, single = _columns(X)
    rows, _, members = counted.members(numbers, rows)
    middle = len(edges) // 2
    weights = tuple((-_PER_STEP * np.abs(np.arange(len(edges)) - middle)).tolist())
    plan = quantile_plan(BOUNDS, epsilon, delta, (level, _WHOLE - level), _WHOLE, rows.shape[1], weights, counted)

    session = ReleaseSession(
        plan, accountant=accountant, source=source, estimator="private_bounds", validate=row_check(rows, members)
    )
    rows, _ = counted.counted(source, members, rows)

    def cells(block: NDArray) -> NDArray:
        return np.searchsorted(edges[1:-1], block, side="right")

    counts = cell_counts(cells, rows, rows.shape[1], len(edges) - 1)
    low, high = session.release(BOUNDS, counts).astype(np.intp).T
    # The edges are at least one step apart.
    equal = low == high
    lower = edges[np.where(equal, np.maximum(low - 1, 0), low)]
    upper = edges[np.where(equal, np.minimum(high + 1, len(edges) - 1), high)]
    return (float(lower[0]), float(upper[0])) if single else (lower, upper)
