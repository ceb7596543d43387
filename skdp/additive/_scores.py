"""Log-odds from scores that were fitted with a margin, or with clipped derivatives."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ..solvers.linear_rule import probabilities

Array = NDArray[np.float64]

# A smaller mean curvature would claim that steps have moved nothing.
_LEAST_CURVATURE = 0.01


@dataclass(frozen=True)
class Link:
    r"""Log-odds as a function of scores.

    If a share :math:`\pi_k` of the records of a cell has label :math:`k`, scores with the probabilities :math:`p`
    minimise the sum of losses whose derivatives :math:`e_k - p` are clipped to `most` if :math:`\pi_k m_k` is
    proportional to :math:`p_k`, for the factor :math:`m_k = \min(1, \text{most}/\|e_k - p\|)` of label :math:`k`. With
    a margin :math:`a` and two classes, the scores solve :math:`\pi\,\sigma(a-s) = (1-\pi)\,\sigma(a+s)`.
    """

    margin: float = 0.0
    most: float = math.inf

    def logits(self, scores: Array) -> Array:
        """Return log-odds, or log-probabilities for several classes."""
        if scores.ndim > 1:
            p = probabilities(scores)
            return np.log(np.maximum(p, 1e-300)) + np.log(np.maximum(1.0, self._lengths(p) / self.most))
        if self.margin > 0:
            return np.asarray(special.log_expit(self.margin + scores) - special.log_expit(self.margin - scores))
        first, second = (np.maximum(1.0, special.expit(sign * scores) / self.most) for sign in (-1, 1))
        return scores + np.log(first) - np.log(second)

    def slope(self, scores: Array) -> Array:
        """Return the derivative of the log-odds of two classes."""
        if self.margin > 0:
            return np.asarray(special.expit(-self.margin - scores) + special.expit(scores - self.margin))
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

    def curvatures(self, scores: Array) -> Array:
        """Return mean second derivatives of the loss with a margin, of shape (outputs, outputs, n_rows)."""
        p = probabilities(self.logits(scores)).T
        if scores.ndim > 1:
            found: Array = np.eye(len(p))[:, :, None] * p - p[:, None] * p
            return found
        upper, lower = (special.expit(self.margin + sign * scores) for sign in (-1, 1))
        return (p[1] * upper * (1 - upper) + p[0] * lower * (1 - lower))[None, None]
