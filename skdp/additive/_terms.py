"""Terms of an additive model, which add a number for each of their cells, and codes of cells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..schema.columns import Codes, code_type

Array = NDArray[np.float64]

#: The part of single bins in the features of ordered columns is this number over 1 plus the noise multiplier.
ROUGHNESS = 0.5

#: Entries of rows are rounded towards 0 to this many bits, so that no norm increases.
ROW_BITS = 20

# Number of records whose values are added up at once.
_ROWS = 2**14


def steps(n_cells: int) -> Array:
    """Return the steps of cells, of shape (n_cells, n_cells - 1), with rows of norm 1."""
    beyond = np.arange(n_cells)[:, None] > np.arange(n_cells - 1)
    return np.where(beyond, 1.0, -1.0) / math.sqrt(max(n_cells - 1, 1))


@dataclass(frozen=True, eq=False)
class Term:
    """A term of the model, over one column or several."""

    columns: tuple[int, ...]
    maps: tuple[NDArray[np.int32], ...]  # For each column, the cell of the term for each cell of the column.

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of cells along each column."""
        return tuple(int(own[-1]) for own in self.maps)

    def codes(self, codes: Codes) -> Codes:
        """Return the cell of each record."""
        if len(self.columns) == 1:
            return codes[self.columns[0]]
        return joint_cells(self.maps, [codes[j] for j in self.columns])


def joint_cells(maps: Sequence[NDArray[np.int32]], codes: Sequence[NDArray]) -> NDArray:
    """Return the joint cell of each record, or the number of joint cells if a column has no cell."""
    joint, inside, size = np.int32(0), True, 1
    for own, cells in zip(maps, codes, strict=True):
        n, merged_cells = int(own[-1]), own[cells]
        joint, inside, size = joint * np.int32(n) + merged_cells, inside & (merged_cells < n), size * n
    return np.where(inside, joint, np.int32(size)).astype(code_type(size))


def of_columns(sizes: Sequence[int]) -> tuple[Term, ...]:
    """Return a term for each column."""
    return tuple(Term((j,), (np.arange(size + 1, dtype=np.int32),)) for j, size in enumerate(sizes))


def merged(size: int, most: int) -> NDArray[np.intp]:
    """Return the number of the merged cell of each of `size` cells. There are at most `most` merged cells."""
    return np.arange(size) * min(size, most) // max(size, 1)


def sums_of_values(tables: Sequence[Array], start: float, codes: Codes) -> Array:
    """Return a start plus the values of each record's cells, from a value for each cell and for none of a term."""
    out = np.full(codes.shape[1], start)
    for first in range(0, len(out), _ROWS):
        part = slice(first, first + _ROWS)
        for own, values in zip(codes, tables, strict=True):
            out[part] += values.take(own[part])
    return out
