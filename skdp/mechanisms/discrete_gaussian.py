r"""Discrete Gaussian noise, for integer-valued queries of bounded L2 sensitivity.

Theorem (Canonne, Kamath and Steinke 2020, theorem 4). If neighbouring data sets change :math:`f \in \mathbb{Z}^p` by
at most :math:`\Delta` in L2 norm, then :math:`f + K` with independent :math:`P(K_j = k) \propto e^{-k^2/2\sigma^2}` is
:math:`\Delta^2/2\sigma^2`-zCDP, as with continuous noise.

It is *not* exactly :math:`\Delta/\sigma`-GDP, because its :math:`\delta(\varepsilon)` may exceed the continuous one by
a relative :math:`O(\sigma^{-2})`. A release that is charged as Gaussian uses :mod:`skdp.mechanisms.gaussian`, which
rounds ideal continuous noise exactly, and needs no such correction.

The sampler is algorithm 3 of the paper, vectorised. Its law is exact.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ._bits import BitStream
from ._exact import bernoulli_exp
from .discrete_laplace import discrete_laplace


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
    parts: list[NDArray[np.int64]] = []
    missing = size
    while missing > 0:
        candidate = discrete_laplace(t, int(missing * spare) + 64, stream)
        # In units of sigma, to a few units in the last place of the sum, and its square accordingly. If the exponent is
        # beyond 1000, acceptance has probability below 2^-1442, and the first 53 bits almost always decide.
        with np.errstate(over="ignore"):
            place = np.minimum(np.abs(candidate) / float(sigma), 1e150)
        middle = float(sigma) / t
        gamma = (place - middle) ** 2 / 2
        error = 2.0**-49 * np.minimum(gamma + np.abs(place - middle) * (place + middle), 1e3)

        def exact(i: int, candidate: NDArray[np.int64] = candidate) -> Fraction:
            return (abs(int(candidate[i])) - centre) ** 2 / (2 * variance)

        accepted = bernoulli_exp(gamma, error, exact, stream)
        part = candidate.compress(accepted)[:missing]
        parts.append(part)
        missing -= part.size
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)
