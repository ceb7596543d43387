r"""Release of real vectors by ideal noise that is rounded to a lattice.

The release is :math:`g \cdot (\mathrm{rint}(f/g) + \mathrm{rint}(Z/g))` for ideal noise :math:`Z` and a step :math:`g`,
a power of two far below the scale of the noise. Rounding :math:`f` moves each of two neighbouring values by at most
:math:`g\sqrt{p}/2`. Therefore the sensitivity of the rounded value is :math:`\Delta + g\sqrt{p}`. Both integers are
exact, and so is the theorem about :math:`Z`: Gaussian noise is :math:`\mu`-GDP for :math:`\mu = \Delta/\sigma`, and the
noise of the L2 mechanism, of density proportional to :math:`e^{-\varepsilon\|z\|_2/\Delta}`, is
:math:`\varepsilon`-DP.

The first 53 bits of each random number are drawn, and a point of the lattice follows from doubles with an error bound.
If the bound leaves a doubt, further bits *of the same numbers* are drawn, until decimal intervals decide. The page
*Theorems next to the code* of the documentation has the proofs and the sampler of normals.
"""

from __future__ import annotations

import decimal
import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from ._base import BitStream, LatticeMechanism, lattice_step
from ._exact import ELEMENTARY, digits_for, extend

Interval = tuple[Decimal, Decimal]

#: Number of bits of a normal after the point that are drawn at first.
UNIT_BITS = 53

# Number of normals that are drawn at a time, few enough to stay in the processor's cache.
_BLOCK = 2**13

#: Bits by which the lattice is finer than the noise, so that rounding hardly adds to the sensitivity.
LATTICE_BITS = 30

# From here on, lattice steps, their multiples and their inverses are normal doubles.
_LEAST_STEP = 2.0**-900


def squared(x: Interval) -> Interval:
    """Enclose the square."""
    low, high = sorted((x[0] * x[0], x[1] * x[1]))
    return (Decimal(0) if x[0] < 0 < x[1] else low, high)


def product(x: Interval, y: Interval) -> Interval:
    """Enclose the product."""
    products = [a * b for a in x for b in y]
    return min(products), max(products)


def pad(x: Interval) -> Interval:
    """Widen by more than the rounding errors of a short chain of decimal operations."""
    slack = max(abs(x[0]), abs(x[1]), Decimal(1)).scaleb(-(decimal.getcontext().prec - 10))
    return x[0] - slack, x[1] + slack


# Strips have a width of 2**-6. For this height at 0, the rectangles that cover the curve must be fewer than 2**16.
_STRIP_BITS, _STRIPS, _PEAK = 6, 292, 809
_HEAD_BITS = 16
_TAIL = 2**_HEAD_BITS - 1

# This is more than the error of the height of the curve in doubles. For |x| < 8, x**2 / 2 is off by less than 2**-47,
# the exponential by 2**-46 relatively (see _exact), and y, below 2**10, by 2**-42.
_SLACK = 2.0**-32


