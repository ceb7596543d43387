"""The public cells of the columns of a table: reading, merging by released counts, and values for synthetic rows.

Each entry is read separately. The cells, the types of synthetic columns and all values in them follow from the schema.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..release.counts import BEYOND, Count, Part, declared_parts
from ..schema.declared import (
    MISSING_CELL,
    Category,
    Column,
    Number,
    bin_names,
    cells_of,
    edges_of,
    missing_cell,
    n_values,
    read_cells,
    read_numbers,
)
from ..schema.entries import Entries
from ..schema.schema import Schema, read_table

Array = NDArray[Any]

#: Largest number of bins of a column of numbers.
MOST_BINS = 128

# Types of columns in polars and in pyarrow, by the kind of the type in NumPy.
_POLARS = {"O": "String", "b": "Boolean", "i": "Int64", "f": "Float64"}
_ARROW = {"O": "string", "b": "bool_", "i": "int64", "f": "float64"}

# Means are biased if noise in empty bins may move them by so many standard deviations of the synthetic numbers. The
# positive part of normal noise has on average the second number of its standard deviations.
_BIASED, _POSITIVE = 0.1, 0.4

# A group of cells that is next to a cell with many records needs this part of the least number of records. Rare
# categories have a group of their own if their number exceeds so many standard deviations of the noise.
_PART, _DEVIATIONS = 1 / 3, 2.5


class ColumnCells:
    """The public cells of a column.

    First come bins of numbers or categories, in which synthetic entries lie, and cells for other and missing entries.
    Numbers below and above their bounds are counted in two further cells, and then belong to the outermost bins.
    """

    groups: NDArray[np.intp]  # The group of each cell, and its share in the group. They follow from releases.
    shares: Array
    noise: float  # In the released number of records of a cell.

    def __init__(self, name: str, column: Column) -> None:
        self.name, self.column = name, column
        if isinstance(column, Number):
            self.edges = edges_of(column, 1 if n_values(column) == 1 else MOST_BINS)
            self.n_declared = self.n_ordered = len(self.edges) - 1
            self.names = bin_names(self.edges) + [MISSING_CELL] * (column.missing == "cell")
            self.missing = self.n_declared if column.missing == "cell" else -1
        else:
            self.n_declared, self.n_ordered = len(column.values), len(column.values) * column.ordered
            self.names, self.missing = cells_of(column), missing_cell(column)
        # The cell to which each counted cell belongs.
        outermost = [0, self.n_declared - 1] if isinstance(column, Number) else []
        self.within = np.array([*range(len(self.names)), *outermost])

    def read(self, entries: Entries) -> NDArray[np.intp]:
        """Return the counted cell of each entry of a column."""
        if isinstance(self.column, Category):
            return read_cells(self.column, entries).astype(np.intp)
        numbers, missing = read_numbers(self.column, entries, warped=False)
        cells = np.searchsorted(self.edges[1:-1], numbers, side="right")
        given = entries.as_numbers()
        cells[given < self.column.low] = len(self.names)
        cells[given > self.column.high] = len(self.names) + 1
        cells[missing] = self.missing
        return cells

    def parts(self, counts: Array, total: Count, variance: float) -> list[Part]:
        """Return forms of released counts that show that the declaration does not fit the entries."""
        inside, others = counts[: self.n_declared], counts[self.n_declared :]
        if isinstance(self.column, Category):
            return declared_parts(self.name, counts, len(inside), total, variance) if len(others) else []
        beyond, deviation = float(counts[len(self.names) :].sum()), math.sqrt(variance * (len(inside) + 2))
        return [
            *declared_parts(self.name, np.append(inside, others.sum()), len(inside), total, variance, True),
            Part(self.name, BEYOND, beyond - float(inside.sum()), deviation),
        ]

    @property
    def dtype(self) -> Any:
        """Type of synthetic entries that are not missing."""
        if isinstance(self.column, Number):
            return np.int64 if isinstance(self.column.low, int) and isinstance(self.column.step, int) else np.float64
        kind = type(self.column.values[0])
        if kind is bool and self.column.other == "cell":
            # The number of other entries is no truth value.
            kind = int
        return {str: np.object_, bool: np.bool_, int: np.int64}.get(kind, np.float64)

    def values(self, cells: NDArray[np.intp], shares: Array) -> NDArray:
        """Return an entry in each of these cells, for uniform numbers in [0, 1). Missing entries are masked."""
        missing = cells == self.missing
        if isinstance(self.column, Category):
            listed = list(self.column.values)
            if self.column.other == "cell":
                listed.append(self.names[len(listed)] if self.dtype is np.object_ else int(min(listed)) - 1)
            entries = np.array(listed, dtype=self.dtype)[np.where(missing, 0, cells)]
        else:
            entries = self._numbers(self.column, np.minimum(cells, self.n_declared - 1), shares)
        return entries if self.missing < 0 else np.ma.MaskedArray(entries, missing)

    def _numbers(self, column: Number, bins: NDArray[np.intp], shares: Array) -> NDArray:
        low, high = self.edges[bins], self.edges[bins + 1]
        if column.step is None:
            return np.clip(low + (high - low) * shares, column.low, column.high)
        # Edges are halfway between values, except for the bounds, which are values.
        start, step, last = column.low, column.step, (n_values(column) or 1) - 1
        first = np.ceil((low - start) / step - 1e-6)
        after = np.where(bins == self.n_declared - 1, last + 1, np.ceil((high - start) / step - 1e-6))
        numbers = start + np.clip(first + np.floor(np.maximum(after - first, 1) * shares), 0, last) * step
        return np.rint(numbers).astype(np.int64) if self.dtype is np.int64 else numbers

    def drawn(self, groups: NDArray[np.intp], rng: Any) -> NDArray:
        """Return an entry in each of these groups. The counts of the cells of a group are nearly exact."""
        cells = np.zeros(len(groups), dtype=np.intp)
        for group in range(int(self.groups.max()) + 1):
            having, inside = np.flatnonzero(groups == group), np.flatnonzero(self.groups == group)
            ends = np.cumsum(self.shares[inside]) * len(having)
            ends = np.append(np.rint(ends[:-1]), len(having)).astype(np.intp)
            cells[rng.permutation(having)] = np.repeat(inside, np.diff(np.append(0, ends)))
        return self.values(cells, rng.random(len(cells)))

    def biases_mean(self, counts: Array) -> bool:
        """Tell whether noise in empty bins may move the mean of synthetic numbers, for these counts of the groups."""
        if isinstance(self.column, Category):
            return False
        middles, widths = (self.edges[:-1] + self.edges[1:]) / 2, np.diff(self.edges)
        records = (counts[self.groups] * self.shares)[: self.n_declared]
        shares, total = records / max(records.sum(), 1e-300), max(counts.sum(), 1e-300)
        distances = middles - shares @ middles
        bias = _POSITIVE * self.noise * abs(distances.sum()) / total
        return bool(bias > _BIASED * math.sqrt(shares @ (distances**2 + widths**2 / 12)))

    def names_of_groups(self) -> list[str]:
        names = []
        for group in range(int(self.groups.max()) + 1):
            cells = np.flatnonzero(self.groups == group)
            parts = [self.names[cell] for cell in cells]
            n_bins = np.count_nonzero(cells < self.n_declared)
            if isinstance(self.column, Number) and n_bins:
                parts[:n_bins] = bin_names(self.edges[[cells[0], cells[n_bins - 1] + 1]])
            names.append(", ".join(parts))
        return names


def whole_table(schema: Schema) -> Schema:
    """Return a schema in which the target is a column like others, the last one."""
    if schema.target is None:
        return schema
    if schema.target_name is None:
        raise ValueError(
            "schema declares a target without a name. Write Schema(..., target={'label': ...}) with its column"
        )
    columns = {**schema, schema.target_name: schema.target}
    return Schema(columns, group=schema.group, rows_per_group=schema.rows_per_group)


class TableCells:
    """The public cells of all columns of a table, the target included."""

    def __init__(self, schema: Schema) -> None:
        self.schema = whole_table(schema)
        self.columns = [ColumnCells(name, column) for name, column in self.schema.items()]
        self.target = -1 if schema.target is None else len(self.columns) - 1

    def read(self, X: Any) -> NDArray:
        """Return the counted cells of the entries of a table, of shape (n_rows, n_columns)."""
        dtype = np.min_scalar_type(max(len(column.within) for column in self.columns))
        by_column = zip(self.columns, read_table(self.schema, X), strict=True)
        return np.stack([column.read(entries).astype(dtype) for column, entries in by_column]).T

    def counts(self, codes: NDArray) -> Array:
        """Return the number of records in each counted cell of each column, as a vector."""
        by_column = zip(codes.T, self.columns, strict=True)
        counts = [np.bincount(cells, minlength=len(column.within)) for cells, column in by_column]
        return np.concatenate(counts).astype(np.float64)

    def by_column(self, counts: Array) -> Iterable[tuple[ColumnCells, Array]]:
        """Return each column with its part of the counts of all columns."""
        ends = np.cumsum([len(column.within) for column in self.columns])
        return zip(self.columns, np.split(counts, ends[:-1]), strict=True)


def merged_cells(counts: Array, n_ordered: int, least: float, noise: float) -> NDArray[np.intp]:
    """Return a group for each cell, of at least about `least` records by the released counts.

    Neighbours among the ordered cells, which come first, are merged. Of the others, rare ones are merged.
    """
    groups = np.zeros(len(counts), dtype=np.intp)
    last, records = -1, math.inf
    for cell, count in enumerate(counts[:n_ordered].tolist()):
        alone = count >= least
        if records >= (_PART * least if alone else least):
            last, records = last + 1, 0.0
        groups[cell] = last
        records = math.inf if alone else records + count
    if records < _PART * least and last > 0:
        groups[groups == last] = last - 1
        last -= 1
    others = np.arange(n_ordered, len(counts))
    frequent, rare = others[counts[others] >= least], others[counts[others] < least]
    groups[frequent] = last + 1 + np.arange(len(frequent))
    if len(rare):
        enough = max(_PART * least, _DEVIATIONS * noise * math.sqrt(len(rare)))
        if counts[rare].sum() >= enough or last + len(frequent) < 0:
            groups[rare] = last + 1 + len(frequent)
        else:
            groups[rare] = groups[frequent[np.argmin(counts[frequent])]] if len(frequent) else last
    return np.unique(groups, return_inverse=True)[1].astype(np.intp)


def as_container(kind: str, table: Mapping[str, NDArray]) -> Any:
    """Return columns with masked entries as a table of this kind, whose types do not depend on the entries."""
    if kind in ("polars", "pyarrow"):
        library, names = import_module(kind), _POLARS if kind == "polars" else _ARROW
        lists = {name: entries.tolist() for name, entries in table.items()}
        types = {name: getattr(library, names[entries.dtype.kind]) for name, entries in table.items()}
        if kind == "polars":
            return library.DataFrame(lists, schema=types)
        return library.table(lists, schema=library.schema([(name, of_column()) for name, of_column in types.items()]))
    arrays = {name: _filled(entries) for name, entries in table.items()}
    if kind == "array":
        dtype = object if any(array.dtype == object for array in arrays.values()) else np.float64
        return np.stack([array.astype(dtype) for array in arrays.values()], axis=1)
    return arrays if kind == "dict" else import_module(kind).DataFrame(arrays)


def _filled(entries: NDArray) -> NDArray:
    """Return entries with None or NaN for masked ones."""
    if not isinstance(entries, np.ma.MaskedArray):
        return entries
    missing, dtype = (np.nan, np.float64) if entries.dtype.kind in "if" else (np.array(None), np.object_)
    return np.where(entries.mask, missing, entries.data.astype(dtype))


def kind_of(X: Any) -> str:
    """Return the kind of container of a table."""
    if isinstance(X, Mapping):
        return "dict"
    library = type(X).__module__.partition(".")[0]
    return library if library in ("pandas", "polars", "pyarrow") else "array"
