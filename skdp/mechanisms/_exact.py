r"""Exact sampling from floating-point filters.

A decision such as :math:`U < e^{-\gamma}` is taken in double precision if the error bound of the double leaves no
doubt. Otherwise (about once in :math:`2^{40}` decisions), further bits of the same :math:`U` are drawn and the
threshold is recomputed in decimal arithmetic, until the two intervals are disjoint. Therefore the law of the outcome is
exact, while almost all decisions are vectorised.

The only assumption is that NumPy's ``exp`` and ``log`` are within :math:`2^{-46}`, relatively (the libraries behind
them promise 4 units in the last place, :math:`2^{-50}`).

Coins and integers with exact rational probabilities, and the probabilities that local privacy admits.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ._base import BitStream

#: Assumed relative error of a double-precision exp or log.
ELEMENTARY = 2.0**-46

Integers = NDArray[np.int64]

#: Probabilities of coins are multiples of one over this.
ONE = 2**64

#: Larger values do not improve a coin.
MOST_EPSILON = 64


def digits_for(bits: int) -> int:
    """Return the number of decimal digits whose error is far below ``2**-bits``."""
    return int(bits * 0.30103) + 25


def extend(prefix: int, stream: BitStream) -> int:
    """Append 64 fresh bits to a binary fraction."""
    return (prefix << 64) | int(stream.words(1)[0])


def to_decimal(value: Fraction) -> Decimal:
    """Convert within the current decimal context."""
    return Decimal(value.numerator) / Decimal(value.denominator)


def _bernoulli_exp_scalar(prefix: int, gamma: Fraction, stream: BitStream) -> bool:
    """Decide U < exp(-gamma) for a U whose first 53 bits are `prefix`."""
    bits = 53
    while True:
        prefix, bits = extend(prefix, stream), bits + 64
        # gamma has up to log10(gamma) digits before the point, and exp(-gamma) loses as many digits.
        precision = digits_for(bits) + len(str(int(gamma)))
        with decimal.localcontext(decimal.Context(prec=precision, Emin=decimal.MIN_EMIN)):
            scaled = (-to_decimal(gamma)).exp() * 2**bits
            slack = scaled.scaleb(-(precision - 5 - len(str(int(gamma)))))
            if prefix + 1 <= scaled - slack:
                return True
            if prefix >= scaled + slack:
                return False


def bernoulli_exp(
    gamma: NDArray[np.float64],
    error: NDArray[np.float64] | float,
    exact: Callable[[int], Fraction],
    stream: BitStream,
) -> NDArray[np.bool_]:
    """Draw independent booleans that are true with probability exp(-gamma), exactly."""
    # `error` bounds the absolute error of `gamma`. `exact` maps an index to the exact exponent, and is called only if
    # the double does not decide.
    return filtered_bernoulli_exp(
        gamma, error, lambda i, prefix: _bernoulli_exp_scalar(prefix, exact(i), stream), stream
    )


def filtered_bernoulli_exp(
    gamma: NDArray[np.float64],
    error: NDArray[np.float64] | float,
    decide: Callable[[int, int], bool],
    stream: BitStream,
) -> NDArray[np.bool_]:
    """Draw booleans that are true with probability exp(-gamma), for exponents that are known to within `error`."""
    # If doubles do not decide, `decide` maps an index and the first 53 bits of its uniform to the outcome.
    prefix = stream.words(gamma.size) >> np.uint64(11)
    uniform = prefix.astype(np.float64)
    scaled = np.exp(-gamma)
    scaled *= 2.0**53
    # With the smallest positive number, a threshold that underflows stays undecided.
    slack = scaled * (2 * np.asarray(error) + ELEMENTARY) + 1e-300
    # Distance of the threshold from the interval of width 1 that contains the uniform, above or below.
    scaled -= uniform
    outcome = scaled >= slack + 1
    doubtful = scaled > -slack
    doubtful ^= outcome
    for i in np.flatnonzero(doubtful):
        outcome[i] = decide(int(i), int(prefix[i]))
    return outcome


def uniform_below(bound: int, n: int, stream: BitStream) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Draw about `n` integers uniform on ``range(bound)``, ``bound <= 2**62``, each with an independent fair bit."""
    bits = max(1, (bound - 1).bit_length())
    words = stream.words(math.ceil(n * 2**bits / bound * 1.02) + 8)
    signed = words.view(np.int64)
    value = signed & (2**bits - 1)
    # Positions are faster than a mask.
    keep = (value < bound).nonzero()[0]
    return value.take(keep), (signed < 0).take(keep)


