"""Public cells of ordered columns that are finer than their bins, from steps, logarithms, edges, or equal parts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..checks.params import check_positive, increasing_edges
from ..schema.columns import Columns
from ..schema.declared import Number
from ..schema.encoding import Encoding
from ..schema.fine import LOG_WIDTH, log_edges, step_edges
from ..schema.names import column_name, positions_of

Array = NDArray[np.float64]

# Largest number of cells of a column of a schema. With more cells, the column keeps its bins.
_MOST_OF_SCHEMA = 2048

Fine = tuple[tuple[Any, float | str | Array], ...]


def check_fine_cells(value: Any) -> Fine:
    """Check the parameter as far as possible without the columns."""
    if value is None:
        return ()
    if not isinstance(value, Mapping):
        raise TypeError(f"fine_cells must map columns to a step, to 'log' or to edges, got {type(value).__name__}")
    checked: list[tuple[Any, float | str | Array]] = []
    for name, own in value.items():
        column = column_name(name, "fine_cells")
        if isinstance(own, str):
            if own != "log":
                raise ValueError(f"fine_cells must hold a step, 'log' or edges by column, got {own!r} for {name!r}")
            checked.append((column, own))
        elif np.ndim(own) == 0:
            checked.append((column, check_positive(own, "the step in fine_cells")))
        else:
            edges = increasing_edges(own)
            if edges is None:
                raise ValueError(f"fine_cells must have at least two finite, increasing edges for the column {name!r}")
            checked.append((column, edges))
    return tuple(checked)


def refined(columns: Columns, fine: Fine, unit: float, most: int, names: NDArray | None, named: bool) -> Columns:
    """Return the columns with finer cells where their bins are public."""
    place = positions_of([("fine_cells", [name for name, _ in fine])], columns.n_features, names, named)
    found = []
    for name, own in fine:
        j = place[name]
        kind = columns.kinds[j]
        if not columns.ordered[j]:
            if named:
                raise ValueError(f"fine_cells must not name the column {name!r}, which has categories")
            continue
        if not isinstance(kind, np.ndarray):
            # The edges of the bins are private.
            continue
        # A last bin may hold missing values.
        n_bins = columns.declared.get(j, len(kind) - 1)
        low, high = float(kind[0]), float(kind[n_bins])
        inner = _inner_edges(own, low, high, unit, most, name)
        edges = np.union1d(kind, inner[(inner > low) & (inner < high)])
        if len(edges) > most:
            raise ValueError(f"fine_cells may have at most {most} cells for a column; {name!r} has more")
        found.append((j, edges))
    return _with_cells(columns, found)


def split_for_pairs(columns: Columns, most: int, finer: Collection[int] = ()) -> Columns:
    """Return the columns, where bins of columns in pairs are split evenly into at most `most` cells of a column."""
    # Columns that are `finer` than their bins stay as they are.
    found = []
    for j in sorted({j for pair in columns.pairs for j in pair}.difference(finer)):
        kind = columns.kinds[j]
        if isinstance(kind, np.ndarray):
            # A last bin may hold missing values.
            n_bins = columns.declared.get(j, len(kind) - 1)
            parts = max(1, min(most, columns.n_values.get(j, most)) // n_bins)
            places = np.arange(n_bins * parts + 1) / parts
            found.append((j, np.union1d(np.interp(places, np.arange(n_bins + 1), kind[: n_bins + 1]), kind)))
    return _with_cells(columns, found)


def _with_cells(columns: Columns, found: list[tuple[int, Array]]) -> Columns:
    declared = dict(columns.declared)
    for j, edges in found:
        kind = columns.kinds[j]
        if j in declared and isinstance(kind, np.ndarray):
            declared[j] += len(edges) - len(kind)
    return replace(columns.with_edges(found), declared=declared)


def fine_cells_of(encoding: Encoding) -> dict[Any, Array]:
    """Return edges for the columns of a schema with a step or a logarithmic scale, unless there are too many cells."""
    found = {}
    for name, column in encoding.schema.items() if encoding.form == "cells" else ():
        if not isinstance(column, Number) or (column.scale != "log" and column.step is None):
            continue
        low, high = float(column.low), float(column.high)
        if column.scale == "log":
            edges = log_edges(low, high, column.step or (low * LOG_WIDTH if low > 0 else 1.0))
        elif (high - low) / float(column.step or 1) > _MOST_OF_SCHEMA:
            continue
        else:
            edges = step_edges(low, high, float(column.step or 1))
        edges = edges[(edges > low) & (edges < high)]
        if 2 <= len(edges) <= _MOST_OF_SCHEMA:
            found[name] = edges
    return found


def _inner_edges(own: float | str | Array, low: float, high: float, unit: float, most: int, name: Any) -> Array:
    if isinstance(own, np.ndarray):
        return own
    if isinstance(own, str):
        return log_edges(low, high, unit)
    if (high - low) / own > most:
        raise ValueError(f"fine_cells may have at most {most} cells for a column; {name!r} has more")
    return step_edges(low, high, own)
