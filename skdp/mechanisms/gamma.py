r"""The L2 mechanism: pure differential privacy for vectors of bounded L2 sensitivity.

Theorem (Chaudhuri, Monteleoni and Sarwate 2011; Hardt and Talwar 2010). If neighbouring data sets change
:math:`f \in \mathbb{R}^p` by at most :math:`\Delta` in L2 norm, then :math:`f + z` with density proportional to
:math:`e^{-\varepsilon\|z\|_2/\Delta}` is :math:`\varepsilon`-DP. Proof: the normaliser does not depend on :math:`f`,
and :math:`\|o - f'\| - \|o - f\| \le \|f - f'\|`.

The norm of the noise is Gamma(:math:`p`) distributed, hence the name; each coordinate has variance
:math:`(p+1)\Delta^2/\varepsilon^2`. Independent Laplace noise for the same query needs twice the variance, once
:math:`p` is large. The noise is drawn as a scale mixture of normals, and rounded as in
:mod:`skdp.mechanisms.gaussian`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._base import Mechanism, from_lattice, lattice_step, to_lattice
from ._bits import BitStream
from ._lazy import LazyGamma, LazyNormals, round_to_integers
from .gaussian import LATTICE_BITS


def rounded_gamma_vector(scale: float, size: int, stream: BitStream) -> NDArray[np.int64]:
    r"""Draw ``rint(z)`` for an ideal vector with density proportional to :math:`e^{-\|z\|_2/scale}`, exactly.

    Parameters
    ----------
    scale : float
        Positive.
    size : int
        Dimension of the vector.
    stream : BitStream
        Source of bits.

    Returns
    -------
    noise : ndarray of int64, of shape (size,)
        One vector.
    """
    return round_to_integers(scale, LazyNormals(size, stream), LazyGamma(size + 1, stream))


@dataclass(frozen=True)
class GammaMechanism(Mechanism):
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
        How much finer the lattice is than the noise.
    """

    epsilon: float
    sensitivity: float
    size: int
    lattice_bits: int = LATTICE_BITS

    name = "L2 (Gamma)"
    norm = "L2"

    @property
    def step(self) -> float:
        """Lattice step."""
        return lattice_step(self.sensitivity / self.epsilon, self.lattice_bits)

    @property
    def rounding(self) -> float:
        """Bound on the L2 norm of what rounding to the lattice changes."""
        return self.step * math.sqrt(self.size) / 2

    @property
    def scale(self) -> float:
        """Length scale of the noise, in units of the query."""
        return (self.sensitivity + 2 * self.rounding) / self.epsilon * (1 + 2.0**-48)

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
        noise = rounded_gamma_vector(self.scale / self.step, lattice.size, stream)
        return from_lattice(lattice + noise.reshape(lattice.shape), self.step)