# exp(-v) 2^64, rounded down, for v = 44, ..., 1. The order is ascending, as searchsorted needs it, with a 0 in front.
with decimal.localcontext(decimal.Context(prec=60)):
    _GEOMETRIC = np.array([0] + [int(Decimal(-v).exp() * 2**64) for v in range(44, 0, -1)], dtype=np.uint64)


# The values that follow from the first bits of a word, or -1 if more bits are needed.
_FIRST_BITS = 12
_FIRSTS = np.arange(2**_FIRST_BITS, dtype=np.uint64) << np.uint64(64 - _FIRST_BITS)
_LEAST_RANKS = np.searchsorted(_GEOMETRIC, _FIRSTS)
_MOST_RANKS = np.searchsorted(_GEOMETRIC, _FIRSTS + np.uint64(2 ** (64 - _FIRST_BITS) - 1), side="right")
_BY_FIRST_BITS = np.where(_LEAST_RANKS == _MOST_RANKS, len(_GEOMETRIC) - _MOST_RANKS, -1)


def geometric(n: int, stream: BitStream) -> NDArray[np.int64]:
    """Draw `n` integers V with P(V >= v) = exp(-v), exactly."""
    words = stream.words(n)
    count = _BY_FIRST_BITS.take((words >> np.uint64(64 - _FIRST_BITS)).view(np.int64))
    open_ = (count < 0).nonzero()[0]
    words = words.take(open_)
    rank = np.searchsorted(_GEOMETRIC, words, side="right")
    count[open_] = len(_GEOMETRIC) - rank
    # If a word equals a threshold, further bits would decide. A zero may hide a larger value.
    for i in np.flatnonzero(_GEOMETRIC.take(rank - 1) == words):
        count[open_[i]] = _geometric_scalar(int(words[i]), stream)
    return count


def _geometric_scalar(prefix: int, stream: BitStream) -> int:
    bits = 64
    while True:
        prefix, bits = extend(prefix, stream), bits + 64
        with decimal.localcontext(decimal.Context(prec=digits_for(bits), Emin=decimal.MIN_EMIN)) as context:
            slack = Decimal(10) ** (-(context.prec - 8))
            low = -(Decimal(prefix + 1) / 2**bits).ln() - slack
            high = -(Decimal(prefix) / 2**bits).ln() + slack if prefix else Decimal("Infinity")
            if high.is_finite() and int(low) == int(high):
                return int(low)


def random_permutation(n: int, stream: BitStream) -> NDArray[np.intp]:
    """Draw a uniformly distributed permutation. If words are equal, all words are drawn again."""
    while True:
        words = stream.words(n)
        order = np.argsort(words)
        if n < 2 or np.all(np.diff(words[order]) > 0):
            return order


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
    blocks: list[Integers] = [np.empty(0, dtype=np.int64)] if n == 0 else []
    missing = n
    while missing > 0:
        drawn = uniform_below(bound, missing, stream)[0][:missing]
        blocks.append(drawn)
        missing -= len(drawn)
    return np.concatenate(blocks) if len(blocks) != 1 else blocks[0]


def walsh_transform(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return products with the Hadamard matrix, along the last axis, whose length is a power of two."""
    size = values.shape[-1]
    sums, step = values, 1
    while step < size:
        pairs = sums.reshape(*values.shape[:-1], size // (2 * step), 2, step)
        sums = np.stack([pairs[..., 0, :] + pairs[..., 1, :], pairs[..., 0, :] - pairs[..., 1, :]], axis=-2)
        step *= 2
    return sums.reshape(values.shape)