def _pieces() -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Return the shifted strips and the ranks of all pieces, and the number of pieces below the curve."""
    # The margin exceeds all rounding, so that no piece is wrongly classified as below the curve, or as covering it.
    curve = _PEAK * np.exp(-((np.arange(_STRIPS + 1) * 2.0**-_STRIP_BITS) ** 2) / 2)
    cover = np.ceil(curve[:-1] * (1 + 2.0**-40)).astype(np.int64)
    below = np.floor(curve[1:] * (1 - 2.0**-40)).astype(np.int64)
    cover[0] += _TAIL - cover.sum()
    strips = np.repeat(np.arange(_STRIPS), cover)
    ranks = np.arange(_TAIL) - np.repeat(np.cumsum(cover) - cover, cover)
    # Pieces below the curve come first. The tail is the last.
    order = np.argsort(ranks >= below[strips], kind="stable")
    strips, ranks = np.append(strips[order], 0), np.append(ranks[order], 0)
    return strips << (UNIT_BITS - _STRIP_BITS), ranks, int(below.sum())


_SHIFTED_STRIP, _RANK, _BELOW = _pieces()

# As arrays, NumPy takes these twice as fast as integers of Python. This counts for few draws.
_HEAD_MASK, _FIRST_OPEN, _HEAD_SHIFT = np.array(2**_HEAD_BITS - 1), np.array(_BELOW), np.array(_HEAD_BITS)
_UNIT, _HEIGHT_SHIFT = np.array(2.0**-UNIT_BITS), np.array(64 - UNIT_BITS, dtype=np.uint64)


class LazyNormals:
    """Independent standard normals whose digits are drawn when they are needed."""

    # `value` holds doubles within `error` of the ideal reals, and `largest` bounds the absolute values of these reals.
    def __init__(self, size: int, stream: BitStream) -> None:
        self._stream = stream
        self._refined: dict[int, tuple[int, int]] = {}
        self.largest = _STRIPS * 2.0**-_STRIP_BITS
        self._prefixes, waiting = self._draw(range(size))
        while waiting.size:
            self._prefixes[waiting], rejected = self._draw(waiting)
            waiting = waiting[rejected]
        # The conversion to doubles rounds by 2**-53, relatively, and the normal is less than a unit above its prefix.
        self.value = self._prefixes.astype(np.float64)
        self.value *= _UNIT
        self.error = (1 + self.largest) * 2.0**-UNIT_BITS

    def _draw(self, slots: Sequence[int] | NDArray[np.intp]) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
        """Draw a point for each slot. Return the first bits of their x, and which points are above the curve."""
        # A normal lies between its prefix and the next integer, in units of 2**-53.
        words = self._stream.words(len(slots)).view(np.int64)
        heads = words & _HEAD_MASK
        # The strip is above 47 bits. A negative word makes all of it negative, because exclusive or with -1 is a
        # reflection.
        prefixes = _SHIFTED_STRIP.take(heads)
        open_ = (heads >= _FIRST_OPEN).nonzero()[0]
        open_heads = heads[open_]
        np.right_shift(words, _HEAD_SHIFT, out=heads)
        prefixes ^= heads
        if not open_.size:
            return prefixes, open_
        heads = open_heads
        y = (self._stream.words(open_.size) >> _HEIGHT_SHIFT).view(np.int64)
        room = prefixes[open_] * _UNIT
        room *= room
        room *= -0.5
        np.exp(room, out=room)
        room *= _PEAK
        room -= _RANK[heads]
        room -= y * _UNIT
        under = room > 0
        doubtful = np.abs(room, out=room) < _SLACK
        doubtful |= heads == _TAIL
        for i in doubtful.nonzero()[0].tolist():
            position = int(open_[i])
            slot, prefix, base, stair = int(slots[position]), int(prefixes[position]), int(_RANK[heads[i]]), 0
            if heads[i] == _TAIL:
                prefix, stair = self._tail(prefix < 0)
                prefixes[position] = prefix
            under[i] = self._lies_under(base, -stair, int(y[i]), slot, prefix)
        return prefixes, open_[~under]

    def _tail(self, negative: bool) -> tuple[int, int]:
        """Draw an x of the tail. Return its prefix, and the negated logarithm of the height of its stair."""
        stair = 0
        while not (word := int(self._stream.words(1)[0])):
            stair += 64
        stair += (word & -word).bit_length() - 1
        self.largest = max(self.largest, _STRIPS * 2.0**-_STRIP_BITS + (stair + 1) / 4)
        within = int(self._stream.words(1)[0]) >> (64 - UNIT_BITS + 2)
        prefix = (_STRIPS << (UNIT_BITS - _STRIP_BITS)) + (stair << (UNIT_BITS - 2)) + within
        return ~prefix if negative else prefix, stair + 5

    def _lies_under(self, base: int, exponent: int, y: int, slot: int, prefix: int) -> bool:
        """Decide whether ``base + 2**exponent * y`` is below the curve, for bits of y and x of which 53 are known."""
        bits = UNIT_BITS
        while True:
            y, prefix, bits = extend(y, self._stream), extend(prefix, self._stream), bits + 64
            precision = digits_for(bits) + 5
            with decimal.localcontext(decimal.Context(prec=precision, Emin=decimal.MIN_EMIN)):
                unit, height = Decimal(2) ** -bits, Decimal(2) ** exponent
                near, far = sorted(abs(p * unit) for p in (prefix, prefix + 1))
                # Ten digits are for rounding, and the others for the size of the exponent.
                slack = Decimal(10) ** (25 - precision)
                if base + height * ((y + 1) * unit) <= _PEAK * (-far * far / 2).exp() * (1 - slack):
                    self._refined[slot] = (prefix, bits)
                    return True
                if base + height * (y * unit) >= _PEAK * (-near * near / 2).exp() * (1 + slack):
                    return False

    def interval(self, i: int, bits: int) -> Interval:
        """Enclose normal `i`, from at least `bits` bits after the point, in the current decimal context."""
        prefix, n_bits = self._refined.get(i, (int(self._prefixes[i]), UNIT_BITS))
        while n_bits < bits:
            prefix, n_bits = extend(prefix, self._stream), n_bits + 64
        self._refined[i] = (prefix, n_bits)
        unit = Decimal(2) ** -n_bits
        return pad((prefix * unit, (prefix + 1) * unit))


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
    """Round one coordinate. Its product is enclosed by more and more bits, until one integer is the nearest."""
    bits = 53
    half = Decimal("0.5")
    while True:
        bits += 64
        # The product may have 20 digits before the point.
        with decimal.localcontext(decimal.Context(prec=digits_for(bits) + 20, Emin=decimal.MIN_EMIN)):
            x = normals.interval(i, bits)
            if factor is not None:
                x = product(x, factor.interval(bits))
            enclosure = pad(product(x, (Decimal(scale), Decimal(scale))))
            if not all(limit.is_finite() for limit in enclosure):
                continue
            low, high = ((limit + half).to_integral_value(decimal.ROUND_FLOOR) for limit in enclosure)
            if low == high:
                return int(low)


def rounded_normal(scale: float, size: int, stream: BitStream, factor: LazyGamma | None = None) -> NDArray[np.int64]:
    """Draw ``rint(scale * factor * N)`` for independent standard normals N, exactly (see `round_to_integers`)."""
    if size <= _BLOCK:
        return round_to_integers(scale, LazyNormals(size, stream), factor)
    rounded = np.empty(size, dtype=np.int64)
    for start in range(0, size, _BLOCK):
        block = rounded[start : start + _BLOCK]
        block[:] = round_to_integers(scale, LazyNormals(len(block), stream), factor)
    return rounded


class RoundedMechanism(LatticeMechanism):
    """Noise of a scale that is the sensitivity over a privacy parameter, rounded to a lattice."""

    size: int
    lattice_bits: int

    def __post_init__(self) -> None:
        scale = self.sensitivity / self.parameter
        if self.parameter < math.inf and not (self.step >= _LEAST_STEP and scale <= 1 / _LEAST_STEP):
            raise ValueError(f"noise of a scale of {scale:.3g} is out of the range of doubles; choose other units")

    @property
    @abstractmethod
    def parameter(self) -> float:
        """The privacy parameter: the sensitivity over the scale of the noise."""

    def _draw(self, scale: float, size: int, stream: BitStream) -> NDArray[np.int64]:
        """Draw ideal noise of the given scale, rounded to integers. It is Gaussian unless a class overrides this."""
        return rounded_normal(scale, size, stream)

    @property
    def step(self) -> float:  # type: ignore[override]
        """Lattice step."""
        return lattice_step(self.sensitivity / self.parameter, self.lattice_bits)

    @property
    def rounding(self) -> float:
        """Bound on the L2 norm of the change by rounding to the lattice."""
        return self.step * math.sqrt(self.size) / 2

    @property
    def scale(self) -> float:
        """Scale of the noise, in units of the query."""
        return (self.sensitivity + 2 * self.rounding) / self.parameter * (1 + 2.0**-48)

    def _noise(self, size: int, stream: BitStream) -> NDArray[np.int64]:
        return self._draw(self.scale / self.step, size, stream)


@dataclass(frozen=True)
class GaussianMechanism(RoundedMechanism):
    """Release of a real vector, by L2 sensitivity."""

    mu: float  # Gaussian-DP parameter of the release, positive and finite.
    sensitivity: float  # Largest L2 distance between the values of neighbouring data sets.
    size: int  # Length of the vector.
    lattice_bits: int = LATTICE_BITS  # Bits by which the lattice is finer than the noise.

    name = "Gaussian"
    norm = "L2"

    @property
    def parameter(self) -> float:
        """The same as `mu`."""
        return self.mu


@dataclass(frozen=True)
class GammaMechanism(RoundedMechanism):
    """Epsilon-DP release of a real vector, by L2 sensitivity."""

    epsilon: float  # Pure guarantee, positive and finite.
    sensitivity: float  # Largest L2 distance between the values of neighbouring data sets.
    size: int  # Length of the vector.
    lattice_bits: int = LATTICE_BITS  # Bits by which the lattice is finer than the noise.

    name = "L2 (Gamma)"
    norm = "L2"

    @property
    def parameter(self) -> float:
        """The same as `epsilon`."""
        return self.epsilon

    def _draw(self, scale: float, size: int, stream: BitStream) -> NDArray[np.int64]:
        return rounded_normal(scale, size, stream, LazyGamma(size + 1, stream))
