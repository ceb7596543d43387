"""The public facts about the columns of a table, and the cell of each entry.

A column holds categories or numbers. Categories are codes 0, 1, ... or values of any kind. Numbers are in bins with
edges of their own, or between bounds. Each record is read separately, so that neighbouring data sets stay neighbours.

Sparse rows have the cells of their stored entries, and the cells of zeros, which are public.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..checks.data import FLOATS, check_quietly
from ..checks.params import anything, check_bounds, check_integer, columns_of, increasing_edges, is_list, shown
from .declared import MOST_CELLS, Bins, Grid, bin_names, scaled
from .entries import (
    Categories,
    cells_of_codes,
    check_list,
)

Array = NDArray[np.float64]
Codes = NDArray[np.integer[Any]]
Kind = Categories | Array | None


def code_type(n_cells: int) -> np.dtype[Any]:
    """Return the smallest type of the codes of cells, and of the number after the last cell."""
    return np.min_scalar_type(n_cells)


@dataclass(frozen=True, eq=False)
class Columns:
    """The kind of each column, by position. All of them are public, except for released edges."""

    # A kind is categories, edges of bins, or None for a number between the bounds of `grid`, which has one column for
    # each of these. Such a number has `n_bins` cells, or none if that is 0. Tables are in the order of `categorical`,
    # numbers between bounds, `uneven`.
    kinds: tuple[Kind, ...]
    grid: Grid
    n_bins: int = 0
    categorical: tuple[int, ...] = ()
    uneven: tuple[int, ...] = ()
    pairs: tuple[tuple[int, int], ...] = ()
    # For some columns, the number of first cells that hold declared values. The other cells hold other entries.
    declared: Mapping[int, int] = field(default_factory=dict)
    # For some columns with bins, the number of values that they can have.
    n_values: Mapping[int, int] = field(default_factory=dict)

    @property
    def n_features(self) -> int:
        return len(self.kinds)

    @cached_property
    def numeric(self) -> NDArray[np.intp]:
        """Numbers between the bounds of the grid."""
        return np.array([j for j, kind in enumerate(self.kinds) if kind is None], dtype=np.intp)

    @property
    def unbinned(self) -> NDArray[np.intp]:
        """Numbers that have no cells."""
        return self.numeric[: 0 if self.n_bins else None]

    @cached_property
    def ordered(self) -> tuple[bool, ...]:
        """Whether neighbouring cells are similar."""
        return tuple(not isinstance(kind, Categories) for kind in self.kinds)

    @cached_property
    def n_categories(self) -> NDArray[np.intp]:
        """Numbers of categories, and 0 for other columns."""
        return np.where(self.ordered, 0, self.sizes).astype(np.intp)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Numbers of cells, without the cell for other entries."""
        return tuple(
            kind.size if isinstance(kind, Categories) else self.n_bins if kind is None else len(kind) - 1
            for kind in self.kinds
        )

    @cached_property
    def tables(self) -> NDArray[np.intp]:
        """The columns that have cells."""
        even = self.numeric if self.n_bins else ()
        return np.array([*self.categorical, *even, *self.uneven], dtype=np.intp)

    @cached_property
    def table_sizes(self) -> NDArray[np.intp]:
        """Numbers of cells of each table. A categorical column has one more, for unknown categories."""
        sizes: NDArray[np.intp] = np.array(self.sizes, dtype=np.intp)[self.tables]
        return sizes + (np.arange(len(sizes)) < len(self.categorical))

    def bin_edges(self) -> list[Array | None]:
        """Return copies of the edges of the bins of each column, or None for categories and numbers without bins."""
        edges = [None if kind is None or isinstance(kind, Categories) else kind.copy() for kind in self.kinds]
        if self.n_bins:
            even = np.linspace(self.grid.lower, self.grid.upper, self.n_bins + 1, axis=-1)
            for j, even_edges in zip(self.numeric, even, strict=True):
                edges[j] = even_edges.copy()
        return edges

    def with_edges(self, edges: Iterable[tuple[int, Array]]) -> Columns:
        """Return the columns with edges of bins at these positions. These columns leave the grid."""
        by_column = {int(j): column_edges for j, column_edges in edges}
        left = [k for k, j in enumerate(self.numeric) if j not in by_column]
        return replace(
            self,
            kinds=tuple(by_column.get(j, kind) for j, kind in enumerate(self.kinds)),
            grid=replace(self.grid, lower=self.grid.lower[left], upper=self.grid.upper[left]),
            uneven=tuple(dict.fromkeys([*self.uneven, *by_column])),
        )

    def cells(self, j: int, entries: NDArray) -> NDArray[np.intp]:
        """Return the cell of each entry of a column. Other entries get the number after the last cell."""
        kind = self.kinds[j]
        if isinstance(kind, Categories):
            return kind.cells(entries)
        assert kind is not None
        return Bins(kind[1:-1], right=True)(entries)

    def codes(self, X: list[NDArray]) -> Codes:
        """Return the cell of each entry, by column and row. Other entries get the number after the last cell."""
        out = np.empty((len(X), len(X[0])), dtype=code_type(max(self.sizes)))
        for j, entries in enumerate(X):
            out[j] = self.cells(j, entries)
        return out

    def split(self, rows: NDArray) -> list[NDArray]:
        """Return the columns of a table one by one. Numbers become doubles, and categories are not changed."""
        out, numeric = list(rows.T), np.flatnonzero(self.ordered)
        if 0 < len(numeric) < len(out):
            numbers = check_quietly(rows[:, numeric], dtype=list(FLOATS), ensure_min_samples=0)
            for j, column in zip(numeric, numbers.T, strict=True):
                out[j] = column
        return out

    def refuse_other_types(self, X: list[NDArray], names: NDArray | None) -> None:
        """Refuse a column that holds text where `categories` declares numbers, or numbers where it declares text."""
        # One entry of another type is enough for an error. How other entries are read does not depend on it.
        for j, (kind, entries) in enumerate(zip(self.kinds, X, strict=True)):
            if isinstance(kind, Categories) and kind.holds_other_types(entries):
                name = j if names is None else str(names[j])
                raise TypeError(
                    f"categories of the column {name!r} are numbers where X holds text, or text where X holds numbers. "
                    "Declare them as the column has them, for instance as a list of texts in place of a number of codes"
                )

    def labels(self, j: int) -> list[str]:
        """Return the names of the cells of a column."""
        kind = self.kinds[j]
        if isinstance(kind, Categories):
            return [str(value) for value in kind.values.tolist()]
        assert kind is not None
        return bin_names(kind)


