r"""The exponential mechanism over a ball with a convex sum of losses as its score, in a few dimensions.

If the contribution of a record to the sum varies by at most :math:`\Delta` over the ball, a point of density
proportional to :math:`e^{-(\varepsilon/\Delta) F(w)}` is epsilon-DP and epsilon-bounded-range, where :math:`F` is the
sum. It is drawn by rejection from envelopes that are tangent planes on boxes. Boxes of rejected points are halved. The
law is exact for all boxes and for all frames along whose axes they lie. The page *Theorems next to the code* of the
documentation has the proof, the sampler, and the bounds on the errors of doubles, for which one part in 512 of the
exponent is left unused.

The number of rejections has no limit, because the data would determine whether a limit is reached.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ._base import BitStream, Mechanism, from_lattice
from ._exact import bernoulli_exp, uniform_below

Array = NDArray[np.float64]

#: Largest number of dimensions of the sampler.
MOST_PARAMETERS = 4

#: Part of the exponent that is reserved for rounding errors.
MARGIN = 2.0**-9

#: The release is a multiple of ``2**-LATTICE_BITS`` radii.
LATTICE_BITS = 30

# The smallest epsilon, for which the margin is enough, and the largest epsilon that is used. Beyond that, the density
# would be as narrow as the lattice.
_LEAST_EPSILON = 2.0**-30
_LARGEST_EPSILON = 1000.0

# Coordinates in the frame are integers of one bit more and a sign, in units of 2**-50 radii; positions between have
# as many digits again. Entries of the frame are multiples of 2**-53.
_POINT_BITS = 50
_FRAME_BITS = 53

# Weights of boxes are integers of this many bits. Lighter boxes have weight 1.
_WEIGHT_BITS = 40

# If a slope is below this, the law of an axis of 2**51 points is uniform to 2**-61.
_FLAT = 2.0**-112

# At this interval, a box is halved along its longest side.
_TURN = 8

# A box that wastes less than this, in logarithms of its mass, along any axis was rejected for other reasons.
_LITTLE_WASTE = 0.01

# Number of proposals at a time. It is small while there are few boxes.
_MOST_PROPOSALS = 48


class Potential(Protocol):  # numpydoc ignore=PR01
    """A convex function that is evaluated at many points at once. Points are in a frame of its own choice."""

    frame: Array

    def values(self, points: Array) -> Array:
        """Return the value of the function at each point."""
        ...

    def slopes(self, points: Array) -> tuple[Array, Array]:
        """Return the value of the function and a subgradient at each point."""
        ...


class _Boxes:
    """Divide the ball into boxes, each with the tangent plane of `rate` times the potential at its centre."""

    # The arrays have one row for each box.
    _COLUMNS = ("_low", "_bits", "_slope", "_falls", "_height", "_mass")

    def __init__(self, potential: Potential, rate: float, radius: float, size: int) -> None:
        self._potential, self._rate = potential, rate
        self._unit = math.ldexp(radius, -_POINT_BITS)
        # Slightly more than half a diagonal beyond the last lattice point.
        self._farthest = radius * (1 - 2.0 ** -(LATTICE_BITS + 1))
        self._low = np.empty((0, size), dtype=np.int64)
        self._bits = np.empty((0, size), dtype=np.int64)
        # Decrease of the exponent from one point to the next, and whether it decreases as the coordinate grows.
        self._slope = np.empty((0, size))
        self._falls = np.empty((0, size), dtype=bool)
        # Logarithms of the envelope's height at its highest corner, and of its mass.
        self._height = np.empty(0)
        self._mass = np.empty(0)
        corner = np.full((1, size), -(1 << _POINT_BITS), dtype=np.int64)
        self._append(corner, np.full((1, size), _POINT_BITS + 1, dtype=np.int64))

    def __len__(self) -> int:
        return len(self._low)

    def coordinates(self, points: NDArray[np.int64]) -> Array:
        """Return the centres of points, which are small cubes, in the frame."""
        return np.asarray((points + 0.5) * self._unit, dtype=np.float64)

    def _append(self, low: NDArray[np.int64], bits: NDArray[np.int64]) -> None:
        side = np.ldexp(self._unit, bits)
        centre = low * self._unit + side / 2
        nearest = np.maximum(np.abs(centre) - side / 2, 0.0)
        near = np.einsum("ij,ij->i", nearest, nearest) <= self._farthest**2
        low, bits, centre = low[near], bits[near], centre[near]
        values, gradients = self._potential.slopes(centre)
        slope = self._rate * np.abs(gradients) * self._unit
        height = -self._rate * values + (slope * (np.ldexp(1.0, bits) - 1) / 2).sum(axis=1)
        mass = height + _log_geometric(slope, bits).sum(axis=1)
        for name, column in zip(self._COLUMNS, (low, bits, slope, gradients > 0, height, mass), strict=True):
            setattr(self, name, np.concatenate([getattr(self, name), column]))

    def halve(self, chosen: NDArray[np.intp]) -> None:
        """Replace boxes by their halves."""
        chosen = chosen[self._bits[chosen].any(axis=1)]
        low, bits = self._low[chosen], self._bits[chosen]
        rows, cut = np.arange(len(chosen)), self._axes(chosen)
        bits[rows, cut] -= 1
        high = low.copy()
        high[rows, cut] += np.int64(1) << bits[rows, cut]
        keep = np.ones(len(self), dtype=bool)
        keep[chosen] = False
        for name in self._COLUMNS:
            setattr(self, name, getattr(self, name)[keep])
        self._append(np.concatenate([low, high]), np.concatenate([bits, bits]))

    def _axes(self, chosen: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the axes along which boxes will be halved."""
        # This is the axis along which the plane wastes most mass against the secants of the function. A single
        # curvature would not suit all boxes, because a sum of kinks is flat in one box and bends along another axis in
        # the next. If nothing is wasted, and at regular intervals, it is the longest side.
        low, bits = self._low[chosen], self._bits[chosen]
        size = low.shape[1]
        side = np.ldexp(self._unit, bits)
        centre = low * self._unit + side / 2
        step = np.eye(size) * side[:, None] / 2
        around = np.concatenate([centre[:, None], centre[:, None] + step, centre[:, None] - step], axis=1)
        values = self._rate * self._potential.values(around.reshape(-1, size)).reshape(len(chosen), -1)
        up, down = values[:, 1 : size + 1] - values[:, :1], values[:, size + 1 :] - values[:, :1]
        plane = np.ldexp(self._slope[chosen], bits) / 2
        wasted = np.logaddexp(_log_mean(plane), _log_mean(-plane)) - np.logaddexp(_log_mean(up), _log_mean(down))
        longest = (bits.sum(axis=1) % _TURN == 0) | (wasted.max(axis=1) < _LITTLE_WASTE)
        return np.where(bits > 0, np.where(longest[:, None], side, np.maximum(wasted, 0.0)), -1.0).argmax(axis=1)

    def propose(self, count: int, stream: BitStream) -> tuple[NDArray[np.intp], NDArray[np.int64], Array]:
        """Draw about `count` points, at least one, from the envelope. Return boxes, points and the log-envelope."""
        top = self._mass.max()
        # The sum of the weights must be below 2**62.
        bits = min(_WEIGHT_BITS, 61 - len(self).bit_length())
        weight = np.maximum(np.ceil(np.exp(self._mass - top) * 2.0**bits), 1.0)
        # Rounding up raises the envelope of a box.
        raised = np.log(weight) - bits * math.log(2) + top - self._mass
        last = np.cumsum(weight.astype(np.int64))
        drawn = np.empty(0, dtype=np.int64)
        while drawn.size == 0:
            drawn = uniform_below(int(last[-1]), count, stream)[0]
        box = np.searchsorted(last, drawn, side="right")
        offset = _geometric_digits(self._slope[box], self._bits[box], stream)
        low, last_offset = self._low[box], (np.int64(1) << self._bits[box]) - 1
        points = low + np.where(self._falls[box], offset, last_offset - offset)
        envelope = self._height[box] - (self._slope[box] * offset).sum(axis=1) + raised[box]
        return box, points, envelope


