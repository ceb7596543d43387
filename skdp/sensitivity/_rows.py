"""Sums over rows, block by block, with bounded memory and a rounding error that hardly grows with the rows.

The bits of a row's contribution do not depend on other rows. Sparse rows are canonical CSR arrays. SciPy's kernels add
up the stored entries of a row one after the other. Therefore no sum over a row depends on other rows. Bounds on
rounding errors are those of dense rows, because zeros add none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import issparse

from ..parts.arrays import PartedArray, folded

Array = NDArray[np.float64]

_TINY = float(np.finfo(float).tiny)

#: Factor of bounds, which is more than the rounding errors of the few operations of a bound.
UP = 1 + 2.0**-50

#: Number of rows whose integers are added up at once. Products of at most ``2**40`` then have sums that 64 bits hold.
EXACT_ROWS = 2**20

# Number of rows that are clipped at once.
_BLOCK = 2**16

#: Beyond these limits, squared norms overflow or lose digits.
LEAST_SQUARE, LARGEST_SQUARE = 1e-280, 1e300

#: Number of rows of a block, for which exact sums of products fit into doubles (see `ENTRY_BITS`).
BLOCK_ROWS = 2048

# Number of columns, fewer than the entries that NumPy buffers.
_COLUMNS = 4096

# Number of entries of a block of rows that stays in a cache.
_ENTRIES = 2**17

# Numbers beyond doubles count as this number.
_LARGEST = np.finfo(np.float64).max

# For more products, exact ones take less time.
_MOST_PRODUCTS = 96

# Number of entries in a row for which NumPy hardly takes longer than for the entries alone.
_LONG = 1024

# Sums of ``n`` products are rounded to a lattice whose step is about ``n * 2**-_LATTICE_BITS`` units.
_LATTICE_BITS = 43


def scaling_error(n_columns: int) -> float:
    """Bound the relative rounding error of the norm of a row that was scaled to a norm."""
    return max(2.0**-40, n_columns * 2.0**-50)


def with_data(rows: Any, data: NDArray) -> Any:
    """Return sparse rows with one other number for each stored entry, in the same places."""
    return sparse.csr_array((data, rows.indices, rows.indptr), shape=rows.shape)


def by_entry(rows: Any, values: NDArray) -> NDArray:
    """Repeat the value of each row for each of the row's stored entries."""
    return np.repeat(values, np.diff(rows.indptr))


def sparse_squared_norms(rows: Any) -> Array:
    """Return squared L2 norms of sparse rows. The bits of a norm do not depend on other rows."""
    return with_data(rows, np.square(rows.data)) @ np.ones(rows.shape[1])


def largest_entries(rows: Any) -> Array:
    """Return the exact largest absolute entry of each sparse row, or 0 if nothing is stored."""
    largest = np.zeros(rows.shape[0])
    filled = np.flatnonzero(np.diff(rows.indptr))
    if len(filled):
        largest[filled] = np.maximum.reduceat(np.abs(rows.data), rows.indptr[filled])
    return largest


def with_constant(rows: Any, constant: float) -> Any:
    """Append a constant feature to canonical sparse rows, unless it is 0."""
    if constant == 0.0:
        return rows
    n_rows, n_columns = rows.shape
    # Indexes have 64 bits, because the constants could make more entries than 32 bits count.
    indptr = rows.indptr.astype(np.int64) + np.arange(n_rows + 1)
    of_features = np.ones(indptr[-1], dtype=bool)
    of_features[indptr[1:] - 1] = False
    data = np.full(indptr[-1], constant)
    data[of_features] = rows.data
    indices = np.full(indptr[-1], n_columns, dtype=rows.indices.dtype)
    indices[of_features] = rows.indices
    return sparse.csr_array((data, indices, indptr), shape=(n_rows, n_columns + 1))


def clip_sparse(rows: Any, target: float) -> Any:
    """Scale canonical sparse rows of any size down to an L2 norm of at most `target`, up to rounding."""
    data = np.empty(len(rows.data))
    for start in range(0, rows.shape[0], _BLOCK):
        stop = min(start + _BLOCK, rows.shape[0])
        data[rows.indptr[start] : rows.indptr[stop]] = _clipped(rows[start:stop], target)
    return with_data(rows, data)


def _clipped(rows: Any, target: float) -> Array:
    doubles = with_data(rows, rows.data.astype(np.float64))
    with np.errstate(over="ignore", under="ignore"):
        squared = sparse_squared_norms(doubles)
        # These rows are first divided by their largest entry.
        extreme = (squared > LARGEST_SQUARE) | (squared < LEAST_SQUARE)
        factors = np.minimum(1.0, target / np.sqrt(np.maximum(squared, LEAST_SQUARE)))
        data: Array = doubles.data * by_entry(rows, factors)
        if np.any(extreme):
            data[by_entry(rows, extreme)] = _clip_extreme(doubles[np.flatnonzero(extreme)], target)
    return data


