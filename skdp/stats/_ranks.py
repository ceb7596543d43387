"""Quantiles by ranks: counts on a public grid, levels of cuts, and errors of cuts."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..accounting import Budget, PrivacyEvent
from ..mechanisms import Mechanism, quantile_mechanism
from ..release.laws import Law
from ..release.theorems import Theorem
from ..schema.declared import Number
from ..schema.grid import SCALES, check_grid
from ..sensitivity import PARTS, spread_counts, sum_over_rows
from ._call import Numbers

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
    lower, upper = edges[:, :1], edges[:, -1:]
    low, high = ends[..., 0].T, ends[..., 1].T
    beyond = np.maximum(high - low, 2.0**-30 * (upper - lower))
    starts, stops = np.maximum(low - beyond, lower), np.minimum(high + beyond, upper)
    finer = np.linspace(starts, stops, _FINER, axis=2).reshape(len(edges), -1)
    return np.sort(np.hstack([edges, finer]), axis=1)


def rank_counts(edges: Array, values: NDArray) -> Array:
    """Return counts of values in parts of the cells, of shape (n_columns, n_parts)."""

    def block(rows: NDArray) -> NDArray:
        found = []
        for own, column in zip(edges[:, 1:-1], rows.T, strict=True):
            # Missing values are sorted to the end. Values at an edge are above it.
            ordered = np.sort(column)
            present = np.searchsorted(ordered, np.inf, side="right")
            found.append(np.diff(np.searchsorted(ordered, own), prepend=0, append=present))
        return np.array(found)

    return spread_counts(sum_over_rows(block, values, block_rows=2**17).astype(np.float64))


def quantiles_at(
    budget: Budget, share: float, levels: tuple[int, ...], width: int, rows: int
) -> tuple[Mechanism, PrivacyEvent]:
    """Return the mechanism for quantiles of `width` columns at multiples of 1 / WHOLE."""
    return quantile_mechanism(*budget, share, levels, WHOLE, width, (), rows)


def as_values(edges: Array, parts: NDArray, numbers: Numbers) -> Array:
    """Return released quantiles in units of the columns, at multiples of a declared step."""
    places = np.arange(edges.shape[1])
    found = np.array([np.interp(own / PARTS, places, column) for own, column in zip(parts, edges, strict=True)])
    for column, own in zip(numbers.scales, found, strict=False):
        if isinstance(column, Number) and column.step is not None:
            own[:] = np.clip(column.low + np.rint((own - column.low) / column.step) * column.step, None, column.high)
    return found


def rank_scales(mechanism: Mechanism, levels: tuple[int, ...]) -> Array:
    """Return the scale of the noise of each quantile's rank, in records, for dense values."""
    # The exponent of a cut at level q decreases by epsilon / (2 max(q, 1 - q)) for each record, where q is relative to
    # the part that is cut. The errors of the ends of this part also contribute.
    ends, out = (0, *levels, WHOLE), np.zeros(len(levels))
    parts = [(0, len(levels), 0.0, 0.0)]
    while parts:
        first, last, below, above = parts.pop()
        if first < last:
            middle = (first + last) // 2
            low, high = ends[first], ends[last + 1]
            share = (ends[middle + 1] - low) / (high - low)
            own = 2 * max(share, 1 - share) * mechanism.scale
            out[middle] = math.hypot(own, (1 - share) * below, share * above)
            parts += [(first, middle, below, out[middle]), (middle + 1, last, out[middle], above)]
    return out


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Intervals of quantiles between two further released quantiles on either side of each."""

    value: Array  # Of shape (n_levels, n_columns).
    ends: Array  # Of shape (n_levels, n_columns, 2).
    scales: Array  # Scales of the noise of the ends' ranks, of shape (n_levels, 1, 2).
    sampled: Array  # Standard deviations of ranks under sampling, of shape (n_levels, n_columns).
    reach: Array  # Distances of the ends from the quantile in records, of the shape of `ends`.
    least: Array
    most: Array
    own: Array | None = None  # Scales of the noise of the quantiles' ranks, of shape (n_levels, 1).
    shape: tuple[int, ...] = (-1,)

    def about(self, value: Array, own: Array, shape: tuple[int, ...]) -> Neighbours:
        """Return the intervals of quantiles that were released afterwards, with these scales of their ranks."""
        ends = np.stack([np.minimum(self.ends[..., 0], value), np.maximum(self.ends[..., 1], value)], axis=2)
        return replace(self, value=value, ends=ends, own=own[:, None], shape=shape)

    def of_one(self, level: int, column: int) -> Neighbours:
        """Return the interval of one quantile of one column."""
        rows, columns = slice(level, level + 1), slice(column, column + 1)
        return Neighbours(
            self.value[rows, columns],
            self.ends[rows, columns],
            self.scales[rows],
            self.sampled[rows, columns],
            self.reach[rows, columns],
            self.least[columns],
            self.most[columns],
            None if self.own is None else self.own[rows],
            (),
        )

    def interval(self, level: float, total: bool) -> tuple[Array, Array]:
        """Return both ends of the intervals, in proportion to the distance in ranks."""
        scales, sampled = np.broadcast_arrays(self.scales, total * self.sampled[..., None])
        factors = rank_half_widths(scales, sampled, level) / np.maximum(self.reach, 1e-300)
        ends = self.value[..., None] + (self.ends - self.value[..., None]) * factors
        low, high = (np.clip(ends[..., side], self.least, self.most).reshape(self.shape) for side in (0, 1))
        return low, high

    @property
    def standard_error(self) -> Array:
        """Standard deviation of the noise of the quantiles alone, by the mean distance of values in ranks."""
        assert self.own is not None
        slope = (self.ends[..., 1] - self.ends[..., 0]) / np.maximum(self.reach.sum(axis=-1), 1e-300)
        return math.sqrt(2) * self.own * slope


def rank_half_widths(scales: Array, sampled: Array, level: float) -> Array:
    """Return the error of a rank, in records, that is exceeded with probability at most 1 - `level`."""
    flat = zip(np.ravel(scales).tolist(), np.ravel(sampled).tolist(), strict=True)
    found = [Law(parts=((scale, 1.0),) if scale else ()).half_width(level, normal) for scale, normal in flat]
    return np.reshape(np.array(found, dtype=np.float64), np.shape(scales))
