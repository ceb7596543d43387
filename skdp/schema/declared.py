"""Public facts about one column of a table: its bounds with a grid between them, or its list of categories.

A grid is evenly spaced, evenly in logarithms for one sign or both, or half of each.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..checks.params import (
    check_boolean,
    check_bounds,
    check_choice,
    check_positive,
    columns_of,
    is_list,
    shown,
)
from ..mechanisms import UNKNOWN
from ..sensitivity import PARTS, cell_counts, spread_counts
from .entries import MISSING, Entries, check_list, meaning_of

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
            positions = np.subtract(self.warp(X), start, dtype=np.float64)
            # Bounds may be so close that their logarithms are equal.
            positions *= self.n_cells / np.maximum(end - start, 1e-300)
        np.maximum(positions, 0.0, out=positions)
        np.minimum(positions, self.n_cells - 1, out=positions)
        return positions.astype(np.intp)

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
            cells = np.arange(self.n_cells + 1)
            pairs = zip(positions, self._half_even, strict=True)
            return np.array([np.interp(column, cells, edges) for column, edges in pairs])
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
            positions = np.empty(len(block))
            cells = self._cells(block, rate, len(before), positions)
            before.take(cells, out=out, mode="clip")
            for edges in compared:
                out += self._beyond(block, edges.take(cells, out=positions, mode="clip"))
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
        cells = self._cells(edges, rate, size, np.empty(len(edges)))
        counts = np.bincount(cells, minlength=size)
        most = int(counts.max())
        if most > _MOST_IN_CELL:
            return None
        before = np.cumsum(counts) - counts
        compared = np.full((most, size), np.inf)
        compared[np.arange(len(edges)) - before[cells], cells] = edges
        return rate, before, list(compared)


def bin_names(edges: Array) -> list[str]:
    """Return the names of bins with these edges."""
    names = [f"{low:.6g} to {high:.6g}" for low, high in pairwise(edges)]
    # Values beyond the outer edges are counted there.
    if len(names) > 1:
        names[0], names[-1] = f"below {edges[1]:.6g}", f"{edges[-2]:.6g} and above"
    return names


#: Names of the cells of missing entries, and of entries that are in no category.
MISSING_CELL, OTHER_CELL = "missing", "not in list"

# Number of values that a description shows.
_MOST_SHOWN = 10

_REFUSED = (
    'column {0!r} of X holds {1}, and the schema has {2}="error" for it. Declare {2}="cell", or leave out these records'
)


@dataclass(frozen=True)
class Number:
    """A column of numbers between public bounds.

    Parameters
    ----------
    low, high : float
        Public bounds. Values outside are clipped to them.
    step : float, default=None
        Public distance of neighbouring values, for instance 1 for whole numbers. `Schema.sample` uses it, and so does
        ``scale="log"``. Values are not rounded to it. If None, values may be any numbers.
    scale : {"linear", "log"}, default="linear"
        How values are spread between the bounds. With ``"log"``, ratios count and not differences. If `low` is not
        positive, the inverse hyperbolic sine of the value divided by `step` (by 1 without `step`) takes the place of
        the logarithm.
    missing : {"cell", "error"}, default="cell"
        Whether missing values have a cell of their own, or are refused. Entries that are neither numbers nor text that
        spells a number are missing values too.

    See Also
    --------
    Category : A column of categories.
    Schema : The columns of a table.

    Notes
    -----
    **Privacy.** All parameters must be public. Nothing is read from the data.

    Examples
    --------
    >>> from skdp import Number
    >>> Number(0, 99_999, scale="log")
    Number(low=0, high=99999, step=None, scale='log', missing='cell')
    """

    low: float
    high: float
    _: KW_ONLY
    step: float | None = None
    scale: str = "linear"
    missing: str = "cell"

    def __post_init__(self) -> None:
        if np.ndim(self.low) or np.ndim(self.high):
            raise ValueError("low and high must be numbers, and not sequences")
        if isinstance(self.low, int | float) and isinstance(self.high, int | float) and self.low >= self.high:
            raise ValueError(f"low must be less than high, got {self.low!r} and {self.high!r}")
        check_bounds((self.low, self.high), "(low, high)", "the column")
        if self.step is not None:
            check_positive(self.step, "step")
        check_choice(self.scale, "scale", ("linear", "log"))
        check_choice(self.missing, "missing", ("cell", "error"))
        for name in ("low", "high", "step"):
            object.__setattr__(self, name, _simple(getattr(self, name)))


@dataclass(frozen=True)
class Category:
    """A column of categories from a public list.

    Parameters
    ----------
    values : list of str, list of int, list of float, list of bool or int
        The categories, from the code book of the data. An integer k stands for the codes 0, 1, ..., k - 1.
    ordered : bool, default=False
        Whether the order of `values` has a meaning, as that of degrees of education has.
    missing : {"cell", "error"}, default="cell"
        Whether missing values have a cell of their own, or are refused. If `values` are numbers or booleans, entries
        that are no numbers are missing values too. If one of the `values` is a usual spelling of missing values, such
        as ``"NA"``, this category holds the missing values.
    other : {"cell", "missing", "error"}, default="cell"
        Whether entries that are in no category have a cell of their own, count as missing values, or are refused.

    See Also
    --------
    Number : A column of numbers.
    Schema : The columns of a table.

    Notes
    -----
    **Privacy.** All parameters must be public. A list of the values that occur in the data would disclose that rare
    values occur.

    Examples
    --------
    >>> from skdp import Category
    >>> Category(["low", "middle", "high"], ordered=True).values
    ('low', 'middle', 'high')
    """

    values: Any
    _: KW_ONLY
    ordered: bool = False
    missing: str = "cell"
    other: str = "cell"

    def __post_init__(self) -> None:
        checked = check_list(self.values, 1, "values")
        object.__setattr__(self, "values", tuple(checked.values.tolist()))
        object.__setattr__(self, "ordered", check_boolean(self.ordered, "ordered"))
        check_choice(self.missing, "missing", ("cell", "error"))
        check_choice(self.other, "other", ("cell", "missing", "error"))
        # The position of the cell of missing entries, which may be that of a category.
        meanings = list(map(meaning_of, self.values))
        after = len(meanings) + (self.other == "cell") if self.missing == "cell" else -1
        object.__setattr__(self, "_missing_at", meanings.index(None) if None in meanings else after)


Column = Number | Category


def limits(column: Number) -> tuple[float, float]:
    """Return the bounds of a column, on its scale."""
    grid = grid_of(column)
    return float(grid.warp(grid.lower)[0]), float(grid.warp(grid.upper)[0])


def grid_of(column: Number) -> Grid:
    """Return one cell between the bounds of a column, on its scale."""
    scale = "linear" if column.scale == "linear" else "log" if column.low > 0 else "symlog"
    return Grid(np.array([float(column.low)]), np.array([float(column.high)]), 1, scale, float(column.step or 1))


def n_values(column: Number) -> int | None:
    """Return the number of values of a column with a step."""
    return None if column.step is None else int((column.high - column.low) / column.step * (1 + 1e-12)) + 1


def edges_of(column: Number, n_bins: int) -> Array:
    """Return the edges of at most `n_bins` bins between the bounds of a column, even on its scale.

    If the column has a step, edges are halfway between values, so that each bin has a value.
    """
    even, values = replace(grid_of(column), n_cells=n_bins).every_edge()[0], n_values(column)
    if values is None or column.step is None or values < 2:
        return even
    before = np.arange(n_bins - 1.0)[: values - 1]
    if values > n_bins:
        before = np.unique(np.ceil((even[1:-1] - column.low) / column.step - 1).clip(0, values - 2))
    return np.concatenate([even[:1], column.low + (before + 0.5) * column.step, even[-1:]])


def read_numbers(column: Number, entries: Entries, warped: bool = True) -> tuple[Array, NDArray[np.bool_]]:
    """Return clipped numbers, with the middle for missing ones, and which are missing."""
    # They are on the scale of the column if `warped`.
    values, (low, high) = entries.as_numbers(), limits(column) if warped else (float(column.low), float(column.high))
    missing = np.isnan(values)
    if column.missing == "error" and missing.any():
        raise ValueError(_REFUSED.format(entries.name, "missing values, or entries that are no numbers", "missing"))
    values = np.clip(values, column.low, column.high)
    if warped:
        values = grid_of(column).warp(values)
    # Logarithms are rounded.
    return np.where(missing, low / 2 + high / 2, np.clip(values, low, high)), missing


def marked_beyond(column: Number, entries: Entries, numbers: Array) -> Array:
    """Return clipped numbers on any scale, moved to the next double where entries are strictly beyond the bounds."""
    values = entries.as_numbers()
    below, above = values < column.low, values > column.high
    moved: Array = np.where(below, np.nextafter(numbers, -np.inf), numbers)
    return np.where(above, np.nextafter(numbers, np.inf), moved)


def scaled_numbers(column: Number, entries: Entries) -> tuple[Array, NDArray[np.bool_]]:
    """Read numbers as `read_numbers` does, and map the bounds to -1 and 1."""
    values, missing = read_numbers(column, entries)
    low, high = limits(column)
    # Logarithms of different bounds may be equal.
    shares = (values - low) / max(high - low, 1e-300)
    return np.where(missing, 0.0, np.clip(2 * shares - 1, -1.0, 1.0)), missing


def cells_of(column: Category) -> list[str]:
    """Return names of the cells: the categories, and those for other and for missing entries, if there are any."""
    names = [str(value) for value in column.values]
    if column.other == "cell":
        names.append(OTHER_CELL + "_" * (OTHER_CELL in names))
    return names + [MISSING_CELL] * (missing_cell(column) > 0)


def missing_cell(column: Category) -> int:
    """Return the position of the cell that holds only missing entries, or -1."""
    cell: int = column._missing_at  # type: ignore[attr-defined]
    return cell if cell >= len(column.values) else -1


def read_cells(column: Category, entries: Entries) -> NDArray[np.int64]:
    """Return the cell of each entry, and refuse entries as the column declares."""
    codes = entries.as_codes(column.values)
    other, missing = codes == UNKNOWN, codes == MISSING
    if column.other == "missing":
        missing |= other
    elif column.other == "error" and other.any():
        raise ValueError(_REFUSED.format(entries.name, "entries that are in no category", "other"))
    if column.missing == "error" and missing.any():
        raise ValueError(_REFUSED.format(entries.name, "missing values", "missing"))
    codes[other] = len(column.values)
    codes[missing] = column._missing_at  # type: ignore[attr-defined]
    return codes


def count_outside(column: Column, entries: Entries) -> dict[str, int]:
    """Count missing entries, those that are no numbers, and those outside the bounds or in no category."""
    missing = entries.are_missing()
    unreadable = np.isnan(entries.as_numbers()) & ~missing
    if isinstance(column, Number):
        values = entries.as_numbers()
        outside = (values < column.low) | (values > column.high)
    else:
        codes = entries.as_codes(column.values)
        missing, outside = missing & (codes == MISSING), codes == UNKNOWN
        unreadable &= codes == MISSING
    return {"missing": int(missing.sum()), "unreadable": int(unreadable.sum()), "outside": int(outside.sum())}


def count_beyond(rows_per_group: int | None, groups: Entries) -> dict[str, int]:
    """Count missing identifiers of groups, and rows of groups beyond the limit."""
    missing = groups.are_missing()
    known = groups.at(~missing)
    _, sizes = np.unique(known.as_numbers() if known.positions is None else known.positions, return_counts=True)
    beyond = 0 if rows_per_group is None else np.maximum(sizes - rows_per_group, 0).sum()
    return {"missing": int(missing.sum()), "unreadable": 0, "outside": int(beyond)}


def made_up(column: Column, shares: Array) -> list[Any]:
    """Return values for uniform numbers in [0, 1)."""
    if isinstance(column, Category):
        return [column.values[i] for i in (shares * len(column.values)).astype(int).tolist()]
    low, high = limits(column)
    values = np.clip(grid_of(column).unwarp(low + (high - low) * shares), column.low, column.high)
    if column.step is not None:
        steps = np.minimum(np.rint((values - column.low) / column.step), (column.high - column.low) // column.step)
        values = column.low + steps * column.step
        if isinstance(column.low, int) and isinstance(column.step, int):
            return [int(value) for value in values.tolist()]
    return list(values.tolist())


def described(column: Column) -> tuple[str, str]:
    """Describe the public values, and the treatment of other values if they have no cell."""
    if isinstance(column, Number):
        parts = [f"{column.low!r} to {column.high!r}"]
        parts += [] if column.step is None else [f"step {column.step!r}"]
        parts += [] if column.scale == "linear" else [f"{column.scale} scale"]
        return ", ".join(parts), _rules(column)
    texts = [repr(value) for value in column.values]
    left_out = len(texts) - _MOST_SHOWN
    if left_out > 0:
        texts = [*texts[:_MOST_SHOWN], f"and {left_out} more"]
    size = f"{len(column.values)} ordered: " if column.ordered else f"{len(column.values)}: "
    return size + ", ".join(texts), _rules(column)


def _rules(column: Column) -> str:
    rules = {name: getattr(column, name, "cell") for name in ("missing", "other")}
    return ", ".join(f"{name}: {rule}" for name, rule in rules.items() if rule != "cell")


def as_column(value: Any, where: str) -> Column:
    try:
        if isinstance(value, Number | Category):
            return value
        if isinstance(value, tuple) and len(value) == 2 and not any(isinstance(each, str) for each in value):
            return Number(*value)
        if is_list(value) and not isinstance(value, tuple):
            return Category(value)
        problem: Exception = TypeError(
            f"must be a Number, a Category, a tuple (low, high) of numbers or a list of categories, got {shown(value)}"
        )
    except (TypeError, ValueError) as error:
        problem = type(error)(str(error))
    raise type(problem)(f"{where}: {problem}")


def _simple(value: Any) -> Any:
    """Return a number as an int or a float of Python."""
    if value is None:
        return None
    number = float(value)
    return int(value) if isinstance(value, int | np.integer) and abs(number) < 2.0**53 else number
