"""Collections as arrays in parts, and objects made once from the arrays of each part, which stay on its machine.

Dask is imported only for Dask collections.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrays import PartedArray, folded, kept, positions_by_part, rowwise


class KeptObjects:
    """One object for each part, made from its arrays; `n_rows_of` returns the number of rows of an object."""

    def __init__(self, make: Callable[..., Any], arrays: tuple[PartedArray, ...], n_rows_of: Callable[[Any], int]):
        (self._objects,) = kept((rowwise(make, *arrays),))
        parts = self._objects.parts.n_parts
        numbered = folded(partial(_numbered, n_rows_of), [self._objects], [{"part": i} for i in range(parts)])
        # The positions of rows and the numbers of rows are private.
        self._ends = np.cumsum([0, *(n for _, n in sorted(numbered))])

    @property
    def without_rows(self) -> Any:
        """The object for no rows."""
        return self._objects.meta

    @property
    def n_rows(self) -> int:
        """Number of rows of all parts."""
        return int(self._ends[-1])

    def sum(self, task: Callable[..., Any], rows: NDArray[np.intp] | None = None) -> Any:
        """Apply a task to the object and the rows (of increasing positions) of each part, and return the sum."""
        by_part = [None] * (len(self._ends) - 1) if rows is None else positions_by_part(rows, self._ends)
        return folded(task, [self._objects], [{"rows": positions} for positions in by_part])


def _numbered(n_rows_of: Callable[[Any], int], made: Any, part: int) -> list[tuple[int, int]]:
    return [(part, n_rows_of(made))]


def is_collection(data: Any) -> bool:
    """Return whether data are a Dask collection."""
    dask = sys.modules.get("dask")
    # The type is asked, because other data may raise errors that count their rows.
    return dask is not None and hasattr(type(data), "__dask_graph__") and bool(dask.is_dask_collection(data))


def lowered(*collections: Any) -> tuple[Any, ...]:
    """Return collections with the same rows as arrays in the same parts, and None for None."""
    from ._dask import parted

    arrays = iter(parted(*(collection for collection in collections if collection is not None)))
    return tuple(None if collection is None else next(arrays) for collection in collections)


def in_parts(X: Any, groups: Any = None) -> tuple[Any, Any]:
    """Return Dask collections as arrays in parts, and other data unchanged."""
    return lowered(X, groups) if is_collection(X) else (X, groups)