class Encoder:
    """Read blocks of rows of numbers, with coded categories."""

    # It is not stored with the columns, because tables for searching would disclose that there were many records.
    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self._categorical = np.array(columns.categorical, dtype=np.intp)
        self._n_categories = columns.n_categories[self._categorical]
        kinds = [(j, columns.kinds[j]) for j in columns.uneven]
        self.uneven = [(j, Bins(kind[1:-1], right=True)) for j, kind in kinds if isinstance(kind, np.ndarray)]

    def _take(self, X: NDArray, which: NDArray[np.intp]) -> NDArray:
        return X if np.array_equal(which, np.arange(X.shape[1])) else X[:, which]

    def cells(self, X: NDArray) -> NDArray[np.intp]:
        """Return the cell of each record in each table, of shape (n_rows, n_tables)."""
        c = self.columns
        parts: list[NDArray[np.intp]] = []
        if len(self._categorical):
            parts.append(cells_of_codes(self._take(X, self._categorical), self._n_categories))
        if c.n_bins and len(c.numeric):
            parts.append(c.grid.cells(self._take(X, c.numeric)))
        if self.uneven:
            parts.append(np.column_stack([bins(X[:, j]) for j, bins in self.uneven]))
        if len(parts) == 1:
            return parts[0]
        return np.concatenate(parts, axis=1) if parts else np.empty((len(X), 0), dtype=np.intp)

    def scaled(self, X: NDArray, largest: float = 1.0) -> Array:
        """Return numbers without bins, with their bounds mapped to -`largest` and `largest`, and clipped there."""
        c = self.columns
        return scaled(self._take(X, c.unbinned), c.grid.centre, c.grid.half, largest)


