r"""The Gaussian mechanism, with ideal noise rounded to a lattice.

Theorem (Balle and Wang 2018, theorem 8; Dong, Roth and Su 2022, theorem 2.7). If neighbouring data sets change
:math:`f \in \mathbb{R}^p` by at most :math:`\Delta` in L2 norm, then :math:`f + N(0, \sigma^2 I)` is exactly
:math:`\mu`-GDP for :math:`\mu = \Delta/\sigma`, and :math:`(\varepsilon, \delta_G(\varepsilon; \mu))`-DP for every
:math:`\varepsilon` (see :mod:`skdp.accounting`).

What is released is :math:`g \cdot (\mathrm{rint}(f/g) + \mathrm{rint}(N/g))` for a step :math:`g` that is a power of
two near :math:`2^{-30}\sigma`. Rounding :math:`f` moves each of two neighbouring values by at most :math:`g\sqrt{p}/2`,
so that the sensitivity of what is noised is :math:`\Delta + g\sqrt{p}`; rounding the sum of a lattice point and
:math:`N` is post-processing. Both integers are exact, and so is the theorem.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._base import Mechanism, from_lattice, lattice_step, to_lattice
from ._bits import BitStream
from ._lazy import LazyNormals, round_to_integers

LATTICE_BITS = 30


def rounded_normal(scale: float, size: int, stream: BitStream) -> NDArray[np.int64]:
    """Draw independent ``rint(scale * N)`` for ideal standard normals N, exactly.

    Parameters
    ----------
    scale : float
        Positive, at most ``2**44``.
    size : int
        How many.
    stream : BitStream
        Source of bits.

    Returns
    -------
    noise : ndarray of int64, of shape (size,)
        Independent draws.
    """
    return round_to_integers(scale, LazyNormals(size, stream), None)


@dataclass(frozen=True)
class GaussianMechanism(Mechanism):
    """Release of a real vector, by L2 sensitivity.

    Parameters
    ----------
    mu : float
        Gaussian-DP parameter of the release, positive and finite.
    sensitivity : float
        Largest L2 distance between the values of neighbouring data sets.
    size : int
        Length of the vector.
    lattice_bits : int, default=30
        How much finer the lattice is than the noise.
    """

    mu: float
    sensitivity: float
    size: int
    lattice_bits: int = LATTICE_BITS

    name = "Gaussian"
    norm = "L2"

    @property
    def step(self) -> float:
        """Lattice step."""
        return lattice_step(self.sensitivity / self.mu, self.lattice_bits)

    @property
    def rounding(self) -> float:
        """Bound on the L2 norm of what rounding to the lattice changes."""
        return self.step * math.sqrt(self.size) / 2

    @property
    def scale(self) -> float:
        """Standard deviation of the noise, in units of the query."""
        return (self.sensitivity + 2 * self.rounding) / self.mu * (1 + 2.0**-48)

    def release(self, value: ArrayLike, stream: BitStream) -> NDArray[np.float64]:
        """Return `value` plus noise, on the lattice.

        Parameters
        ----------
        value : array-like
            The query's value.
        stream : BitStream
            Source of bits.

        Returns
        -------
        released : ndarray
            Multiples of the lattice step, in the shape of `value`.
        """
        lattice = to_lattice(value, self.step)
        noise = rounded_normal(self.scale / self.step, lattice.size, stream)
        return from_lattice(lattice + noise.reshape(lattice.shape), self.step)
