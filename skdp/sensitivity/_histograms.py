"""Histograms on public grids: one record adds 1 to one cell of each column."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ._rows import sum_over_rows

#: Number of parts of a cell, a power of two.
PARTS = 8


def cell_counts(places: Callable[[NDArray], NDArray], X: NDArray, n_columns: int, n_cells: int) -> NDArray[np.float64]:
    """Count the records in the cells of each column's grid.

    Each record is placed separately, and adds 1 to one cell of each column. Therefore neighbouring data sets differ by
    1 in one cell of each column.

    Parameters
    ----------
    places : callable
        Function that maps a block of rows to positions in units of cells, of shape (n_rows, n_columns), by a public
        rule. Positions beyond the grid count for the outer cells.
    X : ndarray of shape (n_rows, n_features)
        Rows.
    n_columns : int
        Number of grids.
    n_cells : int
        Number of cells of each grid.

    Returns
    -------
    counts : ndarray of shape (n_columns, n_cells)
        Integers.
    """
    first = np.arange(n_columns) * n_cells

    def block(rows: NDArray) -> NDArray:
        cells = np.clip(places(rows), 0, n_cells - 1).astype(np.intp) + first
        return np.bincount(cells.ravel(), minlength=n_columns * n_cells)

    return sum_over_rows(block, X).reshape(n_columns, n_cells).astype(np.float64)


def spread_counts(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Divide each cell into `PARTS` parts, and count an equal share of each record of the cell in each part.

    A record adds ``1 / PARTS`` to each of the parts of one cell of each column. These shares are not negative, and
    their sum is 1. Therefore the L1 norm of a record's contribution is 1, as for counts. Sums of shares, which are
    powers of two, are exact.

    Parameters
    ----------
    counts : ndarray of shape (n_columns, n_cells)
        Integers.

    Returns
    -------
    shares : ndarray of shape (n_columns, PARTS * n_cells)
        Multiples of ``1 / PARTS``.
    """
    shares: NDArray[np.float64] = np.repeat(counts, PARTS, axis=1) / PARTS
    return shares
