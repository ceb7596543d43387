r"""Exact sums of integers, and second moments of bounded rows with their sensitivities.

A record may change a sum only by its own contribution. Floating point violates this. The rounding of a sum depends on
the order of its terms. The rounding of a row's product with a matrix can depend on the position of the row in a block,
so that the removal of one record changes the contributions of others. Integers of few bits avoid this. Let a product of
matrices have entries that are integers of at most :math:`2^a` and :math:`2^b` steps, and :math:`m` terms. It is exact
in doubles, in any order, if :math:`2^{a+b} m \le 2^{53}`.

Second moments, and variances along directions. With rows :math:`z` (including a constant feature) and targets
:math:`u`, a record adds :math:`z z^\top` to the Gram matrix and :math:`z u^\top` to the cross moments. Each entry of a
record is rounded to a lattice before the sum. Therefore sums are exact for any number and order of the rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from ._rows import BLOCK_ROWS, UP, scaling_error, sparse_gram, sum_over_rows

Array = NDArray[np.float64]

#: Bits of a double.
BITS = 53

#: A total is stored in two parts. The lower part has this many bits.
LOWER_BITS = 26

# Integers of 64 bits hold half of a lattice step of 2**62 in addition to the upper part of a total.
_MOST_SHIFT = 62

#: Entries of a record are counted in up to ``2**ENTRY_BITS`` steps. The sum over a block of ``2**11`` rows is then at
#: most ``2**51`` steps, which doubles hold exactly.
ENTRY_BITS = 20

#: The sums over so many blocks are at most ``2**53`` steps, which doubles still hold exactly.
PRODUCT_BLOCKS = 4

_LIMB = 2.0**LOWER_BITS


def bits_left(bits: int, n_terms: int) -> int:
    """Return the bits of the other factors for which sums of `n_terms` products with `bits` bits are exact."""
    return BITS - bits - math.ceil(math.log2(max(n_terms, 1)))


def step_of(largest: float, bits: int) -> float:
    """Return the smallest power of two of which numbers up to `largest` are at most ``2**bits`` multiples."""
    mantissa, exponent = math.frexp(largest)
    # A power of two has a mantissa of 1/2.
    return math.ldexp(1.0, (exponent - 1 if mantissa == 0.5 else exponent) - bits)


def truncate(values: Array, step: float) -> Array:
    """Round numbers towards zero to multiples of a power of two, in place. No norm grows."""
    return _in_steps(values, step, np.trunc)


def round_to(values: Array, step: float) -> Array:
    """Round numbers to the nearest multiples of a power of two, in place."""
    return _in_steps(values, step, np.rint)


def _in_steps(values: Array, step: float, rounded: np.ufunc) -> Array:
    values *= 1 / step
    rounded(values, out=values)
    values *= step
    return values


def limbs_of(integers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the upper and the lower bits of integers, which can be added up separately."""
    return np.stack([integers >> LOWER_BITS, integers & (2**LOWER_BITS - 1)])


class ExactTotal:
    """Add up integers that are held in doubles, without rounding, for any number of terms."""

    def __init__(self, size: int) -> None:
        self._high = np.zeros(size, dtype=np.int64)
        self._low = np.zeros(size, dtype=np.int64)

    def add(self, values: Array, bits: int = 0) -> None:
        """Add ``values * 2**bits`` to the totals, for integers of at most ``2**53`` and a factor of at most 2**88."""
        integers = values.astype(np.int64)
        if bits < LOWER_BITS:
            self._high += integers >> (LOWER_BITS - bits)
            self._low += (integers << bits) & (2**LOWER_BITS - 1)
        else:
            self._high += integers << (bits - LOWER_BITS)

    def add_integers(self, integers: NDArray[np.int64]) -> None:
        """Add integers of 64 bits to the totals."""
        high, low = limbs_of(integers)
        self._high += high
        self._low += low

    @property
    def limbs(self) -> NDArray[np.int64]:
        """Upper and lower parts of the totals, of shape (2, size). Parts of several totals may be added."""
        return np.stack([self._high, self._low])

    @classmethod
    def of(cls, limbs: NDArray[np.int64]) -> ExactTotal:
        """Return the totals whose limbs have these sums."""
        total = cls(0)
        total._high, total._low = limbs
        return total

    def nearest(self, bits: int) -> Array:
        """Return the multiples of ``2**bits`` next to the totals, in units of that.

        Rounding a total to a double first, and then to a lattice, could move it by more than half a step. Multiples are
        exact up to ``2**53``. If `bits` is 0 or less, the totals are returned in units of 1.
        """
        high = self._high.astype(np.float64)
        if bits <= 0:
            return high * 2.0**LOWER_BITS + self._low
        if bits <= LOWER_BITS:
            return high * 2.0 ** (LOWER_BITS - bits) + ((self._low + (1 << (bits - 1))) >> bits)
        above = bits - LOWER_BITS
        if above > _MOST_SHIFT:
            # Totals of 2**30 terms are below 2**83.
            return np.zeros_like(high)
        carried = self._high + (self._low >> LOWER_BITS) + (1 << (above - 1))
        return (carried >> above).astype(np.float64)