def _log_geometric(slope: Array, bits: NDArray[np.int64]) -> Array:
    """Return log(1 + e^-s + ... + e^-((2^bits - 1) s))."""
    # The logarithms of smaller numbers would be large, with large rounding errors.
    flat = slope < _FLAT
    s = np.where(flat, 1.0, slope)
    sums = np.log(-np.expm1(-s * np.ldexp(1.0, bits))) - np.log(-np.expm1(-s))
    return np.where(flat, bits * math.log(2), sums)


def _log_mean(fall: Array) -> Array:
    """Return the logarithm of the mean of e^(-fall t) for t from 0 to 1."""
    size = np.maximum(np.abs(fall), 1e-9)
    return np.log(-np.expm1(-size) / size) + np.maximum(-fall, 0.0)


def _geometric_digits(slope: Array, bits: NDArray[np.int64], stream: BitStream) -> NDArray[np.int64]:
    """Draw integers k below 2^bits with probabilities proportional to e^(-slope k)."""
    # The factors e^(-slope 2^i) of the binary digits of k make them independent; digit i is 1 with probability
    # 1 / (1 + e^(slope 2^i)).
    positions = np.arange(_POINT_BITS + 1)
    used = positions < bits[..., None]
    gamma = np.logaddexp(0.0, np.ldexp(slope[..., None], positions)[used])
    ones = np.zeros(used.shape, dtype=np.int64)
    ones[used] = _bernoulli(gamma, stream)
    return (ones << positions).sum(axis=-1)


