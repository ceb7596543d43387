r"""Ideal real-valued noise, rounded to a lattice exactly.

A real random variable is a function of uniforms with infinitely many bits. The first 53 bits of each uniform are drawn,
and the function is evaluated in double precision with an error bound. If the bound leaves no doubt, the nearest lattice
point is taken. Otherwise, further bits *of the same uniforms* are drawn, and the function is evaluated in decimal
interval arithmetic until both ends round to the same point.

The result has exactly the law of ideal noise, rounded. Rounding is post-processing. Therefore a theorem about
continuous noise holds without a change for the output of a computer. There are no low-order bits to read (Mironov
2012), and a discrete law needs no correction.

Normals are given by their own first bits (:mod:`skdp.mechanisms._normals`), so that without a factor, the function is a
product.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Sequence
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from ._bits import BitStream
from ._exact import ELEMENTARY, digits_for
from ._intervals import Interval, pad, product, squared
from ._normals import LazyNormals

# Number of normals that are drawn at a time, few enough to stay in the processor's cache.
_BLOCK = 2**13


class LazyGamma:
    """The square root of twice a Gamma(shape) variable, for half-integer shapes."""

    # With G ~ Gamma((p + 1) / 2) and N standard normal in p dimensions, sqrt(2 G) N has density proportional to
    # exp(-|z|). Whole units of the shape are minus the logarithms of uniforms; a remaining half is half a squared
    # normal.
    def __init__(self, twice_shape: int, stream: BitStream) -> None:
        self._stream = stream
        count, half = divmod(twice_shape, 2)
        words = stream.words(count) >> np.uint64(11)
        self._prefixes = [int(w) for w in words]
        self._bits = 53
        self._enclosure: Interval | None = None
        self._normal = LazyNormals(1, stream) if half else None
        uniform = (words.astype(np.float64) + 0.5) * 2.0**-53
        logs = -np.log(uniform)
        total = 2 * math.fsum(logs)
        # The midpoint is off by at most half of the first bit that is not drawn.
        error = 2 * (2.0**-53 / uniform).sum() + total * (ELEMENTARY + 2.0**-51)
        if np.any(words == 0):
            error = np.inf
        if self._normal is not None:
            n, e = float(self._normal.value[0]), self._normal.error
            total += n * n
            error += 2 * abs(n) * e + e * e
        self.value = float(np.sqrt(total))
        self.error = float(error / self.value + self.value * 2.0**-52) if 4 * error < total else np.inf

    def interval(self, bits: int) -> Interval:
        """Enclose the variable, from at least `bits` bits of its uniforms, in the current decimal context."""
        if self._enclosure is not None and self._bits >= bits:
            return self._enclosure
        while self._bits < bits:
            words = self._stream.words(len(self._prefixes)).tolist()
            self._prefixes = [(p << 64) | word for p, word in zip(self._prefixes, words, strict=True)]
            self._bits += 64
        # There is one logarithm, of the product. Each multiplication is off by at most a unit in the last digit.
        unit = Decimal(2) ** -self._bits
        least = most = Decimal(1)
        for prefix in self._prefixes:
            least *= Decimal(prefix) * unit
            most *= Decimal(prefix + 1) * unit
        slack = Decimal(3 * len(self._prefixes) + 3).scaleb(-(decimal.getcontext().prec - 1))
        low = -2 * (most.ln() + slack)
        high = -2 * (least.ln() - slack) if least else Decimal("Infinity")
        if self._normal is not None:
            square = squared(self._normal.interval(0, bits))
            low, high = low + square[0], high + square[1]
        low, high = pad((low, high))
        self._enclosure = max(low, Decimal(0)).sqrt(), high.sqrt()
        return self._enclosure


def round_to_integers(scale: float, normals: LazyNormals, factor: LazyGamma | None = None) -> NDArray[np.int64]:
    """Round ``scale * factor * normals`` to the nearest integers, exactly. All coordinates share `factor`."""
    # `scale` is positive, and represents an exact dyadic number.
    value = normals.value * scale
    # The error of the normal, and of the product.
    error: NDArray[np.float64] | float = scale * (normals.error + normals.largest * 2.0**-52)
    if factor is not None:
        with np.errstate(invalid="ignore"):
            error = (factor.value + factor.error) * error + scale * factor.error * np.abs(normals.value)
            value *= factor.value
            error += np.abs(value) * 2.0**-50
    nearest = np.rint(value)
    value -= nearest
    np.abs(value, out=value)
    rounded = nearest.astype(np.int64)
    decided = value < 0.5 - error
    for i in np.logical_not(decided, out=decided).nonzero()[0].tolist():
        rounded[i] = _round_scalar(scale, i, normals, factor)
    return rounded


def _round_scalar(scale: float, i: int, normals: LazyNormals, factor: LazyGamma | None) -> int:
    bits = 53
    half = Decimal("0.5")
    while True:
        bits += 64
        with decimal.localcontext(decimal.Context(prec=digits_for(bits) + 20, Emin=decimal.MIN_EMIN)):
            x = normals.interval(i, bits)
            if factor is not None:
                x = product(x, factor.interval(bits))
            ends: Sequence[Decimal] = pad(product(x, (Decimal(scale), Decimal(scale))))
            if not all(end.is_finite() for end in ends):
                continue
            low, high = ((end + half).to_integral_value(decimal.ROUND_FLOOR) for end in ends)
            if low == high:
                return int(low)


def rounded_normals(scale: float, size: int, stream: BitStream, factor: LazyGamma | None = None) -> NDArray[np.int64]:
    """Draw ``rint(scale * factor * N)`` for independent standard normals N, exactly (see `round_to_integers`)."""
    if size <= _BLOCK:
        return round_to_integers(scale, LazyNormals(size, stream), factor)
    rounded = np.empty(size, dtype=np.int64)
    for start in range(0, size, _BLOCK):
        part = rounded[start : start + _BLOCK]
        part[:] = round_to_integers(scale, LazyNormals(len(part), stream), factor)
    return rounded
