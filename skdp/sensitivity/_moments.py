r"""Second moments of bounded rows: how far one record moves them, and their exact sums.

With rows :math:`z` (a constant feature included) and targets :math:`u`, a record adds :math:`z z^\top` to the Gram
matrix and :math:`z u^\top` to the cross moments. Everything is counted in steps of a lattice: each entry of a record
is rounded to it before anything is summed, so that sums are exact whatever the number and the order of the rows.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from ._fixed_point import step_of
from ._rows import BLOCK_ROWS, sum_over_rows
from ._sparse import sparse_gram

#: Entries of a record are counted in up to ``2**ENTRY_BITS`` steps. A block of ``2**11`` rows then sums to at most
#: ``2**51`` steps, which doubles hold exactly.
ENTRY_BITS = 20

_LIMB_BITS = 26
_LIMB = 2.0**_LIMB_BITS


def moments_l2(
    row_norm: float,
    target_norm: float,
    weight: float,
    constant: float = 0.0,
    count_weight: float = 1.0,
    total_weight: float = 1.0,
) -> float:
    r"""Bound the L2 norm of what one record adds to (svec of the Gram matrix, `weight` times the cross moments).

    svec lists the diagonal, and :math:`\sqrt2` times the upper triangle, so that its norm is the Frobenius norm.
    Since :math:`\|z z^\top\|_F = \|z\|^2` and :math:`\|z u^\top\|_F = \|z\|\,\|u\|`, the norm is exactly
    :math:`\|z\|\sqrt{\|z\|^2 + w^2\|u\|^2}`. With the square of the constant feature :math:`z_c` listed :math:`a`
    times, and its products with targets :math:`b` times, the square of the norm is larger by
    :math:`(a^2 - 1) z_c^4 + w^2 (b^2 - 1) z_c^2\|u\|^2`. Every record of full norms attains the bound.

    Parameters
    ----------
    row_norm : float
        Bound on the L2 norm of a row, the constant feature included.
    target_norm : float
        Bound on the L2 norm of a record's targets.
    weight : float
        Weight of the cross moments.
    constant : float, default=0.0
        Bound on the constant feature.
    count_weight, total_weight : float, default=1.0
        Further weights, at least 1, of the square of the constant feature and of its products with targets.

    Returns
    -------
    sensitivity : float
        The bound, rounded up.
    """
    whole = row_norm * math.hypot(row_norm, weight * target_norm)
    count = math.sqrt(max(count_weight**2 - 1, 0.0)) * constant**2
    totals = math.sqrt(max(total_weight**2 - 1, 0.0)) * weight * constant * target_norm
    return math.hypot(whole, count, totals) * (1 + 2.0**-50)


def moments_l1(
    row_norm: float,
    row_sum: float,
    target_sum: float,
    weight: float,
    constant: float = 0.0,
    count_weight: float = 1.0,
    total_weight: float = 1.0,
) -> float:
    r"""Bound the L1 norm of what one record adds to (upper triangle of the Gram matrix, `weight` times cross moments).

    The triangle with its diagonal has :math:`\sum_{j\le l}|z_j z_l| = (\|z\|_1^2 + \|z\|_2^2)/2`, and the cross
    moments have :math:`\|z\|_1\|u\|_1`. A row whose entries are all equal in size attains the bound. Further weights
    of the constant feature's own products add :math:`(a - 1) z_c^2 + w (b - 1) |z_c| \|u\|_1`.

    Parameters
    ----------
    row_norm, row_sum : float
        Bounds on the L2 and on the L1 norm of a row, the constant feature included.
    target_sum : float
        Bound on the L1 norm of a record's targets.
    weight : float
        Weight of the cross moments.
    constant : float, default=0.0
        Bound on the constant feature.
    count_weight, total_weight : float, default=1.0
        Further weights, at least 1, of the square of the constant feature and of its products with targets.

    Returns
    -------
    sensitivity : float
        The bound, rounded up.
    """
    whole = (row_sum**2 + row_norm**2) / 2 + weight * row_sum * target_sum
    more = (count_weight - 1) * constant**2 + (total_weight - 1) * weight * constant * target_sum
    return (whole + more) * (1 + 2.0**-48)


def pack_symmetric(matrix: NDArray[np.float64], weight: float) -> NDArray[np.float64]:
    """List a symmetric matrix: its diagonal, then `weight` times what lies above it. With sqrt(2), this is svec.

    Parameters
    ----------
    matrix : ndarray of shape (p, p)
        Symmetric.
    weight : float
        Weight of the entries above the diagonal.

    Returns
    -------
    values : ndarray of shape (p * (p + 1) / 2,)
        The list.
    """
    return np.concatenate([np.diagonal(matrix), weight * matrix[np.triu_indices(len(matrix), 1)]])


def unpack_symmetric(values: NDArray[np.float64], size: int, weight: float) -> NDArray[np.float64]:
    """Return the matrix that `pack_symmetric` listed.

    Parameters
    ----------
    values : ndarray of shape (size * (size + 1) / 2,)
        The list.
    size : int
        Number of rows of the matrix.
    weight : float
        Weight of the entries above the diagonal.

    Returns
    -------
    matrix : ndarray of shape (size, size)
        Symmetric.
    """
    matrix = np.empty((size, size))
    rows, columns = np.triu_indices(size, 1)
    matrix[rows, columns] = matrix[columns, rows] = values[size:] / weight
    np.fill_diagonal(matrix, values[:size])
    return matrix


def entry_step(largest: float) -> float:
    """Return the lattice step for entries of at most `largest`: the least power of two that makes 2**20 steps of it.

    Parameters
    ----------
    largest : float
        Bound on the size of an entry.

    Returns
    -------
    step : float
        A power of two.
    """
    return step_of(largest, ENTRY_BITS)


def rounded_norm(norm: float, size: int, step: float) -> float:
    """Bound the L2 norm of a row that was scaled to `norm`, then rounded to a lattice.

    Rounding moves each entry by half a step at most; the factor covers the rounding errors of the scaling.

    Parameters
    ----------
    norm : float
        Norm that the row was scaled to.
    size : int
        Number of entries.
    step : float
        Lattice step.

    Returns
    -------
    norm : float
        The bound.
    """
    return norm * (1 + max(2.0**-40, size * 2.0**-50)) + step * math.sqrt(size) / 2


def exact_moments(encode, X: Any, y: NDArray, block_rows: int = BLOCK_ROWS) -> NDArray[np.float64]:  # type: ignore[no-untyped-def]
    """Sum the moments of integer-valued rows and targets, exactly, then round the totals to doubles.

    Parameters
    ----------
    encode : callable
        Maps blocks of `X` and `y` to rows and targets, integers of at most ``2**20`` in size, as doubles, or of 64
        bits where rows are sparse.
    X : ndarray or csr_array of shape (n_rows, n_features)
        Data, in memory or memory-mapped.
    y : ndarray of shape (n_rows,) or (n_rows, n_targets)
        Data.
    block_rows : int, default=2048
        Rows per block.

    Returns
    -------
    moments : ndarray of shape (n_columns, n_columns + n_targets)
        The Gram matrix, and the cross moments beside it.
    """

    return exact_sum(lambda X, y: _moments(*encode(X, y)), X, y, block_rows=block_rows)


def exact_sum(statistic, *arrays: Any, block_rows: int = BLOCK_ROWS) -> NDArray[np.float64]:  # type: ignore[no-untyped-def]
    """Sum a statistic over blocks of rows, exactly, then round the totals to doubles.

    Parameters
    ----------
    statistic : callable
        Maps blocks of the arrays to the sum of the statistic over their rows: integers, as doubles, that are exact for
        up to ``2**11`` rows, or of 64 bits.
    *arrays : ndarray or csr_array
        Arrays with the same number of rows, in memory or memory-mapped.
    block_rows : int, default=2048
        Rows per block, no more than that for doubles.

    Returns
    -------
    total : ndarray
        The statistic of all rows.
    """

    def block(*parts: NDArray) -> NDArray:
        total = statistic(*parts)
        if total.dtype == np.int64:
            return np.stack([total >> _LIMB_BITS, total & (2**_LIMB_BITS - 1)])
        if not np.all(np.isfinite(total)):
            # As integers, these would be arbitrary numbers, which no bound on a record covers.
            raise FloatingPointError("a statistic of the records is not finite")
        high = np.floor(total / _LIMB)
        return np.stack([high, total - high * _LIMB]).astype(np.int64)

    high, low = sum_over_rows(block, *arrays, block_rows=block_rows)
    total: NDArray[np.float64] = high * _LIMB + low
    return total


def plain_moments(encode, X: Any, y: NDArray, block_rows: int = BLOCK_ROWS) -> NDArray[np.float64]:  # type: ignore[no-untyped-def]
    """Sum the moments in floating point, for releases without noise.

    Parameters
    ----------
    encode : callable
        Maps blocks of `X` and `y` to rows and targets.
    X : ndarray or csr_array of shape (n_rows, n_features)
        Data, in memory or memory-mapped.
    y : ndarray of shape (n_rows,) or (n_rows, n_targets)
        Data.
    block_rows : int, default=2048
        Rows per block.

    Returns
    -------
    moments : ndarray of shape (n_columns, n_columns + n_targets)
        The Gram matrix, and the cross moments beside it.
    """
    return sum_over_rows(lambda X, y: _moments(*encode(X, y)), X, y, block_rows=block_rows)


def _moments(rows: Any, targets: NDArray) -> NDArray:
    if issparse(rows):
        return np.hstack([sparse_gram(rows), rows.T @ targets])
    return np.hstack([rows.T @ rows, rows.T @ targets])
