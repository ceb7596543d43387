"""What users say about the columns of a table, and the cell that each entry of it falls into.

All of it is public, but for edges that are private quantiles. Each record is read by itself, so that neighbouring data
sets stay neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..checks.data import FLOATS, check_quietly, validate_quietly
from ..checks.params import check_bounds, check_choice, check_integer, check_positive, is_list
from ..local._base import has_one_type
from ..local._categories import Categories, check_categories, entries_of
from ..preprocessing._grid import SCALES, Grid
from ..schema.bins import Bins
from ..schema.names import bounds_of_columns, column_name, positions_of
from ..schema.tables import check_bin_edges

Array = NDArray[np.float64]
Codes = NDArray[np.int32]

THRESHOLDS = ("uniform", "quantile")

#: Cells of the grid of which private edges are.
GRID_SIZE = 1024

_MOST_BINS = 4096


@dataclass(frozen=True)
class ColumnParameters:
    """Checked parameters about columns, which are still named as the user named them."""

    categories: tuple[tuple[Any, Categories], ...]
    edges: tuple[tuple[Any, Array], ...]
    interactions: tuple[tuple[Any, Any], ...]
    bounds: tuple[Array, Array] | None
    n_bins: int
    scale: str
    unit: float
    private_edges: bool


@dataclass(frozen=True, eq=False)
class Columns:
    """Describe each column, by position, with public values only."""

    kinds: tuple[Categories | Array | None, ...]  # Categories, edges of bins, or None for edges to release.
    n_bins: int  # For columns whose edges are released.
    grid: Grid  # Released edges lie on this grid of the columns with bounds.
    pairs: tuple[tuple[int, int], ...]  # Pairs of columns with their own term.

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of cells of each column."""
        return tuple(
            len(kind.values) if isinstance(kind, Categories) else self.n_bins if kind is None else len(kind) - 1
            for kind in self.kinds
        )

    @property
    def ordered(self) -> tuple[bool, ...]:
        """Whether neighbouring cells are alike."""
        return tuple(not isinstance(kind, Categories) for kind in self.kinds)

    @property
    def private(self) -> list[int]:
        """Columns whose edges are to be released."""
        return [j for j, kind in enumerate(self.kinds) if kind is None]

    def edges_at(self, positions: NDArray) -> list[Array | None]:
        """Return the edges of each column, with those at released positions on the grid; None for categories."""
        ends = np.ones((len(positions), 1))
        cells = self.grid.positions(positions)
        released = iter(self.grid.values(np.hstack([0 * ends, cells, self.grid.n_cells * ends])))
        found = [next(released) if kind is None else kind for kind in self.kinds]
        return [None if isinstance(kind, Categories) else kind for kind in found]

    def with_edges(self, edges: list[Array | None]) -> Columns:
        """Return the columns, with edges wherever there are no categories."""
        every = zip(self.kinds, edges, strict=True)
        return replace(self, kinds=tuple(own if edges is None else edges for own, edges in every))

    def grid_shares(self, X: list[NDArray]) -> Array:
        """Count shares of records in the grids of the columns whose edges are to be released."""
        return self.grid.shares(np.column_stack([X[j] for j in self.private]))

    def codes(self, X: list[NDArray]) -> Codes:
        """Return the cell of each entry, by column and row; what is in none has the number after the last."""
        n_rows = len(X[0])
        out = np.empty((len(self.kinds), n_rows), dtype=np.int32)
        for j, (kind, size, entries) in enumerate(zip(self.kinds, self.sizes, X, strict=True)):
            if isinstance(kind, Categories):
                found = kind.encode(entries)
                out[j] = np.where(found < 0, size, found)
            else:
                assert kind is not None
                out[j] = Bins(kind[1:-1], right=True)(entries)
        return out

    def labels(self, j: int) -> list[str]:
        """Return what the cells of a column are called."""
        kind = self.kinds[j]
        if isinstance(kind, Categories):
            return [str(value) for value in kind.values.tolist()]
        assert kind is not None
        names = [f"{low:.6g} to {high:.6g}" for low, high in pairwise(kind)]
        # Values beyond the outer edges are counted there.
        if len(names) > 1:
            names[0], names[-1] = f"below {kind[1]:.6g}", f"{kind[-2]:.6g} and above"
        return names


