r"""The Gaussian mechanism, with ideal noise rounded to a lattice.

Theorem (Balle and Wang 2018, theorem 8; Dong, Roth and Su 2022, theorem 2.7). If neighbouring data sets change
:math:`f \in \mathbb{R}^p` by at most :math:`\Delta` in L2 norm, then :math:`f + N(0, \sigma^2 I)` is exactly
:math:`\mu`-GDP for :math:`\mu = \Delta/\sigma`, and :math:`(\varepsilon, \delta_G(\varepsilon; \mu))`-DP for every
:math:`\varepsilon` (see :mod:`skdp.accounting`).

The noise is rounded to a lattice (see :mod:`skdp.mechanisms._rounded`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ._bits import BitStream
from ._lazy import rounded_normals
from ._rounded import LATTICE_BITS, RoundedMechanism


def rounded_normal(scale: float, size: int, stream: BitStream) -> NDArray[np.int64]:
    """Draw independent ``rint(scale * N)`` for ideal standard normals N, exactly.

    Parameters
    ----------
    scale : float
        Positive, at most ``2**44``.
    size : int
        Number of draws.
    stream : BitStream
        Source of bits.

    Returns
    -------
    noise : ndarray of int64, of shape (size,)
        Independent draws.
    """
    return rounded_normals(scale, size, stream)


@dataclass(frozen=True)
class GaussianMechanism(RoundedMechanism):
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
        Bits by which the lattice is finer than the noise.
    """

    mu: float
    sensitivity: float
    size: int
    lattice_bits: int = LATTICE_BITS

    name = "Gaussian"
    norm = "L2"

    @property
    def parameter(self) -> float:
        """The same as `mu`."""
        return self.mu

    def _draw(self, scale: float, size: int, stream: BitStream) -> NDArray[np.int64]:
        return rounded_normal(scale, size, stream)
