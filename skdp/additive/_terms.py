r"""The public features of a table's cells: a row of length 1 for each cell, near to those of cells that are alike.

A column in :math:`k` cells becomes a term of the model. Cell :math:`c` of an ordered column is written in steps,
:math:`s_i(c) = \pm 1/\sqrt{k-1}`, with a plus where c is beyond the i-th edge: all these rows have the length 1, and
neighbours differ in one entry. A penalty on the coefficients is one on the jumps of the curve. Categories are the
corners of a simplex around 0, of length 1 as well. Ordered cells are a mixture of both, so that single bins can stand
out. See the user guide for why that is what noise and penalty should be measured in.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ..schema.columns import Codes, Columns
from ..sensitivity import squared_norms
from ..solvers.regularised import INTERCEPT_CONSTANT

Array = NDArray[np.float64]

#: Cells of one column in a term of two, at most; those of ordered columns are merged.
PAIR_CELLS = 16

#: The part of single cells in the rows of ordered ones, under smoothness="auto", is this over 1 plus the noise
#: multiplier.
ROUGHNESS = 0.5

#: Covariances of more features than this are taken to have equal eigenvalues, for which the noise is largest.
MOST_EIGENVALUES = 256

#: Entries of rows are rounded towards 0 to this many bits, so that no row grows beyond its length.
ROW_BITS = 20


def steps(n_cells: int) -> Array:
    """Return cells in steps, of shape (n_cells, n_cells - 1), with rows of length 1."""
    beyond = np.arange(n_cells)[:, None] > np.arange(n_cells - 1)
    return np.where(beyond, 1.0, -1.0) / math.sqrt(max(n_cells - 1, 1))


def simplex(n_cells: int) -> Array:
    """Return cells as corners of a regular simplex around 0, of shape (n_cells, n_cells - 1), with rows of length 1."""
    if n_cells < 2:
        return np.empty((n_cells, 0))
    return linalg.helmert(n_cells).T / math.sqrt(1 - 1 / n_cells)


def cell_rows(n_cells: int, ordered: bool, smoothness: float) -> Array:
    """Return a row for each cell, of length 1 but for rounding."""
    # Products of rows are `smoothness` times those of `steps`, plus the rest times those of `simplex`. Any factor of
    # the matrix of these products will do, because noise and penalty do not depend on directions.
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
    """Hold a term of the model, which has one column or two."""

    columns: tuple[int, ...]
    maps: tuple[NDArray[np.int32], ...]  # For each column, the cell of the term for each cell of the column.
    rows: Array  # A row of length at most 1 for each cell, and a last row of zeros for values in no cell.

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
        first, second = (own[codes[j]] for own, j in zip(self.maps, self.columns, strict=True))
        m, n = self.shape
        out: Codes = np.where((first < m) & (second < n), first * np.int32(n) + second, np.int32(m * n))
        return out


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
    """Return the number of the merged cell of each of `size` cells, of which there are `most` at most."""
    return np.arange(size) * min(size, most) // max(size, 1)


def product_rows(parts: list[Array]) -> Array:
    """Return the products of rows of one column, or of two, of length 1 at most."""
    rows = parts[0]
    if len(parts) > 1:
        rows = np.einsum("ai,bj->abij", *parts).reshape(len(parts[0]) * len(parts[1]), -1)
    # That no row is longer than 1 is enforced: eigenvectors and square roots are rounded. As in `clip_rows`, there is
    # room for the rounding of lengths and of the division.
    longest = 1 - max(2.0**-40, rows.shape[1] * 2.0**-50)
    shortened: Array = rows * (longest / np.maximum(np.sqrt(squared_norms(rows)), longest))[:, None]
    return shortened


@dataclass(frozen=True, eq=False)
class Layout:
    """All terms, side by side, and the constant feature. Public."""

    terms: tuple[Term, ...]

    @classmethod
    def of(cls, columns: Columns, smoothness: float) -> Layout:
        which = [(j,) for j in range(len(columns.kinds))] + list(columns.pairs)
        # Most columns have equally many cells.
        rows_of = cache(lambda n_cells, ordered: cell_rows(n_cells, ordered, smoothness))
        return cls(tuple(term_of(columns, own, rows_of) for own in which))

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """Where the features of each term are."""
        ends = np.cumsum([0, *(term.width for term in self.terms)]).tolist()
        return tuple(slice(a, b) for a, b in pairwise(ends))

    @property
    def n_features(self) -> int:
        """Number of features, without the constant."""
        return self.slices[-1].stop

    @property
    def data_norm(self) -> float:
        """Bound on the length of a row, without the constant: each term adds 1 to its square at most."""
        return math.sqrt(len(self.terms)) * (1 + 2.0**-40)

    @property
    def constant(self) -> float:
        """The constant feature."""
        return INTERCEPT_CONSTANT * self.data_norm

    def codes(self, codes: Codes) -> Codes:
        """Return the cell of each record in each term, from those of the columns."""
        if all(len(term.columns) == 1 for term in self.terms):
            return codes
        return np.stack([term.codes(codes) for term in self.terms])

    def features(self, codes: Codes) -> Array:
        """Return the features of records, from their cells in the terms."""
        out = np.empty((codes.shape[1], self.n_features))
        for term, where, own in zip(self.terms, self.slices, codes, strict=True):
            np.take(term.rows, own, axis=0, out=out[:, where])
        return out

    def spectrum(self, counts: list[Array]) -> Array:
        """Return eigenvalues of the covariance of features, as if terms were independent, from released counts."""
        out = []
        for _, rows in self.centred_rows(counts):
            width = rows.shape[1]
            if width <= MOST_EIGENVALUES:
                out.append(np.maximum(np.linalg.eigvalsh(rows.T @ rows), 0.0))
            else:
                out.append(np.full(width, float((rows**2).sum()) / width))
        return np.concatenate(out)

    def centred_rows(self, counts: list[Array]) -> Iterator[tuple[Array, Array]]:
        """Yield, for each term, shares of cells by released counts, and the centred rows times the roots of these."""
        for term in self.terms:
            shares = [
                np.bincount(own[:-1], _shares(counts[j]), minlength=int(own[-1]))
                for own, j in zip(term.maps, term.columns, strict=True)
            ]
            weights = shares[0] if len(shares) == 1 else np.outer(*shares).ravel()
            yield (
                np.asarray(weights, dtype=np.float64),
                np.sqrt(weights)[:, None] * (term.rows[:-1] - weights @ term.rows[:-1]),
            )

    def values(self, weights: Array) -> list[Array]:
        """Return what each cell of each term adds to the predictors, of shape (n_cells, outputs)."""
        return [term.rows[:-1] @ weights[:, where].T for term, where in zip(self.terms, self.slices, strict=True)]


def _shares(counts: Array) -> Array:
    kept = np.maximum(counts, 0.0)
    return kept / kept.sum() if kept.sum() > 0 else np.full(len(kept), 1 / max(len(kept), 1))
