"""Quantiles with intervals, and private ranges, by ranks: counts on a public grid, levels of cuts, errors of cuts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..accounting import Budget, PrivacyEvent
from ..checks.params import check_boolean, real_numbers
from ..mechanisms import Mechanism, quantile_mechanism
from ..parts.arrays import count_rows
from ..release.counts import LACKING, NOT_RELEASED, ONLY_BEYOND, Part, excess_of, warn_of_mismatch
from ..release.estimates import Estimate, check_level, combination
from ..release.session import PrivacyGuarantee, Release, ReleaseSession, Reserved, Theorem
from ..schema.declared import SCALES, Number, check_grid
from ..sensitivity import PARTS, spread_counts, sum_over_rows
from ._call import COUNTS, Call, Numbers, Sensitivity, numbers_of, quietest, statistic, with_and_without_delta

Array = NDArray[np.float64]

THEOREM = Theorem("Preprocessing", 2)

#: Levels of quantiles are multiples of one over this number.
WHOLE = 2**20

# Number of cells of a column, and of further edges around the interval of each quantile.
_CELLS, _FINER = 2**13, 2**12


def edges_of(numbers: Numbers, n_cells: int = _CELLS) -> Array:
    """Return edges of cells, of shape (n_columns, n_cells + 1), half spaced evenly and half evenly in logarithms."""
    steps = [float(column.step or 1) for column in numbers.scales if isinstance(column, Number)]
    grid = check_grid((numbers.lower, numbers.upper), n_cells, "auto", min(steps, default=1.0), (*SCALES, "auto"))
    return grid.every_edge()


def refined(edges: Array, ends: Array) -> Array:
    """Return the edges with further edges around released intervals, which have the shape (n_levels, n_columns, 2)."""
    low, high = ends[..., 0].T, ends[..., 1].T
    finer = np.linspace(low, np.maximum(high, low), _FINER, axis=2).reshape(len(edges), -1)
    return np.sort(np.hstack([edges, finer]), axis=1)


def rank_counts(edges: Array, values: NDArray) -> Array:
    """Return counts of values in parts of the cells, of shape (n_columns, n_parts)."""
    return spread_counts(counts_between(edges[:, 1:-1], values))


def counts_between(edges: Array, values: NDArray) -> Array:
    """Return counts of values below, between and above increasing edges, of shape (n_columns, n_edges + 1)."""

    def block(rows: NDArray) -> NDArray:
        counts = []
        for cuts, column in zip(edges, rows.T, strict=True):
            # Missing values are sorted to the end. Values at an edge are above it.
            ordered = np.sort(column)
            present = np.searchsorted(ordered, np.inf, side="right")
            counts.append(np.diff(np.searchsorted(ordered, cuts), prepend=0, append=present))
        return np.array(counts)

    return sum_over_rows(block, values, block_rows=2**17).astype(np.float64)


def quantiles_at(
    budget: Budget, share: float, levels: tuple[int, ...], width: int, rows: int
) -> tuple[Mechanism, PrivacyEvent]:
    """Return the mechanism for quantiles of `width` columns at multiples of 1 / WHOLE."""
    return quantile_mechanism(*budget, share, levels, WHOLE, width, (), rows)


def as_values(edges: Array, parts: NDArray, numbers: Numbers) -> Array:
    """Return released quantiles in units of the columns, at multiples of a declared step."""
    positions = np.arange(edges.shape[1])
    columns = zip(parts / PARTS, edges, strict=True)
    return at_steps(
        np.rint, np.array([np.interp(released, positions, column_edges) for released, column_edges in columns]), numbers
    )


def as_ends(edges: Array, parts: NDArray, numbers: Numbers) -> Array:
    """Return the ends of the cells, and of the steps, of pairs of released quantiles of shape (..., n_columns, 2)."""
    rounded = np.stack([np.floor(parts[..., 0] / PARTS), np.ceil(parts[..., 1] / PARTS)], axis=-1).astype(np.intp)
    ends = edges[np.arange(len(edges))[:, None], rounded]
    sides = [at_steps(function, ends[..., side].T, numbers).T for side, function in enumerate((np.floor, np.ceil))]
    return np.stack(sides, axis=-1)


def at_steps(function: Callable[[Array], Array], values: Array, numbers: Numbers) -> Array:
    """Round values of shape (n_columns, ...) to multiples of declared steps."""
    for j, column in enumerate(numbers.scales):
        if isinstance(column, Number) and column.step is not None:
            steps = function((values[j] - column.low) / column.step)
            values[j] = np.clip(column.low + steps * column.step, None, column.high)
    return values


def rank_scales(mechanism: Mechanism, levels: tuple[int, ...]) -> Array:
    """Return the scale of the noise of each quantile's rank, in records, for dense values."""
    # The exponent of a cut at level q decreases by epsilon / (2 max(q, 1 - q)) for each record, where q is relative to
    # the part that is cut. The errors of the ends of this part also contribute.
    ends, out = (0, *levels, WHOLE), np.zeros(len(levels))
    pieces = [(0, len(levels), 0.0, 0.0)]
    while pieces:
        first, last, below, above = pieces.pop()
        if first < last:
            middle = (first + last) // 2
            low, high = ends[first], ends[last + 1]
            share = (ends[middle + 1] - low) / (high - low)
            noise = 2 * max(share, 1 - share) * mechanism.scale
            out[middle] = math.hypot(noise, (1 - share) * below, share * above)
            pieces += [(first, middle, below, out[middle]), (middle + 1, last, out[middle], above)]
    return out


