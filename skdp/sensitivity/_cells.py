"""Sums over the cells of public centres, of public grids, over classes and over blocks of records.

Rows and public centres are counted in steps of a lattice. With few enough bits, squared distances are integers below
:math:`2^{53}`, so that a matrix product computes them exactly. The cell of a record then depends on the record and on
the centres only. In floating point, the cell of a record half way between two centres would depend on its position in a
block of rows, and the removal of one record could move others.

A record adds to one cell of each column of a public grid, to the sums of its own class, and to one block, into which it
is drawn independently of all other records. If blocks are processed separately, one result may move from any point of
its range to any other. Therefore the change of a sum over blocks is the *diameter* of the range, not its radius.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import issparse

from ._rows import UP, by_entry, parts_of_columns, row_products, scaling_error, short_blocks, sum_over_rows, with_data

# From so many products on, it takes less time to convert rows to single precision first.
_FEWEST = 16

# Lengths are at least so large that numbers which are too small for a type do no harm.
_SHORTEST = {np.float32: 2.0**-50, np.float64: 2.0**-450}

Array = NDArray[np.float64]

#: Contributions of a record to a sum are counted in steps of ``2**-SUM_BITS``.
SUM_BITS = 20
_PER_UNIT = 2.0**SUM_BITS

#: Weights are multiples of an eighth. Weighted sums are multiples of this number.
CELLS_STEP = 2.0 ** -(SUM_BITS + 3)

#: Larger sums are clipped to this size, which is a contraction. Below it, doubles hold all steps.
LARGEST_SUM = 2.0**31

# Sums are exact for every size of a block. With this size, the distances to all centres are a few megabytes.
_BLOCK_ROWS, _BLOCK_ENTRIES = 8192, 2**20

#: Number of parts of a cell, a power of two.
PARTS = 8


def largest_products(X: Any, matrix: NDArray[np.float64], constants: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return ``(row_products(X, matrix) + constants).argmax(axis=1)`` in less time.

    A product of matrices is faster than `row_products`, above all in single precision, but its last bits can depend on
    all rows. If one sum is larger than all others by more than rounding can change, its position is certain. Double
    precision, and then `row_products`, decide on the other rows. Of equal sums, the first counts. All numbers are
    finite, and the matrix and the constants are public.
    """
    columns = np.ascontiguousarray(matrix.T)
    # Sums that are always equal would never be certain.
    first: dict[tuple[bytes, float], int] = {}
    for k, (column, constant) in enumerate(zip(columns, constants.tolist(), strict=True)):
        first.setdefault((column.tobytes(), constant), k)
    if len(first) < len(columns):
        distinct = np.array(list(first.values()))
        return distinct[largest_products(X, matrix[:, distinct], constants[distinct])]
    if issparse(X) or len(columns) == 1:
        return _safe(X, matrix, constants)
    positions = np.zeros(X.shape[0], dtype=np.intp)
    with np.errstate(all="ignore"):
        single = X.dtype == np.float32 or len(columns) >= _FEWEST
        kinds = (np.float32, np.float64) if single else (np.float64,)
        products = [_Products(columns, constants, kind) for kind in kinds]
        for block in short_blocks(len(positions), max(matrix.shape)):
            rows, largest = X[block], positions[block]
            largest[:], certain = products[0](rows)
            (open_,) = np.nonzero(~certain)
            for finer in products[1:]:
                if open_.size:
                    largest[open_], certain = finer(rows[open_])
                    open_ = open_[~certain]
            if open_.size:
                largest[open_] = _safe(rows[open_], matrix, constants)
    return positions