def _bernoulli(gamma: Array, stream: BitStream) -> NDArray[np.bool_]:
    """Draw booleans that are true with probability exp(-gamma), for the exact values of these doubles."""
    return bernoulli_exp(gamma, 0.0, lambda i: Fraction(float(gamma[i])), stream)


class _Lattice:
    """Round positions in a frame, whose axes are columns, to the public lattice in the original axes."""

    # Doubles are off by less than this part of a step, and so are positions from the centres of their points.
    _DOUBT = 2.0**-12

    def __init__(self, frame: Array, stream: BitStream) -> None:
        # The frame is rounded, because a linear map that is nearly a rotation is sufficient.
        self._exact = np.rint(np.ldexp(frame, _FRAME_BITS)).astype(np.int64).tolist()
        self._frame = np.ldexp(np.array(self._exact, dtype=np.float64), -_FRAME_BITS)
        self._stream = stream

    def round(self, points: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return lattice points, in steps. Positions near a border need further digits."""
        steps = np.ldexp((points + 0.5) @ self._frame.T, LATTICE_BITS - _POINT_BITS)
        rounded = np.rint(steps)
        doubtful = (np.abs(steps - rounded) > 0.5 - self._DOUBT).any(axis=1)
        out: NDArray[np.int64] = rounded.astype(np.int64)
        for i in np.flatnonzero(doubtful):
            out[i] = self._round_exactly(points[i].tolist())
        return out

    def _round_exactly(self, point: list[int]) -> list[int]:
        digits = (self._stream.words(len(point)) >> np.uint64(64 - _POINT_BITS)).tolist()
        position = [(k << _POINT_BITS) + d for k, d in zip(point, digits, strict=True)]
        shift = 2 * _POINT_BITS + _FRAME_BITS - LATTICE_BITS
        totals = [sum(a * x for a, x in zip(row, position, strict=True)) for row in self._exact]
        return [(total + (1 << (shift - 1))) >> shift for total in totals]


def sample_ball(potential: Potential, rate: float, radius: float, size: int, stream: BitStream) -> NDArray[np.int64]:
    r"""Draw from a ball around the origin with density proportional to :math:`e^{-\text{rate}\, F}`, exactly rounded.

    The point is in steps of ``radius * 2**-LATTICE_BITS``, and its cube lies within the ball.
    """
    boxes = _Boxes(potential, rate, radius, size)
    lattice = _Lattice(potential.frame, stream)
    # Half the diagonal of a cube is at most one step. The other step is for rounding.
    most = 2**LATTICE_BITS - 2
    while True:
        box, points, envelope = boxes.propose(min(4 + len(boxes) // 2, _MOST_PROPOSALS), stream)
        rounded = lattice.round(points)
        accepted = np.einsum("ij,ij->i", rounded, rounded) <= most**2
        if accepted.any():
            values = potential.values(boxes.coordinates(points[accepted]))
            accepted[accepted] = _bernoulli(np.maximum(rate * values + envelope[accepted], 0.0), stream)
        if accepted.any():
            return rounded[accepted.argmax()]
        boxes.halve(np.unique(box))


@dataclass(frozen=True)
class TangentPlaneMechanism(Mechanism):
    """Epsilon-DP release of a point of a ball at which a convex sum of losses is small."""

    epsilon: float  # Pure and bounded-range guarantee, positive and finite.
    sensitivity: float  # Largest spread over the ball of one record's contribution to the sum.
    radius: float  # Radius of the ball.
    n_parameters: int  # Dimension of the ball, at most 4.

    name = "exponential (tangent planes)"
    norm = "range"

    def __post_init__(self) -> None:
        for name in ("epsilon", "sensitivity", "radius"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be positive and finite, got {getattr(self, name)!r}")
        if self.epsilon < _LEAST_EPSILON:
            raise ValueError(f"epsilon must be at least 2**-30, got {self.epsilon!r}")
        if self.n_parameters not in range(1, MOST_PARAMETERS + 1):
            raise ValueError(f"n_parameters must be an integer from 1 to {MOST_PARAMETERS}, got {self.n_parameters!r}")

    @property
    def scale(self) -> float:
        """Sum of losses that corresponds to a factor of e in the density. Epsilons beyond 1000 count as 1000."""
        return self.sensitivity / min(self.epsilon, _LARGEST_EPSILON) * (1 + MARGIN)

    def release(self, value: Any, stream: BitStream) -> Array:
        """Return a point on a public lattice, within the ball, for a `Potential`, which is the sum of losses."""
        # Underflow depends on the data. Therefore NumPy must not report it.
        with np.errstate(all="ignore"):
            point = sample_ball(value, 1 / self.scale, self.radius, self.n_parameters, stream)
        return from_lattice(point, math.ldexp(self.radius, -LATTICE_BITS))