def rank_weights(q: float, n_below: int, n_cells: int) -> Array:
    """Return the weights of counts whose sum is the number of records below an edge less q times that of all."""
    return np.where(np.arange(n_cells) < n_below, 1 - q, -q)


@dataclass(frozen=True, eq=False)
class Enclosures:
    """Intervals of quantiles between two released ends of each. The ranks of the ends are released with noise."""

    q: Array  # Levels of the quantiles.
    ends: Array  # Of shape (n_levels, n_columns, 2), as the three arrays below.
    below: Array  # Noisy number of records below each end, less q times that of all records.
    places: NDArray[np.intp]  # Number of the cells below each end.
    reach: Array  # Distance of the ends from the quantile in ranks.
    mechanism: Mechanism  # Of the counts in cells.
    n_cells: int
    n: Array  # Noisy numbers of records of the columns.
    least: Array
    most: Array
    standard_error: Any = None
    shape: tuple[int, ...] = (-1,)

    def about(self, value: Array, scales: Array, steps: Array, level: float) -> Enclosures:
        """Return the intervals of quantiles that were released afterwards, with these scales of their ranks."""
        proved = self._proved(level, 1)
        far = self.n[:, None] * np.stack([self.q, 1 - self.q], axis=1)[:, None]
        reach = np.where(proved == self.ends, np.minimum(self.reach, far), far).sum(axis=2)
        error = math.sqrt(2) * scales[:, None] * (proved[..., 1] - proved[..., 0]) / np.maximum(reach, 1e-300)
        ends = np.stack([np.minimum(self.ends[..., 0], value), np.maximum(self.ends[..., 1], value)], axis=2)
        # Rounding to a declared step adds to the error.
        return replace(self, ends=ends, standard_error=np.hypot(error, steps / math.sqrt(12)), shape=value.shape)

    def of_one(self, i: int, j: int) -> Enclosures:
        """Return the interval of one quantile of one column."""
        names = ("ends", "below", "places", "reach")
        arrays = {name: getattr(self, name)[i : i + 1, j : j + 1] for name in names}
        of_column = {name: getattr(self, name)[j : j + 1] for name in ("n", "least", "most")}
        return replace(self, q=self.q[i : i + 1], standard_error=None, shape=(), **arrays, **of_column)

    def interval(self, level: float, rows: int) -> tuple[Array, Array]:
        """Return both ends of the intervals."""
        ends = self._proved(level, rows)
        return ends[..., 0].reshape(self.shape), ends[..., 1].reshape(self.shape)

    def _proved(self, level: float, rows: int) -> Array:
        """Return the ends, with the bound of the column in place of an end that may be on the wrong side."""
        ends = self.ends.copy()
        for i, j, side in np.ndindex(*ends.shape):
            q = float(self.q[i])
            law = combination(self.mechanism, rank_weights(q, int(self.places[i, j, side]), self.n_cells))
            needed = float(law.half_width(level, math.sqrt(rows * (self.n[j] * q * (1 - q)))))
            if (2 * side - 1) * self.below[i, j, side] < needed:
                ends[i, j, side] = (self.least, self.most)[side][j]
        return ends