def check_columns(estimator: Any) -> ColumnParameters:
    """Check the parameters that say what the columns are, as far as that goes without their number."""
    categories = _check_categories(estimator.categories)
    edges = check_bin_edges(estimator.bin_edges)
    taken = [*(name for name, _ in categories), *(name for name, _ in edges)]
    if len(set(taken)) < len(taken):
        raise ValueError("a column may occur once only in categories and bin_edges together")
    interactions = _check_interactions(estimator.interactions)
    if interactions and len({type(name) for name in [*taken, *(c for pair in interactions for c in pair)]}) > 1:
        raise ValueError("interactions, categories and bin_edges must all hold positions, or all hold names")
    scale = check_choice(estimator.scale, "scale", SCALES)
    bounds = estimator.bounds
    if bounds is None and not taken:
        # With categories or edges, columns may be left that need bounds: see `columns_for`.
        check_bounds(bounds, "bounds", "the numeric features")
    return ColumnParameters(
        categories=categories,
        edges=edges,
        interactions=interactions,
        bounds=None if bounds is None else check_bounds(bounds, "bounds", "the numeric features"),
        n_bins=check_integer(estimator.n_bins, "n_bins", least=2, most=_MOST_BINS),
        scale=scale,
        unit=check_positive(estimator.unit, "unit"),
        private_edges=check_choice(estimator.thresholds, "thresholds", THRESHOLDS) == "quantile",
    )


def _check_categories(value: Any) -> tuple[tuple[Any, Categories], ...]:
    if value is None:
        return ()
    if not isinstance(value, Mapping):
        raise TypeError(f"categories must map columns to lists of categories, got {type(value).__name__}")
    checked = []
    for name, listed in value.items():
        if not np.isscalar(listed) and not is_list(listed):
            raise ValueError(f"categories must have a number or a list for each column; {name!r} has not")
        one = check_categories(listed if np.isscalar(listed) else [listed], 1, least=1)[0]
        if len(one.values) > _MOST_BINS:
            raise ValueError(f"categories may be at most {_MOST_BINS} for a column; {name!r} has more")
        checked.append((column_name(name, "categories"), one))
    return tuple(checked)


def _check_interactions(value: Any) -> tuple[tuple[Any, Any], ...]:
    if value is None:
        return ()
    if not is_list(value) or not all(is_list(pair) and len(pair) == 2 for pair in value):
        raise ValueError("interactions must be a list of pairs of columns, by position or name")
    pairs = tuple((column_name(a, "interactions"), column_name(b, "interactions")) for a, b in value)
    if any(a == b for a, b in pairs) or len({frozenset(pair) for pair in pairs}) < len(pairs):
        raise ValueError("interactions must be pairs of different columns, each pair once")
    return pairs


