r"""Repeated sums over Poisson samples with Gaussian noise: the mechanism of noisy gradient descent.

In each step, every record is in the sample with probability ``rate``, independently. A sum over the sample is released,
to which a record adds at most ``sensitivity`` in L2 norm. The contribution of a record may depend on earlier releases.
The theorem is that of :class:`~skdp.accounting.SampledGaussianEvent`.

The failures between two successes are geometric: :math:`G = k` exactly when :math:`(1-q)^{k+1} \le U < (1-q)^k` for a
uniform :math:`U`, which is computed as precisely as the decision needs. The law is exact, because an error of a
probability would change the privacy loss of every step.

The noise is ideal noise rounded to a lattice (:mod:`skdp.mechanisms.gaussian`). It is drawn for many steps at once,
because it does not depend on the data. A step of the lattice is :math:`2^{-26}` of the noise, so that doubles hold all
points within :math:`2^{26}` standard deviations. Coordinates beyond are clipped, which is a contraction.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import pairwise, repeat

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._base import BitStream
from ._exact import ELEMENTARY, digits_for, extend
from .gaussian import RoundedMechanism

#: The smallest rate. For smaller ones, gaps would not fit into an integer.
LEAST_RATE = 2.0**-48

# Approximate number of rows that are drawn at a time: many enough for few calls, and a few megabytes.
_CHUNK_ROWS = 2**17

# Mark of gaps that 16 bits do not determine.
_UNDECIDED = -1

Array = NDArray[np.float64]

# Number of noise values that are drawn at a time.
_CHUNK_NUMBERS = 2**16

# Below this number of lattice steps, sums with the noise are exact in doubles.
_LARGEST = 2.0**52


@dataclass(frozen=True)
class PoissonSampler:
    """Draw Poisson samples of rows."""

    # Probability that a row is in a sample, at least ``LEAST_RATE`` and below 1. It is an exact dyadic number.
    rate: float

    def __post_init__(self) -> None:
        if not LEAST_RATE <= self.rate < 1:
            raise ValueError(f"rate must be at least {LEAST_RATE} and below 1, got {self.rate!r}")

    def samples(self, n_rows: int, n_samples: int, stream: BitStream) -> Iterator[NDArray[np.intp]]:
        """Yield independent samples of the rows, as increasing positions. They are private, and so is their number."""
        if n_rows == 0:
            for _ in range(n_samples):
                yield np.empty(0, dtype=np.intp)
            return
        per_chunk = max(1, min(n_samples, int(_CHUNK_ROWS / (self.rate * n_rows))))
        for start in range(0, n_samples, per_chunk):
            count = min(per_chunk, n_samples - start)
            hits = self._successes(count * n_rows, stream)
            cuts = np.searchsorted(hits, np.arange(count + 1) * n_rows).tolist()
            for sample, (first, last) in enumerate(pairwise(cuts)):
                yield hits[first:last] - sample * n_rows

    def _successes(self, n_trials: int, stream: BitStream) -> NDArray[np.intp]:
        """Return the positions of the successes in a sequence of trials."""
        expected = n_trials * self.rate
        blocks, last = [], -1
        while last < n_trials:
            gaps = self.gaps(int(expected + 4 * math.sqrt(expected)) + 16, stream, n_trials)
            gaps += 1
            gaps[0] += last
            # A sum of gaps that would overflow ends far beyond the trials in any case.
            np.minimum(gaps, n_trials + 1, out=gaps)
            hits = np.cumsum(gaps, out=gaps)
            blocks.append(hits)
            last = int(hits[-1])
            expected = max(n_trials - last, 0) * self.rate
        positions = blocks[0] if len(blocks) == 1 else np.concatenate(blocks)
        return positions[: np.searchsorted(positions, n_trials)]

    def gaps(self, size: int, stream: BitStream, most: float = math.inf) -> NDArray[np.intp]:
        """Draw independent geometric numbers of failures before a success.

        Gaps above `most` may be returned as any larger number. With a small rate, exact values are slow to compute, and
        a caller does not need values beyond its trials.
        """
        heads = stream.words(-(-size // 4)).view(np.uint16)[:size]
        gaps = self._table.take(heads)
        open_ = np.flatnonzero(gaps == _UNDECIDED)
        if open_.size:
            gaps[open_] = self._by_doubles(heads[open_], stream, most)
        return gaps

    @cached_property
    def _log_failure(self) -> float:
        return math.log1p(-self.rate)

    @cached_property
    def _table(self) -> NDArray[np.intp]:
        """Return, for each 16 bits, the gap of all uniforms that begin with them, or a mark if there are several."""
        edges = np.arange(2**16 + 1) * 2.0**-16
        with np.errstate(divide="ignore"):
            counts = np.log(edges) / self._log_failure
        slack = 4 * ELEMENTARY
        least, most = np.floor(counts[1:] * (1 - slack)), np.floor(counts[:-1] * (1 + slack))
        same = least == most
        return np.where(same, least, _UNDECIDED).astype(np.intp)

    def _by_doubles(self, heads: NDArray[np.uint16], stream: BitStream, most: float) -> NDArray[np.intp]:
        tails = stream.words(len(heads)) >> np.uint64(16)
        prefixes = (heads.astype(np.uint64) << np.uint64(48)) | tails
        uniform = (prefixes.astype(np.float64) + 0.5) * 2.0**-64
        counts = np.log(uniform) / self._log_failure
        # The error of bits that are not drawn yet, of the rounding of the prefix, and of the logarithms.
        error = (2.0**-64 / uniform + 2.0**-52) / -self._log_failure + counts * 4 * ELEMENTARY
        gaps = np.floor(counts)
        doubtful = ~((np.floor(counts - error) == gaps) & (np.floor(counts + error) == gaps))
        doubtful |= prefixes < 2**32
        # It is certain that a gap exceeds the limit long before the gap itself is known.
        doubtful &= counts - error <= most + 1
        result = np.where(doubtful, 0, gaps).astype(np.intp)
        for i in np.flatnonzero(doubtful):
            result[i] = self._by_decimals(int(prefixes[i]), stream)
        return result

    def _by_decimals(self, prefix: int, stream: BitStream) -> int:
        """Return the gap of a uniform whose first 64 bits are known."""
        bits = 64
        while True:
            # A small rate cancels digits of the logarithm, and the quotient is larger by the same factor.
            precision = 2 * digits_for(bits) + 40
            with decimal.localcontext(decimal.Context(prec=precision, Emin=decimal.MIN_EMIN)):
                log_failure = (1 - Decimal(self.rate)).ln()
                slack = Decimal(10) ** -(digits_for(bits))
                if prefix:
                    uniforms = (Decimal(p) / Decimal(2) ** bits for p in (prefix + 1, prefix))
                    low, high = (uniform.ln() / log_failure for uniform in uniforms)
                    if int(low * (1 - slack)) == int(high * (1 + slack)):
                        return min(int(low), 2**62)
            prefix, bits = extend(prefix, stream), bits + 64


@dataclass(frozen=True)
class SampledGaussianMechanism(RoundedMechanism):
    """Release of `n_steps` sums over Poisson samples of rows. Each sum may depend on earlier releases."""

    mu: float  # GDP parameter of one step without sampling. If infinite, no noise is added.
    sensitivity: float  # Largest L2 norm of the contribution of a record to a sum.
    size: int  # Length of a sum.
    n_steps: int  # Number of sums.
    rate: float = 1.0  # Probability that a record is in a sample. If 1, all records are in each sample.
    lattice_bits: int = 26  # Bits by which the lattice is finer than the noise.

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

    def release(self, value: ArrayLike, stream: BitStream) -> Array:
        """Not available, because the sums are released one after the other by `steps`.

        Raises
        ------
        TypeError
            Always.
        """
        raise TypeError("sums over samples are released step by step")

    def steps(
        self, n_rows: int, sampling: BitStream, noise: BitStream
    ) -> Iterator[tuple[NDArray[np.intp] | None, Callable[[Array], Array]]]:
        """Yield, for each step, the positions of its sample, and a function that maps the sum over it to the release.

        The sample is None for all rows. It is private, and so is its size.
        """
        noises = self._noises(noise)
        samples: Iterator[NDArray[np.intp] | None] = repeat(None, self.n_steps)
        if self.rate < 1:
            samples = PoissonSampler(self.rate).samples(n_rows, self.n_steps, sampling)
        for rows in samples:
            yield rows, self._release_once(next(noises))

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

    def _release_once(self, noise: Array | None) -> Callable[[Array], Array]:
        waiting: list[Array | None] = [noise]

        def release(total: Array) -> Array:
            drawn = waiting.pop()
            if drawn is None:
                return np.array(total, dtype=np.float64)
            if np.size(total) != self.size:
                raise ValueError(f"a sum of {self.size} numbers is planned, got {np.size(total)}")
            # These are powers of two, and integers below 2**53. Therefore only rint rounds.
            with np.errstate(all="ignore"):
                points = np.multiply(total, 1 / self.step)
            np.rint(points, out=points)
            np.minimum(points, _LARGEST, out=points)
            np.maximum(points, -_LARGEST, out=points)
            points += drawn.reshape(points.shape)
            points *= self.step
            return points

        return release
