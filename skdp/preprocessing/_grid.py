"""Public grids between public bounds: evenly spaced, or evenly in logarithms, for one sign or both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._params import check_bounds, check_choice, check_positive, columns_of
from ..sensitivity import cell_counts

Array = NDArray[np.float64]

SCALES = ("linear", "log", "symlog")


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

    def counts(self, X: NDArray) -> Array:
        """Count the records in the cells, of shape (n_columns, n_cells); values beyond are in the outer cells."""
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
        shares = np.asarray(edges, dtype=np.float64) / self.n_cells
        lower, upper = self.lower[:, None], self.upper[:, None]
        between = self._unwarp(self._warp(lower) * (1 - shares) + self._warp(upper) * shares)
        between = np.clip(between, lower, upper)
        ends = np.where(shares <= 0, lower, upper)
        return np.where((shares <= 0) | (shares >= 1), ends, between)


@dataclass(frozen=True, eq=False)
class GridParameters:
    """Checked parameters of a grid, before the number of columns is known."""

    bounds: tuple[Array, Array]
    n_cells: int
    scale: str
    unit: float

    def grid(self, n_columns: int) -> Grid:
        return Grid(*columns_of(self.bounds, "bounds", n_columns), self.n_cells, self.scale, self.unit)


def check_grid(bounds: Any, n_cells: int, scale: object, unit: object) -> GridParameters:
    """Check the parameters of a grid."""
    checked = check_bounds(bounds, "bounds", "the features")
    scale = check_choice(scale, "scale", SCALES)
    if scale == "log" and not np.all(checked[0] > 0):
        raise ValueError('bounds must be positive with scale="log"; scale="symlog" takes zero and both signs')
    return GridParameters(checked, n_cells, scale, check_positive(unit, "unit"))
