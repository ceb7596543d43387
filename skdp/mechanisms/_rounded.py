r"""Release of real vectors by ideal noise that is rounded to a lattice.

The release is :math:`g \cdot (\mathrm{rint}(f/g) + \mathrm{rint}(Z/g))` for ideal noise :math:`Z` and a step :math:`g`,
a power of two far below the scale of the noise. Rounding :math:`f` moves each of two neighbouring values by at most
:math:`g\sqrt{p}/2`. Therefore the sensitivity of the rounded value is :math:`\Delta + g\sqrt{p}`. Rounding the sum of a
lattice point and :math:`Z` is post-processing. Both integers are exact, and so is the theorem about :math:`Z`.
"""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._base import Mechanism, from_lattice, lattice_step, to_lattice
from ._bits import BitStream

LATTICE_BITS = 30

# From here on, lattice steps, their multiples and their inverses are normal doubles.
_LEAST_STEP = 2.0**-900


class RoundedMechanism(Mechanism):
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

    @abstractmethod
    def _draw(self, scale: float, size: int, stream: BitStream) -> NDArray[np.int64]:
        """Draw ideal noise of the given scale, rounded to integers."""

    @property
    def step(self) -> float:
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
        noise = self._draw(self.scale / self.step, lattice.size, stream)
        return from_lattice(lattice + noise.reshape(lattice.shape), self.step)
