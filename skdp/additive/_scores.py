r"""Log-odds from scores that were fitted with clipped derivatives.

A last release chooses a power: the probabilities of a model are raised to it, and divided by their sum. Half of the sum
of squared differences from the indicators of the labels measures the error of the probabilities.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ..accounting import PrivacyEvent
from ..mechanisms import choice_mechanism
from ..parts.arrays import PartedArray, folded
from ..release.session import Release, ReleaseSession, Theorem
from ..sensitivity import truncate
from ..solvers.linear_descent import probabilities

Array = NDArray[np.float64]

# A smaller mean curvature would claim that steps have moved nothing.
_LEAST_CURVATURE = 0.01


POWER = "power of probabilities"

#: Share of the choice of a power in the budget.
POWER_SHARE = 0.02

#: The powers that a fit may choose.
POWERS = 2.0 ** np.linspace(0, 1.25, 6)

# Other powers than 1 count as if they had so much more error for each record, and the exponent of the choice is reduced
# by the second number, and by the third times the logarithm of the power.
_LEAST_GAIN, _DOUBT, _SLOPE = 0.002, 3.0, 3.0

# Errors are rounded down to multiples of this number, so that their sums are exact.
_STEP = 2.0**-20


@dataclass(frozen=True)
class Link:
    r"""Log-odds as a function of scores.

    If a share :math:`\pi_k` of the records of a cell has label :math:`k`, scores with the probabilities :math:`p`
    minimise the sum of losses whose derivatives :math:`e_k - p` are clipped to `most` if :math:`\pi_k m_k` is
    proportional to :math:`p_k`, for the factor :math:`m_k = \min(1, \text{most}/\|e_k - p\|)` of label :math:`k`.
    """

    most: float = math.inf
    power: float = 1.0

    def logits(self, scores: Array) -> Array:
        """Return log-odds, or logarithms that are log-probabilities up to a constant for several classes."""
        return self.power * self._logits(scores)

    def _logits(self, scores: Array) -> Array:
        if scores.ndim > 1:
            p = probabilities(scores)
            return np.log(np.maximum(p, 1e-300)) + np.log(np.maximum(1.0, self._lengths(p) / self.most))
        first, second = (np.maximum(1.0, special.expit(sign * scores) / self.most) for sign in (-1, 1))
        return scores + np.log(first) - np.log(second)

    def slope(self, scores: Array) -> Array:
        """Return the derivative of the log-odds of two classes."""
        first, second = (special.expit(sign * scores) for sign in (-1, 1))
        return 1.0 - np.where(first > self.most, second, 0.0) - np.where(second > self.most, first, 0.0)

    @staticmethod
    def _lengths(p: Array) -> Array:
        squares = (p**2).sum(axis=1, keepdims=True) + 1 - 2 * p
        return np.sqrt(np.maximum(squares, 0.0))

    def clipped_moments(self, scores: Array) -> tuple[float, float]:
        """Return the mean curvature of a record's clipped loss, and the mean square of its derivative."""
        if scores.ndim == 1:
            share = special.expit(self.logits(scores))
            curvature, square = np.zeros(len(scores)), np.zeros(len(scores))
            for part, length in ((share, special.expit(-scores)), (1 - share, special.expit(scores))):
                curvature += part * np.where(length < self.most, length * (1 - length), 0.0)
                square += part * np.minimum(length, self.most) ** 2
            return max(float(curvature.mean()), _LEAST_CURVATURE), float(square.mean())
        p, shares = probabilities(scores), probabilities(self.logits(scores))
        lengths = self._lengths(p)
        inside = (shares * np.minimum(1.0, self.most / np.maximum(lengths, 1e-30))).sum(axis=1, keepdims=True)
        square = (shares * np.minimum(lengths, self.most) ** 2).sum(axis=1)
        return max(float((inside * p * (1 - p)).mean()), _LEAST_CURVATURE), float(square.mean()) / p.shape[1]


def errors_of_powers(logits: Array, labels: NDArray) -> Array:
    r"""Return the sum of the errors of the probabilities of records, for each power.

    The error of a record with label :math:`y` is :math:`\lVert e_y-p\rVert^2/2=(1-2p_y+\sum_kp_k^2)/2`. It is between 0
    and 1, because :math:`p_y^2\le\sum_kp_k^2\le1`. It is rounded down to a multiple of :math:`2^{-20}`. The logits are
    those of a released model. Therefore an added record raises each sum, by at most 1. A record attains this bound if
    another label has the probability 1.
    """
    found = []
    for power in POWERS:
        p = probabilities(power * logits)
        errors = (1 - 2 * p[np.arange(len(p)), labels] + (p**2).sum(axis=1)) / 2
        found.append(truncate(np.clip(errors, 0.0, 1.0), _STEP).sum())
    return np.array(found)


@dataclass(frozen=True, eq=False)
class PowerChoice:
    """The public plan of the choice of a power."""

    release: Release
    event: PrivacyEvent

    @classmethod
    def of(cls, epsilon: float, delta: float) -> PowerChoice:
        mechanism, event = choice_mechanism(epsilon, delta, POWER_SHARE, 1.0)
        return cls(Release(POWER, mechanism, POWER_SHARE, Theorem("Additive models", 5)), event)

    def chosen(self, session: ReleaseSession, link: Link, logits: Any, labels: Any, count: float) -> Link:
        """Return the link with a power, chosen by the errors that logits have, for a released number of records."""
        arrays = [logits, labels]
        parted = isinstance(labels, PartedArray)
        errors = folded(errors_of_powers, arrays) if parted else errors_of_powers(*arrays)
        scale = getattr(self.release.mechanism, "scale", 0.0)
        beside = (POWERS != 1) * (_LEAST_GAIN * count + scale * (_DOUBT + _SLOPE * np.log(POWERS)))
        # Then all scores are exact.
        beside = np.rint(beside / _STEP) * _STEP
        (place,) = session.release(POWER, -(errors + beside)[None])
        return replace(link, power=float(POWERS[int(place)]))
