"""Public cells of ordered columns that are finer than their bins: from a step, from logarithms, or from edges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..checks.params import check_positive, increasing_edges
from ..schema.columns import Columns
from ..schema.fine import log_edges, step_edges
from ..schema.names import column_name, positions_of

Array = NDArray[np.float64]

Fine = tuple[tuple[Any, float | str | Array], ...]


def check_fine_cells(value: Any) -> Fine:
    """Check the parameter, as far as possible without the columns."""
    if value is None:
        return ()
    if not isinstance(value, Mapping):
        raise TypeError(f"fine_cells must map columns to a step, to 'log' or to edges, got {type(value).__name__}")
    checked: list[tuple[Any, float | str | Array]] = []
    for name, own in value.items():
        column = column_name(name, "fine_cells")
        if isinstance(own, str):
            if own != "log":
                raise ValueError(f"fine_cells must have a step, 'log' or edges for each column; {name!r} has not")
            checked.append((column, own))
        elif np.ndim(own) == 0:
            checked.append((column, check_positive(own, "the step in fine_cells")))
        else:
            edges = increasing_edges(own)
            if edges is None:
                raise ValueError(f"fine_cells must have two finite edges or more, increasing; {name!r} has not")
            checked.append((column, edges))
    return tuple(checked)


def refined(columns: Columns, fine: Fine, unit: float, most: int, names: NDArray | None, named: bool) -> Columns:
    """Return the columns in cells that are finer than their bins, wherever these are public."""
    place = positions_of([("fine_cells", [name for name, _ in fine])], columns.n_features, names, named)
    found = []
    for name, own in fine:
        j = place[name]
        kind = columns.kinds[j]
        if not columns.ordered[j]:
            if named:
                raise ValueError(f"fine_cells names the column {name!r}, which has categories")
            continue
        if not isinstance(kind, np.ndarray):
            # The edges of its bins are private.
            continue
        inner = _inner_edges(own, float(kind[0]), float(kind[-1]), unit, most, name)
        edges = np.union1d(kind, inner[(inner > kind[0]) & (inner < kind[-1])])
        if len(edges) > most:
            raise ValueError(f"fine_cells may have at most {most} cells for a column; {name!r} has more")
        found.append((j, edges))
    return columns.with_edges(found)


def _inner_edges(own: float | str | Array, low: float, high: float, unit: float, most: int, name: Any) -> Array:
    if isinstance(own, np.ndarray):
        return own
    if isinstance(own, str):
        return log_edges(low, high, unit)
    if (high - low) / own > most:
        raise ValueError(f"fine_cells may have at most {most} cells for a column; {name!r} has more")
    return step_edges(low, high, own)
