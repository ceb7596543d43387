"""Sums over rows, block by block: bounded memory, and a rounding error that hardly grows with the rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

BLOCK_ROWS = 2048


def sum_over_rows(
    statistic: Callable[..., NDArray],
    *arrays: NDArray,
    block_rows: int = BLOCK_ROWS,
) -> NDArray:
    """Sum a statistic over blocks of rows.

    Block totals are added in pairs of equal weight, so that each is added into a sum only ``log2(blocks)``
    times. No more than that many partial sums are held.

    Parameters
    ----------
    statistic : callable
        Maps blocks of the arrays, rows alike, to the sum of the statistic over their rows. It is called with
        empty blocks if there are no rows, so that the result always has its shape.
    *arrays : ndarray
        Arrays with the same number of rows, in memory or memory-mapped.
    block_rows : int, default=2048
        Rows per block.

    Returns
    -------
    total : ndarray
        The statistic of all rows.
    """
    n_rows = len(arrays[0])
    if any(len(a) != n_rows for a in arrays):
        raise ValueError("all arrays must have the same number of rows")
    partial: list[tuple[int, NDArray]] = []
    for start in range(0, max(n_rows, 1), block_rows):
        # What NumPy has to say of single values would tell about them.
        with np.errstate(all="ignore"):
            level, total = 0, np.asarray(statistic(*(a[start : start + block_rows] for a in arrays)))
        while partial and partial[-1][0] == level:
            total = partial.pop()[1] + total
            level += 1
        partial.append((level, total))
    total = partial.pop()[1]
    while partial:
        total = partial.pop()[1] + total
    return total


def weighted_gram(X: NDArray, weights: NDArray) -> NDArray[np.float64]:
    """Return ``X.T @ diag(weights) @ X`` for non-negative weights, from blocks of rows.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
        Rows.
    weights : ndarray of shape (n_rows,)
        Non-negative weights.

    Returns
    -------
    gram : ndarray of shape (n_columns, n_columns)
        Symmetric and positive semi-definite.
    """

    def block(rows: NDArray, w: NDArray) -> NDArray:
        scaled = rows * np.sqrt(np.maximum(w, 0.0))[:, None]
        return scaled.T @ scaled

    return sum_over_rows(block, X, weights, block_rows=8192)
