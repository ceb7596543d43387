"""The columns of a data set, as far as they are public, and how a record is read by them.

A column is categorical, binned or Gaussian. The first two put each record into one cell of a table; the third is scaled
into [-1, 1]. Each record is read by itself, so that neighbouring data sets stay neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..checks.params import check_bounds, check_integer, increasing_edges
from ..release.class_sums import scaled
from .bins import Bins
from .names import bounds_of_columns, check_n_categories, column_name, named_columns, positions_of

Array = NDArray[np.float64]

NUMERIC = ("binned", "gaussian")

_MOST_CELLS = 10**6


@dataclass(frozen=True)
class Parameters:
    """Checked parameters that say what the columns are; columns are still named as the user named them."""

    categorical: tuple[Any, ...]
    n_categories: tuple[int, ...]
    edges: tuple[tuple[Any, Array], ...]
    numeric: str
    n_bins: int
    bounds: tuple[Array, Array] | None
    mask_length: int | None


@dataclass(frozen=True, eq=False)
class Columns:
    """The kind of each column, by position; all of it is public."""

    # Tables are listed in this order: categorical columns, columns with equal bins, columns with bins of their own.

    n_features: int
    categorical: NDArray[np.intp]
    n_categories: NDArray[np.intp]
    equal: NDArray[np.intp]
    n_bins: int
    uneven: NDArray[np.intp]
    edges: tuple[Array, ...]
    gaussian: NDArray[np.intp]
    lower: Array
    upper: Array

    @property
    def tables(self) -> NDArray[np.intp]:
        """The columns that have tables."""
        return np.concatenate([self.categorical, self.equal, self.uneven])

    @property
    def sizes(self) -> NDArray[np.intp]:
        """Cells of each table. A categorical column has one more, for values that are no category."""
        bins = [len(edges) - 1 for edges in self.edges]
        return np.concatenate([self.n_categories + 1, [self.n_bins] * len(self.equal), bins]).astype(np.intp)

    @property
    def centre(self) -> Array:
        """Centres of the Gaussian columns' bounds."""
        return self.lower[self.gaussian] / 2 + self.upper[self.gaussian] / 2

    @property
    def half(self) -> Array:
        """Half widths of the Gaussian columns' bounds."""
        return self.upper[self.gaussian] / 2 - self.lower[self.gaussian] / 2

    def bin_edges(self) -> list[Array | None]:
        """Return the edges of each table's bins; None for categories."""
        equal = np.linspace(self.lower[self.equal], self.upper[self.equal], self.n_bins + 1, axis=-1)
        return [None] * len(self.categorical) + [*equal, *self.edges]


class Reader:
    """Reads blocks of rows by their columns."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._all = np.arange(columns.n_features)
        self._lower = columns.lower[columns.equal]
        self._rate = columns.n_bins / (columns.upper[columns.equal] - self._lower)
        self._uneven = [Bins(edges[1:-1], right=True) for edges in columns.edges]
        self._centre, self._half = columns.centre, columns.half

    def _take(self, X: NDArray, which: NDArray[np.intp]) -> NDArray:
        return X if np.array_equal(which, self._all) else X[:, which]

    def cells(self, X: NDArray) -> NDArray[np.intp]:
        """Return the cell of each record in each table, of shape (n_rows, n_tables)."""
        c = self._columns
        parts = []
        if len(c.categorical):
            # Other values are first moved to the two numbers next to the categories, so that they can be cast.
            values = np.clip(self._take(X, c.categorical), -1, c.n_categories)
            codes = values.astype(np.intp)
            parts.append(np.where((codes == values) & (codes >= 0), codes, c.n_categories))
        if len(c.equal):
            with np.errstate(over="ignore", under="ignore"):
                place = self._take(X, c.equal) - self._lower
                place *= self._rate
            np.maximum(place, 0.0, out=place)
            np.minimum(place, c.n_bins - 1, out=place)
            parts.append(place.astype(np.intp))
        if len(c.uneven):
            parts.append(
                np.column_stack([bins(X[:, column]) for column, bins in zip(c.uneven, self._uneven, strict=True)])
            )
        if len(parts) == 1:
            return parts[0]
        return np.concatenate(parts, axis=1) if parts else np.empty((len(X), 0), dtype=np.intp)

    def scaled(self, X: NDArray, largest: float = 1.0) -> Array:
        """Return the Gaussian columns, with their bounds mapped to -`largest` and `largest`, and clipped there."""
        c = self._columns
        return scaled(self._take(X, c.gaussian), self._centre, self._half, largest)


def check_columns(
    categorical_features: Any, n_categories: Any, numeric: str, n_bins: object, bin_edges: Any, bounds: Any
) -> Parameters:
    """Check the parameters that say what the columns are, as far as that goes without their number."""
    mask_length, categorical = named_columns(categorical_features, "categorical_features")
    edges = check_bin_edges(bin_edges)
    taken = [*categorical, *(name for name, _ in edges)]
    if len(set(taken)) < len(taken):
        raise ValueError("a column may occur once only in categorical_features and bin_edges together")
    bins = check_integer(n_bins, "n_bins", least=2, most=_MOST_CELLS)
    return Parameters(
        categorical=categorical,
        n_categories=check_n_categories(n_categories, len(categorical), _MOST_CELLS),
        edges=edges,
        numeric=numeric,
        n_bins=bins,
        bounds=None if bounds is None else check_bounds(bounds, "bounds", "the numeric features"),
        mask_length=mask_length,
    )


def check_bin_edges(value: Any) -> tuple[tuple[Any, Array], ...]:
    """Return columns, by position or name, with the edges of their bins."""
    if value is None:
        return ()
    if not isinstance(value, Mapping):
        raise TypeError(f"bin_edges must map columns to edges, got {type(value).__name__}")
    checked = []
    for name, edges in value.items():
        array = increasing_edges(edges)
        if array is None:
            raise ValueError(f"bin_edges must have two finite edges or more for a column, increasing; {name!r} has not")
        checked.append((column_name(name, "bin_edges"), array))
    return tuple(checked)


def columns_for(parameters: Parameters, n_features: int, names: NDArray | None, named: bool = True) -> Columns:
    """Return the kind of each of `n_features` columns."""
    # Without `named`, names stand for any columns that are left: for a plan, it does not matter which.
    if parameters.mask_length not in (None, n_features):
        raise ValueError(
            f"categorical_features is a mask of {parameters.mask_length} columns, and there are {n_features}"
        )
    groups = (
        ("categorical_features", parameters.categorical),
        ("bin_edges", [name for name, _ in parameters.edges]),
    )
    categorical, uneven = positions_of(groups, n_features, names, named)
    everything = np.arange(n_features)
    rest = np.setdiff1d(everything, [*categorical, *uneven])
    lower, upper = bounds_of_columns(parameters.bounds, n_features, rest, np.setdiff1d(everything, categorical))
    binned = parameters.numeric == "binned"
    nothing = rest[:0]
    return Columns(
        n_features=n_features,
        categorical=np.array(categorical, dtype=np.intp),
        n_categories=np.array(parameters.n_categories, dtype=np.intp),
        equal=rest if binned else nothing,
        n_bins=parameters.n_bins,
        uneven=np.array(uneven, dtype=np.intp),
        edges=tuple(edges for _, edges in parameters.edges),
        gaussian=nothing if binned else rest,
        lower=lower,
        upper=upper,
    )
