r"""Release of real vectors by ideal noise that is rounded to a lattice.

The release is :math:`g \cdot (\mathrm{rint}(f/g) + \mathrm{rint}(Z/g))` for ideal noise :math:`Z` and a step :math:`g`,
a power of two far below the scale of the noise. Rounding :math:`f` moves each of two neighbouring values by at most
:math:`g\sqrt{p}/2`. Therefore the sensitivity of the rounded value is :math:`\Delta + g\sqrt{p}`. Rounding the sum of a
lattice point and :math:`Z` is post-processing. Both integers are exact, and so is the theorem about :math:`Z`.

Gaussian mechanism. Theorem (Balle and Wang 2018, theorem 8; Dong, Roth and Su 2022, theorem 2.7). If neighbouring data
sets change :math:`f \in \mathbb{R}^p` by at most :math:`\Delta` in L2 norm, then :math:`f + N(0, \sigma^2 I)` is
exactly :math:`\mu`-GDP for :math:`\mu = \Delta/\sigma`, and :math:`(\varepsilon, \delta_G(\varepsilon; \mu))`-DP for
every :math:`\varepsilon` (see ``skdp.accounting``).

L2 mechanism, without delta. Theorem (Chaudhuri, Monteleoni and Sarwate 2011; Hardt and Talwar 2010). If neighbouring
data sets change :math:`f \in \mathbb{R}^p` by at most :math:`\Delta` in L2 norm, then :math:`f + z` with density
proportional to :math:`e^{-\varepsilon\|z\|_2/\Delta}` is :math:`\varepsilon`-DP. Proof: the normaliser does not depend
on :math:`f`, and :math:`\|o - f'\| - \|o - f\| \le \|f - f'\|`.

The norm of the noise is Gamma(:math:`p`) distributed, which gives the class its name. Each coordinate has variance
:math:`(p+1)\Delta^2/\varepsilon^2`. Independent Laplace noise for the same query needs twice the variance for large
:math:`p`. The noise is drawn as a scale mixture of normals.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ._base import LatticeMechanism, lattice_step
from ._bits import BitStream
from ._normals import LazyGamma, rounded_normals

#: Bits by which the lattice is finer than the noise, so that rounding hardly adds to the sensitivity.
LATTICE_BITS = 30

# From here on, lattice steps, their multiples and their inverses are normal doubles.
_LEAST_STEP = 2.0**-900


class RoundedMechanism(LatticeMechanism):
    """Noise of a scale that is the sensitivity over a privacy parameter, rounded to a lattice."""

    size: int
    lattice_bits: int

    def __post_init__(self) -> None:
        scale = self.sensitivity / self.parameter
        if self.parameter < math.inf and not (self.step >= _LEAST_STEP and scale <= 1 / _LEAST_STEP):
            raise ValueError(f"noise of a scale of {scale:.3g} is out of the range of doubles; choose other units")

    @property
    @abstractmethod
    def parameter(self) -> float:
        """The privacy parameter: the sensitivity over the scale of the noise."""

    def _draw(self, scale: float, size: int, stream: BitStream) -> NDArray[np.int64]:
        """Draw ideal noise of the given scale, rounded to integers. It is Gaussian unless a class overrides this."""
        return rounded_normal(scale, size, stream)

    @property
    def step(self) -> float:  # type: ignore[override]
        """Lattice step."""
        return lattice_step(self.sensitivity / self.parameter, self.lattice_bits)

    @property
    def rounding(self) -> float:
        """Bound on the L2 norm of the change by rounding to the lattice."""
        return self.step * math.sqrt(self.size) / 2

    @property
    def scale(self) -> float:
        """Scale of the noise, in units of the query."""
        return (self.sensitivity + 2 * self.rounding) / self.parameter * (1 + 2.0**-48)

    def _noise(self, size: int, stream: BitStream) -> NDArray[np.int64]:
        return self._draw(self.scale / self.step, size, stream)


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
