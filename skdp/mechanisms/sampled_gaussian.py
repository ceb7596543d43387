r"""Repeated sums over Poisson samples with Gaussian noise: the mechanism of noisy gradient descent.

In each step, every record is in the sample with probability ``rate``, independently. A sum over the sample is released,
to which a record adds at most ``sensitivity`` in L2 norm. The contribution of a record may depend on earlier releases.
The theorem is that of :class:`~skdp.accounting.SampledGaussianEvent`.

Samples are exact (:mod:`skdp.mechanisms.poisson`). The noise is ideal noise rounded to a lattice
(:mod:`skdp.mechanisms._rounded`). It is drawn for many steps at once, because it does not depend on the data. A step of
the lattice is :math:`2^{-26}` of the noise, so that doubles hold all points within :math:`2^{26}` standard deviations.
Coordinates beyond are clipped, which is a contraction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import repeat

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._bits import BitStream
from ._rounded import RoundedMechanism
from .gaussian import rounded_normal
from .poisson import PoissonSampler

Array = NDArray[np.float64]

# Number of noise values that are drawn at a time.
_CHUNK_NUMBERS = 2**16

_LARGEST = 2.0**52


@dataclass(frozen=True)
class SampledGaussianMechanism(RoundedMechanism):
    """Release of `n_steps` sums over Poisson samples of rows. Each sum may depend on earlier releases.

    Parameters
    ----------
    mu : float
        GDP parameter of one step without sampling. If infinite, no noise is added.
    sensitivity : float
        Largest L2 norm of the contribution of a record to a sum.
    size : int
        Length of a sum.
    n_steps : int
        Number of sums.
    rate : float, default=1.0
        Probability that a record is in a sample. If 1, all records are in each sample.
    lattice_bits : int, default=26
        Bits by which the lattice is finer than the noise.
    """

    mu: float
    sensitivity: float
    size: int
    n_steps: int
    rate: float = 1.0
    lattice_bits: int = 26

    norm = "L2"

    @property
    def name(self) -> str:  # type: ignore[override]
        """Name of the mechanism, with the number of steps and the rate."""
        rows = "all rows" if self.rate == 1 else f"samples at rate {self.rate:.3g}"
        return f"Gaussian in {self.n_steps} steps on {rows}"

    @property
    def parameter(self) -> float:
        """The same as `mu`."""
        return self.mu

    @property
    def scale(self) -> float:
        """Standard deviation of one step's noise."""
        return 0.0 if self.mu == math.inf else super().scale

    def _draw(self, scale: float, size: int, stream: BitStream) -> NDArray[np.int64]:
        return rounded_normal(scale, size, stream)

    def release(self, value: ArrayLike, stream: BitStream) -> Array:
        """Not available, because the sums are released one after the other by `steps`.

        Parameters
        ----------
        value : array-like
            Ignored.
        stream : BitStream
            Ignored.

        Raises
        ------
        TypeError
            Always.
        """
        raise TypeError("sums over samples are released step by step")

    def steps(
        self, n_rows: int, sampling: BitStream, noise: BitStream
    ) -> Iterator[tuple[NDArray[np.intp] | None, Callable[[Array], Array]]]:
        """Iterate over the steps.

        Parameters
        ----------
        n_rows : int
            Number of rows to sample from. Private.
        sampling, noise : BitStream
            Sources of bits.

        Yields
        ------
        rows : ndarray of intp or None
            Sample, as increasing positions, or None for all rows. It is private, and so is its size.
        release : callable
            Function that maps the sum over the sample to the released sum.
        """
        noises = self._noises(noise)
        samples: Iterator[NDArray[np.intp] | None] = repeat(None, self.n_steps)
        if self.rate < 1:
            samples = PoissonSampler(self.rate).samples(n_rows, self.n_steps, sampling)
        for rows in samples:
            yield rows, self._release_once(next(noises), self.step)

    def _noises(self, stream: BitStream) -> Iterator[Array | None]:
        """Yield the noise of each step, in lattice steps."""
        if self.mu == math.inf:
            yield from repeat(None, self.n_steps)
            return
        scale, left = self.scale / self.step, self.n_steps
        together = max(1, _CHUNK_NUMBERS // self.size)
        while left:
            count = min(together, left)
            yield from self._draw(scale, count * self.size, stream).astype(np.float64).reshape(count, self.size)
            left -= count

    def _release_once(self, noise: Array | None, step: float) -> Callable[[Array], Array]:
        waiting: list[Array | None] = [noise]

        def release(total: Array) -> Array:
            own = waiting.pop()
            if own is None:
                return np.array(total, dtype=np.float64)
            if np.size(total) != self.size:
                raise ValueError(f"a sum of {self.size} numbers is planned, got {np.size(total)}")
            # These are powers of two, and integers below 2**53. Therefore only rint rounds.
            with np.errstate(all="ignore"):
                points = np.multiply(total, 1 / step)
            np.rint(points, out=points)
            np.minimum(points, _LARGEST, out=points)
            np.maximum(points, -_LARGEST, out=points)
            points += own.reshape(points.shape)
            points *= step
            return points

        return release