def _clip_extreme(rows: Any, target: float) -> Array:
    largest = np.maximum(largest_entries(rows), _TINY)
    direction = rows.data / by_entry(rows, largest)
    length = np.sqrt(sparse_squared_norms(with_data(rows, direction)))
    scale = target / np.maximum(length, _TINY)
    return direction * by_entry(rows, np.minimum(largest, scale))


def sparse_gram(rows: Any) -> NDArray:
    """Return the sum of products of sparse rows with themselves, as an array."""
    # For integers of at most ``2**20``, it is exact for up to `EXACT_ROWS` rows.
    # The order is that of dense products, so that later results have the same bits.
    return (rows.T @ rows).toarray(order="C")


def sum_over_rows(
    statistic: Callable[..., NDArray],
    *arrays: Any,
    block_rows: int = BLOCK_ROWS,
) -> NDArray:
    """Sum a statistic over blocks of rows.

    Block totals are added in pairs of equal weight, so that each is added only ``log2(blocks)`` times. There are no
    more partial sums than that. `statistic` maps blocks of the arrays to the sum over their rows. It is called with
    empty blocks if there are no rows, so that the result always has its shape. The arrays have the same number of rows,
    in memory, memory-mapped or in parts.
    """
    if isinstance(arrays[0], PartedArray):
        return folded(partial(sum_over_rows, statistic, block_rows=block_rows), arrays)
    n_rows = arrays[0].shape[0]
    if any(a.shape[0] != n_rows for a in arrays):
        raise ValueError("all arrays must have the same number of rows")
    totals: list[tuple[int, NDArray]] = []
    for start in range(0, max(n_rows, 1), block_rows):
        # A warning of NumPy would depend on single values.
        with np.errstate(all="ignore"):
            level, total = 0, np.asarray(statistic(*(a[start : start + block_rows] for a in arrays)))
        while totals and totals[-1][0] == level:
            total = totals.pop()[1] + total
            level += 1
        totals.append((level, total))
    total = totals.pop()[1]
    while totals:
        total = totals.pop()[1] + total
    return total


def group_sensitivity(sensitivity: float, rows: int) -> float:
    r"""Bound the norm of the change of a sum over records by one group of records.

    At most :math:`m` records of each group count. They are drawn for each group separately. For fixed draws of the
    other groups, data sets that differ by all records of one group differ by at most :math:`m` records. A record moves
    the sum by at most :math:`\Delta` in some norm. By the triangle inequality, a group moves it by at most
    :math:`m\Delta`. In every norm, :math:`m` equal records attain this bound. In particular, :math:`\sqrt m` is not
    enough in L2 norm. It would be enough if the records of a group were known to affect different cells.
    """
    return sensitivity if rows == 1 else rows * sensitivity * UP


