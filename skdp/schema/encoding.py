"""The encoding of rows of a declared table as numbers, and the base of estimators with a parameter `schema`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.utils.validation import check_is_fitted

from ..checks.params import check_classes
from ..parts.arrays import is_collection, rowwise
from .columns import check_edges
from .declared import (
    MISSING_CELL,
    Category,
    Column,
    Number,
    bin_names,
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
from .entries import Entries, check_index, labels_by, table_columns
from .schema import Schema, as_schema, read_table

Array = NDArray[np.float64]

#: What an entry outside adds, and a declared one, if half of the entries may be outside, or a tenth. Sums are exact.
OUTSIDE, INSIDE, LISTED = 0.5, -0.5, -57 / 1024

#: What entries of a column add, unless they are in one of the disjoint intervals of encoded columns. An interval has
#: the position of its column, its first number, its end, and what is added.
Interval = tuple[int, float, float, float]
Outside = tuple[float, Sequence[Interval]]

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
    # - "linear": numbers in [-1, 1], and an indicator for each category;
    # - "codes": numbers between bounds, and codes of categories;
    # - "ends": as "codes", with missing numbers beyond the upper bound in place of an indicator;
    # - "cells": numbers in bins, of which the last holds missing values, and codes of categories;
    # - "values": numbers as they are, without categories or missing values;
    # - "categories": codes of categories, without numbers.
    form: str
    # Edges of the bins of numbers, without the bin for missing values, for "cells".
    edges: Mapping[str, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        wanted = {"values": Number, "categories": Category}.get(self.form)
        for name, column in self.schema.items():
            if wanted is not None and not isinstance(column, wanted):
                raise ValueError(
                    f"the schema declares the column {name!r} as a {type(column).__name__}, and this estimator takes a "
                    f"{wanted.__name__} only: choose columns with schema.select, or put a TableEncoder before it"
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
        # Ordered categories are in bins, because neighbouring ones are similar.
        return [(name, 0 if self.form == "cells" and column.ordered else len(cells_of(column)))]

    def _blocks(self) -> Iterator[tuple[str, Column, range]]:
        """Yield each column of the schema with the positions of its encoded columns."""
        end = 0
        for name, column in self.schema.items():
            start, end = end, end + len(self._names_of(name, column))
            yield name, column, range(start, end)

    @property
    def layout(self) -> list[tuple[str, int]]:
        """The name of each encoded column, and its number of categories, which is 0 for numbers."""
        sizes: dict[str, int] = {}
        for original, column in self.schema.items():
            for name, size in self._names_of(original, column):
                # A category may have the name of a cell.
                while name in sizes:
                    name += "_"
                sizes[name] = size
        return list(sizes.items())

    def origins(self) -> list[int]:
        """Return for each encoded column the position of its original column."""
        return [j for j, (_, _, positions) in enumerate(self._blocks()) for _ in positions]

    @property
    def names(self) -> NDArray:
        """Names of the encoded columns."""
        return np.array([name for name, _ in self.layout], dtype=object)

    def bins(self) -> dict[str, Array]:
        """Return the edges of all bins, with those for missing values, for "cells"."""
        bins = {}
        for name, column in self.schema.items():
            if isinstance(column, Number):
                edges = self.edges[name]
                bins[name] = np.append(edges, _beyond(edges)) if column.missing == "cell" else edges
            elif column.ordered:
                bins[name] = np.arange(len(cells_of(column)) + 1) - 0.5
        return bins

    def declared_cells(self) -> tuple[dict[str, int], dict[str, int]]:
        """Return for encoded columns how many of their first cells hold declared values, and how many values these are.

        Columns whose cells all hold declared values, and columns of numbers without steps, are left out.
        """
        cells: dict[str, int] = {}
        values: dict[str, int] = {}
        names = [name for name, _ in self.layout]
        for name, column, positions in self._blocks():
            n_cells, n_possible = 0, None
            if isinstance(column, Category):
                n_cells = len(column.values) if len(column.values) < len(cells_of(column)) else 0
                n_possible = len(cells_of(column))
            elif self.form == "cells":
                n_cells, n_possible = (len(self.edges[name]) - 1) * (column.missing == "cell"), n_values(column)
            cells |= {names[j]: n_cells for j in positions if n_cells}
            if self.form == "cells" and n_possible is not None:
                values[name] = n_possible
        return cells, values

    def undeclared(self) -> dict[str, tuple[bool, range]]:
        """Return for columns whether they hold numbers, and where other and missing entries are, for "linear"."""
        indicators = {
            name: (isinstance(column, Number), positions[len(column.values) if isinstance(column, Category) else 1 :])
            for name, column, positions in self._blocks()
            if self.form == "linear"
        }
        return {name: pair for name, pair in indicators.items() if pair[1]}

    def outside(self, every: bool = True) -> dict[str, Outside]:
        """Return for columns what entries add to their number, in encoded columns of marked rows.

        Without `every`, only numbers beyond the bounds are counted.
        """
        added: dict[str, Outside] = {}
        for name, column, positions in self._blocks():
            if isinstance(column, Number):
                added[name] = (INSIDE, self._outside_number(name, column, positions, every))
            elif every and len(cells_of(column)) > len(column.values):
                # Entries of categories of numbers are missing if they are text.
                inside = LISTED if column.other == "cell" and isinstance(column.values[0], str) else INSIDE
                intervals = []
                for cell in range(len(column.values), len(cells_of(column))):
                    adds = -inside / _MISSING_CATEGORIES if cell == missing_cell(column) else OUTSIDE
                    at, value = (positions[cell], 1.0) if self.form == "linear" else (positions[0], float(cell))
                    intervals.append((at, value, value + 0.5, adds))
                added[name] = (inside, intervals)
        return added

    def _outside_number(self, name: str, column: Number, positions: range, every: bool) -> Sequence[Interval]:
        low, high = self._limits(column)
        narrow, after = low + (high - low) / _WIDE, float(np.nextafter(high, math.inf))
        if self.form == "cells":
            low, after = float(self.edges[name][0]), _largest(self.edges[name])
            narrow = float(grid_of(column).unwarp(np.array(narrow)))
        # Many numbers are at the lower bound itself. The intervals are disjoint, also for edges far from the bounds.
        start, least = positions[0], float(np.nextafter(low, math.inf))
        after = max(after, least)
        end = float(np.nextafter(after, math.inf))
        intervals = [
            (start, -math.inf, low, OUTSIDE),
            (start, after, end, OUTSIDE),
            (start, least, min(max(least, narrow), after), OUTSIDE),
        ]
        if column.missing == "cell" and every:
            missing = (start, end, math.inf) if self.form == "ends" else (start + 1, 1.0, math.inf)
            intervals.append((*missing, _MISSING_NUMBER))
        return intervals

    def cell_names(self, edges: Sequence[Array | None]) -> list[list[str]]:
        """Return the names of the cells of encoded columns, which have bins with these edges or categories."""
        names = []
        for _, column, positions in self._blocks():
            for bins in (edges[j] for j in positions):
                if isinstance(column, Category):
                    names.append(cells_of(column))
                elif bins is None:
                    names.append(["present", MISSING_CELL])
                elif self.form == "cells" and column.missing == "cell":
                    names.append([*bin_names(bins[:-1]), MISSING_CELL])
                else:
                    names.append(bin_names(bins))
        return names

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
        """Bounds of the encoded numbers, with "linear" of all columns. None without numbers, and for "cells"."""
        if self.form == "linear":
            ends = [(0.0, 1.0) if size else (-1.0, 1.0) for _, size in self.layout]
        else:
            ends = [self._ends(column) for column in self.schema.values() if isinstance(column, Number)]
        if not ends or self.form in ("cells", "categories"):
            return None
        lower, upper = np.array(ends).T
        return lower.copy(), upper.copy()

    def _limits(self, column: Number) -> tuple[float, float]:
        """Return the bounds of a number that is not missing, on the scale of the form before bins."""
        if self.form == "linear":
            return -1.0, 1.0
        return (float(column.low), float(column.high)) if self.form == "values" else limits(column)

    def _ends(self, column: Number) -> tuple[float, float]:
        """Return the bounds of a column. With "ends", a missing number is at the upper one, behind a gap."""
        low, high = self._limits(column)
        return (low, high + _GAP * (high - low)) if self.form == "ends" and column.missing == "cell" else (low, high)

    @property
    def categories(self) -> dict[str, int]:
        """The number of codes of each encoded column that holds codes."""
        return {name: size for name, size in self.layout if size}

    def encode(self, X: Any, *, sparse_output: bool = False, marked: bool = False) -> Any:
        """Return the rows of a table as numbers in double precision.

        If they are marked, numbers beyond the bounds are at the next double after the bound, for `outside`.
        """
        table = read_table(self.schema, X)
        shape, stored = (len(table[0]), len(self.layout)), (len(table[0]), len(table))
        rows, out = np.arange(shape[0]), np.zeros((0, 0) if sparse_output else shape)
        # One encoded column of each column of the schema is not 0 in sparse rows.
        columns, values = (np.ones(stored if sparse_output else (0, 0), dtype) for dtype in (np.int64, np.float64))
        for j, ((name, column, positions), entries) in enumerate(zip(self._blocks(), table, strict=True)):
            start = positions[0]
            if isinstance(column, Category):
                codes = read_cells(column, entries)
                if sparse_output:
                    columns[:, j] = start + codes
                elif self.form == "linear":
                    out[rows, start + codes] = 1.0
                else:
                    out[:, start] = codes
                continue
            numbers, missing = self._read_numbers(name, column, entries, marked)
            if sparse_output:
                columns[:, j], values[:, j] = start + missing, np.where(missing, 1.0, numbers)
            else:
                out[:, start] = numbers
                if len(positions) == 2:
                    out[:, start + 1] = missing
        if not sparse_output:
            return out
        ends = np.arange(shape[0] + 1) * len(table)
        return sparse.csr_array((values.ravel(), columns.ravel(), ends), shape=shape)

    def _read_numbers(
        self, name: str, column: Number, entries: Entries, marked: bool
    ) -> tuple[Array, NDArray[np.bool_]]:
        """Return numbers on the scale of the form, and which are missing."""
        if self.form == "linear":
            numbers, missing = scaled_numbers(column, entries)
        else:
            numbers, missing = read_numbers(column, entries, warped=self.form in ("codes", "ends"))
        if self.form == "cells":
            # Values beyond the edges belong to the outer bins. The last edge itself is in the bin for missing values.
            edges = self.edges[name]
            numbers = np.clip(numbers, edges[0], np.nextafter(_largest(edges), -np.inf))
        if marked:
            numbers = marked_beyond(column, entries, numbers)
        if self.form in ("cells", "ends"):
            absent = _beyond(self.edges[name]) if self.form == "cells" else self._ends(column)[1]
            numbers = np.where(missing, absent, numbers)
        return numbers, missing

    def decode(self, X: Array) -> dict[str, list[Any]]:
        """Return the columns of a table from rows that are encoded as "linear" or "codes", or from means of such rows.

        A number is the mean of those that are not missing. It is missing if most are. A category is the most frequent.
        """
        table: dict[str, list[Any]] = {}
        for name, column, positions in self._blocks():
            encoded = X[:, positions.start : positions.stop]
            if isinstance(column, Category):
                cells = cells_of(column)
                last = len(cells) - 1
                codes = encoded.argmax(axis=1) if self.form == "linear" else np.rint(encoded[:, 0]).clip(0, last)
                # Missing entries are None, and others have the name of their cell.
                values = [*column.values, *cells[len(column.values) :]]
                if column.missing == "cell":
                    values[-1] = None
                table[name] = [values[int(code)] for code in codes]
                continue
            low, high = limits(column)
            missing = encoded[:, 1] if len(positions) == 2 else np.zeros(len(encoded))
            numbers = encoded[:, 0]
            if self.form == "linear":
                # If more than half of a mean is missing, the number is not returned, and must only be finite.
                numbers = low + (high - low) * (numbers / np.maximum(1 - missing, 0.5) + 1) / 2
            numbers = np.clip(grid_of(column).unwarp(np.clip(numbers, low, high)), column.low, column.high)
            pairs = zip(missing, numbers.tolist(), strict=True)
            table[name] = [None if share > 0.5 else number for share, number in pairs]
        return table


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


# If an estimator accepts sparse rows, rows with more encoded columns than this are sparse.
_MOST_DENSE = 200

# These parameters describe the coding of columns, which the schema does.
_CODING = ("categories", "categorical_features", "n_categories")


class TakesSchema:
    """Mixin of estimators that accept the public facts about a table as one object."""

    schema: Any
    n_features_in_: int

    #: The form of encoded rows (see `Encoding`).
    _schema_form: ClassVar[str] = "linear"

    #: What a fit releases numbers of if it is not declared, because other releases do not show it: entries (or only
    #: numbers beyond bounds), target.
    _counts_outside: ClassVar[tuple[str, ...]] = ()

    #: Whether the estimator computes with sparse rows.
    _takes_sparse: ClassVar[bool] = False

    #: The encoding of the rows by the step before, which a pipeline sets for a fit.
    _encoded_by: Encoding | None = None

    #: Whether rows that are read without a reset are those of a fit.
    _reads_fit = False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        # An estimator that computes with dense rows only makes sparse ones dense if they have few columns.
        tags.input_tags.sparse = getattr(self, "schema", None) is None
        if getattr(self, "schema", None) is not None:
            tags.input_tags.string = tags.input_tags.categorical = tags.input_tags.allow_nan = True
        return tags

    def _encoding_of_rows(self) -> Encoding | None:
        """Return the encoding that makes the rows of a fit: that of the schema, or that of the step before."""
        return self._encoding() or self._encoded_by

    def _form(self) -> str:
        return self._schema_form

    def _encoding(self) -> Encoding | None:
        """Return the encoding of rows, or None if there is no schema."""
        if getattr(self, "schema", None) is None:
            return None
        schema, form = as_schema(self.schema), self._form()
        for name in _CODING:
            if getattr(self, name, None) is not None:
                raise ValueError(f"{name} follows from the schema: give one of them and not both")
        if schema.group is not None and not hasattr(self, "rows_per_group"):
            raise ValueError(
                f"the schema declares groups, and {type(self).__name__} has no parameter rows_per_group. Use an "
                "estimator that has it, such as DPNaiveBayes, or charge by hand (user guide, Multiple rows per person)"
            )
        edges = {}
        if form == "cells":
            edges = even_edges(schema, self._n_cells())
            for name, given in (getattr(self, "bin_edges", None) or {}).items():
                if name not in edges:
                    raise ValueError(f"bin_edges names {name!r}, which is no column of numbers of the schema")
                edges[name] = check_edges(given, name)
        return Encoding(schema, form, edges)

    def _n_cells(self) -> int:
        """Return the number of cells of numbers, for estimators of tables in cells."""
        return self.n_bins  # type: ignore[attr-defined]

    def _declared(self, name: str) -> Any:
        """Return a public parameter, given or from the schema."""
        given, encoding = getattr(self, name, None), self._encoding()
        if encoding is None:
            return given
        if name == "bin_edges":
            return encoding.bins() if encoding.form == "cells" else given
        if name == "interactions":
            names = list(encoding.schema)
            return given and [[names[c] if isinstance(c, int | np.integer) else c for c in pair] for pair in given]
        if given is not None:
            return given
        if name == "rows_per_group":
            return encoding.schema.rows_per_group
        if name in ("classes", "bounds_y"):
            return declared_target(encoding.schema, name, self)
        if name == "bounds" and encoding.form == "linear" and hasattr(self, "data_norm"):
            return (-1.0, 1.0)
        if name == "categories" and encoding.form == "categories":
            return [list(range(size)) for size in encoding.categories.values()]
        return getattr(encoding, name)

    def _declared_cells(self) -> tuple[dict[str, int], dict[str, int]]:
        """Return what `Encoding.declared_cells` returns of the encoding of the rows."""
        encoding = self._encoding_of_rows()
        if encoding is None or (encoding is self._encoded_by and encoding.form == "linear"):
            return {}, {}
        return encoding.declared_cells()

    def _undeclared(self) -> dict[str, tuple[bool, range]]:
        """Return what `Encoding.undeclared` returns, if the units of the indicators follow from the schema."""
        encoding, bounds = self._encoding_of_rows(), getattr(self, "bounds", None)
        as_encoded = bounds is None or (self._encoded_by is not None and np.array_equal(bounds, (-1.0, 1.0)))
        return encoding.undeclared() if encoding is not None and as_encoded else {}

    def _outside(self) -> tuple[dict[str, Outside], bool]:
        """Return columns whose undeclared entries a fit counts, and whether it counts undeclared labels."""
        encoding = self._encoding_of_rows() if self._counts_outside else None
        if encoding is None or (hasattr(self, "rows_per_group") and self._declared("rows_per_group") is not None):
            return {}, False
        columns = encoding.outside("entries" in self._counts_outside) if self._marks else {}
        return columns, "target" in self._counts_outside and is_classifier(self)

    @property
    def _marks(self) -> bool:
        """Whether a fit counts numbers beyond their bounds."""
        return not {"entries", "numbers"}.isdisjoint(self._counts_outside)

    def _labels(self, y: Any, classes: Any) -> Any:
        """Return labels as they are compared with the label set, for a classifier with a schema."""
        if getattr(self, "schema", None) is None or y is None or not is_classifier(self):
            return y
        if classes is None:
            classes = check_classes(self._declared("classes"))
        return rowwise(partial(labels_by, known_classes(classes)), y)

    def _used(self, reset: bool = False) -> Encoding | None:
        """Return the encoding of the fit, or before a fit, or for a fit (`reset`), that of the parameters."""
        fitted = not reset and hasattr(self, "n_features_in_")
        return getattr(self, "_table", None) if fitted else self._encoding()

    def _encoded(self, X: Any, *, reset: bool) -> Any:
        """Return the rows as numbers, if there is a schema. Otherwise, return them as they are."""
        encoding = self._used(reset)
        if encoding is not None:
            # The number of encoded columns is public.
            wide = encoding.form == "linear" and len(encoding.layout) > _MOST_DENSE
            marked = self._marks and (reset or self._reads_fit)
            X = encoding.encode(X, sparse_output=wide and self._takes_sparse, marked=marked)
        if reset:
            self._keep(encoding)
        return X

    def _column_reader(self, of_fit: bool) -> ColumnReader:
        """Return an object that validates rows elsewhere as this estimator does here, without its parameters."""
        return ColumnReader(self, of_fit)

    def _keep(self, encoding: Encoding | None) -> None:
        """Store the encoding, and the names of the schema's columns."""
        vars(self).pop("_table", None)
        if encoding is not None:
            self._table = encoding
            store_columns(self, encoding.schema)

    def _names(self) -> NDArray | None:
        """Return the names of the columns that the estimator computes with."""
        encoding = self._used() or self._encoded_by
        return getattr(self, "feature_names_in_", None) if encoding is None else encoding.names

    @property
    def _n_columns(self) -> int:
        """The number of the columns that the estimator computes with."""
        check_is_fitted(self, "n_features_in_")
        encoding = self._used()
        return self.n_features_in_ if encoding is None else len(encoding.layout)

    def _importances(self, sizes: Any) -> Any:
        """Return importances of the columns of X, which add up to 1, from those of encoded columns."""
        encoding = self._used()
        if encoding is not None:
            sizes = np.bincount(encoding.origins(), sizes, minlength=len(encoding.schema))
        total = sizes.sum()
        return sizes / total if total > 0 else np.zeros(len(sizes))