# Share of the budget for the number of records, and parts of the rest for the ends of intervals and their ranks.
OF_COUNT, _OF_ENDS, _OF_RANKS = 0.02, 0.11, 0.06

_QUANTILES, _ENDS, _RANKS, RECORDS = "quantiles", "ends of intervals", "ranks of the ends", "number of records"

# Distance of an end from the least sufficient rank, in units of its noise, so that 1 % of Laplace variables are larger.
_FURTHER = 4.0

# Largest distance of an end, as a part of the records on its side of the quantile.
_FARTHEST = 0.75

_OF_RANGE_COUNT = 0.04

# A range leaves out about 36 records at each end, divided by the epsilon of a cut. The exponent is then 18 at the last
# records, so that the thousands of edges beyond are hardly ever drawn. At least half a record is left out, and at most
# this part of all records.
_LEFT_OUT, _MOST_LEFT_OUT = 36.0, 0.3

_CELLS_OF_RANGE = 2**10

# Numbers of a column are named as missing if a smaller part of its entries is present.
_LEAST_PRESENT = 1 / 9


def count_mechanism(budget: Budget, share: float, numbers: Numbers, rows: int) -> tuple[Mechanism, PrivacyEvent]:
    """Return the mechanism for what `released_numbers` releases, where each record counts once in all columns."""
    moves = Sensitivity.of_counts(numbers.width, (2 + numbers.may_lack) * numbers.width)
    return quietest(budget, share, moves, rows)


def single(
    call: Call, label: str, moves: Sensitivity, theorem: Theorem, numbers: Numbers | None = None
) -> tuple[Mechanism, PrivacyGuarantee]:
    """Return the mechanism with the least noise for one release, and the plan.

    A part of the budget is left for `released_numbers` if `numbers` are given.
    """
    share, rows = 1.0 if numbers is None else 1 - OF_COUNT, call.unit.rows

    def build(budget: Budget) -> Any:
        return budget, *quietest(budget, share, moves, rows)

    budget, mechanism, event = with_and_without_delta(
        call.budget, build, lambda design: combination(design[1], 1.0).variance
    )
    parts, events = [(label, mechanism, share, theorem)], [event]
    if numbers is not None:
        of_count, event = count_mechanism(budget, OF_COUNT, numbers, rows)
        parts, events = [*parts, (RECORDS, of_count, OF_COUNT, COUNTS)], [*events, event]
    return mechanism, call.plan(budget, *parts, events=events)


def counted(numbers: Numbers, values: NDArray) -> Array:
    """Count the records, or the values of each column if values may be missing."""
    if not numbers.may_lack:
        return np.array([float(count_rows(values))])
    return sum_over_rows(_present, values, block_rows=2**16).astype(np.float64)


