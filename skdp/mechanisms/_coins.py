"""Coins and integers with exact rational probabilities, and the probabilities that local privacy admits."""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ._bits import BitStream
from ._exact import to_decimal, uniform_below

Integers = NDArray[np.int64]

#: Probabilities of coins are multiples of one over this.
ONE = 2**64

#: Larger values do not improve a coin.
MOST_EPSILON = 64


def exp_below(exponent: Fraction) -> Fraction:
    """Return a number slightly below exp(exponent), by about a relative 1e-50. Exponents end at 64."""
    with decimal.localcontext(decimal.Context(prec=70)):
        power = to_decimal(min(exponent, Fraction(MOST_EPSILON))).exp()
        return Fraction(power * (1 - Decimal(10) ** -50))


def mixture_weight(epsilon: Fraction | float, parts: Fraction) -> int:
    """Return the largest weight of a value's own set, in units of 2**-64, if there are `parts` sets of reports."""
    if epsilon == math.inf:
        return ONE
    excess = exp_below(Fraction(epsilon)) - 1
    return min(int(ONE * excess / (excess + parts)), ONE - 1)


def least_flip(epsilon: Fraction | float) -> int:
    """Return the least q, in units of 2**-64, for which (1 - q) / q is at most exp(epsilon)."""
    if epsilon == math.inf:
        return 0
    return -int(-ONE // (1 + exp_below(Fraction(epsilon))))


def coins(heads: int, n: int, stream: BitStream) -> NDArray[np.bool_]:
    """Draw booleans that are true with probability ``heads / 2**64``, exactly."""
    if heads >= ONE:
        return np.ones(n, dtype=bool)
    # The first 16 bits of a uniform are enough, except with probability 2**-16.
    prefixes = stream.words(-(-n // 4)).view(np.uint16)[:n]
    first, rest = divmod(heads, 2**48)
    outcome = prefixes < np.uint16(first)
    open_ = np.flatnonzero(prefixes == np.uint16(first))
    outcome[open_] = (stream.words(len(open_)) >> np.uint64(16)) < np.uint64(rest)
    return outcome


def uniform_integers(bound: int, n: int, stream: BitStream) -> Integers:
    """Draw integers uniform on ``range(bound)``, exactly."""
    parts: list[Integers] = [np.empty(0, dtype=np.int64)] if n == 0 else []
    missing = n
    while missing > 0:
        part = uniform_below(bound, missing, stream)[0][:missing]
        parts.append(part)
        missing -= len(part)
    return np.concatenate(parts) if len(parts) != 1 else parts[0]


def walsh_transform(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return products with the Hadamard matrix, along the last axis, whose length is a power of two."""
    size = values.shape[-1]
    out, step = values, 1
    while step < size:
        pairs = out.reshape(*values.shape[:-1], size // (2 * step), 2, step)
        out = np.stack([pairs[..., 0, :] + pairs[..., 1, :], pairs[..., 0, :] - pairs[..., 1, :]], axis=-2)
        step *= 2
    return out.reshape(values.shape)
