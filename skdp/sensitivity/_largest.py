"""The largest of several products of each row."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from ._rows import row_products, short_blocks

# From so many products on, it takes less time to convert rows to single precision first.
_FEWEST = 16

# Lengths are at least so large that numbers which are too small for a type do no harm.
_SHORTEST = {np.float32: 2.0**-50, np.float64: 2.0**-450}


def largest_products(X: Any, matrix: NDArray[np.float64], constants: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return ``(row_products(X, matrix) + constants).argmax(axis=1)`` in less time.

    A product of matrices is faster than `row_products`, above all in single precision, but its last bits can depend on
    all rows. If one sum is larger than all others by more than rounding can change, its position is certain. Double
    precision, and then `row_products`, decide on the other rows.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_rows, n_columns)
        Finite rows.
    matrix : ndarray of shape (n_columns, n_products)
        Finite public numbers.
    constants : ndarray of shape (n_products,)
        Finite public numbers.

    Returns
    -------
    positions : ndarray of shape (n_rows,)
        Position of the largest sum of each row, the first of equal ones.
    """
    if issparse(X):
        return _safe(X, matrix, constants)
    columns = np.ascontiguousarray(matrix.T)
    # Sums that are always equal would never be certain.
    first: dict[tuple[bytes, float], int] = {}
    for k, (column, constant) in enumerate(zip(columns, constants.tolist(), strict=True)):
        first.setdefault((column.tobytes(), constant), k)
    if len(first) < len(columns):
        kept = np.array(list(first.values()))
        return kept[largest_products(X, matrix[:, kept], constants[kept])]
    positions = np.zeros(X.shape[0], dtype=np.intp)
    if len(columns) == 1:
        return positions
    with np.errstate(all="ignore"):
        single = X.dtype == np.float32 or len(columns) >= _FEWEST
        kinds = (np.float32, np.float64) if single else (np.float64,)
        products = [_Products(columns, constants, kind) for kind in kinds]
        for part in short_blocks(len(positions), max(matrix.shape)):
            rows, own = X[part], positions[part]
            own[:], certain = products[0](rows)
            (open_,) = np.nonzero(~certain)
            for again in products[1:]:
                if open_.size:
                    own[open_], certain = again(rows[open_])
                    open_ = open_[~certain]
            if open_.size:
                own[open_] = _safe(rows[open_], matrix, constants)
    return positions


class _Products:
    """Find the largest sums of rows, and which of them are certain, by numbers of a type."""

    def __init__(self, columns: NDArray[np.float64], constants: NDArray[np.float64], kind: type[np.floating]) -> None:
        self._kind = kind
        self._columns = columns.astype(kind)
        self._constants = constants.astype(kind)[:, None]
        self._number_and_sum = np.vstack([np.ones(len(columns)), np.arange(len(columns))]).astype(kind)
        self._longest = _SHORTEST[kind] + math.sqrt(float(np.einsum("ij,ij->i", columns, columns).max()))
        self._farthest = float(np.abs(constants).max())
        # Four times the errors of both sums, in any order of additions, relative to the bounds of their terms.
        self._error = 8 * (columns.shape[1] + 4) * float(np.finfo(kind).eps)

    def __call__(self, rows: NDArray) -> tuple[NDArray, NDArray[np.bool_]]:
        """Return the positions of the largest sums, and whether they are certain."""
        rows = np.asarray(rows, dtype=self._kind)
        sums = self._columns @ rows.T
        sums += self._constants
        # No row is longer than all together.
        length = _SHORTEST[self._kind] + math.sqrt(float(np.vdot(rows, rows)))
        terms = length * self._longest + self._farthest
        # Numbers beyond the type would be infinite, or no numbers, on the way to a sum that is not.
        fits = max(terms, self._longest) < float(np.finfo(self._kind).max) / 4
        error = self._kind(self._error * terms if fits else np.inf)
        number, total = self._number_and_sum @ (sums >= sums.max(axis=0) - error)
        return total, number == 1


def _safe(X: Any, matrix: NDArray[np.float64], constants: NDArray[np.float64]) -> NDArray[np.intp]:
    positions: NDArray[np.intp] = (row_products(X, matrix) + constants).argmax(axis=1)
    return positions