def released_numbers(session: ReleaseSession, numbers: Numbers, values: NDArray, others: Sequence[Part] = ()) -> Array:
    """Release how many numbers of each column are within the bounds, beyond them, and missing, for warnings.

    Return the numbers of values of each column, or of records if none can be missing.
    """
    lower, upper, n_states = numbers.lower, numbers.upper, 2 + numbers.may_lack

    def block(rows: NDArray) -> NDArray:
        counts = []
        for column, low, high in zip(rows.T, lower, upper, strict=True):
            beyond = np.count_nonzero(column < low) + np.count_nonzero(column > high)
            missing = np.count_nonzero(np.isnan(column)) if n_states > 2 else 0
            counts.append((len(column) - beyond - missing, beyond, missing)[:n_states])
        return np.array(counts, dtype=np.int64).T

    exact = sum_over_rows(block, values, block_rows=2**16).astype(np.float64)
    mechanism = session.mechanism(RECORDS)
    released = session.release(RECORDS, exact.ravel()).reshape(exact.shape)
    variance = combination(mechanism, 1.0).variance
    parts = [*others]
    for name, within, beyond, *missing in zip(numbers.names, *released.tolist(), strict=True):
        present = within + beyond, 2 * variance
        excess = excess_of((beyond, variance), (within, variance), NOT_RELEASED, 0.5)
        parts.append(Part(name, ONLY_BEYOND, *excess, law=combination(mechanism, (0.5, 0.5))))
        for n in missing:
            part = Part.of(name, LACKING, present, (n, variance), NOT_RELEASED, _LEAST_PRESENT)
            # The number of missing values has the weight 1/9, and both others have the weight -8/9.
            weights = 1 - _LEAST_PRESENT, 1 - _LEAST_PRESENT, _LEAST_PRESENT
            parts.append(replace(part, law=combination(mechanism, weights)))
    warn_of_mismatch(parts, labels=None)
    n = released[:2].sum(axis=0)
    return n if numbers.may_lack else n.mean(keepdims=True)


def _present(values: NDArray) -> NDArray[np.intp]:
    return np.array([np.count_nonzero(~np.isnan(column)) for column in values.T])


@statistic()
def quantile(call: Call, q: Any, *, interval: bool = True, level: float = 0.95) -> Estimate:
    r"""Estimate quantiles of columns.

    Parameters
    ----------
    q : float or array-like of float
        Levels of the quantiles, between 0 and 1, in increasing order.
    interval : bool, default=True
        Whether to spend 17 % of the budget on intervals. If False, the quantiles get this part, and the result has no
        standard error and no interval.
    level : float, default=0.95
        Level of the intervals. At a higher level, an interval may end at a bound.

    Returns
    -------
    estimate : Estimate
        Quantiles of shape (n_levels, n_columns). For a single level, there is no first axis, and for a single column,
        there is no second axis. If a column has a declared step, its quantiles are multiples of the step.

    Notes
    -----
    **Privacy.** Quantiles are drawn by the exponential mechanism on a public grid of 8,192 cells (:ref:`preprocessing,
    theorem 2 <preprocessing-theorem-2>`). First, the numbers of values of each column that are within the bounds,
    beyond them and missing are released (:ref:`statistics, theorem 2 <statistics-theorem-2>`) for 2 % of the budget. A
    warning names a column if they show that most are beyond or missing. For intervals, further quantiles are released
    at levels that depend on the number of records, which are the ends of the intervals, and the numbers of records
    between them. The grid is made finer between the ends. The shares of the budget are public.

    References
    ----------
    .. [1] H. Kaplan, S. Schnapp and U. Stemmer, "Differentially Private Approximate Quantiles", ICML 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import stats
    >>> found = stats.quantile(
    ...     np.arange(10_000) / 100, [0.25, 0.5], bounds=(0, 1000), random_state=0
    ... )
    >>> found.value.round().tolist()
    [25.0, 50.0]
    """
    return _quantiles(call, q, interval, level)