def named_columns(value: Any, name: str) -> tuple[int | None, tuple[Any, ...]]:
    """Return the length of a mask, or None without a mask, and the columns by position or by name."""
    if value is None:
        return None, ()
    # With dtype object, a position among names stays a number.
    array = np.asarray(value, dtype=object)
    if isinstance(value, str | bytes) or array.ndim != 1:
        raise ValueError(f"{name} must be a sequence of positions or names of columns, or a mask")
    entries = array.tolist()
    if entries and all(isinstance(entry, bool | np.bool_) for entry in entries):
        return len(entries), tuple(i for i, entry in enumerate(entries) if entry)
    return None, tuple(column_name(entry, name) for entry in entries)


def column_name(value: Any, name: str) -> Any:
    """Return the position or name of a column, or refuse the value."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 0:
        raise ValueError(f"{name} must hold positions, from 0, or names of columns, got {shown(value)}")
    return int(value)


def check_n_categories(value: Any, n_columns: int, most: int) -> tuple[int, ...]:
    """Return the number of categories of each categorical column. Their sum is at most `most`."""
    if value is None:
        if n_columns == 0:
            return ()
        raise ValueError(
            "n_categories must be given: the number of categories of each categorical feature, from its code book. "
            "Categories are coded 0, 1, ... They are never read from the data, because that would be a release"
        )
    one_by_one = is_list(value)
    counts = list(value) if one_by_one else [value] * max(n_columns, 1)
    checked = tuple(check_integer(count, "n_categories", least=1) for count in counts)
    if not one_by_one:
        checked = checked[:n_columns]
    if len(checked) != n_columns:
        raise ValueError(
            f"n_categories must have one entry for each of the {n_columns} categorical features, got {len(checked)}"
        )
    if sum(checked) > most:
        raise ValueError(f"n_categories must add up to at most {most}")
    return checked


def check_pairs(value: Any) -> tuple[tuple[Any, Any], ...]:
    """Return the pairs of columns that `interactions` names."""
    if value is None:
        return ()
    if not is_list(value) or not all(is_list(pair) and len(pair) == 2 for pair in value):
        raise ValueError("interactions must be a list of pairs of columns, by position or name")
    return distinct_pairs((column_name(a, "interactions"), column_name(b, "interactions")) for a, b in value)


def distinct_pairs(columns: Iterable[tuple[Any, Any]]) -> tuple[tuple[Any, Any], ...]:
    """Return pairs of different columns, or refuse them."""
    pairs = tuple(columns)
    if any(a == b for a, b in pairs) or len({frozenset(pair) for pair in pairs}) < len(pairs):
        raise ValueError("interactions must be pairs of different columns, each pair once")
    return pairs


def positions_of(
    named: Mapping[str, Sequence[Any]], n_features: int, names: NDArray | None, is_read: bool = True
) -> dict[Any, int]:
    """Return the position of each column that a parameter names. A column may occur once."""
    # Before there are data, the names of X are unknown, and a name stands for any column that is left, because a plan
    # does not depend on which.
    known = {} if names is None else {name: i for i, name in enumerate(names)}
    taken = {column for columns in named.values() for column in columns if not isinstance(column, str)}
    free = iter([i for i in range(n_features) if i not in taken])
    positions: dict[Any, int] = {}
    for parameter, columns in named.items():
        for column in columns:
            position = column
            if isinstance(column, str):
                position = known.get(column) if is_read else next(free, None)
            if position is None or position >= n_features:
                raise ValueError(f"{parameter} names the column {column!r}, which X does not have")
            positions[column] = int(position)
    if len(set(positions.values())) < len(positions):
        used = [parameter for parameter, columns in named.items() if columns]
        raise ValueError(f"a column may occur once only in {' and '.join(used)}")
    return positions


@dataclass(frozen=True)
class ColumnSpec:
    """The checked declarations of a user about columns, by the names that the user gave."""

    parameter: str  # The parameter that names categorical columns.
    mask_length: int | None
    categories: Mapping[Any, Categories]
    edges: Mapping[Any, Array]
    pairs: tuple[tuple[Any, Any], ...]
    bounds: tuple[Array, Array] | None
    n_bins: int
    n_cells: int
    scale: str
    unit: float
    declared: Mapping[str, int]
    n_values: Mapping[str, int]

    @property
    def named(self) -> list[Any]:
        """Columns that have categories or edges."""
        return [*self.categories, *self.edges]

    def resolve(self, n_features: int, names: NDArray | None, named: bool = True) -> Columns:
        """Return the kind of each of `n_features` columns."""
        # Without `named`, names stand for any columns that are left, because a plan does not depend on which.
        if self.mask_length not in (None, n_features):
            raise ValueError(f"{self.parameter} is a mask of {self.mask_length} columns, and there are {n_features}")
        paired = [column for pair in self.pairs for column in pair]
        others = [column for column in dict.fromkeys(paired) if column not in self.named]
        parameters = {self.parameter: [*self.categories], "bin_edges": [*self.edges], "interactions": others}
        positions = positions_of(parameters, n_features, names, named)
        kinds: list[Kind] = [None] * n_features
        kind_of: dict[Any, Kind] = {**self.categories, **self.edges}
        for column, kind in kind_of.items():
            kinds[positions[column]] = kind
        categorical, uneven = ([positions[column] for column in some] for some in (self.categories, self.edges))
        numeric = np.setdiff1d(np.arange(n_features), categorical)
        bounds = self._bounds_of(n_features, np.setdiff1d(numeric, uneven), numeric)
        grid = Grid(*bounds, self.n_cells, self.scale, self.unit)
        pairs = distinct_pairs((positions[a], positions[b]) for a, b in self.pairs)
        known = [] if names is None else [str(name) for name in names]
        by_position = [
            {j: numbers[name] for j, name in enumerate(known) if name in numbers}
            for numbers in (self.declared, self.n_values)
        ]
        return Columns(tuple(kinds), grid, self.n_bins, tuple(categorical), tuple(uneven), pairs, *by_position)

    def _bounds_of(self, n_features: int, used: NDArray[np.intp], numeric: NDArray[np.intp]) -> tuple[Array, Array]:
        """Return lower and upper bounds of the columns in `used`."""
        # The bounds may be two numbers, or two sequences for all columns, for the numeric ones (`used` is among them),
        # or for those in `used`.
        if len(used) == 0:
            return np.empty(0), np.empty(0)
        lower, upper = check_bounds(self.bounds, "bounds", "the numeric features")
        if lower.ndim and len(lower) == len(used):
            return lower, upper
        if lower.ndim and len(lower) == len(numeric):
            rows = np.searchsorted(numeric, used)
        else:
            (lower, upper), rows = columns_of((lower, upper), "bounds", n_features), used
        return lower[rows], upper[rows]


#: Parameters that `check_columns` checks together.
COLUMN_RULES = dict.fromkeys(("bounds", "categorical_features", "n_categories"), anything)


def check_columns(
    estimator: Any,
    *,
    n_bins: int = 0,
    n_cells: int | None = None,
    scale: str = "linear",
    unit: float = 1.0,
    most: int = MOST_CELLS,
) -> ColumnSpec:
    """Check the parameters that describe columns, as far as possible without the number of columns."""
    # Numbers between bounds have `n_bins` cells, or none if that is 0. The grid may be finer.
    categories = estimator._declared("categories")
    if categories is None:
        parameter = "categorical_features"
        mask_length, columns = named_columns(estimator._declared(parameter), parameter)
        counts = check_n_categories(estimator._declared("n_categories"), len(columns), most)
        by_size = {size: Categories.codes(size) for size in set(counts)}
        named: list[tuple[Any, Any]] = [(name, by_size[size]) for name, size in zip(columns, counts, strict=True)]
    else:
        parameter, mask_length, named = "categories", None, []
        for name, listed in _items(categories, "categories", "lists of categories"):
            if not np.isscalar(listed) and not is_list(listed):
                raise ValueError(f"categories of {name!r} must be a number or a list")
            named.append((name, check_list(listed, least=1)))
            if named[-1][1].size > most:
                raise ValueError(f"categories of {name!r} must be at most {most}")
    bin_edges = estimator._declared("bin_edges")
    edges = [] if bin_edges is None else _items(bin_edges, "bin_edges", "edges")
    edges = [(name, check_edges(column_edges, name)) for name, column_edges in edges]
    taken = [name for name, _ in (*named, *edges)]
    if len(set(taken)) < len(taken):
        raise ValueError(f"a column may occur once only in {parameter}{' and bin_edges together' if edges else ''}")
    pairs = check_pairs(estimator._declared("interactions"))
    if pairs and len({type(name) for name in [*taken, *(c for pair in pairs for c in pair)]}) > 1:
        raise ValueError("interactions, categories and bin_edges must all hold positions, or all hold names")
    bounds = estimator._declared("bounds")
    bounds = None if bounds is None else check_bounds(bounds, "bounds", "the numeric features")
    cells, known = n_bins if n_cells is None else n_cells, estimator._declared_cells()
    return ColumnSpec(
        parameter, mask_length, dict(named), dict(edges), pairs, bounds, n_bins, cells, scale, unit, *known
    )


def _items(value: Any, parameter: str, what: str) -> list[tuple[Any, Any]]:
    if not isinstance(value, Mapping):
        raise TypeError(f"{parameter} must map columns to {what}, got {type(value).__name__}")
    return [(column_name(name, parameter), listed) for name, listed in value.items()]


def check_edges(edges: Any, name: Any) -> Array:
    """Return the edges of the bins of one column."""
    array = increasing_edges(edges)
    if array is None:
        raise ValueError(f"bin_edges of {name!r} must be two or more finite numbers that increase")
    return array


class SparseEncoder:
    """Read blocks of sparse rows of numbers with coded categories, as `Encoder` reads dense rows."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        encoder = Encoder(columns)
        #: The cell of a zero in each table.
        self.zero_cells: NDArray[np.intp] = encoder.cells(np.zeros((1, columns.n_features)))[0]
        self._uneven = encoder.uneven
        self._sizes = columns.n_categories[list(columns.categorical)]
        self._tables = np.full(columns.n_features, -1, dtype=np.intp)
        self._tables[columns.tables] = np.arange(len(columns.tables))

    def cells(self, rows: Any) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
        """Return the positions of the stored entries that have a table, their tables and their cells."""
        tables = self._tables.take(rows.indices)
        entries = np.flatnonzero(tables >= 0)
        tables, values = tables[entries], rows.data[entries]
        cells = np.empty(len(entries), dtype=np.intp)
        grid, n_categorical = self.columns.grid, len(self._sizes)
        n_even = len(self.columns.numeric) if self.columns.n_bins else 0
        coded, uneven = tables < n_categorical, tables >= n_categorical + n_even
        cells[coded] = cells_of_codes(values[coded], self._sizes[tables[coded]])
        if n_even:
            even = ~(coded | uneven)
            columns = tables[even] - n_categorical
            # This grid has one column for each entry.
            by_entry = replace(grid, lower=grid.lower[columns], upper=grid.upper[columns])
            cells[even] = by_entry.cells(values[even][None])[0]
        if self._uneven:
            rest = np.flatnonzero(uneven)
            rest = rest[np.argsort(tables[rest], kind="stable")]
            first = n_categorical + n_even
            ends = np.searchsorted(tables[rest], first + np.arange(len(self._uneven) + 1))
            for (_, bins), start, end in zip(self._uneven, ends[:-1], ends[1:], strict=True):
                cells[rest[start:end]] = bins(values[rest[start:end]])
        return entries, tables, cells
