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

import numpy as np
from numpy.polynomial import chebyshev, polynomial
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Each entry of a record is rounded to a multiple of ``2**-POLYNOMIAL_BITS``.
POLYNOMIAL_BITS = 20


def bernstein_matrix(degree: int) -> Array:
    """Return the coefficients of Bernstein's polynomials in powers of v, of shape (degree + 1, degree + 1).

    Parameters
    ----------
    degree : int
        The degree.

    Returns
    -------
    matrix : ndarray
        One row for each polynomial, lowest power first.
    """
    rows = []
    for k in range(degree + 1):
        factors = polynomial.polymul(polynomial.polypow([0.5, 0.5], k), polynomial.polypow([0.5, -0.5], degree - k))
        rows.append(math.comb(degree, k) * factors)
    return np.array(rows, dtype=np.float64)


def chebyshev_matrix(weights: tuple[float, ...]) -> Array:
    """Return the coefficients of weighted Chebyshev polynomials in powers of v.

    Parameters
    ----------
    weights : tuple of float
        One for each degree, from 0 on.

    Returns
    -------
    matrix : ndarray of shape (n_weights, n_weights)
        One row for each polynomial, lowest power first.
    """
    matrix = np.zeros((len(weights), len(weights)))
    for k, weight in enumerate(weights):
        own = chebyshev.cheb2poly([0.0] * k + [1.0])
        matrix[k, : len(own)] = weight * own
    return matrix


def polynomial_values(matrix: Array, values: Array) -> Array:
    """Return the polynomials of each value, rounded to integers in units of ``2**-POLYNOMIAL_BITS``.

    Each value is mapped separately, with the same order of operations at every position.

    Parameters
    ----------
    matrix : ndarray of shape (n_polynomials, n_powers)
        Coefficients of the polynomials in powers, lowest power first.
    values : ndarray
        Values in [-1, 1]. For NaN, which represents a missing value, all polynomials are 0.

    Returns
    -------
    integers : ndarray of shape (n_polynomials, *values.shape)
        Integers, as doubles.
    """
    out = np.empty((len(matrix), *np.shape(values)))
    for row, coefficients in zip(out, matrix * 2.0**POLYNOMIAL_BITS, strict=True):
        row[...] = coefficients[-1]
        for coefficient in coefficients[-2::-1].tolist():
            row *= values
            row += coefficient
    lacking = np.isnan(values)
    if lacking.any():
        out[:, lacking] = 0.0
    return np.rint(out, out=out)


def bernstein_l1(degree: int, n_columns: int) -> float:
    """Bound the L1 norm of one record's contribution to the sums of Bernstein's polynomials of each column.

    It is 1 for each column, by the argument of this module. Rounding moves each of ``degree + 1`` entries by half a
    step. The rounding errors of the evaluation are smaller than a step by a factor of ``2**20``.

    Parameters
    ----------
    degree, n_columns : int
        The degree, and the number of columns.

    Returns
    -------
    sensitivity : float
        The bound, rounded up.
    """
    return n_columns * (1 + (degree + 1) * _ROUNDING) * (1 + 2.0**-50)


def bernstein_l2(degree: int, n_columns: int) -> float:
    r"""Bound the same contribution in L2 norm: :math:`\sqrt d` for d columns, as the L2 norm is at most the L1 norm.

    Parameters
    ----------
    degree, n_columns : int
        The degree, and the number of columns.

    Returns
    -------
    sensitivity : float
        The bound, rounded up.
    """
    return math.sqrt(n_columns) * (1 + (degree + 1) * _ROUNDING) * (1 + 2.0**-50)


def chebyshev_l2(weights: tuple[float, ...], n_columns: int, shared: bool) -> float:
    """Bound the L2 norm of one record's contribution to the sums of weighted Chebyshev polynomials of each column.

    Parameters
    ----------
    weights : tuple of float
        One for each degree, from 0 on.
    n_columns : int
        Number of columns.
    shared : bool
        Whether the polynomial of degree 0, which counts records, is released once for all columns.

    Returns
    -------
    sensitivity : float
        Bound, rounded up. A record with all values at the upper bound attains it.
    """
    own = [(abs(w) + _ROUNDING) ** 2 for w in weights]
    squares = own[0] + n_columns * math.fsum(own[1:]) if shared else n_columns * math.fsum(own)
    return math.sqrt(squares) * (1 + 2.0**-50)


# Half a step, plus more than the rounding errors of the evaluation. Coefficients are below 2**6.
_ROUNDING = 2.0 ** -(POLYNOMIAL_BITS + 1) * (1 + 2.0**-10)
