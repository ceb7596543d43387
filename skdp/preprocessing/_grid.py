"""Public grids between public bounds: evenly spaced, evenly in logarithms for one sign or both, or half of each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..checks.params import check_bounds, check_choice, check_positive, columns_of
from ..sensitivity import PARTS, cell_counts, spread_counts

Array = NDArray[np.float64]

SCALES = ("linear", "log", "symlog")

#: With "auto", values are told apart down to this share of the largest bound.
_FINEST = 2.0**-24


@dataclass(frozen=True, eq=False)
class Grid:
    """Cells between bounds, the same number for each column. All of it is public."""

    lower: Array
    upper: Array
    n_cells: int
    scale: str
    unit: float

    def _warp(self, values: Any) -> Any:
        """Map values to where cells are evenly spaced."""
        if self.scale == "log":
            return np.log(values)
        return np.arcsinh(values / self.unit) if self.scale == "symlog" else values

    def _unwarp(self, values: Array) -> Array:
        if self.scale == "log":
            return np.exp(values)
        return np.sinh(values) * self.unit if self.scale == "symlog" else values

    @cached_property
    def _edges(self) -> Array:
        """Edges for "auto", of shape (n_columns, n_cells + 1): half of them evenly spaced, half by logarithms."""
        n_log = self.n_cells // 2
        even = np.linspace(self.lower, self.upper, self.n_cells - n_log + 2, axis=1)
        unit = np.minimum(self.unit, _FINEST * np.maximum(np.abs(self.lower), np.abs(self.upper)))
        ends = np.arcsinh(self.lower / unit), np.arcsinh(self.upper / unit)
        logs = np.sinh(np.linspace(*ends, n_log + 1, axis=1)) * unit[:, None]
        inner = np.sort(np.hstack([even[:, 1:-1], logs[:, 1:-1]]), axis=1)
        return np.hstack([even[:, :1], np.clip(inner, even[:, :1], even[:, -1:]), even[:, -1:]])

    def counts(self, X: NDArray) -> Array:
        """Count the records in the cells, of shape (n_columns, n_cells); values beyond are in the outer cells."""
        if self.scale == "auto":
            inner = self._edges[:, 1:-1]

            def cells(rows: NDArray) -> NDArray:
                pairs = zip(inner, rows.T, strict=True)
                return np.column_stack([np.searchsorted(edges, values, side="right") for edges, values in pairs])

            return cell_counts(cells, X, len(self.lower), self.n_cells)
        start, end = self._warp(self.lower), self._warp(self.upper)
        # Bounds may be so close that their logarithms are equal.
        rate = self.n_cells / np.maximum(end - start, 1e-300)

        def places(rows: NDArray) -> NDArray:
            inside = np.clip(np.asarray(rows, dtype=np.float64), self.lower, self.upper)
            places: NDArray = (self._warp(inside) - start) * rate
            return places

        return cell_counts(places, X, len(self.lower), self.n_cells)

    def values(self, edges: NDArray) -> Array:
        """Return the values at positions on the grid, given by column: of shape (n_columns, n_edges)."""
        if self.scale == "auto":
            places = np.arange(self.n_cells + 1)
            return np.array([np.interp(own, places, all_) for own, all_ in zip(edges, self._edges, strict=True)])
        shares = np.asarray(edges, dtype=np.float64) / self.n_cells
        lower, upper = self.lower[:, None], self.upper[:, None]
        between = self._unwarp(self._warp(lower) * (1 - shares) + self._warp(upper) * shares)
        between = np.clip(between, lower, upper)
        ends = np.where(shares <= 0, lower, upper)
        return np.where((shares <= 0) | (shares >= 1), ends, between)

    def shares(self, X: NDArray) -> Array:
        """Count shares of records in parts of the cells, of shape (n_columns, `n_cells` times `PARTS`)."""
        return spread_counts(self.counts(X))

    def positions(self, parts: NDArray) -> Array:
        """Return positions on the grid, in cells, from released positions in parts of cells."""
        return np.asarray(parts, dtype=np.float64) / PARTS


@dataclass(frozen=True, eq=False)
class GridParameters:
    """Checked parameters of a grid, before the number of columns is known."""

    bounds: tuple[Array, Array]
    n_cells: int
    scale: str
    unit: float

    def grid(self, n_columns: int) -> Grid:
        return Grid(*columns_of(self.bounds, "bounds", n_columns), self.n_cells, self.scale, self.unit)


def check_grid(
    bounds: Any, n_cells: int, scale: object, unit: object, scales: tuple[str, ...] = SCALES
) -> GridParameters:
    """Check the parameters of a grid."""
    checked = check_bounds(bounds, "bounds", "the features")
    scale = check_choice(scale, "scale", scales)
    if scale == "log" and not np.all(checked[0] > 0):
        raise ValueError('bounds must be positive with scale="log"; scale="symlog" takes zero and both signs')
    return GridParameters(checked, n_cells, scale, check_positive(unit, "unit"))
