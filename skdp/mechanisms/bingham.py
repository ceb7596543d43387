r"""The exponential mechanism on the unit sphere with a quadratic score, for directions of large variance.

Let a record add between 0 and :math:`\Delta` to the score :math:`v^\top S v` of every unit vector. Drawing :math:`v`
with density proportional to :math:`e^{(\varepsilon/\Delta)\, v^\top S v}` is :math:`\varepsilon`-DP and
:math:`\varepsilon`-bounded-range (Chaudhuri, Sarwate and Sinha 2013). This density is a Bingham distribution. It is
sampled by rejection from an angular central Gaussian envelope (Kent, Ganeiber and Mardia 2013), without a Markov chain.
The user guide (*PCA*) has the theorem and the sampler.

The law of the accepted direction depends on one matrix only, which is defined as the computed matrix of doubles. All
later steps are exact. One part in 1024 of the exponent is left unused to cover the error of the matrix.
"""

from __future__ import annotations

import decimal
import itertools
import math
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh_tridiagonal, lapack

from ._base import BitStream, Mechanism, from_lattice, spread_numbers
from ._exact import ELEMENTARY, digits_for, extend, filtered_bernoulli_exp
from .gaussian import Interval, LazyNormals, pad, product, squared

#: Directions are rounded to multiples of ``2**-LATTICE_BITS``.
LATTICE_BITS = 24

#: Part of the exponent that is reserved for the rounding errors of the matrix and of its root.
MARGIN = 2.0**-10

#: Largest part of epsilon that the error of a triangular root may be. Four times it is a fifth of the margin.
ROOT_ERROR = MARGIN / 20

#: From this size on, a triangular root takes less time than eigenvectors.
LEAST_SIZE = 80

# Steps of Lanczos' method, for the eigenvalues that choose the envelope.
_STEPS = 24

# If so many batches are refused, the envelope of a triangular root is a bad one.
_MOST_REFUSED = 4

# Twice the rounding error of an operation.
_UNIT = 2.0**-52

# With larger entries, squares of norms may not be doubles. No proof is possible then.
_LARGEST = 1e100


def bingham_direction(
    matrix: NDArray[np.float64], bits: int, stream: BitStream, tolerance: float = 0.0
) -> NDArray[np.int64]:
    r"""Draw a unit vector with density proportional to :math:`e^{v^\top A v}`, rounded to steps of ``2**-bits``.

    The exponent may be off by `tolerance`, in addition to the errors of an eigendecomposition.
    """
    size = len(matrix)
    if size == 1:
        return np.array([1 << bits])
    root, error = _triangular_root(matrix) if size >= LEAST_SIZE else (matrix, math.inf)
    if not error <= tolerance:
        root = _root_of_eigenvectors(matrix)
    for refused in itertools.count():
        if refused == _MOST_REFUSED and error <= tolerance:
            root = _root_of_eigenvectors(matrix)
        accepted = _Proposals(root, 8 + 2 * math.isqrt(size), stream).first_accepted(bits)
        if accepted is not None:
            return accepted
    raise AssertionError


