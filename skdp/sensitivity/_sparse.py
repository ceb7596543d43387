"""Clipping, products and sums of sparse rows. The bits of a row's contribution do not depend on other rows.

Rows are canonical CSR arrays. SciPy's kernels add up the stored entries of a row one after the other. Therefore no sum
over a row depends on other rows. Bounds on rounding errors are those of dense rows, because zeros add none.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Array = NDArray[np.float64]

_TINY = float(np.finfo(float).tiny)

#: Number of rows whose integers are added up at once. Products of at most ``2**40`` then have sums that 64 bits hold.
EXACT_ROWS = 2**20

# Number of rows that are clipped at once.
_BLOCK = 2**16


def with_data(rows: Any, data: NDArray) -> Any:
    """Return sparse rows with other stored entries in the same places.

    Parameters
    ----------
    rows : csr_array of shape (n_rows, n_columns)
        Rows.
    data : ndarray
        One number for each stored entry.

    Returns
    -------
    rows : csr_array of shape (n_rows, n_columns)
        Rows with the same places of stored entries.
    """
    return sparse.csr_array((data, rows.indices, rows.indptr), shape=rows.shape)


def by_entry(rows: Any, values: NDArray) -> NDArray:
    """Repeat the value of each row for each of the row's stored entries.

    Parameters
    ----------
    rows : csr_array of shape (n_rows, n_columns)
        Rows.
    values : ndarray of shape (n_rows,)
        One value for each row.

    Returns
    -------
    values : ndarray
        One value for each stored entry.
    """
    return np.repeat(values, np.diff(rows.indptr))


def sparse_squared_norms(rows: Any) -> Array:
    """Return squared L2 norms of sparse rows. The bits of a norm do not depend on other rows.

    Parameters
    ----------
    rows : csr_array of shape (n_rows, n_columns)
        Rows of doubles.

    Returns
    -------
    squares : ndarray of shape (n_rows,)
        Squared norms. Infinite if they overflow.
    """
    squares: Array = with_data(rows, np.square(rows.data)) @ np.ones(rows.shape[1])
    return squares


def largest_entries(rows: Any) -> Array:
    """Return the exact largest absolute entry of each sparse row, or 0 if nothing is stored.

    Parameters
    ----------
    rows : csr_array of shape (n_rows, n_columns)
        Rows of doubles.

    Returns
    -------
    sizes : ndarray of shape (n_rows,)
        Largest absolute entries.
    """
    out = np.zeros(rows.shape[0])
    filled = np.flatnonzero(np.diff(rows.indptr))
    if len(filled):
        out[filled] = np.maximum.reduceat(np.abs(rows.data), rows.indptr[filled])
    return out


def with_constant(rows: Any, constant: float) -> Any:
    """Append a constant feature to sparse rows.

    Parameters
    ----------
    rows : csr_array of shape (n_rows, n_columns)
        Canonical rows.
    constant : float
        Value of the feature. If 0, none is appended.

    Returns
    -------
    rows : csr_array of shape (n_rows, n_columns) or (n_rows, n_columns + 1)
        Canonical rows.
    """
    if constant == 0.0:
        return rows
    n_rows, n_columns = rows.shape
    # Indexes have 64 bits, because the constants could make more entries than 32 bits count.
    ends = rows.indptr.astype(np.int64) + np.arange(n_rows + 1)
    own = np.ones(ends[-1], dtype=bool)
    own[ends[1:] - 1] = False
    data = np.full(ends[-1], constant)
    data[own] = rows.data
    indices = np.full(ends[-1], n_columns, dtype=rows.indices.dtype)
    indices[own] = rows.indices
    return sparse.csr_array((data, indices, ends), shape=(n_rows, n_columns + 1))


def clip_sparse(rows: Any, target: float) -> Any:
    """Scale sparse rows down to an L2 norm of at most `target`, up to rounding.

    Parameters
    ----------
    rows : csr_array of shape (n_rows, n_columns)
        Canonical rows of any size.
    target : float
        Clipping bound.

    Returns
    -------
    rows : csr_array of shape (n_rows, n_columns)
        Rows of doubles in the same places.
    """
    data = np.empty(len(rows.data))
    for start in range(0, rows.shape[0], _BLOCK):
        part = slice(start, min(start + _BLOCK, rows.shape[0]))
        data[rows.indptr[part.start] : rows.indptr[part.stop]] = _clipped(rows[part], target)
    return with_data(rows, data)


def _clipped(rows: Any, target: float) -> Array:
    doubles = with_data(rows, rows.data.astype(np.float64))
    with np.errstate(over="ignore", under="ignore"):
        squared = sparse_squared_norms(doubles)
        # Beyond these limits, squares overflow or lose digits. Therefore rows are first divided by their largest entry.
        extreme = (squared > 1e300) | (squared < 1e-280)
        data: Array = doubles.data * by_entry(rows, np.minimum(1.0, target / np.sqrt(np.maximum(squared, 1e-280))))
        if np.any(extreme):
            data[by_entry(rows, extreme)] = _clip_extreme(doubles[np.flatnonzero(extreme)], target)
    return data


def _clip_extreme(rows: Any, target: float) -> Array:
    largest = np.maximum(largest_entries(rows), _TINY)
    direction = rows.data / by_entry(rows, largest)
    length = np.sqrt(sparse_squared_norms(with_data(rows, direction)))
    scale = target / np.maximum(length, _TINY)
    clipped: Array = direction * by_entry(rows, np.minimum(largest, scale))
    return clipped


def sparse_gram(rows: Any) -> NDArray:
    """Return the sum of products of sparse rows with themselves, as an array.

    Parameters
    ----------
    rows : csr_array of shape (n_rows, n_columns)
        Rows.

    Returns
    -------
    gram : ndarray of shape (n_columns, n_columns)
        Gram matrix in the type of the rows. For integers, it is exact for up to `EXACT_ROWS` rows with entries of at
        most ``2**20``.
    """
    # The order is that of dense products, so that later results have the same bits.
    gram: NDArray = (rows.T @ rows).toarray(order="C")
    return gram
