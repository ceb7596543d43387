r"""Sums of polynomials of bounded values, with small sensitivity.

A value is scaled to :math:`v \in [-1, 1]`. Two bases of the polynomials of degree :math:`D` are used.

Bernstein's polynomials :math:`b_k = \binom Dk x^k (1-x)^{D-k}` with :math:`x = (1+v)/2` are not negative, and their sum
is 1. A record therefore adds a vector of L1 norm exactly 1 to their sums, for any degree. These sums hold the number
of records, and all power sums up to degree :math:`D`.

Chebyshev's polynomials :math:`T_k` lie in [-1, 1], and :math:`T_k(1) = 1`. With weights :math:`w_k`, a record adds a
vector of L2 norm :math:`\sqrt{\sum_k w_k^2}` at most, which :math:`v = 1` attains.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.polynomial import chebyshev, polynomial
from numpy.typing import NDArray

from ._rows import UP

Array = NDArray[np.float64]

#: A value is rounded to a multiple of ``2**-POLYNOMIAL_BITS``.
POLYNOMIAL_BITS = 20

# Sums are integers in this unit: products of two values, times coefficients that are multiples of 1/16.
_UNIT_BITS = 2 * POLYNOMIAL_BITS + 4

#: The unit of sums of polynomials.
POLYNOMIAL_UNIT = 2.0**-_UNIT_BITS

# Sums of products of two values over this number of rows are exact in doubles.
_EXACT_ROWS = 2 ** (53 - 2 * POLYNOMIAL_BITS)

#: Sums over this number of rows, times coefficients with a sum below 2**8, fit into 64 bits.
POLYNOMIAL_ROWS = 2**15

# Half a step: the largest error of the square of a value, in powers of degree 3 and 4.
_ROUNDING = 2.0 ** -(POLYNOMIAL_BITS + 1)


@lru_cache
def bernstein_matrix(degree: int) -> Array:
    """Return the coefficients of Bernstein's polynomials in powers of v: a row for each, lowest power first."""
    rows = []
    for k in range(degree + 1):
        factors = polynomial.polymul(polynomial.polypow([0.5, 0.5], k), polynomial.polypow([0.5, -0.5], degree - k))
        rows.append(math.comb(degree, k) * factors)
    return _frozen(np.array(rows, dtype=np.float64))


@lru_cache
def chebyshev_matrix(weights: tuple[float, ...]) -> Array:
    """Return the coefficients of weighted Chebyshev polynomials in powers of v. Weights are for degrees from 0 on."""
    matrix = np.zeros((len(weights), len(weights)))
    for k, weight in enumerate(weights):
        coefficients = chebyshev.cheb2poly([0.0] * k + [1.0])
        matrix[k, : len(coefficients)] = weight * coefficients
    return _frozen(matrix)


def _frozen(matrix: Array) -> Array:
    matrix.setflags(write=False)
    return matrix


def polynomial_sums(matrix: Array, values: Array, cells: NDArray | None = None, n_cells: int = 1) -> NDArray[np.int64]:
    """Return exact sums of polynomials of values by cell, in units of ``POLYNOMIAL_UNIT``.

    A row of `matrix` has the coefficients of a polynomial of degree 4 at most, lowest power first: multiples of 1/16.
    Values in [-1, 1] are integers, as doubles, in units of ``2**-POLYNOMIAL_BITS``. There are at most
    `POLYNOMIAL_ROWS` of them. If `cells` is None, all values are in cell 0.
    """

    degree = matrix.shape[1] - 1
    powers = np.zeros((degree + 1, n_cells), dtype=np.int64)
    for start in range(0, len(values), _EXACT_ROWS):
        v = values[start : start + _EXACT_ROWS]
        code = None if cells is None else cells[start : start + _EXACT_ROWS]
        powers[0] += len(v) if code is None else np.bincount(code, minlength=n_cells)
        if degree >= 1:
            powers[1] += _total(code, n_cells, v)
        if degree >= 2:
            powers[2] += _total(code, n_cells, v, v)
        if degree >= 3:
            squares = v * v
            squares *= 2.0**-POLYNOMIAL_BITS
            np.rint(squares, out=squares)
            powers[3] += _total(code, n_cells, v, squares)
            if degree >= 4:
                powers[4] += _total(code, n_cells, squares, squares)
    powers[0] <<= 2 * POLYNOMIAL_BITS
    powers[1:2] <<= POLYNOMIAL_BITS
    coefficients = np.rint(16 * matrix.T).astype(np.int64)
    return powers.T @ coefficients


def _total(cells: NDArray | None, n_cells: int, *factors: Array) -> NDArray[np.int64] | int:
    """Sum products of integers, by cell."""
    if cells is None:
        return int(factors[0].sum() if len(factors) == 1 else factors[0] @ factors[1])
    products = factors[0] if len(factors) == 1 else factors[0] * factors[1]
    return np.bincount(cells, weights=products, minlength=n_cells).astype(np.int64)


def _rounding(matrix: Array) -> Array:
    """Bound the errors of the polynomials of one value."""
    # If the error of a square is e, the errors of powers 3 and 4 are e and 2 e + e**2 at most.
    size = np.zeros(len(matrix))
    for power, factor in ((3, 1.0), (4, 2.0 + 2.0**-10)):
        if matrix.shape[1] > power:
            size += np.abs(matrix[:, power]) * factor
    return size * _ROUNDING


def bernstein_l1(degree: int, n_columns: int) -> float:
    """Bound the L1 norm of one record's contribution to the sums of Bernstein's polynomials of each column.

    It is 1 for each column, by the argument of this module. Up to degree 2, polynomials of a rounded value are exact.
    Above degree 2, the bound includes the errors of rounded squares.
    """
    return n_columns * (1 + math.fsum(_rounding(bernstein_matrix(degree)))) * UP


def bernstein_l2(degree: int, n_columns: int) -> float:
    r"""Bound the same contribution in L2 norm: :math:`\sqrt d` for d columns, as the L2 norm is at most the L1 norm."""
    return bernstein_l1(degree, n_columns) / math.sqrt(n_columns)


def chebyshev_l2(weights: tuple[float, ...], n_columns: int, shared: bool) -> float:
    """Bound the L2 norm of one record's contribution to the sums of weighted Chebyshev polynomials of each column.

    If `shared`, the polynomial of degree 0, which counts records, is released once for all columns. A record with all
    values at the upper bound attains the bound.
    """
    errors = _rounding(chebyshev_matrix(weights)).tolist()
    squares = [(abs(weight) + error) ** 2 for weight, error in zip(weights, errors, strict=True)]
    total = squares[0] + n_columns * math.fsum(squares[1:]) if shared else n_columns * math.fsum(squares)
    return math.sqrt(total) * UP