def _root_of_eigenvectors(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    values, vectors = np.linalg.eigh(matrix)
    gaps = 2 * (values[-1] - values)
    root: NDArray[np.float64] = vectors / np.sqrt(_envelope(gaps, np.ones(len(gaps))) + gaps)
    return root


@np.errstate(all="ignore")
def _triangular_root(matrix: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Return M with (M M')^-1 / 2 = (t / 2) I - A, and a bound on the error of this, infinite if M is of no use."""
    norm = float(np.linalg.norm(matrix, 1))
    if not norm < _LARGEST:
        return matrix, math.inf
    # The law is the same for any t, on which the probability of acceptance depends.
    values, multiples = _ritz_values(matrix)
    t = 2 * values[-1] + _envelope(2 * (values[-1] - values), multiples)
    precision = -2 * matrix
    precision.flat[:: len(matrix) + 1] += t
    # The matrix is symmetric. Its transpose is in the order of LAPACK, and is not copied.
    lower, failed = lapack.dpotrf(precision.T, lower=1, clean=1, overwrite_a=1)
    if failed:
        return matrix, math.inf
    length = float(np.linalg.norm(lower))
    inverse, _ = lapack.dtrtri(lower, lower=1, overwrite_c=1)
    trace = float(np.linalg.norm(inverse)) ** 2
    # The user guide (PCA, theorem 6) proves this bound.
    unit = (len(matrix) + 8) * _UNIT
    relative = unit * length * math.sqrt(trace)
    error = unit * length**2 / 2 + 1.2 * relative * (abs(t) + 2 * norm)
    # For another trace than about 1, few candidates would be accepted.
    return inverse.T, error if relative < 0.05 and 0.2 < trace < 4 else math.inf


def _ritz_values(matrix: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Estimate the eigenvalues by a few, with numbers of eigenvalues that each stands for."""
    diagonal, beside = [], [0.0]
    vector = spread_numbers(len(matrix))
    vector /= np.linalg.norm(vector)
    before = np.zeros_like(vector)
    for _ in range(min(_STEPS, len(matrix))):
        image = matrix @ vector - beside[-1] * before
        diagonal.append(image @ vector)
        image -= diagonal[-1] * vector
        beside.append(math.sqrt(image @ image))
        if beside[-1] == 0:
            break
        vector, before = image / beside[-1], vector
    values, vectors = eigh_tridiagonal(diagonal, beside[1 : len(diagonal)])
    multiples = len(matrix) * vectors[0] ** 2
    multiples[-1] = max(multiples[-1], 1.0)
    return values, multiples


def _envelope(gaps: NDArray[np.float64], multiples: NDArray[np.float64]) -> float:
    """Solve sum(multiples / (b + gaps)) = 1 for b, which is between 1 and about the sum of the multiples."""
    # The sum is convex and decreases, so that Newton's steps from the left end stay left of the root.
    b = 1.0
    for _ in range(50):
        terms = 1 / (b + gaps)
        step = float((multiples @ terms - 1) / (multiples @ terms**2))
        b += step
        if step < 1e-3 * b:
            break
    return min(b, float(multiples.sum()))


class _Proposals:
    """A batch of candidates whose digits are drawn when they are needed."""

    # The doubles of `root` define the law.
    def __init__(self, root: NDArray[np.float64], count: int, stream: BitStream) -> None:
        self._size = len(root)
        self._count = count
        self._root = root
        self._stream = stream
        self._normals = LazyNormals(count * self._size, stream)

    def first_accepted(self, bits: int) -> NDArray[np.int64] | None:
        """Return the first accepted candidate, rounded, or None."""
        gamma, error = self._exponents()
        accepted = filtered_bernoulli_exp(gamma, error, self._decide, self._stream)
        return self._rounded(int(np.argmax(accepted)), bits) if accepted.any() else None

    def _exponents(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return (m/2)(r - 1 - log r) for each candidate, and a bound on its error."""
        m = self._size
        z = self._normals.value.reshape(self._count, m)
        e = self._normals.error
        with np.errstate(all="ignore"):
            y = z @ self._root.T
            total, length = np.einsum("ij,ij->i", z, z), np.einsum("ij,ij->i", y, y)
            # Relative errors of the norms of z and of y.
            of_z = math.sqrt(m) * e / np.sqrt(total)
            of_y = np.linalg.norm(self._root) * (of_z + (m + 4) * _UNIT) * np.sqrt(total / length)
            relative = 2.01 * (of_z + of_y) + (m + 4) * _UNIT
            excess = total / length / m - 1
            log = np.log1p(excess)
            gamma = m / 2 * (excess - log)
            error = m * ((np.abs(excess) + relative) * relative + (np.abs(excess) + np.abs(log) + 1e-6) * ELEMENTARY)
        # The bound is of first order. If it is not small, the double is of no use.
        lost = ~((relative < 2.0**-10) & (error < 1) & np.isfinite(gamma))
        gamma[lost], error[lost] = 0.0, 1e9
        return np.maximum(gamma, 0.0), error

    def _enclose(self, candidate: int, bits: int) -> tuple[Interval, list[Interval], Interval]:
        """Enclose the squared norm of z, the vector y and its squared norm, in the current decimal context."""
        first = candidate * self._size
        z = [self._normals.interval(first + i, bits) for i in range(self._size)]
        y = []
        for row in self._root.tolist():
            low = high = Decimal(0)
            for weight, interval in zip(row, z, strict=True):
                term = product((Decimal(weight), Decimal(weight)), interval)
                low, high = low + term[0], high + term[1]
            y.append(pad((low, high)))
        return _sum_of_squares(z), y, _sum_of_squares(y)

    def _decide(self, candidate: int, prefix: int) -> bool:
        """Decide U < exp(-gamma) for a U whose first 53 bits are `prefix`."""
        bits = 53
        half = Decimal(self._size) / 2
        while True:
            prefix, bits = extend(prefix, self._stream), bits + 64
            with decimal.localcontext(decimal.Context(prec=digits_for(bits) + 20, Emin=decimal.MIN_EMIN)):
                total, _, length = self._enclose(candidate, bits)
                if length[0] <= 0 or total[0] <= 0:
                    continue
                ratio = pad((total[0] / length[1] / self._size, total[1] / length[0] / self._size))
                if ratio[0] <= 0:
                    continue
                ends = sorted(half * (r - 1 - r.ln()) for r in ratio)
                gamma = pad((Decimal(0) if ratio[0] < 1 < ratio[1] else ends[0], ends[1]))
                low, high = ((-g).exp() * 2**bits for g in (gamma[1], gamma[0]))
                if prefix + 1 <= low * (1 - Decimal(10) ** -(digits_for(bits) - 5)):
                    return True
                if prefix >= high * (1 + Decimal(10) ** -(digits_for(bits) - 5)):
                    return False

    def _rounded(self, candidate: int, bits: int) -> NDArray[np.int64]:
        """Round the candidate's direction to multiples of ``2**-bits``, exactly."""
        m = self._size
        rows = slice(candidate * m, (candidate + 1) * m)
        z, e = self._normals.value[rows], self._normals.error
        with np.errstate(invalid="ignore", over="ignore"):
            y = self._root @ z
            error = np.abs(self._root) @ (e + (m + 4) * 2.0**-52 * np.abs(z))
            length = math.sqrt(y @ y)
            direction = y / length
            error = 1.01 * (error + np.abs(direction) * np.linalg.norm(error)) / length + 2.0**-50
            steps = direction * 2.0**bits
            nearest = np.rint(steps)
            doubtful = ~(np.abs(steps - nearest) < 0.5 - error * 2.0**bits)
        rounded = np.where(doubtful, 0, nearest).astype(np.int64)
        waiting, precision = [int(i) for i in np.flatnonzero(doubtful)], 53
        while waiting:
            precision += 64
            with decimal.localcontext(decimal.Context(prec=digits_for(precision) + 20, Emin=decimal.MIN_EMIN)):
                waiting = self._round_exactly(candidate, precision, bits, waiting, rounded)
        return rounded

    def _round_exactly(
        self, candidate: int, precision: int, bits: int, waiting: list[int], rounded: NDArray[np.int64]
    ) -> list[int]:
        """Round coordinates whose enclosures are small enough, and return the others."""
        _, y, square = self._enclose(candidate, precision)
        if square[0] <= 0:
            return waiting
        length = pad((square[0].sqrt(), square[1].sqrt()))
        left = []
        for i in waiting:
            low, high = y[i]
            coordinate = pad((low / length[low >= 0], high / length[high < 0]))
            steps = (limit * 2**bits + Decimal("0.5") for limit in coordinate)
            points = {int(step.to_integral_value(decimal.ROUND_FLOOR)) for step in steps}
            if len(points) == 1:
                rounded[i] = points.pop()
            else:
                left.append(i)
        return left


def _sum_of_squares(x: list[Interval]) -> Interval:
    low = high = Decimal(0)
    for interval in x:
        square = squared(interval)
        low, high = low + square[0], high + square[1]
    return pad((low, high))


@dataclass(frozen=True)
class BinghamMechanism(Mechanism):
    """Epsilon-DP release of a direction with a large quadratic score."""

    epsilon: float  # Pure and bounded-range guarantee, positive and finite.
    sensitivity: float  # Largest score that one record adds to a unit vector. A record never subtracts.

    name = "exponential (Bingham)"
    norm = "range"

    @property
    def scale(self) -> float:
        """Score that corresponds to a factor of e in the density."""
        return self.sensitivity / self.epsilon * (1 + MARGIN)

    def release(self, value: ArrayLike, stream: BitStream) -> NDArray[np.float64]:
        """Return a direction."""
        matrix = np.asarray(value, dtype=np.float64) / self.scale
        points = bingham_direction(matrix, LATTICE_BITS, stream, ROOT_ERROR * self.epsilon)
        return from_lattice(points, 2.0**-LATTICE_BITS)
