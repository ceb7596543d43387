r"""Ideal standard normals, from points under the curve (Marsaglia, MacLaren and Bray 1964: rectangles, wedges, a tail).

If :math:`(x, y)` is uniform in the region :math:`0 \le y < c\,e^{-x^2/2}`, then :math:`x` is a standard normal. A point
of a larger region is drawn, and drawn again if it is above the curve. For :math:`x \ge 0`, and by a fair sign for both
sides, the larger region consists of :math:`2^{16}` pieces of equal area, :math:`2^{-6}`, so that 16 bits choose a
piece:

- Rectangles :math:`[j 2^{-6}, (j+1) 2^{-6}) \times [r, r+1)`. Each strip :math:`j` has as many as cover the curve, and
  some more above it, so that the number of pieces is right.
- The tail: stairs :math:`[e + k/4, e + (k+1)/4) \times [0, 2^{-5-k})` for :math:`k = 0, 1, \ldots` from the edge
  :math:`e` of the strips, which cover the curve there. Stair :math:`k` has the part :math:`2^{-1-k}` of the piece.

The other bits of the word are the sign and 47 bits of :math:`x` within its strip, so that 53 bits after the point are
known. Rectangles below the curve, 98 % of all, need no further bits. In the other rectangles, 53 bits of :math:`y` are
drawn. If doubles do not decide whether the point is below the curve (once in :math:`2^{30}`), and in the tail, further
bits of the same x and y are drawn, until decimal arithmetic decides. Therefore the law is exact, and every normal can
be computed to any precision, because its bits beyond the drawn ones are independent and fair.
"""

from __future__ import annotations

import decimal
from collections.abc import Sequence
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from ._bits import BitStream
from ._exact import digits_for, extend
from ._intervals import Interval, pad

#: Number of bits of a normal after the point that are drawn at first.
UNIT_BITS = 53

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
            at = int(open_[i])
            slot, prefix, base, stair = int(slots[at]), int(prefixes[at]), int(_RANK[heads[i]]), 0
            if heads[i] == _TAIL:
                prefix, stair = self._tail(prefix < 0)
                prefixes[at] = prefix
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
        prefix, have = self._refined.get(i, (int(self._prefixes[i]), UNIT_BITS))
        while have < bits:
            prefix, have = extend(prefix, self._stream), have + 64
        self._refined[i] = (prefix, have)
        unit = Decimal(2) ** -have
        return pad((prefix * unit, (prefix + 1) * unit))
