r"""Release of the labels that occur, among unboundedly many, by truncated noise and a threshold.

Theorem (Desfontaines and others 2022). Let every record have one label. Let :math:`K` be discrete Laplace noise,
:math:`P(j) \propto e^{-a|j|}` with :math:`a \le \varepsilon`, truncated to :math:`|j| \le k`, where :math:`k` is so
large that :math:`P(k) \le \delta`. To report each label whose count :math:`n` has :math:`n + K > k`, with independent
noise for each label, is :math:`(\varepsilon, \delta)`-DP.

Proof. A label that does not occur is never reported, because :math:`0 + K \le k`. Therefore the labels that do not
occur need not be known. One record changes the count of one label, from :math:`n` to :math:`n + 1`, say. Let
:math:`\pi(n) = P(K > k - n)` be the probability that it is reported. For :math:`m = k - n`,
:math:`\pi(n+1) = \sum_{j=m}^{k} P(j) = P(k) + \sum_{j=m}^{k-1} P(j) \le \delta + e^\varepsilon \sum_{j=m+1}^{k} P(j)
= \delta + e^\varepsilon \pi(n)`, as :math:`P(j) \le e^a P(j + 1)`. Since :math:`P` is symmetric, the same holds for
:math:`1 - \pi`: :math:`1 - \pi(n) \le \delta + e^\varepsilon (1 - \pi(n+1))`. The two other inequalities hold because
:math:`\pi` does not decrease. An event of all labels together is a mixture of events of this one.

If :math:`P(k) = \delta` and :math:`a = \varepsilon`, no rule reports a label with higher probability for all :math:`n`.
With :math:`\delta = 0`, no rule reports any label.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._base import Mechanism
from ._bits import BitStream
from .discrete import DiscreteLaplaceMechanism, discrete_laplace


@dataclass(frozen=True)
class StabilityThreshold(Mechanism):
    """Report labels whose noisy counts exceed a threshold.

    Parameters
    ----------
    epsilon : float
        Positive and finite.
    delta : float
        In (0, 1).
    """

    epsilon: float
    delta: float

    name = "truncated discrete Laplace, threshold"
    norm = "records of one label"
    sensitivity = 1.0

    @property
    def _noise_scale(self) -> Fraction:
        return DiscreteLaplaceMechanism(self.epsilon, 1.0, 1).lattice_scale

    @property
    def scale(self) -> float:
        """Scale of the noise, in records."""
        return float(self._noise_scale)

    @property
    def threshold(self) -> int:
        """Labels are reported if their noisy counts exceed this number, which is also the largest noise."""
        a = 1 / self.scale
        # This is the solution of P(k) = delta, except for rounding. The margin below is far larger than the rounding.
        solution = (math.log(2 * self.delta * math.exp(-a) - math.expm1(-a)) - math.log1p(math.exp(-a))) / a
        k = max(1, math.floor(solution - math.log(self.delta) / a) - 2)
        while self._tail(k, a) > math.log(self.delta) - 1e-9:
            k += 1
        return k

    @staticmethod
    def _tail(k: int, a: float) -> float:
        """Return the logarithm of the probability of the largest noise."""
        # 1 + exp(-a) - 2 exp(-a (k + 1)), by differences from 1, which avoid cancellation.
        total = 2 * -math.expm1(-a * (k + 1)) + math.expm1(-a)
        return math.log(-math.expm1(-a)) - a * k - math.log(total)

    def release(self, value: ArrayLike, stream: BitStream) -> NDArray[np.float64]:
        """Return 1 where the noisy count exceeds the threshold.

        Parameters
        ----------
        value : array-like of shape (n_labels,)
            Counts of the labels. Labels with a count of 0 may be left out.
        stream : BitStream
            Source of bits.

        Returns
        -------
        reported : ndarray of shape (n_labels,)
            1 or 0. Only the labels with a 1 may be published. The number of the other labels is private.
        """
        return (self._noisy(value, stream) > self.threshold).astype(np.float64)

    def _noisy(self, value: ArrayLike, stream: BitStream) -> NDArray[np.int64]:
        counts = np.asarray(value, dtype=np.int64)
        k = self.threshold
        noise = np.empty(counts.size, dtype=np.int64)
        waiting = np.arange(counts.size)
        while waiting.size:
            drawn = discrete_laplace(self._noise_scale, waiting.size, stream)
            inside = np.abs(drawn) <= k
            noise[waiting[inside]] = drawn[inside]
            waiting = waiting[~inside]
        return counts + noise


@dataclass(frozen=True)
class StabilityCounts(StabilityThreshold):
    r"""Report noisy counts of labels where they exceed a threshold.

    The guarantee is that of the threshold alone. A count :math:`n + 1` has :math:`n + 1 + K`, and :math:`n` has
    :math:`n + K`. For every set of outputs, the probabilities differ by a factor of :math:`e^a` at most, except for the
    largest or the least value, which has probability :math:`P(k) \le \delta`. To leave out counts of at most the
    threshold is post-processing, and leaves out every label that does not occur.

    Parameters
    ----------
    epsilon : float
        Of one record, positive and finite.
    delta : float
        Of one record, in (0, 1).
    rows : int, default=1
        Largest number of records that are added or removed together.
    """

    rows: int = 1

    name = "truncated discrete Laplace, counts above a threshold"

    @property
    def sensitivity(self) -> float:  # type: ignore[override]
        """Largest number of records that are added or removed."""
        return float(self.rows)

    def release(self, value: ArrayLike, stream: BitStream) -> NDArray[np.float64]:
        """Return the noisy counts above the threshold, and 0 for all others.

        Parameters
        ----------
        value : array-like of shape (n_labels,)
            Counts of the labels. Labels with a count of 0 may be left out.
        stream : BitStream
            Source of bits.

        Returns
        -------
        reported : ndarray of shape (n_labels,)
            Only the labels with a positive number may be published. The number of the other labels is private.
        """
        noisy = self._noisy(value, stream)
        return np.where(noisy > self.threshold, noisy, 0).astype(np.float64)