def moments_l2(
    row_norm: float,
    target_norm: float,
    weight: float,
    constant: float = 0.0,
    count_weight: float = 1.0,
    total_weight: float = 1.0,
) -> float:
    r"""Bound the L2 norm of one record's contribution to (svec of the Gram matrix, weighted cross moments).

    svec lists the diagonal, and :math:`\sqrt2` times the upper triangle, so that its norm is the Frobenius norm. Since
    :math:`\|z z^\top\|_F = \|z\|^2` and :math:`\|z u^\top\|_F = \|z\|\,\|u\|`, the norm is exactly
    :math:`\|z\|\sqrt{\|z\|^2 + w^2\|u\|^2}`. With the square of the constant feature :math:`z_c` listed :math:`a`
    times, and its products with targets :math:`b` times, the square of the norm is larger by :math:`(a^2 - 1) z_c^4 +
    w^2 (b^2 - 1) z_c^2\|u\|^2`. Every record of full norms attains the bound. The arguments are bounds on :math:`\|z\|`
    (with the constant feature) and :math:`\|u\|`, the weight :math:`w`, a bound on :math:`z_c`, and the weights
    :math:`a, b \ge 1`.
    """
    whole = row_norm * math.hypot(row_norm, weight * target_norm)
    count = math.sqrt(max(count_weight**2 - 1, 0.0)) * constant**2
    totals = math.sqrt(max(total_weight**2 - 1, 0.0)) * weight * constant * target_norm
    return math.hypot(whole, count, totals) * UP


def moments_l1(row_norm: float, row_sum: float) -> float:
    r"""Bound the L1 norm of one record's contribution to the upper triangle of the Gram matrix.

    The triangle with its diagonal has :math:`\sum_{j\le l}|z_j z_l| = (\|z\|_1^2 + \|z\|_2^2)/2`. A row whose entries
    are all equal in size attains the bound. The arguments are bounds on :math:`\|z\|_2` and :math:`\|z\|_1`.
    """
    return (row_sum**2 + row_norm**2) / 2 * (1 + 2.0**-48)


def pack_symmetric(matrix: NDArray[np.float64], weight: float) -> NDArray[np.float64]:
    """List a symmetric matrix: its diagonal, then `weight` times the entries above it. With sqrt(2), this is svec."""
    return np.concatenate([np.diagonal(matrix), weight * matrix[np.triu_indices(len(matrix), 1)]])


def unpack_symmetric(values: NDArray[np.float64], size: int, weight: float) -> NDArray[np.float64]:
    """Return the matrix that `pack_symmetric` listed."""
    matrix = np.empty((size, size))
    rows, columns = np.triu_indices(size, 1)
    matrix[rows, columns] = matrix[columns, rows] = values[size:] / weight
    np.fill_diagonal(matrix, values[:size])
    return matrix


def entry_step(largest: float) -> float:
    """Return the lattice step for entries of at most `largest`: the smallest power of two with at most 2**20 steps."""
    return step_of(largest, ENTRY_BITS)


def rounded_norm(norm: float, size: int, step: float) -> float:
    """Bound the L2 norm of a row that was scaled to `norm`, then rounded to a lattice.

    Rounding moves each entry by at most half a step. The factor covers the rounding errors of the scaling.
    """
    return norm * (1 + scaling_error(size)) + step * math.sqrt(size) / 2


