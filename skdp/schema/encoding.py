"""The encoding of rows of a declared table as numbers, and the public parameters that follow."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .declared import (
    MISSING_CELL,
    Category,
    Column,
    Number,
    cells_of,
    edges_of,
    grid_of,
    limits,
    marked_beyond,
    missing_cell,
    n_values,
    read_cells,
    read_numbers,
    scaled_numbers,
)
from .entries import Entries
from .grid import bin_names
from .schema import Schema, read_table

Array = NDArray[np.float64]

#: - "linear": numbers in [-1, 1], and an indicator for each category;
#: - "codes": numbers between bounds, and codes of categories;
#: - "ends": as "codes", with missing numbers beyond the upper bound in place of an indicator;
#: - "cells": numbers in bins, of which the last holds missing values, and codes of categories;
#: - "values": numbers as they are, without categories or missing values;
#: - "categories": codes of categories, without numbers.
FORMS = ("linear", "codes", "ends", "cells", "values", "categories")

#: What an entry outside adds, and a declared one, if half of the entries may be outside, or a tenth. Sums are exact.
OUTSIDE, INSIDE, LISTED = 0.5, -0.5, -57 / 1024

#: What entries of a column add, unless they are in one of the disjoint intervals of encoded columns. An interval has
#: the position of its column, its first number, its end, and what is added.
Outside = tuple[float, Sequence[tuple[int, float, float, float]]]

# Bounds are too wide if most numbers are above the lower bound by less than this part of them.
_WIDE = 128

# What missing numbers add. So many missing entries of a category weigh as much as a declared one.
_MISSING_NUMBER, _MISSING_CATEGORIES = 1 / 16, 16

# Distance of missing numbers from the upper bound, over the distance of the bounds, for "ends".
_GAP = 0.125


@dataclass(frozen=True, eq=False)
class Encoding:
    """The public rule by which a declared table is encoded."""

    schema: Schema
    form: str
    # Edges of the bins of numbers, without the bin for missing values, for "cells".
    edges: Mapping[str, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        wanted = {"values": Number, "categories": Category}.get(self.form)
        for name, column in self.schema.items():
            if wanted is not None and not isinstance(column, wanted):
                raise ValueError(
                    f"the schema declares the column {name!r} as a {type(column).__name__}, and this estimator takes "
                    f"columns of type {wanted.__name__} only: choose columns with schema.select, or put a TableEncoder "
                    "before it"
                )
            if self.form == "values" and column.missing == "cell":
                raise ValueError(
                    f"this estimator has no cell for missing values. Declare the column {name!r} with "
                    'missing="error", or put a TableEncoder before the estimator, which then needs bounds=(-1, 1)'
                )

    def _names_of(self, name: str, column: Column) -> list[tuple[str, int]]:
        """Return the names of the encoded columns of a column, and their numbers of categories (0 for numbers)."""
        if isinstance(column, Number):
            indicator = column.missing == "cell" and self.form in ("linear", "codes")
            return [(name, 0)] + [(f"{name}_missing", 2)] * indicator
        if self.form == "linear":
            return [(f"{name}_{cell}", 2) for cell in cells_of(column)]
        return [(name, 0 if self._is_ordered(column) else len(cells_of(column)))]

    def _is_ordered(self, column: Column) -> bool:
        """Tell whether categories are in bins, because neighbouring ones are similar."""
        return self.form == "cells" and isinstance(column, Category) and column.ordered

    @property
    def layout(self) -> list[tuple[str, int]]:
        """The name of each encoded column, and its number of categories, which is 0 for numbers."""
        found: list[tuple[str, int]] = []
        taken: set[str] = set()
        for original, column in self.schema.items():
            for name, size in self._names_of(original, column):
                # A category may have the name of a cell.
                while name in taken:
                    name += "_"
                taken.add(name)
                found.append((name, size))
        return found

    def origins(self) -> list[int]:
        """Return for each encoded column the position of its original column."""
        return [j for j, (name, column) in enumerate(self.schema.items()) for _ in self._names_of(name, column)]

    @property
    def names(self) -> NDArray:
        """Names of the encoded columns."""
        return np.array([name for name, _ in self.layout], dtype=object)

    def bins(self) -> dict[str, Array]:
        """Return the edges of all bins, with those for missing values, for "cells"."""
        found = {}
        for name, column in self.schema.items():
            if isinstance(column, Number):
                edges = self.edges[name]
                found[name] = np.append(edges, _beyond(edges)) if column.missing == "cell" else edges
            elif column.ordered:
                found[name] = np.arange(len(cells_of(column)) + 1) - 0.5
        return found

    def declared_cells(self) -> dict[str, int]:
        """Return the number of first cells of encoded columns that hold declared values, if others do not."""
        found, left = {}, iter(self.layout)
        for name, column in self.schema.items():
            for _, (encoded, _) in zip(self._names_of(name, column), left, strict=False):
                if isinstance(column, Category) and len(column.values) < len(cells_of(column)):
                    found[encoded] = len(column.values)
                elif isinstance(column, Number) and column.missing == "cell" and self.form == "cells":
                    found[encoded] = len(self.edges[name]) - 1
        return found

    def n_values(self) -> dict[str, int]:
        """Return the number of possible values of encoded columns with bins, without missing ones, if it is limited."""
        found = {}
        for name, column in self.schema.items() if self.form == "cells" else ():
            values = n_values(column) if isinstance(column, Number) else len(cells_of(column))
            if values is not None:
                found[name] = values
        return found

    def undeclared(self) -> dict[str, list[int]]:
        """Return for columns the positions of their indicators of other entries and of missing ones, for "linear"."""
        found, start = {}, 0
        for name, column in self.schema.items():
            declared = len(column.values) if isinstance(column, Category) else 1
            end = start + len(self._names_of(name, column))
            found[name] = list(range(start + declared, end))
            start = end
        return {name: own for name, own in found.items() if own and self.form == "linear"}

    def outside(self, every: bool = True) -> dict[str, Outside]:
        """Return for columns what entries add to their number, in encoded columns of marked rows.

        Without `every`, only numbers beyond the bounds are counted.
        """
        found: dict[str, Outside] = {}
        start, linear, indicated = 0, self.form == "linear", self.form != "ends"
        for name, column in self.schema.items():
            intervals = []
            # Entries of categories of numbers are missing if they are text.
            inside = INSIDE
            if isinstance(column, Number):
                low, high = (-1.0, 1.0) if linear else limits(column)
                least, narrow = float(np.nextafter(low, math.inf)), low + (high - low) / _WIDE
                after = float(np.nextafter(high, math.inf))
                if self.form == "cells":
                    edges = self.edges[name]
                    low, least, after = float(edges[0]), float(np.nextafter(edges[0], math.inf)), _largest(edges)
                    narrow = float(grid_of(column).unwarp(np.array(narrow)))
                end = float(np.nextafter(after, math.inf))
                intervals += [(start, -math.inf, low, OUTSIDE), (start, after, end, OUTSIDE)]
                # Many numbers are at the lower bound itself.
                intervals.append((start, least, max(least, narrow), OUTSIDE))
                if column.missing == "cell" and every:
                    missing = (start + 1, 1.0, math.inf) if indicated else (start, end, math.inf)
                    intervals.append((*missing, _MISSING_NUMBER))
            elif every:
                if column.other == "cell" and isinstance(column.values[0], str):
                    inside = LISTED
                for place in range(len(column.values), len(cells_of(column))):
                    added = -inside / _MISSING_CATEGORIES if place == missing_cell(column) else OUTSIDE
                    at = (start + place, 1.0) if linear else (start, float(place))
                    intervals.append((*at, at[1] + 0.5, added))
            if intervals:
                found[name] = (inside, intervals)
            start += len(self._names_of(name, column))
        return found

    def cell_names(self, edges: Sequence[Array | None]) -> list[list[str]]:
        """Return the names of the cells of encoded columns, which have bins with these edges or categories."""
        found, left = [], iter(edges)
        for name, column in self.schema.items():
            for _, own in zip(self._names_of(name, column), left, strict=False):
                if isinstance(column, Category):
                    found.append(cells_of(column))
                elif own is None:
                    found.append(["present", MISSING_CELL])
                elif self.form == "cells" and column.missing == "cell":
                    found.append([*bin_names(own[:-1]), MISSING_CELL])
                else:
                    found.append(bin_names(own))
        return found

    @property
    def data_norm(self) -> float:
        """Bound on the L2 norm of encoded rows, rounded up."""
        if self.form == "linear":
            # A number and its indicator are never both different from 0.
            return norm_of_entries(1.0, len(self.schema))
        lower, upper = self.bounds if self.bounds is not None else (np.zeros(0), np.zeros(0))
        codes = [size - 1 for _, size in self.layout if size]
        largest = [*np.maximum(np.abs(lower), np.abs(upper)), *codes]
        return max(norm_of_entries(largest, len(largest)), 1.0)

    @property
    def bounds(self) -> tuple[Array, Array] | None:
        """Bounds of the encoded columns that are numbers, or with "linear" of all columns. None if there are none."""
        numbers = [column for column in self.schema.values() if isinstance(column, Number)]
        if self.form == "linear":
            ends = [(0.0, 1.0) if size else (-1.0, 1.0) for _, size in self.layout]
        elif self.form in ("codes", "ends"):
            ends = [self._limits(column) for column in numbers]
        else:
            ends = [(float(column.low), float(column.high)) for column in numbers if self.form == "values"]
        if not ends:
            return None
        lower, upper = np.array(ends).T
        return lower.copy(), upper.copy()

    def _limits(self, column: Number) -> tuple[float, float]:
        low, high = limits(column)
        return (low, high + _GAP * (high - low)) if self.form == "ends" and column.missing == "cell" else (low, high)

    @property
    def categories(self) -> dict[str, int]:
        """The number of codes of each encoded column that holds codes."""
        return {name: size for name, size in self.layout if size}

    def encode(self, X: Any, *, sparse_output: bool = False, marked: bool = False) -> Any:
        """Return the rows of a table as numbers in double precision.

        If they are marked, numbers beyond the bounds are at the next double after the bound, for `outside`.
        """
        every = read_table(self.schema, X)
        if sparse_output:
            return self._sparse(every, marked)
        out = np.zeros((len(every[0]), len(self.layout)))
        start, rows = 0, np.arange(len(out))
        for (name, column), entries in zip(self.schema.items(), every, strict=True):
            width = len(self._names_of(name, column))
            if isinstance(column, Category):
                codes = read_cells(column, entries)
                if self.form == "linear":
                    out[rows, start + codes] = 1.0
                else:
                    out[:, start] = codes
            elif self.form == "cells":
                out[:, start] = self._in_bins(name, column, entries, marked)
            elif self.form == "values":
                out[:, start] = read_numbers(column, entries, warped=False)[0]
            else:
                numbers, missing = (scaled_numbers if self.form == "linear" else read_numbers)(column, entries)
                out[:, start] = marked_beyond(column, entries, numbers) if marked else numbers
                if width == 2:
                    out[:, start + 1] = missing
                elif self.form == "ends":
                    out[missing, start] = self._limits(column)[1]
            start += width
        return out

    def decode(self, X: Array) -> dict[str, list[Any]]:
        """Return the columns of a table from rows that are encoded as "linear" or "codes", or from means of such rows.

        A number is the mean of those that are not missing. It is missing if most are. A category is the most frequent.
        """
        out: dict[str, list[Any]] = {}
        start = 0
        for name, column in self.schema.items():
            width = len(self._names_of(name, column))
            own, start = X[:, start : start + width], start + width
            if isinstance(column, Category):
                last = len(cells_of(column)) - 1
                codes = own.argmax(axis=1) if self.form == "linear" else np.rint(own[:, 0]).clip(0, last)
                # Missing entries are None, and others have the name of their cell.
                values = [*column.values, *cells_of(column)[len(column.values) :]]
                if column.missing == "cell":
                    values[-1] = None
                out[name] = [values[int(code)] for code in codes]
                continue
            low, high = limits(column)
            shares = own[:, 1] if width == 2 else np.zeros(len(own))
            places = own[:, 0]
            if self.form == "linear":
                places = low + (high - low) * (places / np.maximum(1 - shares, 0.5) + 1) / 2
            numbers = np.clip(grid_of(column).unwarp(np.clip(places, low, high)), column.low, column.high)
            out[name] = [None if share > 0.5 else x for share, x in zip(shares, numbers.tolist(), strict=True)]
        return out

    def _in_bins(self, name: str, column: Number, entries: Entries, marked: bool) -> Array:
        values, missing = read_numbers(column, entries, warped=False)
        edges = self.edges[name]
        # Values beyond the edges belong to the outer bins. The last edge itself is in the bin for missing values.
        values = np.clip(values, edges[0], np.nextafter(_largest(edges), -np.inf))
        return np.where(missing, _beyond(edges), marked_beyond(column, entries, values) if marked else values)

    def _sparse(self, every: list[Entries], marked: bool) -> sparse.csr_array:
        """Encode rows for "linear", with one stored entry for each column of the schema."""
        shape = len(every[0]), len(self.schema)
        places, values = np.empty(shape, dtype=np.int64), np.ones(shape)
        start = 0
        for j, ((name, column), entries) in enumerate(zip(self.schema.items(), every, strict=True)):
            if isinstance(column, Number):
                numbers, missing = scaled_numbers(column, entries)
                numbers = marked_beyond(column, entries, numbers) if marked else numbers
                values[:, j] = np.where(missing, 1.0, numbers)
                places[:, j] = start + missing
            else:
                places[:, j] = start + read_cells(column, entries)
            start += len(self._names_of(name, column))
        ends = np.arange(shape[0] + 1) * shape[1]
        return sparse.csr_array((values.ravel(), places.ravel(), ends), shape=(shape[0], len(self.layout)))


def even_edges(schema: Schema, n_bins: int) -> dict[str, Array]:
    """Return edges of `n_bins` bins for each column of numbers, even on the scale of the column."""
    return {name: edges_of(column, n_bins) for name, column in schema.items() if isinstance(column, Number)}


def _largest(edges: Array) -> float:
    """Return the largest double in the last bin for values, which stands for numbers beyond the upper bound."""
    return float(np.nextafter(edges[-1], -math.inf))


def _beyond(edges: Array) -> float:
    """Return the end of the bin for missing values."""
    return float(edges[-1] + max(edges[-1] - edges[-2], abs(edges[-1]) * 2.0**-40))


def norm_of_entries(largest: Any, n_columns: int) -> float:
    """Return a bound on the L2 norm of rows whose entries are at most `largest` in size, rounded up."""
    return float(np.linalg.norm(np.broadcast_to(largest, (n_columns,)))) * (1 + max(2.0**-40, n_columns * 2.0**-50))