def columns_for(parameters: ColumnParameters, n_features: int, names: NDArray | None, named: bool = True) -> Columns:
    """Return the description of each of `n_features` columns."""
    # Without `named`, names stand for any remaining columns, because a plan does not depend on which they are.
    own = [("categories", [name for name, _ in parameters.categories])]
    own.append(("bin_edges", [name for name, _ in parameters.edges]))
    categorical, uneven = positions_of(own, n_features, names, named)
    place = dict(zip([*own[0][1], *own[1][1]], [*categorical, *uneven], strict=True))
    others = [c for pair in parameters.interactions for c in pair if c not in place]
    # Positions that are meant twice, once by name, are no matter here.
    for column in dict.fromkeys(others):
        taken = [] if isinstance(column, int) or named else sorted(place.values())
        group = [("interactions", [*taken, column])]
        place[column] = positions_of(group, n_features, names, named)[0][-1]
    pairs = tuple((place[a], place[b]) for a, b in parameters.interactions)
    if any(a == b for a, b in pairs) or len({frozenset(pair) for pair in pairs}) < len(pairs):
        raise ValueError("interactions must be pairs of different columns, each pair once")

    everything = np.arange(n_features)
    numeric = np.setdiff1d(everything, categorical)
    rest = np.setdiff1d(numeric, uneven)
    if parameters.private_edges and not len(rest):
        raise ValueError('thresholds="quantile" is for columns without categories and bin_edges, and there are none')
    lower, upper = bounds_of_columns(parameters.bounds, n_features, rest, numeric)
    if parameters.scale == "log" and not np.all(lower[rest] > 0):
        raise ValueError('bounds must be positive with scale="log"; scale="symlog" takes zero and both signs')
    n_cells = GRID_SIZE if parameters.private_edges else parameters.n_bins
    # Among edges that are even, and others, private ones find records in a small part of the bounds.
    scale = "auto" if parameters.private_edges and parameters.scale == "linear" else parameters.scale
    grid = Grid(lower[rest], upper[rest], n_cells, scale, parameters.unit)
    kinds: list[Categories | Array | None] = [None] * n_features
    for j, (_, one) in zip(categorical, parameters.categories, strict=True):
        kinds[j] = one
    for j, (_, edges) in zip(uneven, parameters.edges, strict=True):
        kinds[j] = edges
    if not parameters.private_edges:
        every = grid.values(np.broadcast_to(np.arange(n_cells + 1), (len(rest), n_cells + 1)))
        for j, edges in zip(rest, every, strict=True):
            kinds[j] = edges
    return Columns(tuple(kinds), parameters.n_bins, grid, pairs)


def any_columns(parameters: ColumnParameters) -> Columns:
    """Return columns that cost what those of any table do: one, with edges that are public, or are not."""
    grid = Grid(np.zeros(1), np.ones(1), GRID_SIZE, "linear", 1.0)
    kind = None if parameters.private_edges else np.array([0.0, 1.0, 2.0])
    return Columns((kind,), parameters.n_bins, grid, ())


def read_rows(estimator: Any, X: Any, has_categories: bool, *, reset: bool) -> NDArray:
    """Validate rows; with categories, of any entries."""
    if not has_categories:
        rows: NDArray = validate_quietly(estimator, X, dtype=list(FLOATS), ensure_min_samples=0, reset=reset)
        return rows
    X = entries_of(X)
    rows = validate_quietly(
        estimator,
        X,
        dtype=None if has_one_type(X) else object,
        ensure_all_finite=False,
        ensure_min_samples=0,
        reset=reset,
        times=True,
    )
    return rows


def split_columns(rows: NDArray, columns: Columns) -> list[NDArray]:
    """Return the columns one by one: numbers as such, what is categorical as it is."""
    numeric = [j for j, ordered in enumerate(columns.ordered) if ordered]
    if len(numeric) == rows.shape[1]:
        return list(rows.T)
    out = [rows[:, j] for j in range(rows.shape[1])]
    if numeric:
        numbers = check_quietly(rows[:, numeric], dtype=list(FLOATS), ensure_min_samples=0)
        for k, j in enumerate(numeric):
            out[j] = numbers[:, k]
    return out


def refuse_other_types(X: list[NDArray], columns: Columns, names: NDArray | None) -> None:
    """Refuse a column that holds text where `categories` declares numbers, or numbers where it declares text."""
    # One entry of another type is enough to refuse. How other entries are read does not depend on it.
    for j, (kind, entries) in enumerate(zip(columns.kinds, X, strict=True)):
        if isinstance(kind, Categories) and kind.holds_other_types(entries):
            name = j if names is None else str(names[j])
            raise TypeError(
                f"categories declares categories of another type for the column {name!r} than X holds: numbers for "
                "text, or text for numbers. Declare the categories as the column has them, for instance with a list of "
                "texts in place of a number of codes. Nothing was charged"
            )