def _quantiles(call: Call, q: Any, interval: bool, level: float) -> Estimate:
    """Release quantiles, and further ones for their intervals."""
    levels = _levels(q)
    level, interval = check_level(level), check_boolean(interval, "interval")
    numbers = numbers_of(call)
    sought = tuple(np.ravel(levels).tolist())
    rows, width = call.unit.rows, numbers.width

    share = 1 - OF_COUNT

    def build(budget: Budget) -> Any:
        if interval:
            parts, events = quantile_parts(budget, share, sought, width, rows)
        else:
            mechanism, event = quantiles_at(budget, share, sought, width, rows)
            parts, events = [(_QUANTILES, mechanism, share, THEOREM)], [event]
        mechanism, event = count_mechanism(budget, OF_COUNT, numbers, rows)
        return budget, [*parts, (RECORDS, mechanism, OF_COUNT, COUNTS)], [*events, event]

    budget, parts, events = with_and_without_delta(call.budget, build, lambda design: design[1][0][1].scale)
    session, values = call.open(plan := call.plan(budget, *parts, events=events), numbers.values)
    shape, spread = np.shape(levels) + (() if numbers.single else (width,)), None
    value: Any
    error: Any
    n = np.maximum(released_numbers(session, numbers, values), 1.0)
    if interval:
        value, spread = enclosed_quantiles(session, budget, share, rows, numbers, level, sought, n, values)
        spread = replace(spread, shape=shape)
        value, error = value.reshape(shape), spread.standard_error.reshape(shape)
    else:
        edges = edges_of(numbers)
        value = as_values(edges, session.release(_QUANTILES, rank_counts(edges, values)), numbers).T.reshape(shape)
        error = np.full(shape, np.nan)
    if not shape:
        value, error = float(value), float(error)
    return Estimate(value, error, plan, numbers.names, {"q": np.asarray(levels) / WHOLE}, spread)


@statistic()
def median(call: Call, *, interval: bool = True, level: float = 0.95) -> Estimate:
    """Estimate medians of columns.

    Parameters
    ----------
    interval : bool, default=True
        Whether to spend 17 % of the budget on intervals.
    level : float, default=0.95
        Level of the intervals. At a higher level, an interval may end at a bound.

    Returns
    -------
    estimate : Estimate
        One number for each column.

    Notes
    -----
    **Privacy.** The releases are those of :func:`quantile` at level 0.5.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import stats
    >>> round(
    ...     stats.median(
    ...         np.arange(10_000) / 100, bounds=(0, 1000), random_state=0
    ...     ).value
    ... )
    50
    """
    return _quantiles(call, 0.5, interval, level)


def _levels(q: Any) -> NDArray[np.intp]:
    """Return levels as multiples of 1 / WHOLE."""
    array = real_numbers(q)
    if array is None or array.ndim > 1 or not array.size or not np.all((array > 1e-5) & (array < 1 - 1e-5)):
        raise ValueError("q must be a number or a sequence of numbers between 0.00001 and 0.99999")
    if np.any(np.diff(np.ravel(array)) < 1e-5):
        raise ValueError("q must increase, by 0.00001 or more")
    return np.rint(array * WHOLE).astype(np.intp)


def quantile_parts(
    budget: Budget, share: float, levels: tuple[int, ...], width: int, rows: int
) -> tuple[list[tuple[str, Any, float, Theorem]], list[PrivacyEvent]]:
    """Return the plan of quantiles, of the ends of their intervals (whose levels are found later), and their ranks."""
    of_ends, of_ranks = share * _OF_ENDS, share * _OF_RANKS
    main = share - of_ends - of_ranks
    moves = Sensitivity.of_counts(width, width * (2 * len(levels) + 1))
    quantiles, first = quantiles_at(budget, main, levels, width, rows)
    second = quantiles_at(budget, of_ends, levels, width, rows)[1]
    ranks, third = quietest(budget, of_ranks, moves, rows)
    parts = [
        (_QUANTILES, quantiles, main, THEOREM),
        (_ENDS, Reserved(second), of_ends, THEOREM),  # type: ignore[arg-type]
        (_RANKS, ranks, of_ranks, COUNTS),
    ]
    return parts, [first, second, third]