def store_columns(estimator: Any, schema: Schema) -> None:
    """Store the number and the names of the features, which are the schema's columns, and not all of the table's."""
    estimator.n_features_in_ = len(schema)
    estimator.feature_names_in_ = np.array(list(schema), dtype=object)


def declared_target(schema: Schema, name: str, estimator: Any) -> Any:
    """Return `classes` or `bounds_y` as the target declares it, or refuse a target that the estimator cannot have."""
    target, of_labels = schema.target, name == "classes"
    if target is None:
        return None
    named = "" if schema.target_name is None else f" {schema.target_name!r}"
    if of_labels and isinstance(target, Category):
        return list(target.values)
    if not of_labels and isinstance(target, Number):
        if target.scale == "log":
            raise ValueError(
                f'the schema declares the target{named} with scale="log", which {type(estimator).__name__} does not '
                "take: declare it without scale. If ratios count, pass logarithms of y and declare their bounds"
            )
        return float(target.low), float(target.high)
    if is_classifier(estimator) if of_labels else is_regressor(estimator):
        kind, other = ("classifier", "Regressor") if of_labels else ("regressor", "Classifier")
        raise ValueError(
            f"the schema declares the target{named} as a {type(target).__name__}, and {type(estimator).__name__} is a "
            f"{kind}: use another estimator, such as DPAdditive{other}, or declare another target"
        )
    return None


