r"""The public features of a table's cells: a row of norm 1 for each cell. Similar cells have similar rows.

A column with :math:`k` cells becomes a term of the model. Cell :math:`c` of an ordered column has the steps
:math:`s_i(c) = \pm 1/\sqrt{k-1}`, with a plus if c is beyond the i-th edge. All these rows have the norm 1, and
neighbours differ in one entry. A penalty on the coefficients is then a penalty on the jumps of the curve. Categories
are the corners of a simplex around 0, with the norm 1. Ordered cells are a mixture of both, so that a single bin can
differ from its neighbours. The user guide explains this choice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ..schema.columns import Codes, Columns, code_type
from ..sensitivity import squared_norms
from ..solvers.regularised import INTERCEPT_CONSTANT

Array = NDArray[np.float64]

#: Largest number of cells of a column in a term of two columns. Cells of ordered columns are merged.
PAIR_CELLS = 16

#: With smoothness="auto", the part of single cells in the rows of ordered cells is this number over 1 plus the noise
#: multiplier.
ROUGHNESS = 0.5

#: Entries of rows are rounded towards 0 to this many bits, so that no norm increases.
ROW_BITS = 20

# Number of records whose values are added up at once.
_ROWS = 2**14


def steps(n_cells: int) -> Array:
    """Return the steps of cells, of shape (n_cells, n_cells - 1), with rows of norm 1."""
    beyond = np.arange(n_cells)[:, None] > np.arange(n_cells - 1)
    return np.where(beyond, 1.0, -1.0) / math.sqrt(max(n_cells - 1, 1))


def simplex(n_cells: int) -> Array:
    """Return corners of a regular simplex around 0, of shape (n_cells, n_cells - 1), with rows of norm 1."""
    if n_cells < 2:
        return np.empty((n_cells, 0))
    return linalg.helmert(n_cells).T / math.sqrt(1 - 1 / n_cells)


def cell_rows(n_cells: int, ordered: bool, smoothness: float) -> Array:
    """Return a row for each cell, of norm 1 up to rounding."""
    # Products of rows are `smoothness` times the products of `steps`, plus the rest times the products of `simplex`.
    # All factors of the matrix of products are equivalent, because noise and penalty do not depend on directions.
    if not ordered or smoothness == 0:
        return simplex(n_cells)
    s, c = steps(n_cells), simplex(n_cells)
    if smoothness == 1 or n_cells <= 2:
        return s
    values, vectors = np.linalg.eigh(smoothness * (s @ s.T) + (1 - smoothness) * (c @ c.T))
    rows: Array = vectors * np.sqrt(np.maximum(values, 0.0))
    return rows


@dataclass(frozen=True, eq=False)
class Term:
    """A term of the model, which has one or two columns."""

    columns: tuple[int, ...]
    maps: tuple[NDArray[np.int32], ...]  # For each column, the cell of the term for each cell of the column.
    rows: Array  # A row of norm at most 1 for each cell, and a last row of zeros for values in no cell.

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of cells along each column."""
        return tuple(int(own[-1]) for own in self.maps)

    @property
    def width(self) -> int:
        """Number of features."""
        return self.rows.shape[1]

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


def term_of(columns: Columns, which: tuple[int, ...], rows_of: Callable[[int, bool], Array]) -> Term:
    """Return the term of a column, or of a pair of columns, from a function that returns the rows of cells."""
    maps, parts = [], []
    for j in which:
        size, ordered = columns.sizes[j], columns.ordered[j]
        cells = merged(size, PAIR_CELLS if ordered and len(which) > 1 else size)
        n_cells = int(cells.max(initial=-1)) + 1
        maps.append(np.append(cells, n_cells).astype(np.int32))
        parts.append(rows_of(n_cells, ordered))
    rows = product_rows(parts)
    return Term(which, tuple(maps), np.vstack([rows, np.zeros((1, rows.shape[1]))]))


def merged(size: int, most: int) -> NDArray[np.intp]:
    """Return the number of the merged cell of each of `size` cells. There are at most `most` merged cells."""
    return np.arange(size) * min(size, most) // max(size, 1)


def product_rows(parts: list[Array]) -> Array:
    """Return the products of rows of one or two columns, of norm at most 1."""
    rows = parts[0]
    if len(parts) > 1:
        rows = np.einsum("ai,bj->abij", *parts).reshape(len(parts[0]) * len(parts[1]), -1)
    # Eigenvectors and square roots are rounded. Therefore rows are scaled to a norm of at most 1. The limit allows for
    # the rounding of norms and of the division, as in `clip_rows`.
    longest = 1 - max(2.0**-40, rows.shape[1] * 2.0**-50)
    shortened: Array = rows * (longest / np.maximum(np.sqrt(squared_norms(rows)), longest))[:, None]
    return shortened


@dataclass(frozen=True, eq=False)
class Layout:
    """The public features: all terms, and the constant feature."""

    terms: tuple[Term, ...]

    @classmethod
    def of(cls, columns: Columns, smoothness: float) -> Layout:
        which = [(j,) for j in range(len(columns.kinds))] + list(columns.pairs)
        # Most columns have the same number of cells.
        rows_of = cache(lambda n_cells, ordered: cell_rows(n_cells, ordered, smoothness))
        return cls(tuple(term_of(columns, own, rows_of) for own in which))

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """Slices of the features of each term."""
        ends = np.cumsum([0, *(term.width for term in self.terms)]).tolist()
        return tuple(slice(a, b) for a, b in pairwise(ends))

    @property
    def n_features(self) -> int:
        """Number of features, without the constant."""
        return self.slices[-1].stop

    @property
    def data_norm(self) -> float:
        """Bound on the norm of a row without the constant. Each term adds at most 1 to the squared norm."""
        return math.sqrt(len(self.terms)) * (1 + 2.0**-40)

    @property
    def constant(self) -> float:
        """The constant feature."""
        return INTERCEPT_CONSTANT * self.data_norm

    def codes(self, codes: Codes) -> Codes:
        """Return the cell of each record in each term, from its cells in the columns."""
        if all(len(term.columns) == 1 for term in self.terms):
            return codes
        return np.stack([term.codes(codes) for term in self.terms])

    def features(self, codes: Codes) -> Array:
        """Return the features of records, from their cells in the terms."""
        out = np.empty((codes.shape[1], self.n_features))
        for term, where, own in zip(self.terms, self.slices, codes, strict=True):
            np.take(term.rows, own, axis=0, out=out[:, where])
        return out

    def values(self, weights: Array) -> list[Array]:
        """Return the value that each cell of each term adds to the predictors, of shape (n_cells, outputs)."""
        return [term.rows[:-1] @ weights[:, where].T for term, where in zip(self.terms, self.slices, strict=True)]


def sums_of_values(tables: Sequence[Array], start: float, codes: Codes) -> Array:
    """Return a start plus the values of each record's cells, from a value for each cell and for none of a term."""
    out = np.full(codes.shape[1], start)
    for first in range(0, len(out), _ROWS):
        part = slice(first, first + _ROWS)
        for own, values in zip(codes, tables, strict=True):
            out[part] += values.take(own[part])
    return out
