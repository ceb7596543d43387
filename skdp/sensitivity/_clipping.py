"""Clipping, after which a bound on one record's influence holds for all data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from ._rows import BLOCK_ROWS
from ._sparse import clip_sparse, with_constant

# Number of columns, fewer than the entries that NumPy buffers.
_COLUMNS = 4096


@dataclass(frozen=True, eq=False)
class ClippedRows:
    """Rows of bounded L2 norm, together with the bound.

    Noise is calibrated by `norm`, and never by a number that was typed again.

    Parameters
    ----------
    array : ndarray or csr_array of shape (n_rows, n_columns)
        Rows.
    norm : float
        Clipping bound. The L2 norm of each row is at most `norm`.
    """

    array: Any
    norm: float


def augmented_norm(norm: float, constant: float) -> float:
    """Return an L2 bound of rows of norm at most `norm` with a constant feature.

    Parameters
    ----------
    norm : float
        Bound without the feature.
    constant : float
        Value of the constant feature, or 0 for none.

    Returns
    -------
    norm : float
        Bound with the feature, rounded up.
    """
    return norm if constant == 0 else math.hypot(norm, constant) * (1 + 2.0**-50)


def clip_rows(X: Any, norm: float, constant: float = 0.0) -> ClippedRows:
    r"""Scale rows down to an L2 norm of at most `norm`, then append a constant feature.

    Each row is mapped separately, so that neighbouring data sets stay neighbours. The target is :math:`(1-2^{-40})` of
    the bound, so that the bound holds despite the rounding of the norm and of the division.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_rows, n_columns)
        Finite rows of any size. Sparse rows are canonical, and stay sparse.
    norm : float
        Clipping bound of the L2 norm of a row of `X`.
    constant : float, default=0.0
        Value of the appended feature. If 0, none is appended.

    Returns
    -------
    clipped : ClippedRows
        Copy of the rows, with its bound.
    """
    n_rows, n_columns = X.shape
    target = norm * (1 - max(2.0**-40, n_columns * 2.0**-50))
    if issparse(X):
        return ClippedRows(with_constant(clip_sparse(X, target), constant), augmented_norm(norm, constant))
    out = np.empty((n_rows, n_columns + (constant != 0.0)), dtype=np.float64)
    for start in range(0, n_rows, BLOCK_ROWS):
        rows = np.asarray(X[start : start + BLOCK_ROWS], dtype=np.float64)
        block = out[start : start + BLOCK_ROWS, :n_columns]
        with np.errstate(over="ignore", under="ignore"):
            squared = squared_norms(rows)
            # Beyond these limits, squares overflow or lose digits. Rows are first divided by their largest entry.
            extreme = (squared > 1e300) | (squared < 1e-280)
            factor = np.minimum(1.0, target / np.sqrt(np.maximum(squared, 1e-280)))
            np.multiply(rows, factor[:, None], out=block)
            if np.any(extreme):
                block[extreme] = _clip_extreme(rows[extreme], target)
    if constant != 0.0:
        out[:, -1] = constant
    return ClippedRows(out, augmented_norm(norm, constant))


def squared_norms(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return squared L2 norms of rows. The bits of a norm do not depend on other rows.

    NumPy adds up a single long row in another order than one of several rows. To avoid both cases, columns are
    processed by the thousand, and a row is never processed alone.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_columns)
        Rows.

    Returns
    -------
    squares : ndarray of shape (n_rows,)
        Squared norms. Infinite if they overflow.
    """
    several = np.ascontiguousarray(rows if len(rows) != 1 else np.concatenate([rows, rows]))
    total = np.zeros(len(several))
    for start in range(0, several.shape[1], _COLUMNS):
        part = several[:, start : start + _COLUMNS]
        total += np.einsum("ij,ij->i", part, part)
    return total[: len(rows)]


def _clip_extreme(rows: NDArray[np.float64], target: float) -> NDArray[np.float64]:
    largest = np.maximum(np.abs(rows).max(axis=1, initial=0.0, keepdims=True), np.finfo(float).tiny)
    direction = rows / largest
    length = np.sqrt(squared_norms(direction))[:, None]
    scale = target / np.maximum(length, np.finfo(float).tiny)
    return direction * np.minimum(largest, scale)
