r"""Sums over the cells of public centres: their sensitivity, and their exact values.

Rows and centres are counted in steps of a lattice. With few enough bits, squared distances are integers below
:math:`2^{53}`, so that a matrix product computes them exactly. The cell of a record then depends on the record and on
the centres only. In floating point, the cell of a record half way between two centres would depend on its position in a
block of rows, and the removal of one record could move others.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ._largest import largest_products
from ._rows import short_blocks, sum_over_rows

Array = NDArray[np.float64]

#: Contributions of a record to a sum are counted in steps of ``2**-SUM_BITS``.
SUM_BITS = 20

#: Weights are multiples of an eighth. Weighted sums are multiples of this number.
CELLS_STEP = 2.0 ** -(SUM_BITS + 3)

#: Larger sums are clipped to this size, which is a contraction. Below it, doubles hold all steps.
LARGEST_SUM = 2.0**31


# Sums are exact for every size of a block. With this size, the distances to all centres are a few megabytes.
_BLOCK_ROWS = 8192
_BLOCK_ENTRIES = 2**20


@dataclass(frozen=True, eq=False)
class RowLattice:
    """Public bounds of the rows, and a lattice on which everything inside them is an integer.

    Parameters
    ----------
    lower, upper : ndarray of shape (n_features,)
        Bounds, in units of the data.
    """

    lower: Array
    upper: Array

    @cached_property
    def bits(self) -> int:
        """Half of the widest bound is ``2**bits`` steps: 20 bits, or fewer to keep squared distances below 2**53."""
        return max(1, min(20, (51 - math.ceil(math.log2(len(self.lower)))) // 2))

    @cached_property
    def centre(self) -> Array:
        """Middle of the bounds."""
        return self.lower / 2 + self.upper / 2

    @cached_property
    def unit(self) -> float:
        """Half of the widest bound."""
        return float(np.max(self.upper / 2 - self.lower / 2))

    @cached_property
    def half(self) -> Array:
        """Half widths of the bounds, in steps."""
        return np.rint((self.upper / 2 - self.lower / 2) / self.unit * 2.0**self.bits)

    def encode(self, rows: NDArray) -> Array:
        """Clip rows to the bounds, and round them to the lattice.

        Each entry is mapped separately.

        Parameters
        ----------
        rows : ndarray of shape (n_rows, n_features)
            Finite rows of any size.

        Returns
        -------
        points : ndarray of shape (n_rows, n_features)
            Integers, as doubles.
        """
        with np.errstate(all="ignore"):
            points = np.subtract(rows, self.centre, dtype=np.float64)
            points *= 2.0**self.bits / self.unit
        # A single number is faster than one for each column.
        limit = self.half[0] if np.all(self.half == self.half[0]) else self.half
        np.clip(points, -limit, limit, out=points)
        return np.rint(points, out=points)

    def encode_once(self, X: NDArray) -> NDArray[np.float32]:
        """Return `encode` of all rows, in single precision, which holds these integers exactly.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features)
            Finite rows of any size.

        Returns
        -------
        points : ndarray of float32, of shape (n_rows, n_features)
            Integers.
        """
        points = np.empty(X.shape, dtype=np.float32)
        for part in short_blocks(*X.shape):
            points[part] = self.encode(X[part])
        return points

    def decode(self, points: Array) -> Array:
        """Return points in units of the data, within the bounds.

        Parameters
        ----------
        points : ndarray of shape (n_points, n_features)
            In steps.

        Returns
        -------
        rows : ndarray of shape (n_points, n_features)
            Rows. They are public if the points are.
        """
        return np.clip(self.centre + self.unit * (points * 2.0**-self.bits), self.lower, self.upper)


def nearest(points: Array, centres: Array) -> NDArray[np.intp]:
    """Return the position of the nearest centre of each point, or the first of several.

    Parameters
    ----------
    points : ndarray of shape (n_points, n_features)
        Points. The result is exact for integers of a `RowLattice`. For other points, it does not depend on the others.
    centres : ndarray of shape (n_centres, n_features)
        Centres. The result is exact for integers of a `RowLattice`.

    Returns
    -------
    labels : ndarray of shape (n_points,)
        Positions in `centres`.
    """
    return largest_products(points, *_table(centres))


def _table(centres: Array) -> tuple[Array, Array]:
    """Return factors and constants that give the squares of points minus squared distances."""
    return 2.0 * centres.T, -np.einsum("ij,ij->i", centres, centres)


def cells_l2(n_features: int, count_weight: float, spread_weight: float) -> float:
    r"""Bound the L2 norm of one record's contribution to the sums over cells.

    A record belongs to one cell. Let :math:`u` be its difference to the cell's centre, divided by the cell's radius
    :math:`\rho` and clipped to the unit ball. The record adds :math:`(a, u, b\lVert u\rVert^2)` to this cell and
    nothing to the others. The norm is :math:`\sqrt{a^2 + \lVert u\rVert^2 + b^2\lVert u\rVert^4} \le \sqrt{a^2 + 1 +
    b^2}`, and every record beyond the radius attains the bound. Centres and radii are public, so that a record's cell
    depends on the record only. Rounding moves each coordinate of :math:`u`, and the square, by at most half a step.

    Parameters
    ----------
    n_features : int
        Number of columns.
    count_weight, spread_weight : float
        The weights a and b.

    Returns
    -------
    sensitivity : float
        The bound, rounded up.
    """
    step = 2.0**-SUM_BITS
    radius = 1 + _scaling_error(n_features) + step * math.sqrt(n_features) / 2
    return math.hypot(count_weight, radius, spread_weight * (1 + step)) * (1 + 2.0**-50)


def cells_l1(n_features: int, count_weight: float, spread_weight: float) -> float:
    r"""Bound the L1 norm of one record's contribution to the sums over cells.

    As for `cells_l2`, it is :math:`a + \lVert u\rVert_1 + b\lVert u\rVert_2^2 \le a + \sqrt d + b`. A record in the
    direction of a corner attains the bound.

    Parameters
    ----------
    n_features : int
        Number of columns.
    count_weight, spread_weight : float
        The weights a and b.

    Returns
    -------
    sensitivity : float
        The bound, rounded up.
    """
    step = 2.0**-SUM_BITS
    total = math.sqrt(n_features) * (1 + _scaling_error(n_features)) + n_features * step / 2
    return (count_weight + total + spread_weight * (1 + step)) * (1 + 2.0**-50)


def _scaling_error(n_features: int) -> float:
    return max(2.0**-40, n_features * 2.0**-50)


def cell_sums(
    encode: Callable[[NDArray], NDArray],
    X: NDArray,
    centres: Array,
    radii: Array,
    count_weight: float,
    spread_weight: float,
) -> Array:
    """Return the exact sums over cells. They are multiples of ``CELLS_STEP``, for every order of the rows.

    Parameters
    ----------
    encode : callable
        Function that maps blocks of `X` to integers of a `RowLattice`.
    X : ndarray of shape (n_rows, n_features)
        Finite data, in memory or memory-mapped.
    centres : ndarray of shape (n_cells, n_features)
        Public centres: integers of the lattice within the bounds.
    radii : ndarray of shape (n_cells,)
        Public radii in steps, positive and finite.
    count_weight, spread_weight : float
        The weights a and b, multiples of an eighth below 1. With b = 0, the squares are left out.

    Returns
    -------
    sums : ndarray of shape (n_cells, n_features + 2)
        For each cell, a times the count, the sum of clipped differences over the radius, and b times the sum of
        their squared norms.
    """
    n_cells, d = centres.shape
    per_unit = 2.0**SUM_BITS
    table = _table(centres)

    def block(rows: NDArray) -> NDArray[np.int64]:
        n = len(rows)
        points = encode(rows)
        labels = largest_products(points, *table)
        difference, spread = np.empty(points.shape), np.empty(n)
        for part in short_blocks(n, d):
            own = difference[part]
            np.subtract(points[part], centres[labels[part]], out=own)
            # These are integers below 2**53. Therefore all later steps for one record are exact, too.
            squares = np.einsum("ij,ij->i", own, own)
            radius = radii[labels[part]]
            own *= (per_unit / np.maximum(np.sqrt(squares), radius))[:, None]
            np.rint(own, out=own)
            spread[part] = np.rint(np.minimum(1.0, squares / radius**2) * per_unit)
        membership = sparse.csc_matrix((np.ones(n), labels, np.arange(n + 1)), shape=(n_cells, n))
        sums = np.empty((n_cells, d + 2), dtype=np.int64)
        sums[:, 0] = np.bincount(labels, minlength=n_cells)
        sums[:, 1:-1] = membership @ difference
        sums[:, -1] = np.bincount(labels, weights=spread, minlength=n_cells)
        return sums

    rows = max(64, min(_BLOCK_ROWS, _BLOCK_ENTRIES // (n_cells + d)))
    total = sum_over_rows(block, X, block_rows=rows)
    total[:, 0] = np.minimum(total[:, 0], int(LARGEST_SUM))
    total[:, 1:] = np.clip(total[:, 1:], -int(LARGEST_SUM * per_unit), int(LARGEST_SUM * per_unit))
    sums = total.astype(np.float64)
    sums[:, 1:] /= per_unit
    sums[:, 0] *= count_weight
    sums[:, -1] *= spread_weight
    return sums
