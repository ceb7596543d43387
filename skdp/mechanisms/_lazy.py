r"""Ideal real-valued noise, rounded to a lattice exactly.

A real random variable is a function of uniforms with infinitely many bits. Here the first 53 bits of each uniform
are drawn, the function is evaluated in double precision with an error bound, and the nearest lattice point is taken
if the bound leaves no doubt. If it does, further bits *of the same uniforms* are drawn and the function is evaluated
in decimal interval arithmetic until both ends round alike.

The result has exactly the law of ideal noise, rounded. Rounding is post-processing, so that a theorem about
continuous noise holds as it stands for what a computer releases: no low-order bits to read (Mironov 2012), and no
allowance for a discrete law that differs from the continuous one.

Normals come from Marsaglia's polar method, because it needs nothing beyond logarithm and square root, which decimal
arithmetic has.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Sequence
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from ._bits import BitStream
from ._exact import ELEMENTARY, digits_for, extend

Interval = tuple[Decimal, Decimal]


def _square(x: Interval) -> Interval:
    ends = sorted((x[0] * x[0], x[1] * x[1]))
    return (Decimal(0) if x[0] < 0 < x[1] else ends[0], ends[1])


def _product(x: Interval, y: Interval) -> Interval:
    ends = [a * b for a in x for b in y]
    return min(ends), max(ends)


def _pad(x: Interval) -> Interval:
    """Widen by more than the rounding errors of a short chain of decimal operations."""
    slack = max(abs(x[0]), abs(x[1]), Decimal(1)).scaleb(-(decimal.getcontext().prec - 10))
    return x[0] - slack, x[1] + slack


class LazyNormals:
    """Independent standard normals that are known as closely as one asks.

    Attributes
    ----------
    value, error : ndarray of shape (size,)
        Doubles, and bounds on their distance from the ideal reals.
    """

    def __init__(self, size: int, stream: BitStream) -> None:
        self._stream = stream
        self._refined: dict[int, tuple[int, int, int]] = {}
        pairs = (size + 1) // 2
        prefixes = np.empty((0, 2), dtype=np.int64)
        while len(prefixes) < pairs:
            wanted = int((pairs - len(prefixes)) * 1.3) + 16
            batch = (stream.words(2 * wanted) >> np.uint64(11)).astype(np.int64).reshape(-1, 2)
            prefixes = np.vstack([prefixes, self._inside_disk(batch, len(prefixes))])
        self._prefixes = prefixes[:pairs]
        self.value, self.error = self._evaluate(size)

    def _inside_disk(self, batch: NDArray[np.int64], offset: int) -> NDArray[np.int64]:
        """Keep the pairs in the unit disk; a pair that the double cannot place is refined until it is placed."""
        v = self._centres(batch)
        s = np.einsum("ij,ij->i", v, v)
        keep = s < 1
        for i in np.flatnonzero(np.abs(s - 1) < 2.0**-48):
            a, b, bits = int(batch[i, 0]), int(batch[i, 1]), 53
            while True:
                a, b, bits = extend(a, self._stream), extend(b, self._stream), bits + 64
                with decimal.localcontext(decimal.Context(prec=digits_for(bits))):
                    low, high = self._squared_radius(a, b, bits)
                if high < 1 or low >= 1:
                    break
            keep[i] = high < 1
            if keep[i]:
                self._refined[offset + int(np.count_nonzero(keep[:i]))] = (a, b, bits)
        return batch[keep]

    @staticmethod
    def _centres(prefixes: NDArray[np.int64]) -> NDArray[np.float64]:
        """Midpoints, in (-1, 1), of what 53 bits leave open: within 2**-53 of the ideal uniform."""
        return (2 * prefixes + 1 - 2**53).astype(np.float64) * 2.0**-53

    @staticmethod
    def _uniform(prefix: int, bits: int) -> Interval:
        unit = Decimal(2) ** (1 - bits)
        return Decimal(prefix) * unit - 1, Decimal(prefix + 1) * unit - 1

    @classmethod
    def _squared_radius(cls, a: int, b: int, bits: int) -> Interval:
        x, y = _square(cls._uniform(a, bits)), _square(cls._uniform(b, bits))
        return _pad((x[0] + y[0], x[1] + y[1]))

    def _evaluate(self, size: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        v = self._centres(self._prefixes)
        s = np.einsum("ij,ij->i", v, v)
        with np.errstate(all="ignore"):
            log = -np.log(s)
            factor = np.sqrt(2 * log / s)
            # s is off by at most 2^-50; -log(s)/s then by the first two terms, relatively; the square root
            # halves that, and the bound keeps the other half in hand.
            relative = 2.0**-50 / (s * log) + 2.0**-50 / s + ELEMENTARY
            value = v * factor[:, None]
            error = 2 * factor[:, None] * (2.0**-53 + np.abs(v) * relative[:, None])
        # The bound is of first order: where it is not small, the double says nothing.
        lost = ~((relative > 0) & (relative < 2.0**-10)) | ~np.isfinite(factor)
        value[lost], error[lost] = 0.0, np.inf
        return value.ravel()[:size], error.ravel()[:size]

    def interval(self, i: int, bits: int) -> Interval:
        """Enclose normal `i`, from at least `bits` bits of its uniforms, in the current decimal context."""
        pair, which = divmod(i, 2)
        prefix = self._prefixes[pair]
        a, b, have = self._refined.get(pair, (int(prefix[0]), int(prefix[1]), 53))
        while have < bits:
            a, b, have = extend(a, self._stream), extend(b, self._stream), have + 64
        self._refined[pair] = (a, b, have)
        low, high = self._squared_radius(a, b, have)
        if low <= 0 or high >= 1:
            return Decimal("-Infinity"), Decimal("Infinity")
        # -log(s)/s falls as s grows.
        factor = ((-2 * high.ln() / high).sqrt(), (-2 * low.ln() / low).sqrt())
        return _pad(_product(_pad(self._uniform((a, b)[which], have)), factor))


class LazyGamma:
    r"""The square root of twice a Gamma(shape) variable, for half-integer shapes.

    With :math:`G \sim \mathrm{Gamma}((p+1)/2)` and :math:`N` standard normal in :math:`p` dimensions,
    :math:`\sqrt{2G} N` has density proportional to :math:`e^{-\|z\|}`. Whole units of the shape are minus the
    logarithms of uniforms; a remaining half is half a squared normal.
    """

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
        # The midpoint is off by up to half of the first bit not drawn.
        error = 2 * (2.0**-53 / uniform).sum() + total * (ELEMENTARY + 2.0**-51)
        if np.any(words == 0):
            error = np.inf
        if self._normal is not None:
            n, e = float(self._normal.value[0]), float(self._normal.error[0])
            total += n * n
            error += 2 * abs(n) * e + e * e
        self.value = float(np.sqrt(total))
        self.error = float(error / self.value + self.value * 2.0**-52) if 4 * error < total else np.inf

    def interval(self, bits: int) -> Interval:
        """Enclose the variable, from at least `bits` bits of its uniforms, in the current decimal context."""
        if self._enclosure is not None and self._bits >= bits:
            return self._enclosure
        while self._bits < bits:
            self._prefixes = [extend(p, self._stream) for p in self._prefixes]
            self._bits += 64
        # One logarithm of the product; each multiplication is off by a unit in the last digit at most.
        unit = Decimal(2) ** -self._bits
        least = most = Decimal(1)
        for prefix in self._prefixes:
            least *= Decimal(prefix) * unit
            most *= Decimal(prefix + 1) * unit
        slack = Decimal(3 * len(self._prefixes) + 3).scaleb(-(decimal.getcontext().prec - 1))
        low = -2 * (most.ln() + slack)
        high = -2 * (least.ln() - slack) if least else Decimal("Infinity")
        if self._normal is not None:
            square = _square(self._normal.interval(0, bits))
            low, high = low + square[0], high + square[1]
        low, high = _pad((low, high))
        self._enclosure = max(low, Decimal(0)).sqrt(), high.sqrt()
        return self._enclosure


def round_to_integers(scale: float, normals: LazyNormals, factor: LazyGamma | None = None) -> NDArray[np.int64]:
    """Round ``scale * factor * normals`` to the nearest integers, exactly.

    Parameters
    ----------
    scale : float
        Positive; stands for the exact dyadic number that it is.
    normals : LazyNormals
        One per coordinate.
    factor : LazyGamma, optional
        A factor that all coordinates share; 1 when absent.

    Returns
    -------
    rounded : ndarray of int64
    """
    f, f_error = (1.0, 0.0) if factor is None else (factor.value, factor.error)
    value = normals.value * f * scale
    with np.errstate(invalid="ignore"):
        error = scale * (normals.error * (f + f_error) + np.abs(normals.value) * f_error)
        error += np.abs(value) * 2.0**-50
        nearest = np.rint(value)
        doubtful = ~(np.abs(value - nearest) < 0.5 - error)
    rounded = nearest.astype(np.int64)
    for i in np.flatnonzero(doubtful):
        rounded[i] = _round_scalar(scale, int(i), normals, factor)
    return rounded


def _round_scalar(scale: float, i: int, normals: LazyNormals, factor: LazyGamma | None) -> int:
    bits = 53
    half = Decimal("0.5")
    while True:
        bits += 64
        with decimal.localcontext(decimal.Context(prec=digits_for(bits) + 20, Emin=decimal.MIN_EMIN)):
            x = normals.interval(i, bits)
            if factor is not None:
                x = _product(x, factor.interval(bits))
            ends: Sequence[Decimal] = _pad(_product(x, (Decimal(scale), Decimal(scale))))
            if not all(end.is_finite() for end in ends):
                continue
            low, high = ((end + half).to_integral_value(decimal.ROUND_FLOOR) for end in ends)
            if low == high:
                return int(low)
