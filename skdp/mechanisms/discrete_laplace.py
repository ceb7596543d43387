r"""Discrete Laplace noise, and the mechanism for integer or lattice-valued queries of bounded L1 sensitivity.

Theorem (Ghosh, Roughgarden and Sundararajan 2012). If neighbouring data sets change :math:`f \in \mathbb{Z}^p` by
at most :math:`\Delta` in L1 norm, then :math:`f + K` with independent :math:`P(K_j = k) \propto e^{-|k|/t}` and
:math:`t \ge \Delta/\varepsilon` is :math:`\varepsilon`-DP. Proof: the ratio of the two probabilities of an output
:math:`o` is :math:`\prod_j e^{(|o_j - f'_j| - |o_j - f_j|)/t} \le e^{\|f - f'\|_1/t}`.

The sampler is algorithm 2 of Canonne, Kamath and Steinke (2020), vectorised. Its law is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._base import Mechanism, from_lattice, to_lattice
from ._bits import BitStream
from ._exact import bernoulli_exp, geometric, uniform_below

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
    parts: list[NDArray[np.int64]] = []
    missing = size
    while missing > 0:
        # exp(-U/t) accepts 1 - 1/e of the candidates, and at most half are lost as negative zeros.
        low, negative = uniform_below(t, int(missing * 1.6) + 64, stream)

        def exact(i: int, low: NDArray[np.int64] = low) -> Fraction:
            return Fraction(int(low[i]), t)

        accepted = bernoulli_exp(low / t, 2.0**-50, exact, stream).nonzero()[0]
        low, negative = low.take(accepted), negative.take(accepted)
        part = geometric(low.size, stream)
        part *= t
        part += low
        if s > 1:
            part //= s
        keep = ~(negative & (part == 0))
        # In two's complement, -x = ~(x - 1).
        sign = negative.astype(np.int64)
        part -= sign
        np.negative(sign, out=sign)
        part ^= sign
        part = part.compress(keep)[:missing]
        parts.append(part)
        missing -= part.size
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class DiscreteLaplaceMechanism(Mechanism):
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

    def release(self, value: ArrayLike, stream: BitStream) -> NDArray[np.float64]:
        """Return `value` plus noise, on the lattice.

        Parameters
        ----------
        value : array-like
            Value of the query.
        stream : BitStream
            Source of bits.

        Returns
        -------
        released : ndarray
            Multiples of the lattice step, in the shape of `value`.
        """
        lattice = to_lattice(value, self.step)
        noise = discrete_laplace(self.lattice_scale, lattice.size, stream)
        return from_lattice(lattice + noise.reshape(lattice.shape), self.step)