def known_classes(classes: NDArray | None) -> NDArray:
    """Return the label set, or refuse to read it from the data, for an estimator with a schema."""
    if classes is None:
        raise ValueError(
            "the schema declares no target, and labels are never read from the data if there is a schema: use "
            "Schema(..., target=Category([...])), or pass classes=[...]"
        )
    return classes


class ColumnReader(TakesSchema, BaseEstimator):
    """Number and names of the columns that an estimator has read, and their encoding: neither budget nor seed."""

    def __init__(self, estimator: Any = None, of_fit: bool = False) -> None:
        for name in ("n_features_in_", "feature_names_in_", "_table", "_counts_outside"):
            if hasattr(estimator, name):
                setattr(self, name, getattr(estimator, name))
        self._reads_fit = of_fit


def column_named(X: Any, name: str | None) -> Any:
    """Return a column of a table, or None if the table does not have it."""
    if is_collection(X):
        return X[name] if name in getattr(X, "columns", []) else None
    names, columns = table_columns(X)
    return columns[names.index(name)] if names is not None and name in names else None


def groups_column(schema: Schema, X: Any) -> Any:
    """Return the column of groups that a schema declares, or None."""
    if schema.group is None or (is_collection(X) and not hasattr(X, "ndim")):
        # A Bag of Dask has no columns. It is refused later.
        return None
    groups = column_named(X, schema.group)
    if groups is None:
        raise ValueError(f"X lacks the column {schema.group!r} of groups that the schema declares: pass it, or groups")
    return groups


