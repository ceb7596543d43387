"""Quantiles by ranks: counts on a public grid, levels of cuts, and errors of cuts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..accounting import Budget, PrivacyEvent
from ..mechanisms import Mechanism, quantile_mechanism
from ..release.estimates import combination
from ..release.session import Theorem
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
    low, high = ends[..., 0].T, ends[..., 1].T
    finer = np.linspace(low, np.maximum(high, low), _FINER, axis=2).reshape(len(edges), -1)
    return np.sort(np.hstack([edges, finer]), axis=1)


def rank_counts(edges: Array, values: NDArray) -> Array:
    """Return counts of values in parts of the cells, of shape (n_columns, n_parts)."""
    return spread_counts(counts_between(edges[:, 1:-1], values))


def counts_between(edges: Array, values: NDArray) -> Array:
    """Return counts of values below, between and above increasing edges, of shape (n_columns, n_edges + 1)."""

    def block(rows: NDArray) -> NDArray:
        found = []
        for own, column in zip(edges, rows.T, strict=True):
            # Missing values are sorted to the end. Values at an edge are above it.
            ordered = np.sort(column)
            present = np.searchsorted(ordered, np.inf, side="right")
            found.append(np.diff(np.searchsorted(ordered, own), prepend=0, append=present))
        return np.array(found)

    return sum_over_rows(block, values, block_rows=2**17).astype(np.float64)


def quantiles_at(
    budget: Budget, share: float, levels: tuple[int, ...], width: int, rows: int
) -> tuple[Mechanism, PrivacyEvent]:
    """Return the mechanism for quantiles of `width` columns at multiples of 1 / WHOLE."""
    return quantile_mechanism(*budget, share, levels, WHOLE, width, (), rows)


def as_values(edges: Array, parts: NDArray, numbers: Numbers) -> Array:
    """Return released quantiles in units of the columns, at multiples of a declared step."""
    places = np.arange(edges.shape[1])
    found = np.array([np.interp(own / PARTS, places, column) for own, column in zip(parts, edges, strict=True)])
    return at_steps(np.rint, found, numbers)


def as_ends(edges: Array, parts: NDArray, numbers: Numbers) -> Array:
    """Return the ends of the cells, and of the steps, of pairs of released quantiles of shape (..., n_columns, 2)."""
    rounded = np.stack([np.floor(parts[..., 0] / PARTS), np.ceil(parts[..., 1] / PARTS)], axis=-1).astype(np.intp)
    found = edges[np.arange(len(edges))[:, None], rounded]
    sides = [at_steps(function, found[..., side].T, numbers).T for side, function in enumerate((np.floor, np.ceil))]
    return np.stack(sides, axis=-1)


def at_steps(function: Callable[[Array], Array], values: Array, numbers: Numbers) -> Array:
    """Round values of shape (n_columns, ...) to multiples of declared steps."""
    for column, own in zip(numbers.scales, values, strict=False):
        if isinstance(column, Number) and column.step is not None:
            own[:] = np.clip(column.low + function((own - column.low) / column.step) * column.step, None, column.high)
    return values


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
        proved = self._proved(level, True)
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

    def interval(self, level: float, total: bool) -> tuple[Array, Array]:
        """Return both ends of the intervals."""
        ends = self._proved(level, total)
        return ends[..., 0].reshape(self.shape), ends[..., 1].reshape(self.shape)

    def _proved(self, level: float, total: bool) -> Array:
        """Return the ends, with the bound of the column in place of an end that may be on the wrong side."""
        ends = self.ends.copy()
        for i, j, side in np.ndindex(*ends.shape):
            q = float(self.q[i])
            law = combination(self.mechanism, rank_weights(q, int(self.places[i, j, side]), self.n_cells))
            needed = float(law.half_width(level, total * math.sqrt(self.n[j] * q * (1 - q))))
            if (2 * side - 1) * self.below[i, j, side] < needed:
                ends[i, j, side] = (self.least, self.most)[side][j]
        return ends
