r"""Discrete noise for queries with values in a lattice, and the release of the labels that occur.

Discrete Laplace noise of scale :math:`\Delta/\varepsilon` on integers of L1 sensitivity :math:`\Delta` is
:math:`\varepsilon`-DP. The sampler is algorithm 2 of Canonne, Kamath and Steinke (2020), vectorised. Its law is exact.

Let every record have one label, and let discrete Laplace noise be truncated to :math:`|j| \le k`, where the largest
noise has a probability of at most :math:`\delta`. To report each label whose noisy count exceeds :math:`k` is
:math:`(\varepsilon, \delta)`-DP (Desfontaines and others 2022). Labels that do not occur are never reported, and need
not be known. The page *Theorems next to the code* of the documentation has the proofs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._base import BitStream, LatticeMechanism, Mechanism
from ._exact import bernoulli_exp, geometric, uniform_below

# Larger numerators, times geometric numbers, could exceed 64 bits.
_MAX_NUMERATOR = 2**46


def discrete_laplace(scale: Fraction | int, size: int, stream: BitStream) -> NDArray[np.int64]:
    r"""Draw independent integers with :math:`P(k) \propto e^{-|k|/t}`, exactly, for a positive scale t."""
    scale = Fraction(scale)
    t, s = scale.numerator, scale.denominator
    if not 0 < t <= _MAX_NUMERATOR:
        raise ValueError(f"scale must be positive with a numerator of at most 2**46, got {scale}")

    def draw(missing: int) -> NDArray[np.int64]:
        # exp(-U/t) accepts 1 - 1/e of the candidates, and at most half are lost as negative zeros.
        low, negative = uniform_below(t, int(missing * 1.6) + 64, stream)
        accepted = bernoulli_exp(low / t, 2.0**-50, lambda i: Fraction(int(low[i]), t), stream).nonzero()[0]
        low, negative = low.take(accepted), negative.take(accepted)
        drawn = geometric(low.size, stream)
        drawn *= t
        drawn += low
        if s > 1:
            drawn //= s
        keep = ~(negative & (drawn == 0))
        # In two's complement, -x = ~(x - 1).
        sign = negative.astype(np.int64)
        drawn -= sign
        np.negative(sign, out=sign)
        drawn ^= sign
        return drawn.compress(keep)

    blocks, missing = [np.empty(0, dtype=np.int64)], size
    while missing > 0:
        blocks.append(draw(missing)[:missing])
        missing -= blocks[-1].size
    return np.concatenate(blocks)


@dataclass(frozen=True)
class DiscreteLaplaceMechanism(LatticeMechanism):
    """Epsilon-DP release of a vector of lattice points, by L1 sensitivity."""

    epsilon: float  # Pure guarantee, positive and finite.
    sensitivity: float  # Largest L1 distance between the values of neighbouring data sets.
    size: int  # Length of the vector.
    step: float = 1.0  # Lattice step, a power of two. The values must lie on the lattice. Use 1 for counts.

    name = "discrete Laplace"
    norm = "L1"

    @property
    def lattice_scale(self) -> Fraction:
        """Scale in lattice steps, rounded up to a fraction that the sampler accepts."""
        wanted = Fraction(self.sensitivity) / Fraction(self.epsilon) / Fraction(self.step)
        # Keep 40 bits of the scale: the noise grows by less than 2**-39.
        exponent = max(0, 40 - max(0, int(wanted).bit_length()))
        numerator = -((-wanted * 2**exponent) // 1)
        return Fraction(int(numerator), 2**exponent)

    @property
    def scale(self) -> float:
        """Scale of the noise, in units of the query."""
        return float(self.lattice_scale) * self.step

    def _noise(self, size: int, stream: BitStream) -> NDArray[np.int64]:
        return discrete_laplace(self.lattice_scale, size, stream)


@dataclass(frozen=True)
class StabilityCounts(Mechanism):
    r"""Report noisy counts of labels where they exceed a threshold.

    A count :math:`n + 1` has :math:`n + 1 + K`, and :math:`n` has :math:`n + K`. For every set of outputs, the
    probabilities differ by a factor of :math:`e^a` at most, except for the largest or the least value, which has
    probability :math:`P(k) \le \delta`. To leave out counts of at most the threshold is post-processing, and leaves out
    every label that does not occur.
    """

    epsilon: float  # Of one record, positive and finite.
    delta: float  # Of one record, in (0, 1).
    rows: int = 1  # Largest number of records that are added or removed together.

    name = "truncated discrete Laplace, counts above a threshold"
    norm = "records of one label"

    @property
    def sensitivity(self) -> float:  # type: ignore[override]
        """Largest number of records that are added or removed."""
        return float(self.rows)

    @property
    def _noise_scale(self) -> Fraction:
        return DiscreteLaplaceMechanism(self.epsilon, 1.0, 1).lattice_scale

    @property
    def scale(self) -> float:
        """Scale of the noise, in records."""
        return float(self._noise_scale)

    @property
    def threshold(self) -> int:
        """Labels are reported if their noisy counts exceed this number, which is also the largest noise."""
        a = 1 / self.scale
        # This is the solution of P(k) = delta, except for rounding. The margin below is far larger than the rounding.
        solution = (math.log(2 * self.delta * math.exp(-a) - math.expm1(-a)) - math.log1p(math.exp(-a))) / a
        k = max(1, math.floor(solution - math.log(self.delta) / a) - 2)
        while self._tail(k, a) > math.log(self.delta) - 1e-9:
            k += 1
        return k

    @staticmethod
    def _tail(k: int, a: float) -> float:
        """Return the logarithm of the probability of the largest noise."""
        # 1 + exp(-a) - 2 exp(-a (k + 1)), by differences from 1, which avoid cancellation.
        total = 2 * -math.expm1(-a * (k + 1)) + math.expm1(-a)
        return math.log(-math.expm1(-a)) - a * k - math.log(total)

    def release(self, value: ArrayLike, stream: BitStream) -> NDArray[np.float64]:
        """Return the noisy counts above the threshold, and 0 for all others."""
        counts = np.asarray(value, dtype=np.int64)
        k = self.threshold
        noise = np.empty(counts.size, dtype=np.int64)
        waiting = np.arange(counts.size)
        while waiting.size:
            drawn = discrete_laplace(self._noise_scale, waiting.size, stream)
            inside = np.abs(drawn) <= k
            noise[waiting[inside]] = drawn[inside]
            waiting = waiting[~inside]
        noisy = counts + noise
        return np.where(noisy > k, noisy, 0).astype(np.float64)
