"""The largest of several products of each row."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from ._rows import row_products, short_blocks

# Added to squared lengths, so that squares that are too small for doubles do no harm.
_LEAST_SQUARE = 1e-280


def largest_products(X: Any, matrix: NDArray[np.float64], constants: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return ``(row_products(X, matrix) + constants).argmax(axis=1)`` in less time.

    A product of matrices is faster than `row_products`, but its last bits can depend on all rows. If one sum is larger
    than all others by more than rounding can change, its position is certain. `row_products` decides on the other rows.

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
    number_and_sum = np.vstack([np.ones(len(columns)), np.arange(len(columns))])
    positions = np.empty(X.shape[0], dtype=np.intp)
    with np.errstate(all="ignore"):
        largest = math.sqrt(_LEAST_SQUARE + float(np.einsum("ij,ij->i", columns, columns).max()))
        farthest = float(np.abs(constants).max())
        # Four times the errors of both sums, in any order of additions, relative to the bounds of their terms.
        error = 8 * (X.shape[1] + 2) * np.finfo(np.float64).eps
        for part in short_blocks(len(positions), max(matrix.shape)):
            rows, own = np.asarray(X[part], dtype=np.float64), positions[part]
            sums = columns @ rows.T
            sums += constants[:, None]
            # No row is longer.
            longest = math.sqrt(_LEAST_SQUARE + float(np.vdot(rows, rows)))
            number, own[:] = number_and_sum @ (sums >= sums.max(axis=0) - error * (longest * largest + farthest))
            (open_,) = np.nonzero(number != 1)
            if open_.size:
                own[open_] = _safe(rows[open_], matrix, constants)
    return positions


def _safe(X: Any, matrix: NDArray[np.float64], constants: NDArray[np.float64]) -> NDArray[np.intp]:
    positions: NDArray[np.intp] = (row_products(X, matrix) + constants).argmax(axis=1)
    return positions
