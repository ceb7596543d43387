r"""Exact sums of numbers that are multiples of a power of two, with few bits.

A record may change a sum only by its own contribution. Floating point violates this. The rounding of a sum depends on
the order of its terms. The rounding of a row's product with a matrix can depend on the position of the row in a block,
so that the removal of one record changes the contributions of others. Integers of few bits avoid this. Let a product of
matrices have entries that are integers of at most :math:`2^a` and :math:`2^b` steps, and :math:`m` terms. It is exact
in doubles, in any order, if :math:`2^{a+b} m \le 2^{53}`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Bits of a double.
BITS = 53


def bits_left(bits: int, n_terms: int) -> int:
    """Return the number of bits of the other factor for exact sums of products.

    Parameters
    ----------
    bits : int
        Factors of the first kind are integers of at most ``2**bits``.
    n_terms : int
        Number of products in a sum.

    Returns
    -------
    bits : int
        Factors of the other kind may be integers of at most ``2**bits``.
    """
    return BITS - bits - math.ceil(math.log2(max(n_terms, 1)))


def step_of(largest: float, bits: int) -> float:
    """Return the power of two of which numbers up to `largest` are at most ``2**bits`` multiples.

    Parameters
    ----------
    largest : float
        Positive bound on the size of the numbers.
    bits : int
        Number of bits of the numbers.

    Returns
    -------
    step : float
        Smallest such power of two.
    """
    mantissa, exponent = math.frexp(largest)
    # A power of two has a mantissa of 1/2.
    return math.ldexp(1.0, (exponent - 1 if mantissa == 0.5 else exponent) - bits)


def truncate(values: Array, step: float) -> Array:
    """Round numbers towards zero to multiples of a power of two, in place. No norm grows.

    Parameters
    ----------
    values : ndarray
        Finite numbers, overwritten.
    step : float
        A power of two.

    Returns
    -------
    values : ndarray
        The same array.
    """
    return _in_steps(values, step, np.trunc)


def round_to(values: Array, step: float) -> Array:
    """Round numbers to the nearest multiples of a power of two, in place.

    Parameters
    ----------
    values : ndarray
        Finite numbers, overwritten.
    step : float
        A power of two.

    Returns
    -------
    values : ndarray
        The same array.
    """
    return _in_steps(values, step, np.rint)


def _in_steps(values: Array, step: float, rounded: np.ufunc) -> Array:
    values *= 1 / step
    rounded(values, out=values)
    values *= step
    return values


#: A total is stored in two parts. The lower part has this many bits.
LOWER_BITS = 26

# Integers of 64 bits hold half of a lattice step of 2**62 in addition to the upper part of a total.
_MOST_SHIFT = 62


class ExactTotal:
    """Add up integers that are held in doubles, without rounding, for any number of terms.

    Parameters
    ----------
    size : int
        Number of totals.
    """

    def __init__(self, size: int) -> None:
        self._high = np.zeros(size, dtype=np.int64)
        self._low = np.zeros(size, dtype=np.int64)

    def add(self, values: Array, bits: int = 0) -> None:
        """Add to each total.

        Parameters
        ----------
        values : ndarray of shape (size,)
            Integers of at most ``2**53``.
        bits : int, default=0
            The totals take these values times ``2**bits``, which must be at most ``2**88``.
        """
        integers = values.astype(np.int64)
        if bits < LOWER_BITS:
            self._high += integers >> (LOWER_BITS - bits)
            self._low += (integers << bits) & (2**LOWER_BITS - 1)
        else:
            self._high += integers << (bits - LOWER_BITS)

    def add_integers(self, integers: NDArray[np.int64]) -> None:
        """Add to each total.

        Parameters
        ----------
        integers : ndarray of shape (size,)
            Integers of 64 bits.
        """
        self._high += integers >> LOWER_BITS
        self._low += integers & (2**LOWER_BITS - 1)

    @property
    def limbs(self) -> NDArray[np.int64]:
        """Upper and lower parts of the totals, of shape (2, size). Parts of several totals may be added."""
        return np.stack([self._high, self._low])

    @classmethod
    def of(cls, limbs: NDArray[np.int64]) -> ExactTotal:
        """Return the totals with these parts.

        Parameters
        ----------
        limbs : ndarray of shape (2, size)
            Sums of upper and lower parts, as `limbs` returns them.

        Returns
        -------
        total : ExactTotal
            Their sum.
        """
        total = cls(0)
        total._high, total._low = limbs
        return total

    def nearest(self, bits: int) -> Array:
        """Return the multiples of ``2**bits`` next to the totals, in units of that.

        Rounding a total to a double first, and then to a lattice, could move it by more than half a step.

        Parameters
        ----------
        bits : int
            Exponent of the rounding, of any size. If it is 0 or less, the totals are returned in units of 1, rounded
            beyond ``2**53``.

        Returns
        -------
        multiples : ndarray of shape (size,)
            Multiples, exact up to ``2**53``.
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