def check_target(schema: Schema | None, X: Any, y: Any) -> None:
    """Refuse targets with another index than that of the rows, or with the name of a declared feature."""
    check_index(X, y, "y")
    name = getattr(y, "name", None)
    if schema is not None and isinstance(name, str) and name in schema:
        raise ValueError(
            f"the schema declares {name!r} as a feature, and y is the column of that name. Declare it as the target "
            f"(Schema(..., target={{{name!r}: ...}})), or leave it out (schema.drop({name!r}))"
        )


def target_of(schema: Schema | None, X: Any, y: Any = None) -> Any:
    """Return `y`, or the column of the target that a schema declares if it is None. Refuse if both are missing."""
    if y is not None:
        check_target(schema, X, y)
        return y
    name = None if schema is None else schema.target_name
    target = None if name is None else column_named(X, name)
    if target is None:
        which = (
            "no schema names a column of X as the target: pass y"
            if name is None
            else f"X lacks the column {name!r}, which the schema names as the target: pass a table with this column, "
            "or the targets as y"
        )
        raise ValueError(f"requires y to be passed, but the target y is None, and {which}")
    return target


def unit_of(schema: Schema | None, rows_per_group: int | None, groups: Any, X: Any) -> tuple[int | None, Any]:
    """Return `rows_per_group` and `groups`, given or as the schema declares them."""
    if schema is None or schema.group is None:
        return rows_per_group, groups
    rows_per_group = schema.rows_per_group if rows_per_group is None else rows_per_group
    return rows_per_group, groups_column(schema, X) if groups is None else groups