def enclosed_quantiles(
    session: ReleaseSession,
    budget: Budget,
    share: float,
    rows: int,
    numbers: Numbers,
    level: float,
    levels: tuple[int, ...],
    n: Array,
    values: NDArray,
    compared: list[Part] | None = None,
) -> tuple[Array, Enclosures]:
    """Release quantiles of shape (n_levels, n_columns), between two quantiles around each with their ranks.

    If an end is a bound, its rank shows how many numbers are beyond, which is added to `compared`.
    """
    scales, of_ends = rank_scales(session.mechanism(_QUANTILES), levels), share * _OF_ENDS
    q = np.array(levels) / WHOLE
    least, width, of_ranks = float(n.min()), numbers.width, session.mechanism(_RANKS)
    n_cells, sides = 2 * len(q) + 1, (0, 1)
    needed = np.array(
        [
            [
                float(law.half_width(level, math.sqrt(rows * (least * one * (1 - one)))))
                for law in (combination(of_ranks, rank_weights(one, 2 * i + side + 1, n_cells)) for side in sides)
            ]
            for i, one in enumerate(q.tolist())
        ]
    )
    noise = np.full((len(q), 2), 2 * quantiles_at(budget, of_ends, (1, 2), width, rows)[0].scale)
    # The distance of the ends depends on the noise of the cuts, which depends on the levels of the ends.
    wanted, places, mechanism, event = (None,) * 4  # type: Any, Any, Any, Any
    for _ in range(3):
        # An end that is nearer than wanted may still be proved to be on the right side.
        wanted = np.minimum(needed + _FURTHER * noise, _FARTHEST * least * np.stack([q, 1 - q], axis=1))
        at = np.rint((q[:, None] + np.array([-1, 1]) * wanted / least) * WHOLE)
        sought, places = np.unique(np.clip(at, 1, WHOLE - 1).astype(np.intp), return_inverse=True)
        mechanism, event = quantiles_at(budget, of_ends, tuple(sought.tolist()), width, rows)
        noise = rank_scales(mechanism, tuple(sought.tolist()))[places].reshape(noise.shape)
    session.refine(_ENDS, [Release(_ENDS, mechanism, of_ends, THEOREM)], [event])
    edges = edges_of(numbers)
    released = session.release(_ENDS, rank_counts(edges, values))
    ends = as_ends(edges, released[:, places.ravel()].reshape(width, len(q), 2).transpose(1, 0, 2), numbers)
    # Values at the upper end are counted below it if they are multiples of a step.
    steps = np.array([getattr(column, "step", None) or 0.0 for column in numbers.scales] or [0.0] * width)
    cuts = ends + np.array([-0.5, 0.5]) * steps[:, None]
    # A number at a bound is within the bounds.
    cuts[..., 0] = np.maximum(cuts[..., 0], numbers.lower)
    cuts[..., 1] = np.where(ends[..., 1] >= numbers.upper, np.nextafter(numbers.upper, np.inf), cuts[..., 1])
    cuts = cuts.transpose(1, 0, 2).reshape(width, -1)
    ordered = np.sort(cuts, axis=1)
    counts = session.release(_RANKS, counts_between(ordered, values).ravel()).reshape(width, n_cells)
    if compared is not None:
        compared += _parts_beyond(numbers, ordered, counts, of_ranks)
    order = np.argsort(np.argsort(cuts, axis=1, kind="stable"), axis=1) + 1
    ranks = np.take_along_axis(np.cumsum(counts, axis=1), order - 1, axis=1).reshape(width, len(q), 2)
    below = ranks.transpose(1, 0, 2) - (q[:, None] * counts.sum(axis=1))[..., None]
    # In a column with more records than the smallest column, the ends are farther away in ranks.
    reach = wanted[:, None, :] * (n / least)[:, None]
    spread = Enclosures(
        q, ends, below, order.reshape(width, len(q), 2).transpose(1, 0, 2), reach * np.ones((1, width, 1)),
        of_ranks, n_cells, np.broadcast_to(n, width), numbers.lower, numbers.upper,
    )  # fmt: skip
    edges = refined(edges, ends)
    quantiles = as_values(edges, session.release(_QUANTILES, rank_counts(edges, values)), numbers).T
    return quantiles, spread.about(quantiles, scales, steps, level)


