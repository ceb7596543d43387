r"""Discrete noise for queries with values in a lattice: Laplace for L1 sensitivity, Gaussian for L2 sensitivity.

Discrete Laplace noise. Theorem (Ghosh, Roughgarden and Sundararajan 2012). If neighbouring data sets change :math:`f
\in \mathbb{Z}^p` by at most :math:`\Delta` in L1 norm, then :math:`f + K` with independent :math:`P(K_j = k) \propto
e^{-|k|/t}` and :math:`t \ge \Delta/\varepsilon` is :math:`\varepsilon`-DP. Proof: the ratio of the two probabilities of
an output :math:`o` is :math:`\prod_j e^{(|o_j - f'_j| - |o_j - f_j|)/t} \le e^{\|f - f'\|_1/t}`.

Discrete Gaussian noise. Theorem (Canonne, Kamath and Steinke 2020, theorem 4). If neighbouring data sets change
:math:`f \in \mathbb{Z}^p` by at most :math:`\Delta` in L2 norm, then :math:`f + K` with independent :math:`P(K_j = k)
\propto e^{-k^2/2\sigma^2}` is :math:`\Delta^2/2\sigma^2`-zCDP, as with continuous noise.

It is *not* exactly :math:`\Delta/\sigma`-GDP, because its :math:`\delta(\varepsilon)` may exceed the continuous one by
a relative :math:`O(\sigma^{-2})`. A release that is charged as Gaussian uses :mod:`skdp.mechanisms.gaussian`, which
rounds ideal continuous noise exactly, and needs no such correction.

The samplers are algorithms 2 and 3 of Canonne, Kamath and Steinke (2020), vectorised. Their laws are exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ._base import LatticeMechanism
from ._bits import BitStream
from ._exact import bernoulli_exp, geometric, uniform_below

# Larger numerators, times geometric numbers, could exceed 64 bits.
_MAX_NUMERATOR = 2**46


def discrete_laplace(scale: Fraction | int, size: int, stream: BitStream) -> NDArray[np.int64]:
    r"""Draw integers with :math:`P(k) \propto e^{-|k|/t}`, exactly.

    Parameters
    ----------
    scale : Fraction or int
        The scale :math:`t`, positive, with a numerator of at most ``2**46``.
    size : int
        Number of draws.
    stream : BitStream
        Source of bits.

    Returns
    -------
    noise : ndarray of int64, of shape (size,)
        Independent draws.

    References
    ----------
    .. [1] C. Canonne, G. Kamath and T. Steinke, "The Discrete Gaussian for Differential Privacy",
       NeurIPS 2020, algorithm 2.
    """
    scale = Fraction(scale)
    t, s = scale.numerator, scale.denominator
    if not 0 < t <= _MAX_NUMERATOR:
        raise ValueError(f"scale must be positive with a numerator of at most 2**46, got {scale}")
    blocks: list[NDArray[np.int64]] = []
    missing = size
    while missing > 0:
        # exp(-U/t) accepts 1 - 1/e of the candidates, and at most half are lost as negative zeros.
        low, negative = uniform_below(t, int(missing * 1.6) + 64, stream)

        def exact(i: int, low: NDArray[np.int64] = low) -> Fraction:
            return Fraction(int(low[i]), t)

        accepted = bernoulli_exp(low / t, 2.0**-50, exact, stream).nonzero()[0]
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
        drawn = drawn.compress(keep)[:missing]
        blocks.append(drawn)
        missing -= drawn.size
    return np.concatenate(blocks) if blocks else np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class DiscreteLaplaceMechanism(LatticeMechanism):
    """Epsilon-DP release of a vector of lattice points, by L1 sensitivity.

    Parameters
    ----------
    epsilon : float
        Pure guarantee, positive and finite.
    sensitivity : float
        Largest L1 distance between the values of neighbouring data sets.
    size : int
        Length of the vector.
    step : float, default=1.0
        Lattice step, a power of two. The values must lie on the lattice. Use 1 for counts.
    """

    epsilon: float
    sensitivity: float
    size: int
    step: float = 1.0

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


def discrete_gaussian(sigma: Fraction | float, size: int, stream: BitStream) -> NDArray[np.int64]:
    r"""Draw integers with :math:`P(k) \propto e^{-k^2/2\sigma^2}`, exactly.

    Parameters
    ----------
    sigma : Fraction or float
        Scale, in (0, 2**44]. A float represents an exact dyadic number.
    size : int
        Number of draws.
    stream : BitStream
        Source of bits.

    Returns
    -------
    noise : ndarray of int64, of shape (size,)
        Independent draws.

    References
    ----------
    .. [1] C. Canonne, G. Kamath and T. Steinke, "The Discrete Gaussian for Differential Privacy",
       NeurIPS 2020, algorithm 3.
    """
    if not 0 < sigma <= 2**44:
        raise ValueError(f"sigma must lie in (0, 2**44], got {sigma}")
    sigma = Fraction(sigma)
    variance = sigma**2
    # Any scale is valid for the proposal. One near sigma is the fastest, and for a power of two, every word is used.
    t = 2 ** max(0, round(math.log2(sigma)))
    centre = variance / t
    # Slightly more than one over the rate of acceptance for a fine lattice. Below sigma = 1, the worst case.
    ratio = max(1.0, float(sigma)) / t
    spare = 2.4 if sigma < 1 else 1.03 * math.sqrt(2 / math.pi) / ratio * math.exp(ratio**2 / 2)
    blocks: list[NDArray[np.int64]] = []
    missing = size
    while missing > 0:
        candidate = discrete_laplace(t, int(missing * spare) + 64, stream)
        # In units of sigma, to a few units in the last place of the sum, and its square accordingly. If the exponent is
        # beyond 1000, acceptance has probability below 2^-1442, and the first 53 bits almost always decide.
        with np.errstate(over="ignore"):
            deviations = np.minimum(np.abs(candidate) / float(sigma), 1e150)
        middle = float(sigma) / t
        gamma = (deviations - middle) ** 2 / 2
        error = 2.0**-49 * np.minimum(gamma + np.abs(deviations - middle) * (deviations + middle), 1e3)

        def exact(i: int, candidate: NDArray[np.int64] = candidate) -> Fraction:
            return (abs(int(candidate[i])) - centre) ** 2 / (2 * variance)

        accepted = bernoulli_exp(gamma, error, exact, stream)
        drawn = candidate.compress(accepted)[:missing]
        blocks.append(drawn)
        missing -= drawn.size
    return np.concatenate(blocks) if blocks else np.empty(0, dtype=np.int64)