def short_blocks(n_rows: int, width: int) -> Iterator[slice]:
    """Yield slices of rows that stay in a cache."""
    size = max(_ENTRIES // max(width, 1), 16)
    for start in range(0, n_rows, size):
        yield slice(start, start + size)


def row_products(X: Any, matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``X @ matrix`` such that no bit of a row depends on other rows.

    A library for linear algebra chooses the order of its additions by the number of rows. Then one more record could
    change the last bits of all others. Here, the products of a dense row are added by `numpy.einsum`, in an order that
    depends on the number of columns only, and the products of a sparse row in the order of its entries. A row that is
    not finite raises FloatingPointError, so that nobody needs to look for one before.
    """
    if not issparse(X) and matrix.shape[1] > _MOST_PRODUCTS:
        return exact_row_products(X, matrix)
    with np.errstate(all="ignore"):
        if issparse(X):
            products: NDArray[np.float64] = with_data(X, X.data.astype(np.float64)) @ matrix
        else:
            products = np.zeros((X.shape[0], matrix.shape[1]))
            factors = np.ascontiguousarray(matrix.T)
            for rows in short_blocks(*X.shape):
                block, sums = two_or_more(X[rows]), products[rows]
                for columns in parts_of_columns(X.shape[1]):
                    sums += np.einsum("ij,kj->ik", block[:, columns], factors[:, columns])[: len(sums)]
    if not np.isfinite(products.sum()):
        # Intermediate results beyond doubles.
        (infinite,) = np.nonzero(~np.isfinite(products).all(axis=1))
        products[infinite] = exact_row_products(X[infinite], matrix)
    return products


def rounded_products(X: Any, matrix: Array, unit: float) -> Array:
    """Return `row_products`, rounded to a public lattice, in less time. No bit of a row depends on other rows.

    The step of the lattice is a small part of a public `unit`. A product of matrices is faster than `row_products`, but
    its last bits can depend on all rows. Where both must be rounded to the same number, the result is certain.
    `row_products` decides on the other rows.
    """
    step = math.ldexp(1.0, math.frexp(unit)[1] + len(matrix).bit_length() - _LATTICE_BITS)
    # Near this number, doubles are the multiples of the step.
    shift = 1.5 * 2.0**52 * step

    def exact(rows: Any) -> Array:
        return row_products(rows, matrix) + shift - shift

    matrix, n_products = np.ascontiguousarray(matrix), matrix.shape[1]
    if issparse(X) or n_products > _MOST_PRODUCTS:
        return exact(X)
    products = np.empty((X.shape[0], n_products))
    # If entries are at most 1, sums of the same products in two orders differ by less than this number.
    error = (len(matrix) + 4) * float(np.finfo(float).eps) * float(np.abs(matrix).sum(axis=0).max())
    for block in short_blocks(*X.shape):
        rows, sums = np.asarray(X[block], dtype=np.float64), products[block]
        slack = step / 2 - error * float(max(rows.max(), -rows.min()))
        if not slack > step / 4:
            sums[:] = exact(rows)
            continue
        distances = rows @ matrix
        np.add(distances, shift, out=sums)
        sums -= shift
        distances -= sums
        open_ = np.abs(distances, out=distances) >= slack
        if open_.any():
            chosen = np.flatnonzero(open_) // n_products
            sums[chosen] = exact(rows[chosen])
    return products


def by_column(operation: np.ufunc, rows: Array, numbers: Array, out: Array) -> None:
    """Apply an operation to each entry and the number of its column. `out` has no gaps between its rows in memory."""
    # Several rows are one long row, because NumPy takes time for each row.
    several, n_columns = max(_LONG // len(numbers), 1), len(numbers)
    whole = len(rows) // several * several
    long_rows, long_out = (array[:whole].reshape(-1, several * n_columns) for array in (rows, out))
    operation(long_rows, np.tile(numbers, several), out=long_out)
    operation(rows[whole:], numbers, out=out[whole:])


def two_or_more(rows: NDArray) -> NDArray[np.float64]:
    """Return dense rows in doubles, one after the other in memory, and a single row twice."""
    # NumPy's einsum adds up a single row in another order than one of several rows.
    return np.ascontiguousarray(rows if len(rows) != 1 else np.concatenate([rows, rows]), dtype=np.float64)


def parts_of_columns(n_columns: int) -> Iterator[slice]:
    """Yield parts of the columns that fit into NumPy's buffers. In longer ones, it adds up in parts of its own."""
    for start in range(0, n_columns, _COLUMNS):
        yield slice(start, start + _COLUMNS)


def exact_row_products(X: Any, matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""Return the same as `row_products`, with equal bits for dense and sparse rows, and for any order of columns.

    Each row of `X`, and each column of `matrix`, is scaled by a power of two to entries of at most 1. These are written
    as :math:`a 2^{-b} + a' 2^{-2b}` with integers :math:`|a| \le 2^b` and :math:`|a'| \le 2^{b-1}`. With :math:`n`
    columns and :math:`n 2^{2b} \le 2^{53}`, the sums of products of these integers, and all partial sums, are integers
    that doubles hold exactly. The remaining operations are on single numbers.
    """
    bits = (53 - (max(X.shape[1], 1) - 1).bit_length()) // 2
    coarse, fine, scale = _slices(matrix.T, bits)
    columns = np.hstack([fine, coarse]).T
    fine, coarse = fine.T, coarse.T
    products = np.empty((X.shape[0], matrix.shape[1]))
    with np.errstate(all="ignore"):
        for start in range(0, X.shape[0], BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            if issparse(X):
                block = X[rows]
                block = with_data(block, block.data.astype(np.float64))
                _, row_scale = np.frexp(largest_entries(block))
                integers = _integers(block.data, by_entry(block, row_scale), bits)
                row_coarse, row_fine = (with_data(block, data) for data in integers)
                product = np.ldexp(row_coarse @ fine + row_fine @ coarse, -bits)
            else:
                row_coarse, row_fine, row_scale = _slices(np.asarray(X[rows], dtype=np.float64), bits)
                product = np.ldexp(np.hstack([row_coarse, row_fine]) @ columns, -bits)
            product += row_coarse @ coarse
            np.ldexp(product, row_scale[:, None] + scale - 2 * bits, out=products[rows])
            np.clip(products[rows], -_LARGEST, _LARGEST, out=products[rows])
    if np.isnan(products).any():
        raise FloatingPointError("a row is not finite")
    return products


def _slices(rows: NDArray[np.float64], bits: int) -> tuple[NDArray, NDArray, NDArray[np.intc]]:
    """Return coarse and fine integers of each row, and the exponent of its scale."""
    _, scale = np.frexp(np.abs(rows).max(axis=1, initial=0.0))
    return *_integers(rows, scale[:, None], bits), scale


def _integers(values: NDArray[np.float64], scale: NDArray[np.intc], bits: int) -> tuple[NDArray, NDArray]:
    # The scaling has two steps, because a single factor may not be a double.
    half = bits - scale // 2
    scaled = np.ldexp(np.ldexp(values, half), bits - scale - half)
    coarse = np.rint(scaled)
    return coarse, np.rint(np.ldexp(scaled - coarse, bits))
