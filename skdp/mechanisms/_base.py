"""The base class of mechanisms: frozen public parameters, and one method that draws noise."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._bits import BitStream

# A coordinate beyond this many steps is clipped to it. Clipping is a contraction, so that no sensitivity grows.
_LATTICE_LIMIT = 2.0**61


def lattice_step(scale: float, bits: int) -> float:
    """Return the largest power of two that is at most ``scale * 2**-bits``."""
    return math.ldexp(1.0, math.frexp(scale)[1] - 1 - bits)


def to_lattice(value: ArrayLike, step: float) -> NDArray[np.int64]:
    """Round to the nearest lattice point, counted in steps. Each coordinate moves by at most half a step."""
    with np.errstate(over="ignore"):
        scaled = np.asarray(value, dtype=np.float64) / step
    return np.rint(np.clip(scaled, -_LATTICE_LIMIT, _LATTICE_LIMIT)).astype(np.int64)


def from_lattice(points: NDArray[np.int64], step: float) -> NDArray[np.float64]:
    """Return lattice points as doubles. This is post-processing, as a function of the integers only."""
    return points.astype(np.float64) * step


class Mechanism(ABC):
    """A private release whose parameters are fixed before the data are seen."""

    name: ClassVar[str]
    norm: ClassVar[str]
    sensitivity: float

    @property
    @abstractmethod
    def scale(self) -> float:
        """Scale of the noise, in units of the query."""

    @abstractmethod
    def release(self, value: ArrayLike, stream: BitStream) -> NDArray[np.float64]:
        """Return the private version of `value`.

        Parameters
        ----------
        value : array-like
            Value of the query.
        stream : BitStream
            Source of bits.

        Returns
        -------
        released : ndarray
            Released value, in the shape of `value`.
        """


class LatticeMechanism(Mechanism):
    """Addition of noise in whole steps of a lattice to which the value is rounded."""

    step: float

    @abstractmethod
    def _noise(self, size: int, stream: BitStream) -> NDArray[np.int64]:
        """Draw the noise of so many numbers, in lattice steps."""

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
        noise = self._noise(lattice.size, stream)
        return from_lattice(lattice + noise.reshape(lattice.shape), self.step)


@dataclass(frozen=True)
class NoNoise(Mechanism):
    """The release for epsilon = inf: the value itself, without any guarantee.

    Parameters
    ----------
    sensitivity : float
        Largest change by one record, for information only.
    """

    sensitivity: float

    name = "none (epsilon=inf)"
    norm = "L2"

    @property
    def scale(self) -> float:
        """Zero."""
        return 0.0

    def release(self, value: ArrayLike, stream: BitStream) -> NDArray[np.float64]:
        """Return `value` itself.

        Parameters
        ----------
        value : array-like
            Value of the query.
        stream : BitStream
            Ignored.

        Returns
        -------
        released : ndarray
            A copy of `value`.
        """
        return np.array(value, dtype=np.float64)