def exact_moments(
    encode: Callable[[Any, NDArray], tuple[Any, NDArray]], X: Any, y: NDArray, block_rows: int = BLOCK_ROWS
) -> NDArray[np.float64]:
    """Sum the moments of integer-valued rows and targets, exactly, then round the totals to doubles.

    The moments are the Gram matrix, followed by the cross moments, of shape (n_columns, n_columns + n_targets).
    `encode` maps blocks of `X` and `y` to rows and targets. These are integers of at most ``2**20`` in size, as
    doubles, or integers of 64 bits for sparse rows.
    """
    n_blocks = 1 if issparse(X) else PRODUCT_BLOCKS
    return exact_sum(lambda X, y: _moments(*encode(X, y)), X, y, block_rows=block_rows, n_blocks=n_blocks)


def exact_sum(
    statistic: Callable[..., NDArray], *arrays: Any, block_rows: int = BLOCK_ROWS, n_blocks: int = 1
) -> NDArray[np.float64]:
    """Sum a statistic over blocks of rows, exactly, then round the totals to doubles.

    `statistic` maps blocks of the arrays to the sum over their rows. Its values are integers, as doubles, which are
    exact for up to ``2**11`` rows, or integers of 64 bits. Doubles add up the sums of `n_blocks` blocks exactly.
    """

    def block(*rows: NDArray) -> NDArray:
        total = statistic(*(array[:block_rows] for array in rows))
        for start in range(block_rows, rows[0].shape[0], block_rows):
            total += statistic(*(array[start : start + block_rows] for array in rows))
        if total.dtype != np.int64:
            if not np.all(np.abs(total) <= 2.0**53):
                # Converted to integers, these would be arbitrary numbers without a bound for a record.
                raise FloatingPointError("a statistic of the records is not finite, or no exact integer")
            total = total.astype(np.int64)
        return limbs_of(total)

    high, low = sum_over_rows(block, *arrays, block_rows=n_blocks * block_rows)
    return high * _LIMB + low


def plain_moments(
    encode: Callable[[Any, NDArray], tuple[Any, NDArray]], X: Any, y: NDArray, block_rows: int = BLOCK_ROWS
) -> NDArray[np.float64]:
    """Sum the moments of `exact_moments` in floating point, for releases without noise."""
    return sum_over_rows(lambda X, y: _moments(*encode(X, y)), X, y, block_rows=block_rows)


def _moments(rows: Any, targets: NDArray) -> NDArray:
    if issparse(rows):
        return np.hstack([sparse_gram(rows), rows.T @ targets])
    return np.hstack([rows.T @ rows, rows.T @ targets])


def energies_l1(norm: float, weight: float) -> float:
    r"""Bound the L1 norm of one record's contribution to (energies along directions, remaining energy, `weight`).

    A row :math:`x` adds :math:`(v_i^\top x)^2` to the energy along the orthonormal direction :math:`v_i`, and
    :math:`\|x\|^2 - \sum_i (v_i^\top x)^2` to the remaining energy. None of them is negative, and they add up to
    :math:`\|x\|^2 \le R^2`, for any number of directions. With the number of records, times `weight`, the bound is
    :math:`R^2 + w`, and every row of full norm attains it. (Energies and their *total* would have twice this
    sensitivity.)
    """
    return (norm**2 + weight) * (1 + 2.0**-40)


def energies_l2(norm: float, weight: float) -> float:
    r"""Bound the same contribution in L2 norm: :math:`\sqrt{R^4 + w^2}`. Energies have an L2 norm of at most their sum.

    A row along one of the directions attains it.
    """
    return math.hypot(norm**2, weight) * (1 + 2.0**-40)


def row_sum_l2(norm: float, weight: float) -> float:
    r"""Bound the L2 norm of one record's contribution to (sum of rows, `weight`): :math:`\sqrt{R^2 + w^2}`.

    Every row of full norm attains it.
    """
    return math.hypot(norm, weight) * UP


def centred_moments_l2(norm: float, sum_weight: float, count_weight: float) -> float:
    r"""Bound the L2 norm of one record's contribution to (svec of the Gram matrix, weighted sum and number of rows).

    With :math:`\|\mathrm{svec}(x x^\top)\| = \|x\|^2`, it is :math:`\sqrt{\|x\|^4 + s^2\|x\|^2 + c^2}` exactly. Every
    row of full norm attains the bound.
    """
    return math.hypot(norm**2, sum_weight * norm, count_weight) * (1 + 2.0**-48)
