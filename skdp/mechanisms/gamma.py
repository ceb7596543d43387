r"""The L2 mechanism: pure differential privacy for vectors of bounded L2 sensitivity.

Theorem (Chaudhuri, Monteleoni and Sarwate 2011; Hardt and Talwar 2010). If neighbouring data sets change
:math:`f \in \mathbb{R}^p` by at most :math:`\Delta` in L2 norm, then :math:`f + z` with density proportional to
:math:`e^{-\varepsilon\|z\|_2/\Delta}` is :math:`\varepsilon`-DP. Proof: the normaliser does not depend on :math:`f`,
and :math:`\|o - f'\| - \|o - f\| \le \|f - f'\|`.

The norm of the noise is Gamma(:math:`p`) distributed, which gives the class its name. Each coordinate has variance
:math:`(p+1)\Delta^2/\varepsilon^2`. Independent Laplace noise for the same query needs twice the variance for large
:math:`p`. The noise is drawn as a scale mixture of normals, and rounded to a lattice (see
``skdp.mechanisms._rounded``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ._bits import BitStream
from ._lazy import LazyGamma, rounded_normals
from ._rounded import LATTICE_BITS, RoundedMechanism


def rounded_gamma_vector(scale: float, size: int, stream: BitStream) -> NDArray[np.int64]:
    r"""Draw ``rint(z)`` for an ideal vector with density proportional to :math:`e^{-\|z\|_2/scale}`, exactly.

    Parameters
    ----------
    scale : float
        Scale of the noise. Must be strictly positive.
    size : int
        Dimension of the vector.
    stream : BitStream
        Source of bits.

    Returns
    -------
    noise : ndarray of int64, of shape (size,)
        One vector.
    """
    return rounded_normals(scale, size, stream, LazyGamma(size + 1, stream))


@dataclass(frozen=True)
class GammaMechanism(RoundedMechanism):
    """Epsilon-DP release of a real vector, by L2 sensitivity.

    Parameters
    ----------
    epsilon : float
        Pure guarantee, positive and finite.
    sensitivity : float
        Largest L2 distance between the values of neighbouring data sets.
    size : int
        Length of the vector.
    lattice_bits : int, default=30
        Bits by which the lattice is finer than the noise.
    """

    epsilon: float
    sensitivity: float
    size: int
    lattice_bits: int = LATTICE_BITS

    name = "L2 (Gamma)"
    norm = "L2"

    @property
    def parameter(self) -> float:
        """The same as `epsilon`."""
        return self.epsilon

    def _draw(self, scale: float, size: int, stream: BitStream) -> NDArray[np.int64]:
        return rounded_gamma_vector(scale, size, stream)
