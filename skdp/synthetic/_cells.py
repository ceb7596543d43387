"""The public cells of the columns of a table: reading, merging by released counts, and values for synthetic rows.

Each entry is read separately. The cells, the types of synthetic columns and all values in them follow from the schema.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..release.counts import BEYOND, Count, Part, declared_parts
from ..schema.declared import (
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
from ..schema.entries import read_column
from ..schema.schema import Schema, columns_in_order

Array = NDArray[Any]

#: Largest number of bins of a column of numbers.
MOST_BINS = 128

# Types of columns.
_POLARS = {"text": "String", "boolean": "Boolean", "integer": "Int64", "number": "Float64"}
_ARROW = {"text": "string", "boolean": "bool_", "integer": "int64", "number": "float64"}

# A group of cells that is next to a cell with many records needs this part of the least number of records. Rare
# categories have a group of their own if their number exceeds so many standard deviations of the noise.
_PART, _DEVIATIONS = 1 / 3, 2.5


@dataclass(frozen=True, eq=False)
class Synthetic:
    """The synthetic entries of a column, of which some may be missing if the column has a cell for missing entries."""

    kind: str
    values: NDArray
    missing: NDArray[np.bool_]
    may_miss: bool

    def array(self) -> NDArray:
        """Return the entries as an array whose type does not depend on them."""
        if not self.may_miss:
            return self.values
        if self.kind in ("text", "boolean"):
            return np.where(self.missing, np.array(None), self.values.astype(object))
        return np.where(self.missing, np.nan, self.values.astype(np.float64))

    def entries(self) -> list[Any]:
        return [None if absent else v for v, absent in zip(self.values.tolist(), self.missing.tolist(), strict=True)]


@dataclass(frozen=True, eq=False)
class ColumnCells:
    """The public cells of a column.

    First come bins of numbers or categories, in which synthetic entries lie, and cells for other and missing entries.
    Numbers below and above their bounds are counted in two further cells, and then belong to the outermost bins.
    """

    name: str
    column: Column

    @cached_property
    def edges(self) -> Array:
        """Edges of the bins. Empty for categories."""
        if isinstance(self.column, Category):
            return np.empty(0)
        return edges_of(self.column, 1 if n_values(self.column) == 1 else MOST_BINS)

    @cached_property
    def names(self) -> list[str]:
        """Names of the cells, without those beyond the bounds."""
        if isinstance(self.column, Category):
            return cells_of(self.column)
        return bin_names(self.edges) + ["missing"] * (self.column.missing == "cell")

    def __post_init__(self) -> None:
        number, size = isinstance(self.column, Number), len(self.names)
        n_declared = len(self.edges) - 1 if number else len(self.column.values)  # type: ignore[union-attr]
        ordered = number or self.column.ordered  # type: ignore[union-attr]
        missing = (n_declared if size > n_declared else -1) if number else missing_cell(self.column)  # type: ignore[arg-type]
        vars(self).update(size=size, counted=size + 2 * number, n_declared=n_declared, missing=missing)
        vars(self).update(n_ordered=n_declared * ordered)

    size: int = field(init=False)  # Number of cells, and with those beyond the bounds.
    counted: int = field(init=False)
    n_declared: int = field(init=False)  # Number of cells of declared values, and of those with similar neighbours.
    n_ordered: int = field(init=False)
    missing: int = field(init=False)  # Position of the cell of missing entries, or -1.

    def within(self, cells: Any) -> Any:
        """Return the cells in which numbers beyond the bounds belong, and other cells as they are."""
        beyond = np.array([*range(self.size), 0, self.n_declared - 1])
        return beyond[cells]

    def read(self, entries: Any) -> NDArray[np.intp]:
        """Return the counted cell of each entry of a column."""
        entries = read_column(entries, self.name)
        if isinstance(self.column, Category):
            return read_cells(self.column, entries).astype(np.intp)
        numbers, missing = read_numbers(self.column, entries, warped=False)
        cells = np.searchsorted(self.edges[1:-1], numbers, side="right")
        given = entries.as_numbers()
        cells[given < self.column.low] = self.size
        cells[given > self.column.high] = self.size + 1
        cells[missing] = self.missing
        return cells

    def parts(self, counts: Array, total: Count, variance: float) -> list[Part]:
        """Return forms of released counts that show that the declaration does not fit the entries."""
        if isinstance(self.column, Category):
            if self.n_declared == self.size:
                return []
            return declared_parts(self.name, counts, self.n_declared, total, variance)
        inside, outside = counts[: self.n_declared], counts[self.n_declared :]
        beyond, deviation = float(counts[self.size :].sum()), math.sqrt(variance * (len(inside) + 2))
        return [
            *declared_parts(self.name, np.append(inside, outside.sum()), len(inside), total, variance),
            Part(self.name, BEYOND, beyond - float(inside.sum()), deviation),
        ]

    @cached_property
    def kind(self) -> str:
        """Type of synthetic entries: text, boolean, integer or number."""
        if isinstance(self.column, Number):
            return "integer" if isinstance(self.column.low, int) and isinstance(self.column.step, int) else "number"
        kind = type(self.column.values[0])
        if kind is bool and self.column.other == "cell":
            # The number of other entries is no truth value.
            kind = int
        return {str: "text", bool: "boolean", int: "integer"}.get(kind, "number")

    def values(self, cells: NDArray[np.intp], shares: Array) -> Synthetic:
        """Return an entry in each of these cells, for uniform numbers in [0, 1)."""
        missing = cells == self.missing
        if isinstance(self.column, Category):
            entries = list(self.column.values)
            if self.column.other == "cell":
                entries.append(self.names[len(entries)] if self.kind == "text" else int(min(entries)) - 1)
            dtype = {"text": object, "boolean": np.bool_, "integer": np.int64}.get(self.kind, np.float64)
            listed: Array = np.empty(len(entries), dtype=dtype)
            listed[:] = entries
            return Synthetic(self.kind, listed[np.where(missing, 0, cells)], missing, self.missing >= 0)
        bins = np.minimum(cells, self.n_declared - 1)
        low, high = self.edges[bins], self.edges[bins + 1]
        if self.column.step is None:
            numbers = np.clip(low + (high - low) * shares, self.column.low, self.column.high)
        else:
            # Edges are halfway between values, except for the bounds, which are values.
            start, step, last = self.column.low, self.column.step, (n_values(self.column) or 1) - 1
            first = np.ceil((low - start) / step - 1e-6)
            after = np.where(bins == self.n_declared - 1, last + 1, np.ceil((high - start) / step - 1e-6))
            steps = np.clip(first + np.floor(np.maximum(after - first, 1) * shares), 0, last)
            numbers = start + steps * step
        if self.kind == "integer":
            numbers = np.rint(numbers).astype(np.int64)
        return Synthetic(self.kind, numbers, missing, self.missing >= 0)


@dataclass(frozen=True, eq=False)
class TableCells:
    """The public cells of all columns of a table, the target included."""

    columns: tuple[ColumnCells, ...]

    @classmethod
    def of(cls, schema: Schema) -> TableCells:
        return cls(tuple(ColumnCells(name, column) for name, column in schema.items()))

    @cached_property
    def splits(self) -> NDArray[np.intp]:
        """Positions at which the counts of all columns are split."""
        return np.cumsum([column.counted for column in self.columns])[:-1]

    def read(self, schema: Schema, X: Any) -> NDArray:
        """Return the counted cells of the entries of a table, of shape (n_rows, n_columns)."""
        tables = columns_in_order(schema, X)
        dtype = np.min_scalar_type(max(column.counted for column in self.columns))
        codes = [cells.read(entries).astype(dtype) for cells, entries in zip(self.columns, tables, strict=True)]
        if len({len(cells) for cells in codes}) > 1:
            raise ValueError("the columns of X must all have the same length")
        return np.stack(codes).T

    def within(self, codes: NDArray) -> list[NDArray[np.intp]]:
        """Return the cells of each column, with numbers beyond the bounds in the outermost bins."""
        return [column.within(cells) for column, cells in zip(self.columns, codes.T, strict=True)]

    def parts(self, counts: Array, total: Count, variance: float) -> list[Part]:
        """Return forms of released counts that show which declarations do not fit the entries."""
        by_column = zip(self.columns, np.split(counts, self.splits), strict=True)
        return [part for column, own in by_column for part in column.parts(own, total, variance)]

    def counts(self, codes: NDArray) -> Array:
        """Return the number of records in each cell of each column."""
        by_column = [
            np.bincount(cells, minlength=column.counted) for cells, column in zip(codes.T, self.columns, strict=True)
        ]
        return np.concatenate(by_column).astype(np.float64)


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
    frequent = others[counts[others] >= least]
    groups[frequent] = last + 1 + np.arange(len(frequent))
    rare = others[counts[others] < least]
    if len(rare):
        enough = max(_PART * least, _DEVIATIONS * noise * math.sqrt(len(rare)))
        if counts[rare].sum() >= enough or last + len(frequent) < 0:
            groups[rare] = last + 1 + len(frequent)
        else:
            groups[rare] = groups[frequent[np.argmin(counts[frequent])]] if len(frequent) else last
    return np.unique(groups, return_inverse=True)[1].astype(np.intp)


def group_names(column: ColumnCells, groups: NDArray[np.intp]) -> list[str]:
    """Return the names of the groups of cells of a column."""
    names = []
    for group in range(int(groups.max()) + 1):
        inside = np.flatnonzero(groups == group)
        bins, others = inside[inside < column.n_declared], inside[inside >= column.n_declared]
        if isinstance(column.column, Number) and len(bins):
            parts = bin_names(column.edges[[bins[0], bins[-1] + 1]])
        else:
            parts = [column.names[cell] for cell in bins]
        names.append(", ".join([*parts, *(column.names[cell] for cell in others)]))
    return names


def grouped(maps: Sequence[NDArray], codes: NDArray) -> NDArray:
    """Return the groups of the cells of records."""
    dtype = np.min_scalar_type(max(int(groups.max(initial=0)) for groups in maps))
    return np.stack([groups.astype(dtype)[cells] for groups, cells in zip(maps, codes.T, strict=True)]).T


def as_container(kind: str, table: dict[str, Synthetic]) -> Any:
    """Return synthetic columns as a table of this kind: of pandas, polars, pyarrow, a dict or an array."""
    if kind in ("polars", "pyarrow"):
        library = import_module(kind)
        names = _POLARS if kind == "polars" else _ARROW
        types = {name: getattr(library, names[own.kind]) for name, own in table.items()}
        if kind == "polars":
            return library.DataFrame({name: own.entries() for name, own in table.items()}, schema=types)
        return library.table({name: library.array(own.entries(), types[name]()) for name, own in table.items()})
    arrays = {name: column.array() for name, column in table.items()}
    if kind == "array":
        dtype = object if any(array.dtype == object for array in arrays.values()) else np.float64
        return np.stack([array.astype(dtype) for array in arrays.values()], axis=1)
    return arrays if kind == "dict" else import_module(kind).DataFrame(arrays)


def kind_of(X: Any) -> str:
    """Return the kind of container of a table."""
    if isinstance(X, Mapping):
        return "dict"
    library = type(X).__module__.partition(".")[0]
    return library if library in ("pandas", "polars", "pyarrow") else "array"
