"""Public grids between public bounds: evenly spaced, evenly in logarithms for one sign or both, or half of each.

`Bins` finds the bins of many values as :func:`numpy.searchsorted` does, by a table instead of a search.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..checks.params import check_bounds, check_choice, check_integer, check_positive, columns_of
from ..sensitivity import PARTS, cell_counts, spread_counts

Array = NDArray[np.float64]

SCALES = ("linear", "log", "symlog")

#: Largest number of cells of a column, and of all columns with codes together.
MOST_CELLS = 10**6

#: With "auto", values are distinguished down to this part of the largest bound.
_FINEST = 2.0**-24


@dataclass(frozen=True, eq=False)
class Grid:
    """Public cells between bounds, the same number for each column."""

    lower: Array
    upper: Array
    n_cells: int
    scale: str = "linear"
    unit: float = 1.0

    def __post_init__(self) -> None:
        if self.scale == "log" and not np.all(self.lower > 0):
            raise ValueError('bounds must be positive with scale="log"; scale="symlog" takes zero and both signs')

    def of(self, n_columns: int) -> Grid:
        """Return the grid with one lower and one upper bound for each of `n_columns` columns."""
        lower, upper = columns_of((self.lower, self.upper), "bounds", n_columns)
        return replace(self, lower=lower, upper=upper)

    @property
    def centre(self) -> Array:
        """Middles of the bounds."""
        return self.lower / 2 + self.upper / 2

    @property
    def half(self) -> Array:
        """Half widths of the bounds."""
        return self.upper / 2 - self.lower / 2

    def warp(self, values: Any) -> Any:
        """Map values to a scale on which cells are evenly spaced."""
        if self.scale == "log":
            return np.log(values)
        return np.arcsinh(values / self.unit) if self.scale == "symlog" else values

    def unwarp(self, values: Array) -> Array:
        if self.scale == "log":
            return np.exp(values)
        return np.sinh(values) * self.unit if self.scale == "symlog" else values

    @cached_property
    def _half_even(self) -> Array:
        """Edges for "auto", of shape (n_columns, n_cells + 1): half of them evenly spaced, half by logarithms."""
        n_log = self.n_cells // 2
        even = np.linspace(self.lower, self.upper, self.n_cells - n_log + 2, axis=1)
        unit = np.minimum(self.unit, _FINEST * np.maximum(np.abs(self.lower), np.abs(self.upper)))
        ends = np.arcsinh(self.lower / unit), np.arcsinh(self.upper / unit)
        logs = np.sinh(np.linspace(*ends, n_log + 1, axis=1)) * unit[:, None]
        inner = np.sort(np.hstack([even[:, 1:-1], logs[:, 1:-1]]), axis=1)
        return np.hstack([even[:, :1], np.clip(inner, even[:, :1], even[:, -1:]), even[:, -1:]])

    def cells(self, X: NDArray) -> NDArray[np.intp]:
        """Return the cell of each entry, of shape (n_rows, n_columns). Values beyond are in the outer cells."""
        if self.scale == "auto":
            pairs = zip(self._half_even[:, 1:-1], X.T, strict=True)
            return np.column_stack([np.searchsorted(edges, values, side="right") for edges, values in pairs])
        start, end = self.warp(self.lower), self.warp(self.upper)
        if self.scale != "linear":
            X = np.clip(np.asarray(X, dtype=np.float64), self.lower, self.upper)
        with np.errstate(over="ignore", under="ignore"):
            places = np.subtract(self.warp(X), start, dtype=np.float64)
            # Bounds may be so close that their logarithms are equal.
            places *= self.n_cells / np.maximum(end - start, 1e-300)
        np.maximum(places, 0.0, out=places)
        np.minimum(places, self.n_cells - 1, out=places)
        return places.astype(np.intp)

    def counts(self, X: NDArray, columns: NDArray[np.intp] | None = None) -> Array:
        """Count the records in the cells of all columns of `X`, or of some, of shape (n_columns, n_cells)."""
        every = slice(None) if columns is None else columns
        return cell_counts(lambda rows: self.cells(rows[:, every]), X, len(self.lower), self.n_cells)

    def shares(self, X: NDArray) -> Array:
        """Count shares of records in parts of the cells, of shape (n_columns, `n_cells` times `PARTS`)."""
        return spread_counts(self.counts(X))

    def positions(self, parts: NDArray) -> Array:
        """Return positions on the grid, in cells, from released positions in parts of cells."""
        return np.asarray(parts, dtype=np.float64) / PARTS

    def values(self, positions: NDArray) -> Array:
        """Return the values at positions on the grid, in cells, by column: of shape (n_columns, n_positions)."""
        if self.scale == "auto":
            places = np.arange(self.n_cells + 1)
            pairs = zip(positions, self._half_even, strict=True)
            return np.array([np.interp(own, places, edges) for own, edges in pairs])
        shares = np.asarray(positions, dtype=np.float64) / self.n_cells
        lower, upper = self.lower[:, None], self.upper[:, None]
        between = self.unwarp(self.warp(lower) * (1 - shares) + self.warp(upper) * shares)
        between = np.clip(between, lower, upper)
        ends = np.where(shares <= 0, lower, upper)
        return np.where((shares <= 0) | (shares >= 1), ends, between)

    def edges(self, positions: NDArray) -> Array:
        """Return the values at positions on the grid, between the bounds, which are the first and the last edge."""
        ends = np.ones((len(positions), 1))
        return self.values(np.hstack([0 * ends, positions, self.n_cells * ends]))

    def every_edge(self) -> Array:
        """Return the edges of all cells, of shape (n_columns, n_cells + 1)."""
        return self.values(np.broadcast_to(np.arange(self.n_cells + 1), (len(self.lower), self.n_cells + 1)))


def scaled(values: NDArray, centre: Array, half: Array, largest: float = 1.0) -> Array:
    """Return values with ``centre - half`` and ``centre + half`` mapped to -`largest` and `largest`, clipped there."""
    with np.errstate(over="ignore", under="ignore"):
        out: Array = values - centre
        out *= largest / half
    np.maximum(out, -largest, out=out)
    np.minimum(out, largest, out=out)
    return out


def check_grid(bounds: Any, n_cells: int, scale: object, unit: object, scales: tuple[str, ...] = SCALES) -> Grid:
    """Check the parameters of a grid, which `Grid.of` adapts to the number of columns."""
    lower, upper = check_bounds(bounds, "bounds", "the features")
    return Grid(lower, upper, n_cells, check_choice(scale, "scale", scales), check_positive(unit, "unit"))


def check_n_bins(value: object, most: int = MOST_CELLS) -> int:
    """Return the number of bins of numbers between bounds."""
    return check_integer(value, "n_bins", least=2, most=most)


#: Cells of the grid, for each edge.
_CELLS = 8

#: Largest number of edges in one cell. With more edges, a search is quicker than the table.
_MOST_IN_CELL = 4

#: Least number of values for which the table is quicker than a search.
_FEWEST = 1024

# Number of values that are looked up at once, so that they stay in the cache.
_BLOCK = 8192


class Bins:
    """Find the bins of values between finite inner edges, which increase or are equal."""

    # A value is mapped to a cell of an even grid by operations that never decrease. Edges in earlier cells are
    # therefore smaller than the value, and edges in later cells are larger. The value is compared with the edges in its
    # own cell only. The numbers equal those of a search, to the last bit, in a fifth of the time. With `right`, a value
    # that equals an edge is in the bin after it.

    def __init__(self, edges: Array, right: bool) -> None:
        self._edges = edges
        self._side: Literal["left", "right"] = "right" if right else "left"
        self._beyond = np.greater_equal if right else np.greater

    def __call__(self, values: NDArray) -> NDArray[np.intp]:
        """Return the number of each value's bin, from 0. Values must be finite."""
        table = self._table if len(values) >= _FEWEST else None
        if table is None:
            return np.searchsorted(self._edges, values, side=self._side)
        rate, before, compared = table
        bins = np.empty(len(values), dtype=np.intp)
        for start in range(0, len(values), _BLOCK):
            block, out = values[start : start + _BLOCK], bins[start : start + _BLOCK]
            places = np.empty(len(block))
            cells = self._cells(block, rate, len(before), places)
            before.take(cells, out=out, mode="clip")
            for edges in compared:
                out += self._beyond(block, edges.take(cells, out=places, mode="clip"))
        return bins

    def _cells(self, values: NDArray, rate: float, size: int, out: Array) -> NDArray[np.intp]:
        with np.errstate(all="ignore"):
            np.subtract(values, self._edges[0], out=out, dtype=np.float64)
            out *= rate
        np.maximum(out, 0.0, out=out)
        np.minimum(out, size - 1, out=out)
        return out.astype(np.intp)

    @cached_property
    def _table(self) -> tuple[float, NDArray[np.intp], list[Array]] | None:
        """Return the number of cells for a unit, and by cell the number of earlier edges, and its edges in order."""
        edges = self._edges
        if len(edges) == 0:
            return None
        size = 1 << (_CELLS * len(edges) - 1).bit_length()
        with np.errstate(all="ignore"):
            rate = float(size / (edges[-1] - edges[0]))
        if not 0 < rate < np.inf:
            return None
        counts = np.bincount(self._cells(edges, rate, size, np.empty(len(edges))), minlength=size)
        most = int(counts.max())
        if most > _MOST_IN_CELL:
            return None
        before = np.cumsum(counts) - counts
        extended = np.append(edges, np.full(most, np.inf))
        return rate, before, [np.where(counts > k, extended.take(before + k), np.inf) for k in range(most)]


def bin_names(edges: Array) -> list[str]:
    """Return the names of bins with these edges."""
    names = [f"{low:.6g} to {high:.6g}" for low, high in pairwise(edges)]
    # Values beyond the outer edges are counted there.
    if len(names) > 1:
        names[0], names[-1] = f"below {edges[1]:.6g}", f"{edges[-2]:.6g} and above"
    return names