def _parts_beyond(numbers: Numbers, cuts: Array, counts: Array, mechanism: Mechanism) -> list[Part]:
    """Compare the numbers of values beyond the bounds with those within, if cuts separate them."""
    ends = np.pad(cuts, ((0, 0), (1, 1)), constant_values=(-np.inf, np.inf))
    left, right = ends[:, :-1], ends[:, 1:]
    is_beyond = (right <= numbers.lower[:, None]) | (left > numbers.upper[:, None])
    weights = np.where(left == right, 0.0, np.where(is_beyond, 0.5, -0.5))
    parts = []
    for j in np.flatnonzero(is_beyond.any(axis=1)).tolist():
        law = combination(mechanism, weights[j])
        excess = float(weights[j] @ counts[j])
        parts.append(Part(numbers.names[j], ONLY_BEYOND, excess, math.sqrt(law.variance), law=law))
    return parts


@statistic()
def min_max(call: Call) -> Estimate:
    r"""Estimate the range of columns by two quantiles that leave out few records on either side.

    The smallest and the largest value of a column belong to single records. Therefore no private method releases them.
    The share of records that the range leaves out on either side is as small as the noise permits. It is part of the
    result.

    Parameters
    ----------
    X : array-like or table
        Numbers between `bounds`, or a table with the columns of `schema`. Bounds may be much wider than the data.

    Returns
    -------
    estimate : Estimate
        Lower and upper ends, of shape (2,) or (2, n_columns). ``details["tail"]`` is the share of records beyond each
        end. There is no interval.

    See Also
    --------
    skdp.preprocessing.private_bounds : Bounds of columns without public bounds.

    Notes
    -----
    **Privacy.** The numbers of values within the bounds, beyond them and missing are released for 4 % of the budget
    (:ref:`statistics, theorem 2 <statistics-theorem-2>`). They determine the levels of the two quantiles, which are
    drawn by the exponential mechanism (:ref:`preprocessing, theorem 2 <preprocessing-theorem-2>`), and a warning names
    a column if most are beyond or missing.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import stats
    >>> low, high = stats.min_max(
    ...     np.arange(10_000) / 100, bounds=(0, 1e6), random_state=0
    ... ).value
    >>> round(low), round(high)
    (1, 100)
    """
    numbers = numbers_of(call)
    share, rows = 1 - _OF_RANGE_COUNT, call.unit.rows

    def build(budget: Budget) -> Any:
        of_range = quantiles_at(budget, share, (1, WHOLE - 1), numbers.width, rows)
        return budget, count_mechanism(budget, _OF_RANGE_COUNT, numbers, rows), *of_range

    budget, of_count, mechanism, event = with_and_without_delta(call.budget, build, lambda design: design[2].scale)
    parts = [(RECORDS, of_count[0], _OF_RANGE_COUNT, COUNTS), ("range", Reserved(event), share, THEOREM)]
    plan = call.plan(budget, *parts, events=[of_count[1], event])
    session, values = call.open(plan, numbers.values)
    n = float(np.min(released_numbers(session, numbers, values)))
    # The noise is the same for all levels.
    epsilon = 1 / mechanism.scale if mechanism.scale else math.inf
    tail = min(max(_LEFT_OUT / (epsilon * max(n, 1.0)), 0.5 / max(n, 2.0), 1e-5), _MOST_LEFT_OUT)
    level = max(1, round(tail * WHOLE))
    mechanism = quantiles_at(budget, share, (level, WHOLE - level), numbers.width, rows)[0]
    session.refine("range", [Release("range", mechanism, share, THEOREM)], [event])
    edges = edges_of(numbers, _CELLS_OF_RANGE)
    ends = as_values(edges, session.release("range", rank_counts(edges, values)), numbers).T
    value = ends[:, 0] if numbers.single else ends
    details = {"tail": level / WHOLE, "count": n}
    return Estimate(value, np.full(value.shape, np.nan), plan, numbers.names, details)