def positive_products(X: Any, matrix: NDArray[np.float64], constant: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return ``row_products(X, matrix)[:, 0] + constant > 0`` in less time, in the way of `largest_products`."""
    if issparse(X):
        return row_products(X, matrix)[:, 0] + constant > 0
    products = _Products(matrix.T, constant, np.float64)
    positive = np.empty(X.shape[0], dtype=bool)
    with np.errstate(all="ignore"):
        for block in short_blocks(*X.shape):
            (sums,), error = products.sums(X[block])
            np.greater(sums, 0, out=positive[block])
            (open_,) = np.nonzero(~(np.abs(sums) > error))
            if open_.size:
                positive[block][open_] = row_products(X[block][open_], matrix)[:, 0] + constant > 0
    return positive


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

    def sums(self, rows: NDArray) -> tuple[NDArray, np.floating]:
        """Return the sums of each column, and four times what rounding can change in a difference of two."""
        rows = np.asarray(rows, dtype=self._kind)
        sums = self._columns @ rows.T
        sums += self._constants
        # No row is longer than all together.
        length = _SHORTEST[self._kind] + math.sqrt(float(np.vdot(rows, rows)))
        terms = length * self._longest + self._farthest
        # Numbers beyond the type would be infinite, or no numbers, on the way to a sum that is not.
        fits = max(terms, self._longest) < float(np.finfo(self._kind).max) / 4
        return sums, self._kind(self._error * terms if fits else np.inf)

    def __call__(self, rows: NDArray) -> tuple[NDArray, NDArray[np.bool_]]:
        """Return the positions of the largest sums, and whether they are certain."""
        sums, error = self.sums(rows)
        number, total = self._number_and_sum @ (sums >= sums.max(axis=0) - error)
        return total, number == 1


def _safe(X: Any, matrix: NDArray[np.float64], constants: NDArray[np.float64]) -> NDArray[np.intp]:
    return (row_products(X, matrix) + constants).argmax(axis=1)


@dataclass(frozen=True, eq=False)
class RowLattice:
    """Public bounds of the rows, and a lattice on which everything inside them is an integer."""

    lower: Array  # Bounds, in units of the data.
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

    def encode(self, rows: Any) -> Any:
        """Clip finite rows of any size to the bounds, and round them to integers, as doubles. Each entry by itself.

        Of sparse rows, the differences to the encoded row of zeros are returned, which are 0 where nothing is stored.
        """
        if issparse(rows):
            zeros = self.encode(np.zeros((1, rows.shape[1])))[0]
            data = self._encoded(rows.data, self.centre[rows.indices], self.half[rows.indices])
            return with_data(rows, data - zeros[rows.indices])
        # A single number is faster than one for each column.
        return self._encoded(rows, self.centre, self.half[0] if np.all(self.half == self.half[0]) else self.half)

    def _encoded(self, entries: NDArray, centre: Array, limit: Array) -> Array:
        with np.errstate(all="ignore"):
            points = np.subtract(entries, centre, dtype=np.float64)
            points *= 2.0**self.bits / self.unit
        np.clip(points, -limit, limit, out=points)
        return np.rint(points, out=points)

    def encode_once(self, X: NDArray) -> NDArray[np.float32]:
        """Return `encode` of all rows, in single precision, which holds these integers exactly."""
        points = np.empty(X.shape, dtype=np.float32)
        for block in short_blocks(*X.shape):
            points[block] = self.encode(X[block])
        return points

    def decode(self, points: Array) -> Array:
        """Return points, which are given in steps, in units of the data, within the bounds. They stay public."""
        return np.clip(self.centre + self.unit * (points * 2.0**-self.bits), self.lower, self.upper)


def nearest(points: Array, centres: Array) -> NDArray[np.intp]:
    """Return the position of the nearest centre of each point, or the first of several."""
    # The result is exact for integers of a `RowLattice`. For other points, it does not depend on the other points.
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
    """
    step = 2.0**-SUM_BITS
    radius = 1 + scaling_error(n_features) + step * math.sqrt(n_features) / 2
    return math.hypot(count_weight, radius, spread_weight * (1 + step)) * UP


def cells_l1(n_features: int, count_weight: float, spread_weight: float) -> float:
    r"""Bound the L1 norm of one record's contribution to the sums over cells.

    As for `cells_l2`, it is :math:`a + \lVert u\rVert_1 + b\lVert u\rVert_2^2 \le a + \sqrt d + b`. A record in the
    direction of a corner attains the bound.
    """
    step = 2.0**-SUM_BITS
    total = math.sqrt(n_features) * (1 + scaling_error(n_features)) + n_features * step / 2
    return (count_weight + total + spread_weight * (1 + step)) * UP


def cell_sums(
    encode: Callable[[Any], Any],
    X: Any,
    centres: Array,
    radii: Array,
    count_weight: float,
    spread_weight: float,
) -> Array:
    """Return exact sums over the cells of public centres: multiples of ``CELLS_STEP``, for every order of the rows.

    The sums have shape (n_cells, n_features + 2): a times the count of each cell, the sum of the records' clipped
    differences to the centre over the radius, and b times the sum of the squared norms of these. `encode` maps blocks
    of `X` as `RowLattice.encode` does. Centres are integers of the lattice within the bounds, and radii are positive
    and finite, in steps. The weights a and b (`count_weight` and `spread_weight`) are multiples of an eighth below 1.
    Sparse rows have the same sums as dense ones, and are not made dense.
    """
    n_cells, d = centres.shape

    def block(rows: Any) -> NDArray[np.int64]:
        points = encode(rows)
        if issparse(points):
            labels, squares, differences = _sparse_differences(points, encode(np.zeros((1, d)))[0], centres, radii)
        else:
            labels, squares, differences = _differences(points, centres, radii)
        spread = np.rint(np.minimum(1.0, squares / radii[labels] ** 2) * _PER_UNIT)
        sums = np.empty((n_cells, d + 2), dtype=np.int64)
        sums[:, 0] = np.bincount(labels, minlength=n_cells)
        sums[:, 1:-1] = differences
        sums[:, -1] = np.bincount(labels, weights=spread, minlength=n_cells)
        return sums

    width = d if not issparse(X) else X.nnz // max(X.shape[0], 1)
    rows = max(64, min(_BLOCK_ROWS, _BLOCK_ENTRIES // (n_cells + width)))
    total = sum_over_rows(block, X, block_rows=rows)
    total[:, 0] = np.minimum(total[:, 0], int(LARGEST_SUM))
    total[:, 1:] = np.clip(total[:, 1:], -int(LARGEST_SUM * _PER_UNIT), int(LARGEST_SUM * _PER_UNIT))
    sums = total.astype(np.float64)
    sums[:, 1:] /= _PER_UNIT
    sums[:, 0] *= count_weight
    sums[:, -1] *= spread_weight
    return sums


def _factors(squares: Array, radii: Array) -> Array:
    """Return the factors by which differences with these squared norms are scaled and clipped."""
    return _PER_UNIT / np.maximum(np.sqrt(squares), radii)


def _differences(points: Array, centres: Array, radii: Array) -> tuple[NDArray[np.intp], Array, Array]:
    """Return the cell of each row, its squared distance to the centre, and the sums of scaled differences by cell."""
    n, d = points.shape
    labels = largest_products(points, *_table(centres))
    differences, squares = np.empty(points.shape), np.empty(n)
    for short in short_blocks(n, d):
        steps = differences[short]
        np.subtract(points[short], centres[labels[short]], out=steps)
        # These sums are of integers below 2**53, and exact in any order. Later steps treat each record by itself.
        squares[short] = np.einsum("ij,ij->i", steps, steps)
        steps *= _factors(squares[short], radii[labels[short]])[:, None]
        np.rint(steps, out=steps)
    membership = sparse.csc_matrix((np.ones(n), labels, np.arange(n + 1)), shape=(len(centres), n))
    return labels, squares, membership @ differences


def _sparse_differences(
    points: Any, zeros: Array, centres: Array, radii: Array
) -> tuple[NDArray[np.intp], Array, Array]:
    """Return the same for sparse differences of rows to `zeros`, the encoded row of zeros."""
    # Up to the scaling, all numbers and partial sums are integers of at most 2**53, and therefore those of dense rows.
    n_cells, d = centres.shape
    factors, constants = _table(centres)
    labels = largest_products(points, factors, constants + zeros @ factors)
    cells, columns, apart = by_entry(points, labels), points.indices, zeros - centres
    before = apart[cells, columns]
    after = before + points.data
    squares = np.einsum("ij,ij->i", apart, apart)[labels]
    squares += with_data(points, after**2 - before**2) @ np.ones(d)
    scale = _factors(squares, radii[labels])
    by_column = np.rint(after * by_entry(points, scale)) - np.rint(before * by_entry(points, scale))
    # NumPy counts in integers if there are no entries.
    sums = np.bincount(cells * d + columns, by_column, minlength=n_cells * d).astype(np.float64, copy=False)
    sums = sums.reshape(n_cells, d)
    # Rows of zeros differ by their cells and factors only. All rows within the radius of a cell have the same factor.
    kinds, counts = np.unique(labels + 1j * scale, return_counts=True)
    cells = kinds.real.astype(np.intp)
    for part in parts_of_columns(d):
        of_part = apart[:, part]
        for short in short_blocks(len(kinds), of_part.shape[1]):
            steps = of_part[cells[short]]
            steps *= kinds[short].imag[:, None]
            np.rint(steps, out=steps)
            steps *= counts[short, None]
            starts = np.flatnonzero(np.diff(cells[short], prepend=-1))
            sums[cells[short][starts], part] += np.add.reduceat(steps, starts)
    return labels, squares, sums


def cell_counts(places: Callable[[NDArray], NDArray], X: NDArray, n_columns: int, n_cells: int) -> NDArray[np.float64]:
    """Count the records in the cells of each column's grid.

    Each record is placed separately, and adds 1 to one cell of each column. Therefore neighbouring data sets differ by
    1 in one cell of each column. `places` maps a block of rows to positions in units of cells, of shape (n_rows,
    n_columns), by a public rule. Positions beyond the grid count for the outer cells.
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
    """
    return np.repeat(counts, PARTS, axis=1) / PARTS


def class_sums_l2(n_cells: int, n_moments: int, weight: float) -> float:
    r"""Bound the L2 norm of one record's contribution to the sums of its class.

    Each counted cell adds 1 to the square. A pair of moments adds :math:`v^2 + a^2(w - 1/2)^2`. For every rounding,
    this is largest for :math:`v = \pm1` and :math:`w \in \{0, 1\}`, namely :math:`1 + a^2/4`. The record with all
    values at a bound attains the bound. Without the shift by 1/2, it would be :math:`1 + a^2`. `n_cells` is the number
    of tables, plus one if the records of a class are counted separately, `n_moments` the number of features whose two
    moments are summed, and `weight` is :math:`a`.
    """
    return math.sqrt(n_cells + n_moments * (1 + weight**2 / 4)) * UP


def class_sums_l1(n_cells: int, n_moments: int, weight: float) -> float:
    r"""Bound the L1 norm of one record's contribution to the sums of its class.

    As above, with :math:`|v| + a|w - 1/2| \le 1 + a/2`.
    """
    return (n_cells + n_moments * (1 + weight / 2)) * UP


def blocks_l2(n_centres: int, n_features: int) -> float:
    r"""Bound the L2 norm of the change by one record of a sum over blocks of `n_centres` points of the unit ball.

    The points of one block move by 2 each, hence by :math:`2\sqrt k` together. A block whose points all move from one
    end of a diameter to the other attains the bound. Rounding moves each coordinate by at most half a step, before and
    after.
    """
    radius = 1 + scaling_error(n_features) + 2.0**-SUM_BITS * math.sqrt(n_features) / 2
    return 2 * radius * math.sqrt(n_centres) * UP


def blocks_l1(n_centres: int, n_features: int) -> float:
    r"""Bound the same change in L1 norm: :math:`2k\sqrt d`, attained in the direction of a corner."""
    radius = math.sqrt(n_features) * (1 + scaling_error(n_features)) + n_features * 2.0**-SUM_BITS / 2
    return 2 * radius * n_centres * UP
